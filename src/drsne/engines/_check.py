"""Checks of an engine against all pairs, on some points of the map.

No setting of a mesh or a tree is accurate on every map, so the engines measure their error now and then. Between two
checks the error is predicted from the last one by two numbers that cost next to nothing. The errors of the forces grow
with the crowd around a point, so relative to the forces they grow with the ``crowding``, Z / (sqrt(n) |F|). And what
was found on a map says nothing of a much wider or narrower one: ``width``, n^2 / Z - 1, is the mean squared distance
of a small map and the inverse mean of the kernel on a large one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels import repulsion as pairs
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.precision import pair_type, scaled_pair_type

Array = NDArray[np.float64]

MARGIN = 0.9  # share of the allowed error that a sample may show
_CHECKED = 256  # points whose forces are also summed over all pairs
_GRAIN = 16  # of them that a block takes at least
_GROWTH = 2.0  # power of the crowding with which the predicted error grows
_WIDENED = 1.6  # factor on the width of a map within which a check tells of it
_NARROW = 0.003  # width below which all maps are alike: every expansion converges there
_KERNELS = {1: pairs.repulsion_1d, 2: pairs.repulsion_2d, 3: pairs.repulsion_3d}
# Evaluations from one check to the next, and from so many points on.
_EVERY, _EVERY_OF_MANY, _MANY = 25, 100, 20_000


def interval(n: int) -> int:
    """Return how many evaluations of a map of n points may follow on a check."""
    return _EVERY if n < _MANY else _EVERY_OF_MANY


def _norm(F: Array) -> float:
    """Return the norm of forces, by a sum that does not depend on the threads of BLAS."""
    return float(np.sqrt(np.square(F).sum()))


class Signs(NamedTuple):
    """Numbers of a map from which its error is predicted."""

    crowding: float
    width: float

    @classmethod
    def of(cls, Z: float, F: Array) -> Signs:
        """Return them from the partition sum and the forces of the map."""
        n, size = len(F), _norm(F)
        crowding = Z / (np.sqrt(n) * size) if size > 0.0 else 0.0
        return cls(crowding, max(n * n / Z - 1.0, _NARROW) if Z > 0.0 else np.inf)


class Sample(NamedTuple):
    """Some points, evenly spread over the map, with their sums over all pairs."""

    points: NDArray[np.int32]
    forces: Array
    potential: float  # the sum of the w_ij of these points

    @classmethod
    def of(
        cls, Y: Array, order: NDArray[np.int32], precision: str, workers: Workers, scales: Array | None = None
    ) -> Sample:
        """Return every so many-th point of ``order``."""
        points, d = order[:: max(1, len(order) // _CHECKED)], Y.shape[1]
        first = np.concatenate((points, np.delete(np.arange(len(Y)), points)))
        lane: Any = pair_type(Y, precision) if scales is None else scaled_pair_type(Y, scales, precision)
        lanes = np.ascontiguousarray((Y[first] - Y.mean(axis=0)).T).astype(lane)
        forces, partition = np.empty((len(points), d)), np.empty(n_blocks(len(points), _GRAIN))
        constants = lane(1.0), lane(1.0), forces, partition
        if scales is None:
            workers.run(_KERNELS[d], len(points), lanes, *constants, grain=_GRAIN)
        else:
            inverse = (1.0 / scales[first]).astype(lane)
            workers.run(pairs.adaptive_any, len(points), lanes, inverse, *constants, grain=_GRAIN)
        return cls(points, forces, float(partition.sum()))

    def force_error(self, F: Array) -> float:
        """Return the error of ``F`` on these points, relative to the norm of their forces."""
        size = _norm(self.forces)
        return _norm(F[self.points] - self.forces) / size if size > 0.0 else 0.0

    def partition_ratio(self, potential: Array) -> float:
        """Return their sum over all pairs in units of what ``potential`` (n,) says."""
        found = float(potential[self.points].sum())
        return self.potential / found if found > 0.0 else 1.0


class Prediction:
    """The error that is expected of a way to evaluate, from its last check."""

    def __init__(self) -> None:
        self._error = np.inf
        self._signs = Signs(1.0, 1.0)

    def at(self, signs: Signs) -> float:
        """Return the error expected of a map; infinite if nothing is known of such a map."""
        then = self._signs
        if not then.width / _WIDENED <= signs.width <= then.width * _WIDENED:
            return np.inf
        return float(self._error * max(1.0, signs.crowding / max(then.crowding, 1e-300)) ** _GROWTH)

    def learn(self, error: float, signs: Signs) -> None:
        """Take note of a check."""
        self._error, self._signs = error, signs
