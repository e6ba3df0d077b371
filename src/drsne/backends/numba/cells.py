"""A tree of cells over the points of a map of up to three dimensions, along a Z-order curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels import adaptive_tree
from drsne.backends.numba.kernels import tree as kernels
from drsne.backends.numba.ordering import BITS, along_curve
from drsne.backends.numba.threads import Workers

LEAF = 24  # points
_HEIGHT = 0.5  # extent of a cell, in units of the map, that stands for a factor e of the scales


class Cells(NamedTuple):
    """Points along the curve, and nodes in depth-first order, each a range of them."""

    order: NDArray[np.int32]  # points, in the order of the curve
    lanes: NDArray[Any]  # their coordinates, (3, n), zeros for those the map does not have
    nodes: tuple[NDArray[Any], ...]  # first and last point, successor past the node, height
    summed: tuple[NDArray[Any], ...]  # centre (3, m), second moments (6, m), box (6, m)


class ScaledCells(NamedTuple):
    """The same for points with scales (:mod:`drsne.backends.numba.kernels.adaptive_tree`)."""

    order: NDArray[np.int32]
    lanes: NDArray[Any]
    scale: NDArray[Any]  # of the points in the order of the curve, (n,)
    nodes: tuple[NDArray[Any], ...]
    summed: NDArray[Any]  # (20, m)


def cells(Y: NDArray[np.float64], lane: type, workers: Workers) -> Cells:
    """Return the tree over ``Y``, with coordinates of type ``lane``."""
    order, lanes, nodes = _tree(Y, lane, workers, LEAF)
    count = len(nodes[0])
    summed: tuple[NDArray[Any], ...] = tuple(np.empty((rows, count), lane) for rows in (3, 6, 6))
    workers.run(kernels.moments, count, lanes, *nodes[:2], *summed)
    return Cells(order, lanes, nodes, summed)


def scaled_cells(
    Y: NDArray[np.float64], scales: NDArray[np.float64], lane: type, workers: Workers, leaf: int
) -> ScaledCells:
    """Return the tree over ``Y`` with at most ``leaf`` points in a leaf, for points with ``scales``.

    In two dimensions the log scale is a third coordinate of the cells. It counts in maps, and parts of maps, that are
    no wider than the kernel: the points of a cell there have similar scales, which makes the expansions short.
    """
    places = np.column_stack((Y, _HEIGHT * np.log(scales))) if Y.shape[1] == 2 else Y
    order, lanes, nodes = _tree(places, lane, workers, leaf)
    lanes[Y.shape[1] :] = 0.0
    scale: NDArray[Any] = scales[order].astype(lane)
    summed: NDArray[Any] = np.empty((adaptive_tree.N_SUMMED, len(nodes[0])), lane)
    workers.run(adaptive_tree.moments, len(nodes[0]), lanes, scale, *nodes[:2], summed)
    return ScaledCells(order, lanes, scale, nodes, summed)


def _tree(
    Y: NDArray[np.float64], lane: type, workers: Workers, leaf: int
) -> tuple[NDArray[np.int32], NDArray[Any], tuple[NDArray[Any], ...]]:
    n, d = Y.shape
    order, codes = along_curve(Y, workers)
    lanes: NDArray[Any] = np.zeros((3, n), lane)
    lanes[:d] = Y[order].T
    return order, lanes, _nodes(codes, BITS[d], d, leaf)


def _nodes(code: NDArray[np.int64], bits: int, d: int, leaf: int) -> tuple[NDArray[Any], ...]:
    """Return first and last point, successor and height of every node."""
    size = max(16, 4 * len(code) // leaf)
    while True:
        arrays = tuple(np.empty(size, np.int64) for _ in range(4))
        count = kernels.build(code, bits, d, leaf, *arrays)
        if count >= 0:
            return tuple(array[:count] for array in arrays)
        size *= 2
