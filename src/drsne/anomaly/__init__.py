"""Anomalies in a map: detectors that score points.

A detector uses only the map (or any data), and does not depend on how the map was made. Listing the detectors does not
import their estimators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne import checks

if TYPE_CHECKING:
    from drsne.anomaly.distances import CentroidDistance, KNeighborsDistance

__all__ = ["CentroidDistance", "KNeighborsDistance", "anomaly_scores", "detectors"]

# The forest uses single precision. It can tell points apart if half of the extent of the map is in the range
# _HALF_EXTENTS and the map is at most _MAX_OFFSET half extents away from the origin. Other maps are moved and scaled so
# that half of their extent is about _TARGET.
_HALF_EXTENTS, _MAX_OFFSET, _TARGET = (2.0**-6, 2.0**100), 2.0**6, 2.0**6

Array = NDArray[np.float64]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'drsne.anomaly' has no attribute {name!r}")
    return resolve_name(f"drsne.anomaly.distances:{name}")


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A scikit-learn estimator whose scores are lower for more abnormal points."""

    home: str  # where the estimator is, because listing the detectors must not import it
    settings: Mapping[str, Any] = field(default_factory=dict)  # parameters of the paper that are not the defaults
    training: str | None = None  # fitted attribute with the scores of the fitted rows; None stands for score_samples
    unitless: bool = False  # whether the scores do not change when the map is moved or scaled

    def estimator(self, **params: Any) -> Any:
        """Return the estimator with the settings of the paper, except for these parameters."""
        return resolve_name(self.home)(**{**self.settings, **params})

    def fitted(self, Y: Array, params: Mapping[str, Any]) -> tuple[Any, Array]:
        """Return an estimator that was fitted to ``Y``, and its scores of the rows of ``Y``, with their usual sign."""
        model = self.estimator(**params).fit(Y)
        normality = model.score_samples(Y) if self.training is None else getattr(model, self.training)
        return model, np.asarray(normality, dtype=np.float64)

    def parameters(self) -> list[str]:
        """Return the names of the parameters of the estimator."""
        return sorted(self.estimator().get_params())


DETECTORS = {
    "centroid": Detector(home="drsne.anomaly.distances:CentroidDistance", training="negative_distance_"),
    "isolation_forest": Detector(
        home="sklearn.ensemble:IsolationForest",
        settings={"n_estimators": 500, "random_state": 777, "contamination": "auto"},  # as in the paper, for every map
        unitless=True,
    ),
    "knn": Detector(home="drsne.anomaly.distances:KNeighborsDistance", training="negative_distance_"),
    "lof": Detector(
        home="sklearn.neighbors:LocalOutlierFactor",
        settings={"n_neighbors": 20},
        training="negative_outlier_factor_",
        unitless=True,
    ),
}


def detectors() -> list[str]:
    """Return the names of the detectors. Their estimators are not imported.

    Returns
    -------
    list of str
        The names in alphabetical order.

    Examples
    --------
    >>> from drsne import anomaly
    >>> anomaly.detectors()
    ['centroid', 'isolation_forest', 'knn', 'lof']
    """
    return list(DETECTORS)


def find(name: Any) -> Detector:
    """Return the detector with this name, or raise an error with a suggestion."""
    hint = "Did you mean 'isolation_forest'?" if isinstance(name, str) and name.lower() == "if" else ""
    checks.choice("detector", name, detectors(), hint=hint)
    return DETECTORS[name]


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
    chosen = find(detector)
    known = chosen.parameters()
    for name in params:
        if name not in known:
            raise TypeError(
                f"detector={detector!r} takes {', '.join(known) or 'no parameters'}; got {name!r}. "
                f"{checks.did_you_mean(name, known) or 'Remove this parameter.'}"
            )
    points = _points(Y)
    with np.errstate(over="ignore"):  # the scores are checked below
        scores = -chosen.fitted(_in_single_precision_range(points) if chosen.unitless else points, params)[1]
    if not np.isfinite(scores).all():
        raise ValueError(
            f"Y must be small enough for the distances of detector {detector!r} to be finite; got values up to "
            f"{np.abs(points).max():g}. Divide Y by this number."
        )
    return scores


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
        kind = f"shape {array.shape}" if array.ndim else "None" if Y is None else type(Y).__name__
        of = f" of {array.dtype}" if array.ndim and array.dtype.kind == "c" else ""
        raise ValueError(
            f"Y must contain real numbers, with points as rows and coordinates as columns; got {kind}{of}. "
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


def _in_single_precision_range(Y: Array) -> Array:
    """Return ``Y``, moved and scaled if single precision cannot distinguish its points."""
    from drsne.precision import unit_scale

    low, high = Y.min(axis=0) / 2, Y.max(axis=0) / 2
    half, middle = float((high - low).max()), low + high
    if half == 0 or (_HALF_EXTENTS[0] <= half <= _HALF_EXTENTS[1] and np.abs(middle).max() <= _MAX_OFFSET * half):
        return Y
    unit = unit_scale(np.array([half])) / 2  # a power of two, so that the division is exact
    return np.asarray((Y / unit - middle / unit) * _TARGET)
