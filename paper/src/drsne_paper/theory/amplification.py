"""Amplified radii, ``log r -> beta log r``: how the pointwise loss and correlations respond (theory, section 5).

With ``e = (beta - 1) log r + log mean(r^-beta) - log mean(r^-1)`` the loss has a closed form,
``(1 - beta)^2 Var(log r) + mean(e)^2``. The derivative of mean(e) with respect to beta is the mean of log r minus the
mean of log r weighted by r^-beta. It is never negative, so both terms grow away from beta = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drsne import DenSNE
from drsne_paper._private import DEFAULT_SMOOTHING, correlation_and_slope, loss_and_slope, profile, standardized
from drsne_paper.methods import Workspace
from drsne_paper.theory import AMPLIFICATION, DOUBLE_ROUNDING, Check, Finding
from drsne_paper.theory.problems import NONE, Array, K

BETAS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
DATA = {"digits": "Digits", "controlled_clusters": "Controlled Clusters"}
CLOSED_FORM, ZERO, CORRELATIONS = "amplification_closed_form", "amplification_zero", "amplification_correlations"
NEAR_ONE = 64 * DOUBLE_ROUNDING  # largest departure of a correlation from 1


def _radii(workspace: Workspace) -> Array:
    return np.asarray(workspace.neighbors(K)[0].distances.mean(axis=1))


def _loss(r: Array, beta: float, smoothing: Any = NONE) -> float:
    target = profile(r, 1.0, smoothing).log
    return loss_and_slope(target, profile(r**beta, 1.0, smoothing), 1.0, smoothing, attached=True)[0]


def _rounding(r: Array, beta: float) -> float:
    """Return a bound on the rounding error of a difference between two profiles."""
    return float(16.0 * DOUBLE_ROUNDING * (1.0 + (1.0 + beta) * np.abs(np.log(r)).max()))


def _table(r: Array) -> list[dict[str, float]]:
    """Return, for every beta, the loss, the two parts of its closed form, and correlations of log radii."""
    from scipy.stats import pearsonr, spearmanr

    log = np.log(r)
    shift = float(DenSNE().variance_shift)
    out = []
    for beta in BETAS:
        amplified = np.log(r**beta)
        offset = (beta - 1.0) * log.mean() + np.log((r**-beta).mean()) - np.log((r**-1.0).mean())
        out.append(
            {
                "beta": beta,
                "loss": _loss(r, beta),
                "smoothed_loss": _loss(r, beta, DEFAULT_SMOOTHING),
                "spread": float((1.0 - beta) ** 2 * log.var()),
                "offset": float(offset**2),
                "pearson": float(pearsonr(log, amplified).statistic),
                "spearman": float(spearmanr(log, amplified).statistic),
                # den-SNE's radii are squared lengths.
                "densne": correlation_and_slope(standardized(2.0 * log), 2.0 * amplified, shift)[0],
                "rounding": _rounding(r, beta),
            }
        )
    return out


def _closed_form(workspace: Workspace) -> Finding:
    rows = _table(_radii(workspace))
    cases = []
    for row in rows:
        expected = row["spread"] + row["offset"]
        if row["beta"] != 1.0:
            wrong = row["rounding"]
            allowed = 2.0 * wrong / np.sqrt(expected) + wrong**2 / expected
            cases.append((abs(row["loss"] / expected - 1.0), float(allowed)))
    worst = max(cases)
    return Finding(
        number=worst[0],
        bound=worst[1],
        also=all(difference <= allowed for difference, allowed in cases),
        numbers={"rows": rows, "variance": float(np.log(_radii(workspace)).var())},
    )


def _zero(workspace: Workspace) -> Finding:
    rows = _table(_radii(workspace))
    losses = [row["loss"] for row in rows]
    one = BETAS.index(1.0)
    steps = np.diff(losses)
    grows = bool((steps[:one] < 0).all() and (steps[one:] > 0).all())
    return Finding(number=losses[one], bound=rows[one]["rounding"] ** 2, also=grows, numbers={"losses": losses})


def _correlations(workspace: Workspace) -> Finding:
    rows = _table(_radii(workspace))
    away = {kind: max(abs(1.0 - row[kind]) for row in rows) for kind in ("pearson", "spearman")}
    return Finding(number=max(away.values()), bound=NEAR_ONE, numbers=away)


_KINDS = (
    (
        CLOSED_FORM,
        _closed_form,
        "closed form",
        "the loss is (1 - beta)^2 Var(log r) + mean(e)^2",
        "A.5; (18), (28), (29)",
    ),
    (ZERO, _zero, "zero only at 1", "the loss is zero at beta = 1 and grows on both sides", "A.5; docs 5"),
    (
        CORRELATIONS,
        _correlations,
        "correlations",
        "Pearson's correlation of the logarithms and the rank correlation are 1 for every beta",
        "A.5; docs 5",
    ),
)
CHECKS = tuple(
    Check(
        name=name,
        subject=AMPLIFICATION,
        dataset=dataset,
        size="digits" if dataset == "digits" else "generated",
        settings={"k": K, "betas": list(BETAS)},
        measure=measure,
        title=f"{title}, {data_title}",
        claim=claim,
        where=where,
    )
    for dataset, data_title in DATA.items()
    for name, measure, title, claim, where in _KINDS
)
