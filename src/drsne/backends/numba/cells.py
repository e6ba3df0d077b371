"""A tree of cells over the points of a map with up to three dimensions, sorted along a Z-order curve.

Sums over the cells are those of :mod:`drsne.engines.tree` and of the repulsion of new rows. The nearest neighbours of
the points of a map are found with the cells too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends import FEW
from drsne.backends.numba.kernels import adaptive_tree, fields, neighbors
from drsne.backends.numba.kernels import order as moving
from drsne.backends.numba.kernels import tree as kernels
from drsne.backends.numba.ordering import BITS, LIGHT, along_curve, near_origin
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.precision import pair_type, scaled_pair_type

Array = NDArray[np.float64]
LEAF = 24  # largest number of points in a leaf
_GRAIN = 8  # number of leaves per block
_CENTRED = 8192  # number of points below which every map is centred
_LARGEST_TREE = 3  # largest number of dimensions that a tree supports
_WIDEST = 1e15  # largest coordinate for which squared distances cannot overflow in single precision
# Settings for the adaptive kernel: the number of points in a leaf by the number of dimensions of the map, the factor on
# theta if the extents of both the leaf and the cell count, and the weight of the extent of the scales
# (benchmarks/engines.py).
_ADAPTIVE_LEAF = {1: 24, 2: 40, 3: 24}
_LEAF_THETA = 1.5
_SPREADING = 0.15
_THETA = 0.45  # the accuracy of the sums on new rows
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


def structure(Y: Array, workers: Workers, leaf: int = LEAF) -> Structure:
    """Return a structure over the points of a map, with at most ``leaf`` points in a leaf."""
    d = Y.shape[1]
    order, codes = along_curve(Y, workers)
    nodes = _nodes(codes, BITS[d], d, leaf)
    return Structure(order, nodes, np.flatnonzero(nodes[3] == 0))


def scaled_structure(Y: Array, scales: Array, workers: Workers, leaf: int) -> Structure:
    """Return a structure over points with scales.

    In two dimensions, the log scale is a third coordinate of the cells. It matters in maps, and in parts of maps, that
    are no larger than the kernel. There, the points of a cell have similar scales, so short expansions are enough.
    """
    if Y.shape[1] != 2:
        return structure(Y, workers, leaf)
    places = np.empty((len(Y), 3))
    workers.run(moving.raised, len(Y), Y, scales, _HEIGHT, places, grain=LIGHT)
    return structure(places, workers, leaf)


def cells(Y: Array, real: type, workers: Workers, at: Structure | None = None) -> Cells:
    """Return the summaries of a structure over ``Y``, with coordinates of the type ``real``."""
    at = structure(Y, workers) if at is None else at
    count = len(at.nodes[0])
    summed: tuple[NDArray[Any], ...] = tuple(np.empty((rows, count), real) for rows in (3, 6, 6))
    coordinates = _coordinates(Y, real, at, workers)
    workers.run(kernels.moments, count, coordinates, *at.nodes[:2], *summed)
    return Cells(at, coordinates, summed)


def scales_along(scales: Array, real: type, workers: Workers, at: Structure) -> NDArray[Any]:
    """Return the scales of the points in the order of the curve."""
    scale: NDArray[Any] = np.empty(len(scales), real)
    workers.run(moving.gather, len(scales), scales[:, None], at.order, scale[:, None], grain=LIGHT)
    return scale


def scaled_cells(Y: Array, scale: NDArray[Any], workers: Workers, at: Structure) -> ScaledCells:
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


def _coordinates(Y: Array, real: type, at: Structure, workers: Workers) -> NDArray[Any]:
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
        return near_origin(Y, self._workers) if len(Y) >= _CENTRED else Y - Y.mean(axis=0)

    def structure(self, Y: Array, scales: Array | None) -> Structure:
        if scales is None:
            return structure(Y, self._workers)
        return scaled_structure(Y, scales, self._workers, _ADAPTIVE_LEAF[Y.shape[1]])

    def cells(
        self, Y: Array, scales: Array | None, at: Structure, precision: str, memory: dict[str, Any]
    ) -> Cells | ScaledCells:
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
            kernel = adaptive_tree.forces_2d if d == 2 else adaptive_tree.forces_any
            points = (found.coordinates, found.scale, order, nodes, leaves, found.summed)
            self._workers.run(kernel, len(leaves), *points, constants, *out, grain=_GRAIN)
        return TreeSums(float(partition.sum()), forces, potential, order)


def field_tree(
    fixed: tuple[Array, Array, Array, Array], workers: Workers, theta: float | None = None
) -> tuple[Any, ...]:
    """Return the tree of points, given as (places, places divided by the stretch, scales, masses).

    ``theta`` is the accuracy of the tree, 0 for sums over all pairs, or None for the usual accuracy.

    Maps with more than three dimensions have no tree: a tree of one point is returned, which is not used.
    """
    _, shrunk, scales, masses = fixed
    if shrunk.shape[1] > 3:
        shrunk, scales, masses = np.zeros((1, 1)), np.ones(1), np.ones(1)
    n, d = shrunk.shape
    at = scaled_structure(shrunk, scales, workers, LEAF)
    coordinates = np.zeros((3, n))
    coordinates[:d] = shrunk[at.order].T
    scale, mass, summed = scales[at.order], masses[at.order], np.empty((adaptive_tree.N_SUMMED, len(at.nodes[0])))
    workers.run(fields.summaries, len(at.nodes[0]), coordinates, scale, mass, *at.nodes[:2], summed)
    return coordinates, scale, mass, at.nodes, summed, ((_THETA if theta is None else theta) ** 2, _SPREADING)


def nearest_in_map(Y: NDArray[Any], k: int, workers: Workers) -> NDArray[np.int32]:
    """Return the ``k`` nearest neighbours of every point of ``Y``, nearest first, without the point itself.

    Points at the same distance are in no particular order. The initial search radius is taken from the adjacent points
    on the Z-order curve. In a map that is not finite, arbitrary points are returned.
    """
    widest = float(np.abs(Y).max())
    if not np.isfinite(widest):
        return ((np.arange(len(Y))[:, None] + np.arange(1, k + 1)) % len(Y)).astype(np.int32)
    if widest > _WIDEST:
        Y = Y / Y.dtype.type(widest)
    if Y.shape[1] > _LARGEST_TREE or len(Y) < FEW:
        return _by_scipy(Y, k, workers)
    (order, nodes, leaves), coordinates, (_, _, box) = cells(Y, Y.dtype.type, workers)
    out = np.empty((len(Y), k), np.int32)
    workers.run(neighbors.nearest_in_cells, len(leaves), coordinates, order, *nodes, box, leaves, out, grain=_GRAIN)
    return out


def _by_scipy(Y: NDArray[Any], k: int, workers: Workers) -> NDArray[np.int32]:
    from scipy.spatial import cKDTree

    tree = cKDTree(Y)
    nearest = np.empty((len(Y), k + 1), np.intp)

    def search(block: int, lo: int, hi: int) -> None:
        nearest[lo:hi] = tree.query(Y[lo:hi], k + 1)[1]

    # The tree's own threads are not used: after an interrupt they would go on writing to memory that is released.
    workers.run(search, len(Y))
    own = nearest == np.arange(len(Y))[:, None]
    own[~own.any(axis=1), -1] = True  # a point with many duplicates may not be among its own neighbours
    return np.ascontiguousarray(nearest[~own].reshape(len(Y), k), dtype=np.int32)
