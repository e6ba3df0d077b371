"""The repulsion of points with masses, summed over a tree (or over all pairs, in more than three dimensions)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.fields import field_tree
from drsne.backends.numba.kernels import placement as kernels

Array = NDArray[np.float64]
_GRAIN = 64  # number of points per block


class WeightedEngine:
    """The sums ``Z = sum_ij m_i m_j w_ij`` and ``F_i = sum_j m_i m_j w_ij^2 (y_i - y_j)``.

    Parameters
    ----------
    backend : NumbaBackend
        The backend that runs the loops.
    masses : ndarray of shape (n,)
        The masses m_i.
    """

    def __init__(self, backend: NumbaBackend, masses: Array) -> None:
        self._workers, self._masses = backend.workers, masses

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation, which is None: this engine has no state."""

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: Any = None
    ) -> tuple[float, Array]:
        """Return the partition sum and the forces of a map; ``smoothing`` is added to each squared distance."""
        stretch = float(np.sqrt(1.0 + smoothing))
        scales = np.ones(len(Y)) if scales is None else scales
        fixed = np.ascontiguousarray(Y), Y / stretch, scales, self._masses
        partition, forces = np.empty(len(Y)), np.empty(Y.shape)
        tree = field_tree(fixed, self._workers)
        self._workers.run(kernels.potentials, len(Y), fixed, tree, stretch, partition, forces, grain=_GRAIN)
        return float(partition.sum()), forces
