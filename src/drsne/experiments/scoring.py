"""Scores of maps. Everything that depends only on the data is computed once for all maps of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drsne import metrics
from drsne.anomaly import detectors, evaluate_anomaly
from drsne.experiments.methods import Array, Workspace
from drsne.metrics import concentration, density
from drsne.metrics._inputs import euclidean
from drsne.metrics._on_processor import own_neighbors
from drsne.metrics.fragmentation import torn_share
from drsne.metrics.trust import kept

MAIN = (("trustworthiness", 10), ("concentration_correlation", 29), ("density_rank_correlation", 30))  # in the paper
ANOMALY = "anomaly"  # stands for the AUPRC and AUROC of every detector

_RANKED = ("auprc", "auroc")


def scores(
    workspace: Workspace, Y: Array, wanted: Sequence[tuple[str, int | None]], labels: Any = None
) -> dict[str, float]:
    """Return the ``wanted`` scores (name, number of neighbours) of a map of the data.

    The name "anomaly" stands for the AUPRC and AUROC of every detector (``auprc_knn`` and so on). The ``labels`` must
    then be 1 for anomalies and 0 for other points.
    """
    if not np.isfinite(Y).all():
        raise ValueError("The map has values that are not finite.")
    out: dict[str, float] = {}
    for name, k in wanted:
        if name == ANOMALY:
            results = evaluate_anomaly(Y, labels)
            out |= {f"{score}_{detector}": results[detector][score] for detector in results for score in _RANKED}
        else:
            out[name] = _score(workspace, Y, name, k, labels)
    if undefined := [name for name, value in out.items() if np.isnan(value)]:
        raise ValueError(
            f"The map has no {', '.join(undefined)}: it is constant, or all neighbours are equally far away."
        )
    return out


def score_names(wanted: str) -> list[str]:
    """Return the names that a requested score has among the metrics: its own name, or one for each detector."""
    return [f"{score}_{detector}" for detector in detectors() for score in _RANKED] if wanted == ANOMALY else [wanted]


def _score(workspace: Workspace, Y: Array, name: str, k: int | None, labels: Any) -> float:
    X, rows = workspace.X, np.arange(len(Y))
    if name == "silhouette":
        return float(metrics.silhouette(Y, labels))
    if name == "stress":
        return float(metrics.stress(X, Y))
    if k is not None:
        if name == "trustworthiness":
            space = workspace.cached("space", lambda: euclidean(X))
            return float(kept(space, own_neighbors(Y, k, rows), k, rows)[0])
        if name == "continuity":
            return float(metrics.continuity(X, Y, k))
        if name == "concentration_correlation":
            return float(concentration.correlation(workspace.neighbors(k)[0], Y, rows))
        if name in ("density_rank_correlation", "local_density_rank_correlation"):
            return float(density.correlation(workspace.neighbors(k)[0].distances[:, -1], Y, k, rows))
        if name == "fragmentation":
            return float(torn_share(workspace.neighbors(k)[0], Y, rows))
    raise ValueError(f"scores must be pairs of a name in drsne.metrics and a number of neighbours; got {(name, k)!r}.")
