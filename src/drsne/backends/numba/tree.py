"""Sums over a tree of cells with second moments, for :mod:`drsne.engines.tree`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.cells import (
    Cells,
    ScaledCells,
    Structure,
    cells,
    scaled_cells,
    scaled_structure,
    scales_along,
    structure,
)
from drsne.backends.numba.kernels import adaptive_tree as adaptive
from drsne.backends.numba.kernels import tree as kernels
from drsne.backends.numba.ordering import near_origin
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.precision import pair_type, scaled_pair_type

Array = NDArray[np.float64]
_GRAIN = 8  # number of leaves per block
_CENTRED = 8192  # number of points below which every map is centred
# Settings for the adaptive kernel: the number of points in a leaf by the number of dimensions of the map, the factor on
# theta if the extents of both the leaf and the cell count, and the weight of the extent of the scales
# (benchmarks/engines.py).
_LEAF = {1: 24, 2: 40, 3: 24}
_LEAF_THETA = 1.5
_SPREADING = 0.15


class TreeSums(NamedTuple):
    """The result of an evaluation over the tree."""

    partition: float
    forces: Array
    potential: Array  # sum_j w_ij
    order: NDArray[np.int32]  # the points in the order of the cells


class _KeptScale(NamedTuple):
    """Scales in the order of the cells, and the objects from which they were made."""

    scales: Array
    order: NDArray[np.int32]
    along: NDArray[Any]


class NumbaTree:
    """The sums over a tree, on the threads of ``workers``."""

    LARGE = 8192  # smallest number of points of a map whose cells are used again
    MOST_USES, GROWN = 16, 1.2  # largest number of evaluations with the same cells, and largest growth of the leaves
    MOST_AGE = 0  # all cells are made again, because this takes a small part of an evaluation

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def centred(self, Y: Array) -> Array:
        """Return a map whose centre is near the origin."""
        return near_origin(Y, self._workers) if len(Y) >= _CENTRED else Y - Y.mean(axis=0)

    def structure(self, Y: Array, scales: Array | None) -> Structure:
        """Return a division of the points of a map into cells."""
        if scales is None:
            return structure(Y, self._workers)
        return scaled_structure(Y, scales, self._workers, _LEAF[Y.shape[1]])

    def cells(
        self, Y: Array, scales: Array | None, at: Structure, precision: str, memory: dict[str, Any]
    ) -> Cells | ScaledCells:
        """Return the summaries of the cells. ``memory`` keeps what the next evaluation can use again."""
        if scales is None:
            real: Any = pair_type(Y, precision)
            return cells(Y, real, self._workers, at)
        real = scaled_pair_type(Y, scales, precision)
        return scaled_cells(Y, self._along(scales, real, at, memory), self._workers, at)

    def _along(self, scales: Array, real: type, at: Structure, memory: dict[str, Any]) -> NDArray[Any]:
        """Return the scales along the cells. They are kept while scales and structure are the same objects."""
        kept: _KeptScale | None = memory.get("scale")
        if kept is None or kept.scales is not scales or kept.order is not at.order or kept.along.dtype != real:
            kept = memory["scale"] = _KeptScale(scales, at.order, scales_along(scales, real, self._workers, at))
        return kept.along

    def sums(self, found: Cells | ScaledCells, d: int, theta: float) -> TreeSums:
        """Return the sums over all points, at an opening angle ``theta``."""
        order, nodes, leaves = found.structure
        n, real = len(order), found.coordinates.dtype.type
        forces, potential, partition = np.empty((n, d)), np.empty(n), np.empty(n_blocks(len(leaves), _GRAIN))
        out = forces, potential, partition
        if isinstance(found, Cells):
            points: tuple[Any, ...] = (found.coordinates, order, nodes, leaves, found.summed)
            self._workers.run(kernels.forces, len(leaves), *points, real(theta**2), real(1.0), *out, grain=_GRAIN)
        else:
            theta *= _LEAF_THETA if d == 2 else 1.0
            constants = real(theta**2), real(_SPREADING), real(1.0)
            kernel = adaptive.forces_2d if d == 2 else adaptive.forces_any
            points = (found.coordinates, found.scale, order, nodes, leaves, found.summed)
            self._workers.run(kernel, len(leaves), *points, constants, *out, grain=_GRAIN)
        return TreeSums(float(partition.sum()), forces, potential, order)
