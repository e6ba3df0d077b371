"""Scores of maps, with all that concerns the data alone found once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import metrics
from drsne.anomaly import detectors, evaluate_anomaly
from drsne.experiments.methods import Ready
from drsne.metrics import concentration, density
from drsne.metrics._inputs import euclidean
from drsne.metrics.trust import kept, own_neighbors

Array = NDArray[np.float64]
# The paper's main table: name, neighbours.
MAIN = (("trustworthiness", 10), ("concentration_correlation", 29), ("density_rank_correlation", 30))

_RANKED = ("auprc", "auroc")


def scores(ready: Ready, Y: Array, wanted: Sequence[tuple[str, int | None]], labels: Any = None) -> dict[str, float]:
    """The ``wanted`` scores (name, neighbours) of a map of the data.

    "anomaly" stands for AUPRC and AUROC of every detector (``auprc_knn`` and so on), with ``labels`` of 0 and 1.
    """
    if not np.isfinite(Y).all():
        raise ValueError("The map has values that are not finite.")
    found: dict[str, float] = {}
    for name, k in wanted:
        if name == "anomaly":
            told = evaluate_anomaly(Y, labels)
            found |= {f"{score}_{detector}": told[detector][score] for detector in told for score in _RANKED}
        else:
            found[name] = _score(ready, Y, name, k, labels)
    if without := [name for name, value in found.items() if np.isnan(value)]:
        raise ValueError(f"The map has no {', '.join(without)}: it is constant, or its neighbours are.")
    return found


def names(wanted: str) -> list[str]:
    """What a score that is asked for is called where it is found: itself, or several."""
    return [f"{score}_{detector}" for detector in detectors() for score in _RANKED] if wanted == "anomaly" else [wanted]


def _score(ready: Ready, Y: Array, name: str, k: int | None, labels: Any) -> float:
    X, rows = ready.X, np.arange(len(Y))
    if name == "trustworthiness" and k is not None:
        return float(kept(ready.once("space", lambda: euclidean(X)), own_neighbors(Y, k, rows), k, rows)[0])
    if name == "concentration_correlation" and k is not None:
        return float(concentration.correlation(ready.neighbors(k)[0], Y, rows))
    if name == "density_rank_correlation" and k is not None:
        return float(density.correlation(ready.neighbors(k)[0].distances[:, -1], Y, k, rows))
    if name == "silhouette":
        return float(metrics.silhouette(Y, labels))
    if name == "stress":
        return float(metrics.stress(X, Y))
    if name == "continuity" and k is not None:
        return float(metrics.continuity(X, Y, k))
    raise ValueError(f"scores must be names of drsne.metrics with their number of neighbours; got {(name, k)!r}.")
