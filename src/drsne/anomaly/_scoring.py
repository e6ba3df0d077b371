"""Anomaly scores of the points of a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne import checks
from drsne.anomaly import _detector
from drsne.anomaly._detector import Detector

Array = NDArray[np.float64]


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


def _points(Y: ArrayLike) -> Array:
    from sklearn.utils import check_array

    if hasattr(Y, "toarray"):
        raise TypeError(f"Y must be a dense array; got {type(Y).__name__}. Pass Y.toarray().")
    if isinstance(Y, np.ma.MaskedArray) and (masked := int(np.sum(np.ma.getmaskarray(Y)))):
        raise ValueError(
            f"Y must have no masked coordinates; got {masked}. Replace the masked values, or drop their rows."
        )
    checks.refuse_text("Y", Y)
    try:
        array = np.asarray(Y)
    except ValueError as error:
        raise ValueError("Y must be an array; got rows of different lengths. Make them equally long.") from error
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


def _kind_of(values: Any, array: NDArray[Any]) -> str:
    """Return a short description of the argument."""
    if array.ndim == 0:
        return "None" if values is None else type(values).__name__
    return f"shape {array.shape}" + (f" of {array.dtype}" if array.dtype.kind == "c" else "")


def _finite_scores(name: str, detector: Detector, points: Array, params: dict[str, Any]) -> Array:
    with np.errstate(over="ignore"):  # the scores are checked below
        scores = detector.scores(points, params)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"Y must be small enough for the distances of detector {name!r} to be finite; got values up to "
            f"{np.abs(points).max():g}. Divide Y by this number."
        )
    return scores
