"""A tree of cells over the points of a map with up to three dimensions, sorted along a Z-order curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels import adaptive_tree
from drsne.backends.numba.kernels import order as moving
from drsne.backends.numba.kernels import tree as kernels
from drsne.backends.numba.ordering import BITS, LIGHT, along_curve
from drsne.backends.numba.threads import Workers

LEAF = 24  # largest number of points in a leaf
_HEIGHT = 0.5  # length, in units of the map, that corresponds to a factor e of the scales


class Structure(NamedTuple):
    """A division of the points into nested cells. Each node is a range of points; nodes are in depth-first order.

    It stays valid while the points move: summaries of the nodes are computed from the places that the points have then.
    If points have moved far, cells overlap and sums over them take longer.
    """

    order: NDArray[np.int32]  # the points in the order of the curve
    nodes: tuple[NDArray[Any], ...]  # first and last point, next node outside of the node, height
    leaves: NDArray[np.int64]


class Cells(NamedTuple):
    """A structure with the summaries of its nodes."""

    structure: Structure
    coordinates: NDArray[Any]  # coordinates of the points, (3, n), with zeros for dimensions that the map lacks
    summed: tuple[NDArray[Any], ...]  # centre (3, m), second moments (6, m), box (6, m)

    def leaf_extent(self) -> float:
        """Return the mean extent of the leaves."""
        box = self.summed[2][:, self.structure.leaves]
        return float((box[3:] - box[:3]).max(axis=0).mean())


class ScaledCells(NamedTuple):
    """The same for points that have scales (:mod:`drsne.backends.numba.kernels.adaptive_tree`)."""

    structure: Structure
    coordinates: NDArray[Any]
    scale: NDArray[Any]  # scales of the points in the order of the curve, (n,)
    summed: NDArray[Any]  # (20, m)

    def leaf_extent(self) -> float:
        """Return the mean extent of the leaves."""
        return float(self.summed[adaptive_tree.EXTENT, self.structure.leaves].mean())


def structure(Y: NDArray[np.float64], workers: Workers, leaf: int = LEAF) -> Structure:
    """Return a structure over the points of a map, with at most ``leaf`` points in a leaf."""
    d = Y.shape[1]
    order, codes = along_curve(Y, workers)
    nodes = _nodes(codes, BITS[d], d, leaf)
    return Structure(order, nodes, np.flatnonzero(nodes[3] == 0))


def scaled_structure(Y: NDArray[np.float64], scales: NDArray[np.float64], workers: Workers, leaf: int) -> Structure:
    """Return a structure over points with scales.

    In two dimensions, the log scale is a third coordinate of the cells. It matters in maps, and in parts of maps, that
    are no larger than the kernel. There, the points of a cell have similar scales, so short expansions are enough.
    """
    if Y.shape[1] != 2:
        return structure(Y, workers, leaf)
    places = np.empty((len(Y), 3))
    workers.run(moving.raised, len(Y), Y, scales, _HEIGHT, places, grain=LIGHT)
    return structure(places, workers, leaf)


def cells(Y: NDArray[np.float64], real: type, workers: Workers, at: Structure | None = None) -> Cells:
    """Return the summaries of a structure over ``Y``, with coordinates of the type ``real``."""
    at = structure(Y, workers) if at is None else at
    count = len(at.nodes[0])
    summed: tuple[NDArray[Any], ...] = tuple(np.empty((rows, count), real) for rows in (3, 6, 6))
    coordinates = _coordinates(Y, real, at, workers)
    workers.run(kernels.moments, count, coordinates, *at.nodes[:2], *summed)
    return Cells(at, coordinates, summed)


def scales_along(scales: NDArray[np.float64], real: type, workers: Workers, at: Structure) -> NDArray[Any]:
    """Return the scales of the points in the order of the curve."""
    scale: NDArray[Any] = np.empty(len(scales), real)
    workers.run(moving.gather, len(scales), scales[:, None], at.order, scale[:, None], grain=LIGHT)
    return scale


def scaled_cells(Y: NDArray[np.float64], scale: NDArray[Any], workers: Workers, at: Structure) -> ScaledCells:
    """Return the summaries of a structure over points with a ``scale``, which is in the order of the curve."""
    real = scale.dtype.type
    count = len(at.nodes[0])
    summed: NDArray[Any] = np.empty((adaptive_tree.N_SUMMED, count), real)
    coordinates = _coordinates(Y, real, at, workers)
    bounds: NDArray[Any] = np.empty((adaptive_tree.N_BOUNDS, count), real)
    first, last, after, height = at.nodes
    workers.run(adaptive_tree.moments, count, coordinates, scale, first, last, height, summed, bounds)
    adaptive_tree.combine(first, last, after, height, summed, bounds)
    return ScaledCells(at, coordinates, scale, summed)


def _coordinates(Y: NDArray[np.float64], real: type, at: Structure, workers: Workers) -> NDArray[Any]:
    coordinates: NDArray[Any] = np.empty((3, len(Y)), real)
    workers.run(moving.columns, len(Y), Y, at.order, coordinates, grain=LIGHT)
    return coordinates


def _nodes(code: NDArray[np.int64], bits: int, d: int, leaf: int) -> tuple[NDArray[Any], ...]:
    """Return the first and last point, the next node and the height of every node."""
    size = max(16, 4 * len(code) // leaf)
    while True:
        arrays = tuple(np.empty(size, np.int64) for _ in range(4))
        count = kernels.build(code, bits, d, leaf, *arrays)
        if count >= 0:
            return tuple(array[:count] for array in arrays)
        size *= 2
