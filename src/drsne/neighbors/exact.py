"""Exact Euclidean nearest neighbours of the rows of a matrix, block by block.

Matrix products, tile by tile, give a shortlist for every row. The shortlists are ranked by distances that are summed
feature by feature, so the result does not depend on the rounding of the products. The products are computed in single
precision, and bounds on their errors prove that a shortlist is complete. If too many shortlists cannot be proved
complete, the products are repeated in double precision. Rows with shortlists that still cannot be proved complete are
searched in full.

Little data can be searched by SciPy's distances between all rows, which needs no compiled code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.kernels._turns import whole
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.precision import unit_scale

Rows = NDArray[np.intp]

TILE_ROWS, TILE_COLUMNS = 256, 4096
_ORDINARY = 2.0**200  # scale of the data below which squared distances do not overflow in double precision
_UNPROVED = 0.02  # largest fraction of the rows of a tile that is searched in full before the precision is raised
_LITTLE_WORK = 4e8  # largest number of differences of features without compiled code, which take about 0.3 s
_LARGEST = 1e100  # largest value whose squared differences cannot overflow


class Points(NamedTuple):
    """Points at unit scale: centred for the products, and not centred for the distances."""

    centred: Any  # (n, d), dense or sparse
    norms: NDArray[np.float64]  # squared norms of the centred points
    rank: Any  # the kernel that ranks shortlists
    points: Any  # the points as an argument of that kernel: an array, or the three arrays of a CSR matrix
    scale: tuple[float, float]  # factors that convert the distances of ``points`` to those of the data
    square: float  # ratio of the squared distances of ``points`` to those of the centred points
    origin: tuple[float, Any, float]  # (X / scale - mean) / second scale are the centred points

    @classmethod
    def of(cls, X: Any) -> Points:
        """Return the points of dense or sparse data."""
        if sp.issparse(X):
            scale = unit_scale(X.data)
            Z = X.copy()
            Z.data = X.data / scale  # X / scale multiplies by 1 / scale, which overflows for the smallest numbers
            norms = np.asarray(Z.multiply(Z).sum(axis=1), dtype=np.float64).ravel()
            parts = (Z.indptr.astype(np.int64), Z.indices.astype(np.int32), Z.data)
            return cls(Z, norms, kernels.rank_sparse, parts, (scale, 1.0), 1.0, (scale, 0.0, 1.0))
        scale = unit_scale(X)
        Z = X / scale
        mean = Z.mean(axis=0)
        Z -= mean
        # The centred data can be small if the data are far from the origin or nearly constant, so they are brought to
        # unit scale again. Centring makes the products accurate, but it rounds the data, so distances are summed from
        # data that are not centred.
        second = unit_scale(Z)
        Z /= second
        norms = np.einsum("ij,ij->i", Z, Z)
        if 1.0 / _ORDINARY < scale * second < _ORDINARY:  # squares cannot overflow, so the data need no rescaled copy
            return cls(Z, norms, kernels.rank_dense, X, (1.0, 1.0), (scale * second) ** 2, (scale, mean, second))
        return cls(Z, norms, kernels.rank_dense, X / scale / second, (scale, second), 1.0, (scale, mean, second))

    def doubt(self, dtype: type) -> float:
        """Return a bound on the error of a squared distance computed from dot products.

        The bound is relative to the sum of the squared norms.
        """
        return float((2 * self.centred.shape[1] + 16) * np.finfo(dtype).eps)


class Shortlists(NamedTuple):
    """Candidates for the nearest points of some rows."""

    value: NDArray[Any]  # (m, room)
    names: NDArray[np.int32]  # (m, room)
    filled: NDArray[np.int32]  # (m,)
    bound: NDArray[Any]  # the smallest value that was left out, (m,)

    @classmethod
    def empty(cls, m: int, k: int, n: int, dtype: type) -> Shortlists:
        """Return empty lists for m rows, with room for somewhat more than k points each."""
        size = k + max(8, k // 4)
        room = size + size // 2 + 3
        largest = np.finfo(dtype).max  # a finite limit, so that sums of differences from the limit are not nan
        return cls(
            np.empty((m, room), dtype),
            np.empty((m, room), np.int32),
            np.zeros(m, np.int32),
            np.full(m, largest / 2**16, dtype),
        )


def exact(X: Any, k: int, rows: Rows, workers: Workers) -> KnnGraph:
    """Return the ``k`` nearest neighbours of ``rows`` among all rows of ``X``."""
    points = Points.of(X)
    graph = KnnGraph.empty(len(rows), k)
    factors = [points.centred if sp.issparse(X) else points.centred.astype(np.float32)]  # the last entry is in use
    step = max(1, TILE_ROWS * TILE_COLUMNS // len(points.norms)) if sp.issparse(X) else TILE_ROWS

    def work(block: int, lo: int, hi: int) -> None:
        for start in range(lo * step, min(hi * step, len(rows)), step):
            some, out = rows[start : start + step], slice(start, start + step)
            lists, bounds = _scanned(points, factors[-1], some, k)
            if lists.value.dtype == np.float32 and _n_unproved(lists, bounds, points, some, k) > _UNPROVED * len(some):
                factors.append(points.centred)
                lists, bounds = _scanned(points, points.centred, some, k)
            ranked = lists.names, lists.filled, bounds * points.square, graph.indices[out], graph.distances[out]
            points.rank(points.points, points.points, some, some, *ranked, whole(len(some)))

    workers.run(work, -(-len(rows) // step), grain=1)
    return rescaled(graph, points)


def _scanned(points: Points, centred: Any, some: Rows, k: int) -> tuple[Shortlists, NDArray[np.float64]]:
    """Return the shortlists of ``some`` rows, and a lower bound on the squared distances that they leave out.

    ``centred`` are the centred points in the precision of the products.
    """
    n, dtype = len(points.norms), centred.dtype.type
    doubt = points.doubt(dtype)
    norms = (points.norms * (1.0 - doubt)).astype(dtype)
    # This is the rounding error that arises when the row's own norm is added.
    slack = doubt * (points.norms[some] + 1e-300)
    lists = Shortlists.empty(len(some), k, n, dtype)
    every, at = np.arange(n, dtype=np.int32), np.arange(len(some), dtype=np.int32)
    width = n if sp.issparse(centred) else TILE_COLUMNS
    for first in range(0, n, width):
        tile = slice(first, first + width)
        products = centred[some] @ centred[tile].T
        products = products.toarray() if sp.issparse(products) else products
        kernels.scan(products, norms[tile], every[tile], some, norms[some], at, *lists, whole(len(some)))
    return lists, np.where(lists.filled == n - 1, np.inf, lists.bound.astype(np.float64) - slack)


def _n_unproved(lists: Shortlists, bounds: NDArray[np.float64], points: Points, some: Rows, k: int) -> int:
    """Return the number of rows whose k-th candidate may lie beyond the bound of the shortlist."""
    inside = np.arange(lists.value.shape[1]) < lists.filled[:, None]
    kth = np.partition(np.where(inside, lists.value, np.inf), k - 1, axis=1)[:, k - 1].astype(np.float64)
    slack = 4.0 * points.doubt(lists.value.dtype.type) * points.norms[some]
    return int((kth + slack >= bounds).sum())


def rescaled(graph: KnnGraph, points: Points) -> KnnGraph:
    """Convert the distances to the units of the data, in place, and return the neighbours."""
    with np.errstate(over="ignore"):
        for factor in reversed(points.scale):
            graph.distances[...] *= factor
    return graph


def is_little(X: Any) -> bool:
    """Return whether the distances between all rows of ``X`` take less time than a compilation."""
    if sp.issparse(X) or X.shape[0] ** 2 * float(X.shape[1]) > _LITTLE_WORK:
        return False
    largest = float(np.abs(X).max(initial=0.0))
    return 1.0 / _LARGEST < largest < _LARGEST


def uncompiled(X: NDArray[np.float64], k: int, workers: Workers) -> KnnGraph:
    """Return the ``k`` nearest neighbours of every row of little data."""
    from scipy.spatial.distance import cdist

    def of(start: int) -> KnnGraph:
        distances = cdist(X[start : start + TILE_ROWS], X)
        own = np.arange(len(distances))
        distances[own, start + own] = np.inf
        return _nearest_columns(distances, k)

    parts = workers.each(of, range(0, len(X), TILE_ROWS))
    return KnnGraph(*(np.concatenate(some) for some in zip(*parts, strict=True)))


def _nearest_columns(distances: NDArray[np.float64], k: int) -> KnnGraph:
    """Return the columns of the ``k`` smallest values of every row. Ties are sorted by index."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    among = distances <= kth
    indices = np.empty((len(distances), k), np.int32)
    counts = among.sum(axis=1)
    usual = counts == k
    indices[usual] = np.nonzero(among[usual])[1].reshape(-1, k)
    for row in np.flatnonzero(~usual):  # several columns have the k-th smallest value
        columns = np.flatnonzero(among[row])
        indices[row] = columns[np.argsort(distances[row, columns], kind="stable")[:k]]
    found = np.take_along_axis(distances, indices.astype(np.intp), axis=1)
    order = np.argsort(found, axis=1, kind="stable")
    return KnnGraph(np.take_along_axis(indices, order, axis=1), np.take_along_axis(found, order, axis=1))
