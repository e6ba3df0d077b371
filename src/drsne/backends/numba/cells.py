"""A tree of cells over the points of a map with up to three dimensions, sorted along a Z-order curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels import adaptive_tree
from drsne.backends.numba.kernels import tree as kernels
from drsne.backends.numba.ordering import BITS, along_curve
from drsne.backends.numba.threads import Workers

LEAF = 24  # largest number of points in a leaf
_HEIGHT = 0.5  # length, in units of the map, that corresponds to a factor e of the scales


class Cells(NamedTuple):
    """Points in the order of the curve, and nodes in depth-first order. Each node is a range of points."""

    order: NDArray[np.int32]  # the points in the order of the curve
    coordinates: NDArray[Any]  # coordinates of these points, (3, n), with zeros for dimensions that the map lacks
    nodes: tuple[NDArray[Any], ...]  # first and last point, next node outside of the node, height
    summed: tuple[NDArray[Any], ...]  # centre (3, m), second moments (6, m), box (6, m)


class ScaledCells(NamedTuple):
    """The tree of points that have scales (:mod:`drsne.backends.numba.kernels.adaptive_tree`)."""

    order: NDArray[np.int32]
    coordinates: NDArray[Any]
    scale: NDArray[Any]  # scales of the points in the order of the curve, (n,)
    nodes: tuple[NDArray[Any], ...]
    summed: NDArray[Any]  # (20, m)


def cells(Y: NDArray[np.float64], real: type, workers: Workers) -> Cells:
    """Return the tree over ``Y``, with coordinates of the type ``real``."""
    order, coordinates, nodes = _tree(Y, real, workers, LEAF)
    count = len(nodes[0])
    summed: tuple[NDArray[Any], ...] = tuple(np.empty((rows, count), real) for rows in (3, 6, 6))
    workers.run(kernels.moments, count, coordinates, *nodes[:2], *summed)
    return Cells(order, coordinates, nodes, summed)


def scaled_cells(
    Y: NDArray[np.float64], scales: NDArray[np.float64], real: type, workers: Workers, leaf: int
) -> ScaledCells:
    """Return the tree over ``Y`` with at most ``leaf`` points in a leaf, for points with ``scales``.

    In two dimensions, the log scale is a third coordinate of the cells. It matters in maps, and in parts of maps, that
    are no larger than the kernel. There, the points of a cell have similar scales, so short expansions are enough.
    """
    places = np.column_stack((Y, _HEIGHT * np.log(scales))) if Y.shape[1] == 2 else Y
    order, coordinates, nodes = _tree(places, real, workers, leaf)
    coordinates[Y.shape[1] :] = 0.0
    scale: NDArray[Any] = scales[order].astype(real)
    summed: NDArray[Any] = np.empty((adaptive_tree.N_SUMMED, len(nodes[0])), real)
    workers.run(adaptive_tree.moments, len(nodes[0]), coordinates, scale, *nodes[:2], summed)
    return ScaledCells(order, coordinates, scale, nodes, summed)


def _tree(
    Y: NDArray[np.float64], real: type, workers: Workers, leaf: int
) -> tuple[NDArray[np.int32], NDArray[Any], tuple[NDArray[Any], ...]]:
    """Return the order of the points, their coordinates in this order, and the nodes."""
    n, d = Y.shape
    order, codes = along_curve(Y, workers)
    coordinates: NDArray[Any] = np.zeros((3, n), real)
    coordinates[:d] = Y[order].T
    return order, coordinates, _nodes(codes, BITS[d], d, leaf)


def _nodes(code: NDArray[np.int64], bits: int, d: int, leaf: int) -> tuple[NDArray[Any], ...]:
    """Return the first and last point, the next node and the height of every node."""
    size = max(16, 4 * len(code) // leaf)
    while True:
        arrays = tuple(np.empty(size, np.int64) for _ in range(4))
        count = kernels.build(code, bits, d, leaf, *arrays)
        if count >= 0:
            return tuple(array[:count] for array in arrays)
        size *= 2
