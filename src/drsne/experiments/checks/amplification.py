"""Amplified radii, ``log r -> beta log r``: what the pointwise loss and correlations say of them (theory, section 5).

With ``e = (beta - 1) log r + log mean(r^-beta) - log mean(r^-1)`` the loss has a closed form,
``(1 - beta)^2 Var(log r) + mean(e)^2``. The derivative of mean(e) by beta is the mean of log r less its mean weighted
by r^-beta, never negative: both terms grow away from beta = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from drsne import datasets
from drsne.estimators.densne import DenSNE
from drsne.experiments.checks import DOUBLE_ROUNDING, Check, Finding, Size
from drsne.experiments.checks.problems import NONE, Array, K, digits
from drsne.neighbors.search import knn
from drsne.objectives.concentration import DEFAULT_SMOOTHING, loss_and_slope, profile
from drsne.objectives.densne import correlation_and_slope, standardized

GROUP = "amplification"
BETAS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
DATA = {"digits": "Digits", "controlled_clusters": "Controlled Clusters"}
NEAR_ONE = 64 * DOUBLE_ROUNDING  # of a correlation


@lru_cache(maxsize=4)
def _radii(name: str, size: Size) -> Array:
    X = digits(size.digits) if name == "digits" else datasets.load(name, n_samples=size.generated).X
    return np.asarray(knn(X, K).distances.mean(axis=1))


def _loss(r: Array, beta: float, smoothing: Any = NONE) -> float:
    target = profile(r, 1.0, smoothing).log
    return loss_and_slope(target, profile(r**beta, 1.0, smoothing), 1.0, smoothing, attached=True)[0]


def _rounding(r: Array, beta: float) -> float:
    """What rounding may do to a difference of profiles."""
    return float(16.0 * DOUBLE_ROUNDING * (1.0 + (1.0 + beta) * np.abs(np.log(r)).max()))


def _table(r: Array) -> list[dict[str, float]]:
    """For every beta: the loss, its closed form in two parts, and correlations of log radii."""
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


def _closed_form(name: str, size: Size) -> Finding:
    rows = _table(_radii(name, size))
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
        also=all(found <= allowed for found, allowed in cases),
        numbers={"rows": rows, "variance": float(np.log(_radii(name, size)).var())},
    )


def _grows(name: str, size: Size) -> Finding:
    rows = _table(_radii(name, size))
    losses = [row["loss"] for row in rows]
    one = BETAS.index(1.0)
    steps = np.diff(losses)
    grows = bool((steps[:one] < 0).all() and (steps[one:] > 0).all())
    return Finding(number=losses[one], bound=rows[one]["rounding"] ** 2, also=grows, numbers={"losses": losses})


def _correlations(name: str, size: Size) -> Finding:
    rows = _table(_radii(name, size))
    away = {kind: max(abs(1.0 - row[kind]) for row in rows) for kind in ("pearson", "spearman")}
    return Finding(number=max(away.values()), bound=NEAR_ONE, numbers=away)


_CLAIMS: tuple[tuple[str, str, str, Callable[[str, Size], Finding]], ...] = (
    ("closed form", "the loss is (1 - beta)^2 Var(log r) + mean(e)^2", "A.5; (18), (28), (29)", _closed_form),
    ("zero at 1 alone", "the loss vanishes at beta = 1 and grows on both sides", "A.5; docs 5", _grows),
    ("correlations", "Pearson of logs and rank correlation are 1 for every beta", "A.5; docs 5", _correlations),
)
CHECKS = tuple(
    Check(
        group=GROUP,
        name=f"{kind}, {title}",
        claim=claim,
        where=where,
        settings={"k": K, "betas": BETAS, "data": name},
        measure=partial(measure, name),
    )
    for name, title in DATA.items()
    for kind, claim, where, measure in _CLAIMS
)
