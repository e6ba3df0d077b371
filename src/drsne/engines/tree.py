"""Barnes-Hut: O(n log n) per evaluation whatever the span of the map; up to 3-D."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import _checks
from drsne._rounding import lane_type
from drsne.arrangement import BITS, along_curve
from drsne.kernels import tree as kernels
from drsne.parallel import Workers, n_blocks

LEAF = 24  # points
_GRAIN = 8  # leaves per block


class TreeEngine:
    """Repulsion over a tree of cells, with second moments.

    Parameters
    ----------
    workers : Workers
        Threads to run on.
    precision : {"single", "double"}, default="single"
        Arithmetic of a pair.
    theta : float, default=0.45
        Largest extent of a cell that is taken as a whole, in units of ``sqrt(1 + distance^2)``; 0 is exact.
    """

    OPTIONS = ("theta",)
    tolerance = (1e-2, 5e-4)

    def __init__(self, workers: Workers, *, precision: str = "single", theta: float = 0.45) -> None:
        self._workers = workers
        self._precision = precision
        self._theta = float(theta)

    @staticmethod
    def supports(n_components: int) -> bool:
        """Up to three map dimensions."""
        return 1 <= n_components <= 3

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Raise for a theta that is no share."""
        if "theta" in options and _checks.number("engine_options['theta']", options["theta"], at_least=0) > 1:
            raise ValueError(
                f"engine_options['theta'] must be between 0 (exact) and 1; got {options['theta']!r}. "
                "The default is 0.45."
            )

    def repulsion(self, Y: NDArray[np.float64], smoothing: float) -> tuple[float, NDArray[np.float64]]:
        """The partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        (n, d), base = Y.shape, 1.0 + smoothing
        Y = (Y - Y.mean(axis=0)) / np.sqrt(base)
        order, codes = along_curve(Y, self._workers)
        lane = lane_type(Y, self._precision)
        lanes = np.zeros((3, n), lane)
        lanes[:d] = Y[order].T
        first, last, after, height = _nodes(codes, BITS[d], d)
        centre, spread, box = (np.empty((rows, len(first)), lane) for rows in (3, 6, 6))
        self._workers.run(kernels.moments, len(first), lanes, first, last, centre, spread, box)
        leaves = np.flatnonzero(height == 0)
        forces, partition = np.empty((n, d)), np.empty(n_blocks(len(leaves), _GRAIN))
        nodes, summed = (first, last, after, height), (centre, spread, box)
        opening, one = lane(self._theta**2), lane(1.0)
        arguments = (lanes, order, nodes, leaves, summed, opening, one, forces, partition)
        self._workers.run(kernels.forces, len(leaves), *arguments, grain=_GRAIN)
        return float(partition.sum()) / base, forces / base**1.5


def _nodes(code: NDArray[np.int64], bits: int, d: int) -> tuple[NDArray[Any], ...]:
    """First and last point, successor and height of every node."""
    size = max(16, 4 * len(code) // LEAF)
    while True:
        arrays = tuple(np.empty(size, np.int64) for _ in range(4))
        count = kernels.build(code, bits, d, LEAF, *arrays)
        if count >= 0:
            return tuple(array[:count] for array in arrays)
        size *= 2


ENGINE = TreeEngine
