"""All pairs: O(n^2) per evaluation, exact; the best below a few thousand points and the oracle for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne._rounding import lane_type, scaled_lane_type
from drsne.kernels import pairs as kernels
from drsne.parallel import Workers, n_blocks

_KERNELS = {1: kernels.repulsion_1d, 3: kernels.repulsion_3d}


class ExactEngine:
    """Pairs in single-precision lanes with double-precision sums, or all in double precision.

    Parameters
    ----------
    workers : Workers
        Threads to run on.
    precision : {"single", "double"}, default="single"
        Arithmetic of a pair.
    """

    OPTIONS = ()
    tolerance = (3e-4, 2e-5)  # single precision, on maps of thousands of units; 1e-6 on ordinary ones
    adaptive = True

    def __init__(self, workers: Workers, *, precision: str = "single") -> None:
        self._workers = workers
        self._precision = precision

    @staticmethod
    def supports(n_components: int) -> bool:
        """Any number of map dimensions."""
        return n_components >= 1

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """There are none."""

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        if scales is not None:
            return self._adaptive(Y, smoothing, scales)
        n, d = Y.shape
        lane = lane_type(Y, self._precision)
        lanes = np.ascontiguousarray((Y - Y.mean(axis=0)).T, dtype=lane)
        forces = np.empty((n, d))
        if d == 2:
            half = (n + 1) // 2
            back, partition = np.empty((n_blocks(half), 2, n), dtype=lane), np.empty(n_blocks(half))
            self._workers.run(kernels.half_2d, half, lanes, lane(1.0), lane(1.0 + smoothing), forces, back, partition)
            forces += back.sum(axis=0, dtype=np.float64).T
            return float(partition.sum()), forces
        partition = np.empty(n_blocks(n))
        kernel = _KERNELS.get(d, kernels.repulsion_any)
        self._workers.run(kernel, n, lanes, lane(1.0), lane(1.0 + smoothing), forces, partition)
        return float(partition.sum()), forces

    def _adaptive(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        n, d = Y.shape
        lane = scaled_lane_type(Y, scales, self._precision)
        lanes = np.ascontiguousarray((Y - Y.mean(axis=0)).T, dtype=lane)
        arguments = (lanes, (1.0 / scales).astype(lane), lane(1.0), lane(1.0 + smoothing))
        forces = np.empty((n, d))
        if d == 2:
            half = (n + 1) // 2
            back, partition = np.empty((n_blocks(half), 2, n), dtype=lane), np.empty(n_blocks(half))
            self._workers.run(kernels.adaptive_half_2d, half, *arguments, forces, back, partition)
            forces += back.sum(axis=0, dtype=np.float64).T
            return float(partition.sum()), forces
        partition = np.empty(n_blocks(n))
        self._workers.run(kernels.adaptive_any, n, *arguments, forces, partition)
        return float(partition.sum()), forces


ENGINE = ExactEngine
