"""Placing new rows in a fixed map on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.cells import field_tree
from drsne.backends.numba.kernels import placement as kernels
from drsne.backends.numba.threads import Workers
from drsne.backends.protocol import Limits, Rows, Shared

Array = NDArray[np.float64]
_GRAIN = 16  # number of new rows per block
LIMITS = Limits(*(getattr(kernels, name.upper()) for name in Limits._fields))


class NumbaPlacer:
    """The loops over new rows by numba (see :class:`drsne.backends.protocol.Placer`)."""

    name = "numba"
    chunk = 4096  # number of new rows that are placed at once
    dense_search = None

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    def rows_at_once(self, n_features: int) -> int:
        return self.chunk

    def field(self, places: Array, scales: Array, masses: Array, stretch: float) -> tuple[Any, float]:
        # Arrays of a model in a memory map are read-only, and kernels would be compiled again for them.
        places, scales = (np.require(each, requirements="W") for each in (places, scales))
        fixed = places, places / stretch, scales, masses
        tree = field_tree(fixed, self.workers)
        out, forces = np.empty(len(masses)), np.empty_like(places)
        self.workers.run(kernels.potentials, len(masses), fixed, tree, stretch, out, forces)
        return (fixed, tree), float(out.sum())

    def received(self, rows: Rows) -> Rows:
        return rows

    def chosen(self, rows: Rows, some: NDArray[Any]) -> Rows:
        return Rows(*(each[some] for each in rows))

    def pulled(self, rows: Rows, anchors: Array, stiffness: Array) -> Rows:
        return rows._replace(anchors=anchors, stiffness=stiffness)

    def begin(self, rows: Rows, shared: Shared, d: int) -> Array:
        Y = np.empty((len(rows.scales), d))
        self.workers.run(kernels.begin, len(Y), Y, tuple(rows), _flat(shared), grain=_GRAIN)
        return Y

    def descend(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared, steps: int) -> NDArray[np.bool_]:
        return self._descended(Y, rows, in_map, shared, steps)[0]

    def values(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared) -> Array:
        return self._descended(Y, rows, in_map, shared, 0)[1]

    def _descended(
        self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared, steps: int
    ) -> tuple[NDArray[np.bool_], Array]:
        """Move rows, and return which have arrived and their losses, by one kernel, which takes long to compile."""
        out = np.empty(len(Y), np.bool_), np.empty(len(Y)), np.empty_like(Y)
        arguments = Y, tuple(rows), in_map, _flat(shared), steps
        self.workers.run(kernels.descend, len(Y), *arguments, *out, grain=_GRAIN)
        return out[:2]

    def index(self, places: Array) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(places)

    def nearest(self, index: Any, Y: Array, k: int) -> tuple[Array, NDArray[Any]]:
        distances, indices = index.query(Y, np.arange(1, k + 1), workers=self.workers.n_threads)
        return distances, indices


def _flat(shared: Shared) -> tuple[Any, ...]:
    """Return what all rows share in the form that the kernels take."""
    return *shared.field, shared.constants, shared.terms
