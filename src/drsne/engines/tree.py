"""Barnes-Hut: O(n log n) per evaluation whatever the span of the map; up to 3-D."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import _checks
from drsne._rounding import lane_type, scaled_lane_type
from drsne.cells import cells, scaled_cells
from drsne.kernels import adaptive_tree as adaptive
from drsne.kernels import tree as kernels
from drsne.parallel import Workers, n_blocks

_GRAIN = 8  # leaves per block
# With the adaptive kernel: points in a leaf by map dimensions, how much larger theta may be where the extents of the
# leaf and of the cell both count, and how much the extent of the scales counts (chosen by benchmarks/engines.py).
_LEAF = {1: 24, 2: 32, 3: 24}
_LEAF_THETA = 1.6
_SPREADING = 0.25


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
    adaptive = True

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

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        (n, d), base = Y.shape, 1.0 + smoothing
        Y = (Y - Y.mean(axis=0)) / np.sqrt(base)
        if scales is not None:
            Z, F = self._adaptive(Y, scales)
            return Z / base, F / base**1.5
        lane: Any = lane_type(Y, self._precision)
        order, lanes, nodes, summed = cells(Y, lane, self._workers)
        leaves = np.flatnonzero(nodes[3] == 0)
        forces, partition = np.empty((n, d)), np.empty(n_blocks(len(leaves), _GRAIN))
        opening, one = lane(self._theta**2), lane(1.0)
        arguments = (lanes, order, nodes, leaves, summed, opening, one, forces, partition)
        self._workers.run(kernels.forces, len(leaves), *arguments, grain=_GRAIN)
        return float(partition.sum()) / base, forces / base**1.5

    def _adaptive(self, Y: NDArray[np.float64], scales: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        n, d = Y.shape
        lane: Any = scaled_lane_type(Y, scales, self._precision)
        order, lanes, scale, nodes, summed = scaled_cells(Y, scales, lane, self._workers, _LEAF[d])
        leaves = np.flatnonzero(nodes[3] == 0)
        forces, partition = np.empty((n, d)), np.empty(n_blocks(len(leaves), _GRAIN))
        theta = self._theta * (_LEAF_THETA if d == 2 else 1.0)
        constants = lane(theta**2), lane(_SPREADING), lane(1.0)
        kernel = adaptive.forces_2d if d == 2 else adaptive.forces_any
        arguments = (lanes, scale, order, nodes, leaves, summed, *constants, forces, partition)
        self._workers.run(kernel, len(leaves), *arguments, grain=_GRAIN)
        return float(partition.sum()), forces


ENGINE = TreeEngine
