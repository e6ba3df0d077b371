"""Anomaly scores of the points of a map, and how well these scores find the labelled anomalies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne import checks
from drsne.anomaly import _detector
from drsne.anomaly._detector import Detector

Array = NDArray[np.float64]
_ROUNDING = 1e-13  # scores count as equal if their difference is at most this fraction of the largest score


def anomaly_scores(Y: ArrayLike, detector: str = "isolation_forest", **params: Any) -> Array:
    """Return the anomaly score of each point of a map, as given by one detector. No labels are used.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The map (or any data), with at least two points.
    detector : str, default="isolation_forest"
        The name of the detector, one of ``detectors()``.
    **params : Any
        Parameters of the detector, which replace the values used in the paper. They are the parameters of
        ``KNeighborsDistance`` ("knn"), ``CentroidDistance`` ("centroid"), or scikit-learn's ``LocalOutlierFactor``
        ("lof") or ``IsolationForest`` ("isolation_forest").

    Returns
    -------
    ndarray of shape (n_samples,)
        The scores. More anomalous points have higher scores (scikit-learn's own scores have the opposite sign). The
        scores are the same in every call, unless a different ``random_state`` is passed to the forest.

    Examples
    --------
    >>> from drsne.anomaly import anomaly_scores
    >>> anomaly_scores([[0.0, 0.0], [0.0, 1.0], [3.0, 5.0]], "knn", n_neighbors=1).tolist()
    [1.0, 1.0, 5.0]
    """
    chosen = _detector.find(detector)
    known = chosen.parameters()
    for name in params:
        if name not in known:
            raise TypeError(
                f"detector={detector!r} takes {', '.join(known) or 'no parameters'}; got {name!r}. "
                f"{checks.did_you_mean(name, known) or 'Remove this parameter.'}"
            )
    return _finite_scores(detector, chosen, _points(Y), params)


def evaluate_anomaly(
    Y: ArrayLike, y: ArrayLike, detectors: str | Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """Return how well detectors find the anomalies of a map. The detectors do not use the labels ``y``.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The map (or any data).
    y : array-like of shape (n_samples,)
        The labels: 1 or True for anomalous points, 0 or False for normal points. Both kinds of points must occur.
    detectors : str or sequence of str, default=None
        The names of the detectors, from ``detectors()``. If None, use all detectors.

    Returns
    -------
    dict
        For each detector, ``{"auprc": ..., "auroc": ...}``. AUPRC is scikit-learn's ``average_precision_score``; random
        scores reach the fraction of anomalies. AUROC is scikit-learn's ``roc_auc_score``; random scores reach .5.

    Examples
    --------
    >>> from drsne.anomaly import evaluate_anomaly
    >>> evaluate_anomaly([[0.0], [1.0], [2.0], [9.0]], [0, 0, 0, 1], "centroid")
    {'centroid': {'auprc': 1.0, 'auroc': 1.0}}
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    points = _points(Y)
    anomalous = _labels(y, len(points))
    chosen = {name: _detector.find(name, "detectors") for name in _names(detectors)}
    evaluated = {}
    for name, detector in chosen.items():
        scores = _finite_scores(name, detector, points, {})
        if np.ptp(scores) <= _ROUNDING * np.abs(scores).max():
            raise ValueError(
                f"detector {name!r} gives every point of Y the same score ({scores[0]:g}), so the points cannot be "
                "ranked. If the map has collapsed, rescale it or fit it again. Otherwise, remove this detector from "
                "detectors."
            )
        evaluated[name] = {
            "auprc": float(average_precision_score(anomalous, scores)),
            "auroc": float(roc_auc_score(anomalous, scores)),
        }
    return evaluated


def _points(Y: ArrayLike) -> Array:
    from sklearn.utils import check_array

    if hasattr(Y, "toarray"):
        raise TypeError(f"Y must be a dense array; got {type(Y).__name__}. Pass Y.toarray().")
    _refuse_masked("Y", Y, "coordinates", "Replace the masked values, or drop their rows.")
    checks.refuse_text("Y", Y)
    array = _as_array("Y", Y)
    if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind == "c":
        raise ValueError(
            f"Y must contain real numbers, with points as rows and coordinates as columns; got {_kind_of(Y, array)}. "
            "Pass Y.reshape(-1, 1) if the map has one dimension."
        )
    points = np.asarray(check_array(Y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, input_name="Y"))
    if len(points) < 2:
        raise ValueError(f"Y must have at least 2 points to compare; got {len(points)}. Pass the whole map.")
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"Y must be finite; got NaN or infinity in {len(wrong)} of {len(points)} rows, first in row "
            f"{wrong[0]}. Drop these rows, or fit the map again."
        )
    return points


