"""Scores of points by a detector, and how well they tell marked anomalies from the rest."""

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
_ROUNDING = 1e-13  # of the largest score: what differs by less is equal


def anomaly_scores(Y: ArrayLike, detector: str = "isolation_forest", **params: Any) -> Array:
    """How anomalous each point of a map is, by one detector. No labels are used.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        A map (or any data), at least two points.
    detector : str, default="isolation_forest"
        One of ``detectors()``.
    **params : Any
        Parameters of the detector in place of the paper's: those of ``KNeighborsDistance`` ("knn"),
        ``CentroidDistance`` ("centroid"), scikit-learn's ``LocalOutlierFactor`` ("lof") or ``IsolationForest``
        ("isolation_forest").

    Returns
    -------
    ndarray of shape (n_samples,)
        Higher where more anomalous (scikit-learn's own scores have the other sign). The same at every call, unless
        another ``random_state`` is passed to the forest.

    Examples
    --------
    >>> from drsne.anomaly import anomaly_scores
    >>> anomaly_scores([[0.0, 0.0], [0.0, 1.0], [3.0, 5.0]], "knn", n_neighbors=1).tolist()
    [1.0, 1.0, 5.0]
    """
    found = _detector.find(detector)
    known = found.parameters()
    for name in params:
        if name not in known:
            hint = _detector.near(name, known)
            raise TypeError(
                f"detector={detector!r} takes {', '.join(known) or 'no parameters'}; got {name!r}. "
                f"{hint or 'Leave it out.'}"
            )
    return _finite(detector, found, _points(Y), params)


def evaluate_anomaly(
    Y: ArrayLike, y: ArrayLike, detectors: str | Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """How well detectors on a map find the anomalies that ``y`` marks. The labels serve the score only.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        A map (or any data).
    y : array-like of shape (n_samples,)
        1 or True for anomalous points, 0 or False for normal ones; both must occur.
    detectors : str or sequence of str, default=None
        Some of ``detectors()``; None for all.

    Returns
    -------
    dict
        For each detector ``{"auprc": ..., "auroc": ...}``: scikit-learn's ``average_precision_score`` (the share of
        anomalies is what chance gives) and ``roc_auc_score`` (chance gives .5).

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
    out = {}
    for name, found in chosen.items():
        scores = _finite(name, found, points, {})
        if np.ptp(scores) <= _ROUNDING * np.abs(scores).max():
            raise ValueError(
                f"detector {name!r} gives every point of Y the same score ({scores[0]:g}), so no ranking: AUPRC would "
                "be the share of anomalies, whatever the map. Rescale or refit a map that is collapsed, or leave this "
                "detector out of detectors."
            )
        out[name] = {
            "auprc": float(average_precision_score(anomalous, scores)),
            "auroc": float(roc_auc_score(anomalous, scores)),
        }
    return out


def _points(Y: ArrayLike) -> Array:
    from sklearn.utils import check_array

    if hasattr(Y, "toarray"):
        raise TypeError(f"Y must be a dense array; got {type(Y).__name__}. Pass Y.toarray().")
    _refuse_masked("Y", Y, "coordinates", "Fill them in, or leave their rows out.")
    checks.refuse_text("Y", Y)
    given = _as_array("Y", Y)
    if given.ndim != 2 or given.shape[1] == 0 or given.dtype.kind == "c":
        raise ValueError(
            f"Y must be real numbers, points by coordinates; got {_kind_of(Y, given)}. Pass Y.reshape(-1, 1) if it is "
            "a map in one dimension."
        )
    points = np.asarray(check_array(Y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, input_name="Y"))
    if len(points) < 2:
        raise ValueError(f"Y must have at least 2 points to compare; got {len(points)}. Pass the whole map.")
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"Y must be finite; got NaN or infinity in {len(wrong)} of {len(points)} rows, the first of them row "
            f"{wrong[0]}. Drop those rows, or fit the map again."
        )
    return points


def _labels(y: ArrayLike, n_samples: int) -> NDArray[np.bool_]:
    if y is None:
        raise ValueError("y must be the labels of the rows of Y; got None. anomaly_scores needs no labels.")
    _refuse_masked("y", y, "labels", "Leave their rows out.")
    labels = _as_array("y", y)
    if labels.ndim != 1:
        way = "Pass np.ravel(y)" if labels.ndim else "Pass an array of 0 and 1"
        raise ValueError(f"y must have one dimension; got {_kind_of(y, labels)}. {way}.")
    if len(labels) != n_samples:
        raise ValueError(
            f"y must have a label for each of the {n_samples} rows of Y; got {len(labels)}. Pass the labels of the "
            "rows that were embedded."
        )
    values = labels.tolist()
    if wrong := [value for value in values if not (isinstance(value, (Real, np.bool_)) and value in (0, 1))]:
        different = list(dict.fromkeys(repr(value) for value in wrong))
        shown = ", ".join(different[:5]) + (", ..." if len(different) > 5 else "")
        raise ValueError(
            f"y must be 1 (or True) for anomalous points and 0 for normal ones; got {shown}. Pass y == c for an "
            "anomalous class c (y == -1 where scikit-learn marks outliers)."
        )
    if len(set(values)) < 2:
        raise ValueError(
            f"y must mark both anomalous and normal points; got {int(values[0])} for all {n_samples}. AUPRC and AUROC "
            "compare the two; anomaly_scores needs no labels."
        )
    return np.asarray(labels == 1, dtype=np.bool_)


def _refuse_masked(name: str, values: Any, what: str, way: str) -> None:
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.sum(np.ma.getmaskarray(values)))):
        raise ValueError(f"{name} must have no masked {what}; got {masked}. {way}")


def _as_array(name: str, values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array; got parts of different lengths. Make them equally long.") from error


def _kind_of(values: Any, array: NDArray[Any]) -> str:
    """What was passed, in few words."""
    if array.ndim == 0:
        return "None" if values is None else type(values).__name__
    return f"shape {array.shape}" + (f" of {array.dtype}" if array.dtype.kind == "c" else "")


def _names(detectors: str | Sequence[str] | None) -> list[str]:
    if detectors is None:
        return _detector.detectors()
    if isinstance(detectors, bytes) or not isinstance(detectors, Iterable):
        raise TypeError(f"detectors must be a name, several names or None; got {detectors!r}. Pass None for all.")
    given = [detectors] if isinstance(detectors, str) else list(detectors)
    names = [str(name) if isinstance(name, str) else name for name in given]
    if not names:
        raise ValueError("detectors must name at least one detector; got none. Pass None for all.")
    return names


def _finite(name: str, detector: Detector, points: Array, params: dict[str, Any]) -> Array:
    with np.errstate(over="ignore"):  # what comes out is checked
        scores = detector.scores(points, params)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"Y must have distances that detector {name!r} can hold; got values up to {np.abs(points).max():g}. "
            "Divide Y by that first."
        )
    return scores
