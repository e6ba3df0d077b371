"""The repulsion of points with masses, ``Z = sum_ij m_i m_j w_ij`` and ``F_i = sum_j m_i m_j w_ij^2 (y_i - y_j)``.

numba has one engine. PyTorch has two, which are those without masses with a few changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.arrays import host
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.cells import field_tree
from drsne.backends.numba.kernels import placement as kernels
from drsne.engines._check import Indicators, Sample, spread
from drsne.engines.exact import ExactEngine
from drsne.engines.tree import TreeEngine, TreeState

Array = NDArray[np.float64]
_GRAIN = 64  # number of points per block
_DOMINANT = 0.1  # share of a point in all masses above which the tree has double precision


class WeightedEngine:
    """The sums over a tree on the backend of numba, or over all pairs in more than three dimensions.

    ``theta`` is the accuracy of the tree, 0 for sums over all pairs, or None for the usual accuracy.
    """

    def __init__(self, backend: NumbaBackend, masses: Array, theta: float | None = None) -> None:
        self._workers, self._masses, self._theta = backend.workers, masses, theta

    @staticmethod
    def start() -> None:
        """Return the state of an optimisation, which is None: this engine has no state."""

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: Any = None
    ) -> tuple[float, Array]:
        stretch = float(np.sqrt(1.0 + smoothing))
        scales = np.ones(len(Y)) if scales is None else scales
        fixed = np.ascontiguousarray(Y), Y / stretch, scales, self._masses
        partition, forces = np.empty(len(Y)), np.empty(Y.shape)
        tree = field_tree(fixed, self._workers, self._theta)
        self._workers.run(kernels.potentials, len(Y), fixed, tree, stretch, partition, forces, grain=_GRAIN)
        return float(partition.sum()), forces


class WeightedSums(ExactEngine):
    """The sums over all pairs on the backend of PyTorch."""

    def __init__(self, backend: Any, *, masses: Array, precision: str = "single") -> None:
        super().__init__(backend, precision=precision)
        self._on_device, self._masses = backend, backend.received(masses)
        self._points = backend.received(np.arange(len(masses)))

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: Any = None
    ) -> tuple[float, Array]:
        potential, forces = self._on_device.weighted_repulsion(
            Y, self._points, self._masses, smoothing=smoothing, scales=scales, precision=self._precision
        )
        return float((self._masses * potential).sum()), self._masses[:, None] * forces


class WeightedTree(TreeEngine):
    """The sums over a tree on the backend of PyTorch.

    The tree and the check of its errors sum over the masses m_j of the other points. The forces are multiplied by m_i
    at the end, so the error of a light point counts as much as that of a heavy one: the steps of the optimisation do
    not depend on the mass of a point either. The terms of the partition sum are multiplied by m_i at once. A point that
    has a large share of all masses needs double precision, because the tree sums over the point itself and then
    subtracts its mass.
    """

    def __init__(self, backend: Any, *, masses: Array, precision: str = "single", theta: float = 0.45) -> None:
        dominant = masses.max() > _DOMINANT * masses.sum()
        super().__init__(backend, precision="double" if dominant else precision, theta=theta)
        self._masses = backend.received(masses)
        self._pairs = float(masses.sum() ** 2 - (masses**2).sum())

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: TreeState | None = None
    ) -> tuple[float, Array]:
        partition, forces = super().repulsion(Y, smoothing, scales, state)
        return partition, self._masses[:, None] * forces

    def _sums(self, Y: Array, scales: Array | None, last: Any) -> Any:
        last.memory["masses"] = self._masses
        found = super()._sums(Y, scales, last)
        potential = self._masses * found.potential
        return found._replace(partition=float(potential.sum()), potential=potential)

    def _indicators(self, sums: Any) -> Indicators:
        return Indicators.of(sums.partition, sums.forces, self._pairs)

    def _sample(self, Y: Array, scales: Array | None, sums: Any) -> Sample:
        points = spread(sums.order)
        potential, forces = self._backend.weighted_repulsion(
            Y, points, self._masses, smoothing=0.0, scales=scales, precision=self._precision
        )
        return Sample(points, host(forces), float((self._masses[points] * potential).sum()))


ON_DEVICE = {"exact": WeightedSums, "tree": WeightedTree}