def _labels(y: ArrayLike, n_samples: int) -> NDArray[np.bool_]:
    if y is None:
        raise ValueError(
            "y must contain the labels of the rows of Y; got None. Pass y, or use anomaly_scores, which needs no "
            "labels."
        )
    _refuse_masked("y", y, "labels", "Drop the rows with masked labels.")
    labels = _as_array("y", y)
    if labels.ndim != 1:
        way_out = "Pass np.ravel(y)" if labels.ndim else "Pass an array of 0 and 1"
        raise ValueError(f"y must have one dimension; got {_kind_of(y, labels)}. {way_out}.")
    if len(labels) != n_samples:
        raise ValueError(
            f"y must have a label for each of the {n_samples} rows of Y; got {len(labels)}. Pass the labels of the "
            "rows that were embedded."
        )
    values = labels.tolist()
    if wrong := [value for value in values if not (isinstance(value, (Real, np.bool_)) and value in (0, 1))]:
        distinct = list(dict.fromkeys(repr(value) for value in wrong))
        shown = ", ".join(distinct[:5]) + (", ..." if len(distinct) > 5 else "")
        raise ValueError(
            f"y must be 1 (or True) for anomalous points and 0 (or False) for normal points; got {shown}. Pass y == c "
            "if c is the anomalous class (y == -1 if the labels come from an outlier detector of scikit-learn)."
        )
    if len(set(values)) < 2:
        raise ValueError(
            f"y must contain both anomalous and normal points; got {int(values[0])} for all {n_samples} points. AUPRC "
            "and AUROC compare the two kinds. Pass labels with both, or use anomaly_scores, which needs no labels."
        )
    return np.asarray(labels == 1, dtype=np.bool_)


def _refuse_masked(name: str, values: Any, what: str, way_out: str) -> None:
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.sum(np.ma.getmaskarray(values)))):
        raise ValueError(f"{name} must have no masked {what}; got {masked}. {way_out}")


def _as_array(name: str, values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array; got rows of different lengths. Make them equally long.") from error


def _kind_of(values: Any, array: NDArray[Any]) -> str:
    """Return a short description of the argument."""
    if array.ndim == 0:
        return "None" if values is None else type(values).__name__
    return f"shape {array.shape}" + (f" of {array.dtype}" if array.dtype.kind == "c" else "")


def _names(detectors: str | Sequence[str] | None) -> list[str]:
    if detectors is None:
        return _detector.detectors()
    if isinstance(detectors, bytes) or not isinstance(detectors, Iterable):
        raise TypeError(f"detectors must be a name, a list of names or None; got {detectors!r}. Pass None to use all.")
    listed = [detectors] if isinstance(detectors, str) else list(detectors)
    names = [str(name) if isinstance(name, str) else name for name in listed]
    if not names:
        raise ValueError("detectors must contain at least one name; got none. Pass None to use all detectors.")
    return names


def _finite_scores(name: str, detector: Detector, points: Array, params: dict[str, Any]) -> Array:
    with np.errstate(over="ignore"):  # the scores are checked below
        scores = detector.scores(points, params)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"Y must be small enough for the distances of detector {name!r} to be finite; got values up to "
            f"{np.abs(points).max():g}. Divide Y by this number."
        )
    return scores
