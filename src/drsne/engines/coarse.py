"""The tree of den-SNE's program, for comparisons with it.

It is for 2-D maps and has no moments. Its errors can be as large as several tenths of the forces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import Kind
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.kernels import coarse as kernels
from drsne.backends.numba.threads import n_blocks

_CELLS = 64  # largest number of cells per point; points that such a tree cannot separate share a cell


class CoarseEngine:
    """The repulsion as den-SNE's and van der Maaten's programs sum it.

    A cell is treated as one point if half of its side is below ``theta`` times the distance to the mean of its points.
    This can even be the cell that contains the point itself. The point is then repelled by its own cell. Maps are
    slightly smaller than with the exact forces. "auto" never chooses this engine. The default ``theta`` is that of the
    programs; with 0, sums are exact except for points that coincide. Sums always have double precision.
    """

    OPTIONS = ("theta",)
    tolerance = (0.5, 0.2)
    adaptive = False

    def __init__(self, backend: NumbaBackend, *, precision: str = "single", theta: float = 0.5) -> None:
        self._workers = backend.workers
        self._theta = float(theta)

    @staticmethod
    def supports(n_components: int, kind: Kind) -> bool:
        """Return whether maps can have this number of dimensions: only two, with NumPy arrays."""
        return n_components == 2 and kind.numpy_arrays

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Raise an error for a negative theta."""
        if "theta" in options:
            checks.number("engine_options['theta']", options["theta"], at_least=0)

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation, which is None: this engine has no state."""

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None, state: Any = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        if scales is not None:
            raise NotImplementedError("engine='coarse' does not support the adaptive kernel. Pass kernel='fixed'.")
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        n = len(Y)
        size, forces, partition = _CELLS * n + 1, np.empty((n, 2)), np.zeros(n_blocks(n))
        centre, half, com = (np.empty((size, 2)) for _ in range(3))
        child, mass, point = (np.empty(size, np.int64) for _ in range(3))
        kernels.build(Y, centre, half, child, mass, point, com)
        self._workers.run(
            kernels.sums, n, Y, half, child, mass, point, com, self._theta, 1.0 + smoothing, forces, partition
        )
        return float(partition.sum()), forces


ENGINE = CoarseEngine
