"""Scores of maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from drsne import metrics
from drsne.anomaly import anomaly_scores, detectors
from drsne_paper.methods import Array, Workspace

MAIN = (("trustworthiness", 10), ("concentration_correlation", 29), ("density_rank_correlation", 30))  # in the paper
ANOMALY = "anomaly"  # stands for the AUPRC and AUROC of every detector

_RANKED = ("auprc", "auroc")
_METRICS = {"local_density_rank_correlation": "density_rank_correlation"}  # the same metric at fewer neighbours
_ROUNDING = 1e-13  # scores count as equal if their difference is at most this fraction of the largest score


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


def evaluate_anomaly(Y: Array, labels: Any) -> dict[str, dict[str, float]]:
    """Return the AUPRC and AUROC of every detector of drsne in a map, or in data. Detectors do not use the labels.

    Examples
    --------
    >>> from drsne_paper.scoring import evaluate_anomaly
    >>> Y = [[place % 8, place // 8] for place in range(64)] + [[99, 99]]
    >>> evaluate_anomaly(Y, [0] * 64 + [1])["knn"]
    {'auprc': 1.0, 'auroc': 1.0}
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    if set(np.unique(labels)) != {0, 1}:
        raise ValueError("labels must be 1 for anomalous points and 0 for normal points, and contain both.")
    evaluated = {}
    for name in detectors():
        scores = anomaly_scores(Y, name)
        if np.ptp(scores) <= _ROUNDING * np.abs(scores).max():
            raise ValueError(
                f"The detector {name!r} gives every point of the map the same score ({scores[0]:g}), so the points "
                "cannot be ranked. The map may have collapsed."
            )
        evaluated[name] = {
            "auprc": float(average_precision_score(labels, scores)),
            "auroc": float(roc_auc_score(labels, scores)),
        }
    return evaluated


def _score(workspace: Workspace, Y: Array, name: str, k: int | None, labels: Any) -> float:
    if name == "silhouette":
        return float(metrics.silhouette(Y, labels))
    if name == "stress":
        return float(metrics.stress(workspace.X, Y))
    score = getattr(metrics, _METRICS.get(name, name), None)
    if k is None or score is None:
        raise ValueError(f"scores must have a name in drsne.metrics and a number of neighbours; got {(name, k)!r}.")
    return float(score(workspace.X, Y, k))
