"""The tree of den-SNE's program, for comparison with it: 2-D, without moments, off by tenths of the forces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.kernels import coarse as kernels
from drsne.backends.numba.threads import n_blocks

_CELLS = 64  # per point at most; points that are nearer than such a tree resolves share a cell


class CoarseEngine:
    """Repulsion as den-SNE's and van der Maaten's programs sum it.

    A cell stands for its points where half of its side is below ``theta`` times the distance of their mean; even the
    cell of the point itself can qualify, and then repels it. Maps come out a little tighter than those of the exact
    forces. Never taken by "auto".

    Parameters
    ----------
    backend : NumbaBackend
        Runs the loops.
    precision : {"single", "double"}, default="single"
        Without effect: always double.
    theta : float, default=0.5
        As above, the programs' default; 0 is exact but for points that coincide.
    """

    OPTIONS = ("theta",)
    tolerance = (0.5, 0.2)
    adaptive = False

    def __init__(self, backend: NumbaBackend, *, precision: str = "single", theta: float = 0.5) -> None:
        self._workers = backend.workers
        self._theta = float(theta)

    @staticmethod
    def supports(n_components: int) -> bool:
        """Return whether maps can have that many dimensions: two."""
        return n_components == 2

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Raise for a negative theta."""
        if "theta" in options:
            checks.number("engine_options['theta']", options["theta"], at_least=0)

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation that has not begun: nothing is carried on."""

    def repulsion(
        self, Y: NDArray[np.float64], smoothing: float, scales: NDArray[np.float64] | None = None, state: Any = None
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        if scales is not None:
            raise NotImplementedError("engine='coarse' does not support the adaptive kernel.")
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
