"""The class of a detector, and the registry of the detectors in this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.registry import Registry

# The forest uses single precision. It can tell points apart if half of the extent of the map is in the range
# _HALF_EXTENTS and the map is at most _MAX_OFFSET half extents away from the origin. Other maps are moved and scaled so
# that half of their extent is about _TARGET.
_HALF_EXTENTS, _MAX_OFFSET, _TARGET = (2.0**-6, 2.0**100), 2.0**6, 2.0**6


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A scikit-learn estimator whose scores are lower for more abnormal points.

    ``title`` is the name in the paper's tables. ``settings`` are the parameters that the paper uses, if they differ
    from scikit-learn's defaults. ``training`` is the name of the fitted attribute that holds the scores of the fitted
    rows. If it is None, ``score_samples`` computes these scores. ``unitless`` is True if the scores do not change when
    the map is moved or scaled.
    """

    title: str
    estimator: Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: str | None = None
    unitless: bool = False

    def scores(self, Y: NDArray[np.float64], params: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return a score for each row of ``Y``. More anomalous rows have higher scores."""
        points = _in_single_precision_range(Y) if self.unitless else Y
        model = self.estimator(**{**self.settings, **params}).fit(points)
        normality = model.score_samples(points) if self.training is None else getattr(model, self.training)
        return -np.asarray(normality, dtype=np.float64)

    def fitted(self, Y: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        """Return an estimator that was fitted to ``Y`` and can score new points, and the scores of the rows of ``Y``.

        The sign is that of scikit-learn: more abnormal rows have lower scores.
        """
        also = {"novelty": True} if "novelty" in self.parameters() else {}
        model = self.estimator(**{**self.settings, **also}).fit(Y)
        normality = model.score_samples(Y) if self.training is None else getattr(model, self.training)
        return model, np.asarray(normality, dtype=np.float64)

    def scores_of_new(self, model: Any, Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of new points by a fitted estimator, with the sign of scikit-learn."""
        return np.asarray(model.score_samples(Y), dtype=np.float64)

    def parameters(self) -> list[str]:
        """Return the names of the parameters of the estimator."""
        return sorted(self.estimator().get_params())


_REGISTRY: Registry[Detector] = Registry("drsne.anomaly", "DETECTOR", parameter="detector")


def _in_single_precision_range(Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``Y``, moved and scaled if single precision cannot distinguish its points."""
    from drsne.precision import unit_scale

    low, high = Y.min(axis=0) / 2, Y.max(axis=0) / 2
    half, middle = float((high - low).max()), low + high
    if half == 0 or (_HALF_EXTENTS[0] <= half <= _HALF_EXTENTS[1] and np.abs(middle).max() <= _MAX_OFFSET * half):
        return Y
    unit = unit_scale(np.array([half])) / 2  # a power of two, so that the division is exact
    return np.asarray((Y / unit - middle / unit) * _TARGET)


def detectors() -> list[str]:
    """Return the names of the detectors. The files of the detectors are not imported.

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
    return _REGISTRY.names()


def find(name: Any) -> Detector:
    """Return the detector with this name, or raise an error with a suggestion."""
    names = _REGISTRY.names()
    checks.choice("detector", name, names, hint=_by_initials(name, names))
    return _REGISTRY.load(name)


def _by_initials(name: Any, names: list[str]) -> str:
    """Return a hint if ``name`` consists of the initials of a detector, such as "IF", or else an empty string."""
    for known in names:
        words = known.split("_")
        if isinstance(name, str) and len(words) > 1 and name.lower() == "".join(word[0] for word in words):
            return f"Did you mean {known!r}?"
    return ""
