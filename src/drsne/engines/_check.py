"""Checks of an engine against the sums over all pairs, at some points of the map.

No setting of a mesh or a tree is accurate on every map, so the engines measure their error from time to time. Between
two checks, the error is predicted from the last check and two numbers that cost almost nothing. The errors of the
forces grow with the density of the map, so relative to the forces they grow with the ``potential``, Z / (sqrt(n) |F|).
A check is only valid for maps of a similar size, which is measured by the ``extent``, n^2 / Z - 1: in a small map, the
extent is the mean squared distance, and in a large map the inverse of the mean kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend
from drsne.backends.arrays import host, norm

Array = NDArray[np.float64]

MARGIN = 0.9  # largest error of the sample, as a fraction of the allowed error
_CHECKED = 256  # number of points whose forces are also summed over all pairs
_GROWTH = 2.0  # power of the potential to which the predicted error is proportional
_WIDENED = 1.6  # largest factor by which the extent of a map may change before a check is no longer valid
_NARROW = 0.003  # extent below which all maps are treated alike, because every expansion converges there
# Number of evaluations from one check to the next, in small and in large maps, and the number of points in a large map.
_EVERY, _EVERY_OF_LARGE, _LARGE = 25, 100, 20_000


def interval(n: int) -> int:
    """Return the number of evaluations of a map of n points from one check to the next."""
    return _EVERY if n < _LARGE else _EVERY_OF_LARGE


class Indicators(NamedTuple):
    """Two numbers from which the error on a map is predicted."""

    potential: float
    extent: float

    @classmethod
    def of(cls, Z: float, F: Array, pairs: float | None = None) -> Indicators:
        """Return the indicators of a map with this partition sum and these forces.

        ``pairs`` is the sum of ``m_i m_j`` over all pairs if points have masses.
        """
        n, size = len(F), norm(F)
        potential = Z / (np.sqrt(n) * size) if size > 0.0 else 0.0
        pairs = n * n if pairs is None else pairs
        return cls(potential, max(pairs / Z - 1.0, _NARROW) if Z > 0.0 else np.inf)


def spread(order: Any) -> Any:
    """Return points at equal steps in ``order``."""
    return order[:: max(1, len(order) // _CHECKED)]


class Sample(NamedTuple):
    """Some points that are evenly spread over the map, with their sums over all pairs."""

    points: NDArray[np.int32]
    forces: Array
    potential: float  # the sum of w_ij over these points i and all points j

    @classmethod
    def of(cls, Y: Array, order: NDArray[Any], precision: str, backend: Backend, scales: Array | None = None) -> Sample:
        """Return points at equal steps in ``order``, with their sums."""
        points = spread(order)
        potential, forces = backend.sampled_repulsion(Y, points, scales=scales, precision=precision)
        return cls(points, forces, potential)

    def force_error(self, F: Array) -> float:
        """Return the error of the forces ``F`` at these points, relative to the norm of their true forces."""
        size = norm(self.forces)
        return norm(host(F[self.points]) - self.forces) / size if size > 0.0 else 0.0

    def partition_ratio(self, potential: Array) -> float:
        """Return the ratio of the sum over all pairs to the sum of ``potential`` (n,), both at these points."""
        approximate = float(potential[self.points].sum())
        return self.potential / approximate if approximate > 0.0 else 1.0


class Prediction:
    """A prediction of the error of an engine from its last check."""

    def __init__(self) -> None:
        self._error = np.inf
        self._indicators = Indicators(1.0, 1.0)

    def at(self, indicators: Indicators) -> float:
        """Return the expected error on a map, or infinity if the last check is not valid for this map."""
        last = self._indicators
        if not last.extent / _WIDENED <= indicators.extent <= last.extent * _WIDENED:
            return np.inf
        return float(self._error * max(1.0, indicators.potential / max(last.potential, 1e-300)) ** _GROWTH)

    def learn(self, error: float, indicators: Indicators) -> None:
        """Store the result of a check."""
        self._error, self._indicators = error, indicators
