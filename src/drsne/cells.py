"""A tree of cells over the points of a map of up to three dimensions, along a Z-order curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.arrangement import BITS, along_curve
from drsne.kernels import tree as kernels
from drsne.parallel import Workers

LEAF = 24  # points


class Cells(NamedTuple):
    """Points along the curve, and nodes in depth-first order, each a range of them."""

    order: NDArray[np.int32]  # points, in the order of the curve
    lanes: NDArray[Any]  # their coordinates, (3, n), zeros for those the map does not have
    nodes: tuple[NDArray[Any], ...]  # first and last point, successor past the node, height
    summed: tuple[NDArray[Any], ...]  # centre (3, m), second moments (6, m), box (6, m)


def cells(Y: NDArray[np.float64], lane: type, workers: Workers) -> Cells:
    """The tree over ``Y``, with coordinates of type ``lane``."""
    n, d = Y.shape
    order, codes = along_curve(Y, workers)
    lanes: NDArray[Any] = np.zeros((3, n), lane)
    lanes[:d] = Y[order].T
    nodes = _nodes(codes, BITS[d], d)
    count = len(nodes[0])
    summed: tuple[NDArray[Any], ...] = tuple(np.empty((rows, count), lane) for rows in (3, 6, 6))
    workers.run(kernels.moments, count, lanes, *nodes[:2], *summed)
    return Cells(order, lanes, nodes, summed)


def _nodes(code: NDArray[np.int64], bits: int, d: int) -> tuple[NDArray[Any], ...]:
    """First and last point, successor and height of every node."""
    size = max(16, 4 * len(code) // LEAF)
    while True:
        arrays = tuple(np.empty(size, np.int64) for _ in range(4))
        count = kernels.build(code, bits, d, LEAF, *arrays)
        if count >= 0:
            return tuple(array[:count] for array in arrays)
        size *= 2
