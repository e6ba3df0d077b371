"""Euclidean nearest neighbours of the rows of a matrix: exact by blocks, approximate by lists.

Both shortlist by matrix products, tile by tile, and rank the shortlists by distances summed feature by feature, so
that the answer does not depend on how a product was rounded. The exact search takes products in single precision and
proves each shortlist complete; where too few can be proved it goes over to double precision, and what still cannot
be proved is searched in full. The approximate search cuts the points into lists by their nearest centre and shows
each point only the lists of the centres nearest to it; some rows are searched exactly too, and where too little was
found for them, all are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import _checks
from drsne.kernels import neighbors as kernels
from drsne.parallel import Workers

Rows = NDArray[np.intp]

# Chosen by benchmarks/search.py (figures in benchmarks/results/search.md).
APPROXIMATE_FROM = 50_000  # rows from which on the approximate search is the faster one by far
PROBES = 32  # lists that a point is shown
LISTS_PER_ROOT = 2.0  # lists, per root of the number of rows
_SAMPLE = 64  # rows per list that the centres are made from
_SWEEPS = 8  # of the centres over that sample
_TILE_ROWS, _TILE_COLUMNS = 256, 4096
_CHECKED, _LEAST_RECALL = 200, 0.9  # rows that are also searched exactly, and what must be found for them
_ORDINARY = 2.0**200  # a scale of data whose squared distances double precision can hold
_UNPROVED = 0.02  # share of a tile's rows that may be searched in full before the precision is raised


class KnnGraph(NamedTuple):
    """Each row's ``k`` nearest neighbours, nearest first, ties by index."""

    indices: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)

    def first(self, k: int) -> KnnGraph:
        """Only the ``k`` nearest of them."""
        return KnnGraph(self.indices[:, :k], self.distances[:, :k])


def unit_scale(X: NDArray[np.float64]) -> float:
    """A power of two near the largest magnitude in ``X``: dividing by it is exact and keeps squares finite."""
    largest = float(np.abs(X).max(initial=0.0))
    return float(2.0 ** min(np.frexp(largest)[1], 1023)) if largest > 0 else 1.0


class _Points(NamedTuple):
    """Points at unit scale: centred for products, as they are for distances."""

    centred: Any  # (n, d), dense or sparse
    norms: NDArray[np.float64]  # squared, of the centred ones
    rank: Any  # kernel
    parts: tuple[NDArray[Any], ...]  # what it takes
    scale: tuple[float, float]  # distances are times these
    square: float  # squared distances of the ranked points are these times those of the centred ones

    @classmethod
    def of(cls, X: Any) -> _Points:
        if sp.issparse(X):
            scale = unit_scale(X.data)
            Z = X / scale
            norms = np.asarray(Z.multiply(Z).sum(axis=1), dtype=np.float64).ravel()
            parts = (Z.indptr.astype(np.int64), Z.indices.astype(np.int32), Z.data)
            return cls(Z, norms, kernels.rank_sparse, parts, (scale, 1.0), 1.0)
        scale = unit_scale(X)
        Z = X / scale
        Z -= Z.mean(axis=0)
        # Data far from the origin or all alike leave small differences: bring those to unit scale too. Centring rounds,
        # and makes products accurate; distances are summed from the data as they are.
        second = unit_scale(Z)
        Z /= second
        norms = np.einsum("ij,ij->i", Z, Z)
        if 1.0 / _ORDINARY < scale * second < _ORDINARY:  # squares cannot overflow: no copy of the data
            return cls(Z, norms, kernels.rank_dense, (X,), (1.0, 1.0), (scale * second) ** 2)
        return cls(Z, norms, kernels.rank_dense, (X / scale / second,), (scale, second), 1.0)

    def doubt(self, dtype: type) -> float:
        """Bound on the error of a squared distance by products, relative to the two squared norms."""
        return float((2 * self.centred.shape[1] + 16) * np.finfo(dtype).eps)


class _Shortlists(NamedTuple):
    """For some rows, the points that may be nearest."""

    value: NDArray[Any]  # (m, room)
    names: NDArray[np.int32]  # (m, room)
    filled: NDArray[np.int32]  # (m,)
    bound: NDArray[Any]  # least value that was left out, (m,)

    @classmethod
    def empty(cls, m: int, k: int, n: int, dtype: type) -> _Shortlists:
        size = k + max(8, k // 4)
        room = size + size // 2 + 3
        largest = np.finfo(dtype).max  # a finite limit: sums of differences from it must not be nan
        return cls(
            np.empty((m, room), dtype),
            np.empty((m, room), np.int32),
            np.zeros(m, np.int32),
            np.full(m, largest / 2**16, dtype),
        )


def exact(X: Any, k: int, rows: Rows, workers: Workers) -> KnnGraph:
    """The ``k`` nearest of all rows of ``X``, for ``rows`` of it."""
    points = _Points.of(X)
    found = KnnGraph(np.empty((len(rows), k), np.int32), np.empty((len(rows), k)))
    lanes = [points.centred if sp.issparse(X) else points.centred.astype(np.float32)]  # the last one is in use
    step = max(1, _TILE_ROWS * _TILE_COLUMNS // len(points.norms)) if sp.issparse(X) else _TILE_ROWS

    def work(block: int, lo: int, hi: int) -> None:
        for start in range(lo * step, min(hi * step, len(rows)), step):
            some, out = rows[start : start + step], slice(start, start + step)
            lists, bounds = _scanned(points, lanes[-1], some, k)
            if lists.value.dtype == np.float32 and _doubtful(lists, bounds, points, some, k) > _UNPROVED * len(some):
                lanes.append(points.centred)
                lists, bounds = _scanned(points, points.centred, some, k)
            _rank(points, some, lists, bounds, KnnGraph(found.indices[out], found.distances[out]))

    workers.run(work, -(-len(rows) // step), grain=1)
    return _rescaled(found, points)


def _scanned(points: _Points, lanes: Any, some: Rows, k: int) -> tuple[_Shortlists, NDArray[np.float64]]:
    """Shortlists of ``some`` rows over all points, and the least squared distance beyond them."""
    n, dtype = len(points.norms), lanes.dtype.type
    doubt = points.doubt(dtype)
    norms = (points.norms * (1.0 - doubt)).astype(dtype)
    # What adding the row's own norm may round away.
    slack = doubt * (points.norms[some] + 1e-300)
    lists = _Shortlists.empty(len(some), k, n, dtype)
    every, at = np.arange(n, dtype=np.int32), np.arange(len(some), dtype=np.int32)
    width = n if sp.issparse(lanes) else _TILE_COLUMNS
    for first in range(0, n, width):
        tile = slice(first, first + width)
        products = lanes[some] @ lanes[tile].T
        products = products.toarray() if sp.issparse(products) else products
        kernels.scan(products, norms[tile], every[tile], some, norms[some], at, *lists, 0, 0, len(some))
    return lists, np.where(lists.filled == n - 1, np.inf, lists.bound.astype(np.float64) - slack)


def _doubtful(lists: _Shortlists, bounds: NDArray[np.float64], points: _Points, some: Rows, k: int) -> int:
    """How many rows' k-th candidate may lie beyond the bound of its shortlist."""
    inside = np.arange(lists.value.shape[1]) < lists.filled[:, None]
    kth = np.partition(np.where(inside, lists.value, np.inf), k - 1, axis=1)[:, k - 1].astype(np.float64)
    slack = 4.0 * points.doubt(lists.value.dtype.type) * points.norms[some]
    return int((kth + slack >= bounds).sum())


def _rank(points: _Points, some: Rows, lists: _Shortlists, bounds: NDArray[np.float64], out: KnnGraph) -> None:
    points.rank(*points.parts, some, lists.names, lists.filled, bounds * points.square, *out, 0, 0, len(some))


def _rescaled(found: KnnGraph, points: _Points) -> KnnGraph:
    with np.errstate(over="ignore"):
        for factor in reversed(points.scale):
            found.distances[...] *= factor
    return found


def approximate(X: NDArray[np.float64], k: int, workers: Workers, *, probes: int = PROBES) -> KnnGraph:
    """The ``k`` nearest rows of each row of ``X`` among those in its nearest lists."""
    points = _Points.of(X)
    n = len(X)
    lanes = points.centred.astype(np.float32)
    lists = _Shortlists.empty(n, k, n, np.float32)
    found = KnnGraph(np.empty((n, k), np.int32), np.empty((n, k)))
    centres = _centres(lanes, int(LISTS_PER_ROOT * np.sqrt(n)), workers)
    probed = _probed(lanes, centres, min(probes, len(centres)), workers)
    members = _members(probed[:, :1], len(centres))
    for centre, inside, visitors in zip(centres, members, _members(probed, len(centres)), strict=True):
        _show(points.centred, centre, inside, visitors, lists, workers)
    bounds = np.where(lists.filled < k, -np.inf, np.inf)  # a row that met fewer than k others is searched in full
    arguments = (*points.parts, np.arange(n, dtype=np.int32), lists.names, lists.filled, bounds)
    workers.run(points.rank, n, *arguments, *found)
    found = _rescaled(found, points)
    del lists, lanes, points
    some = np.unique(np.linspace(0, n - 1, _CHECKED).astype(np.intp))
    reach = exact(X, k, some, workers).distances[:, -1:]
    recall = float((found.distances[some] <= reach * (1.0 + 1e-9)).mean())  # of equally near points any will do
    if recall >= _LEAST_RECALL:
        return found
    _checks.warn(
        f"The approximate search found only {recall:.0%} of the neighbours of {len(some)} rows, so all rows were "
        "searched exactly, which takes longer. Pass ready neighbours to skip the search."
    )
    return exact(X, k, np.arange(n), workers)


def _show(
    Z: NDArray[np.float64],
    centre: NDArray[np.float32],
    inside: NDArray[np.int32],
    visitors: NDArray[np.int32],
    lists: _Shortlists,
    workers: Workers,
) -> None:
    """Offer the rows ``inside`` a list to the shortlists of its ``visitors``, each of whom comes once.

    Products are of differences from the list's centre: near rows differ little from it, wherever it lies.
    """
    shown = (Z[inside] - centre).astype(np.float32)
    norms = np.einsum("ij,ij->i", shown, shown)

    def show(block: int, lo: int, hi: int) -> None:
        for start in range(lo, hi, _TILE_ROWS):
            some = visitors[start : min(start + _TILE_ROWS, hi)]
            coming = (Z[some] - centre).astype(np.float32)
            own = np.einsum("ij,ij->i", coming, coming)
            for first in range(0, len(inside), _TILE_COLUMNS):
                tile = slice(first, first + _TILE_COLUMNS)
                products = coming @ shown[tile].T
                kernels.scan(products, norms[tile], inside[tile], some, own, some, *lists, 0, 0, len(some))

    workers.run(show, len(visitors), grain=512)


def _centres(lanes: NDArray[np.float32], count: int, workers: Workers) -> NDArray[np.float32]:
    """Centres of lists: means of a fixed sample's nearest rows, some sweeps long."""
    rng = np.random.RandomState(0)
    sample = lanes[np.sort(rng.permutation(len(lanes))[: count * _SAMPLE])]
    centres = sample[np.sort(rng.permutation(len(sample))[:count])]
    doubt = (2 * lanes.shape[1] + 16) * float(np.finfo(np.float32).eps)
    label = np.empty(len(sample), np.int32)

    def assign(block: int, lo: int, hi: int) -> None:
        norms = np.einsum("ij,ij->i", centres, centres)
        for start in range(lo, hi, _TILE_ROWS):
            some = slice(start, min(start + _TILE_ROWS, hi))
            part = sample[some]
            kernels.nearest_centre(part @ centres.T, norms, part, centres, doubt, label[some], 0, 0, len(part))

    for _ in range(_SWEEPS):
        workers.run(assign, len(sample))
        sums = np.stack([np.bincount(label, column, len(centres)) for column in sample.T], axis=1)
        sizes = np.bincount(label, minlength=len(centres))
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres).astype(np.float32)
    return centres


def _probed(
    lanes: NDArray[np.float32], centres: NDArray[np.float32], probes: int, workers: Workers
) -> NDArray[np.int32]:
    """The nearest centres of every row, (n, probes), the nearest one first."""
    norms = np.einsum("ij,ij->i", centres, centres)
    out = np.empty((len(lanes), probes), np.int32)

    def probe(block: int, lo: int, hi: int) -> None:
        for start in range(lo, hi, _TILE_ROWS):
            some = slice(start, min(start + _TILE_ROWS, hi))
            value = norms - 2.0 * (lanes[some] @ centres.T)
            near = np.argpartition(value, min(probes, len(centres) - 1), axis=1)[:, :probes]
            first = np.take_along_axis(value, near, axis=1).argmin(axis=1)[:, None]
            nearest = np.take_along_axis(near, first, axis=1)
            np.put_along_axis(near, first, near[:, :1].copy(), axis=1)
            near[:, :1] = nearest
            out[some] = near

    workers.run(probe, len(lanes))
    return out


def _members(probed: NDArray[np.int32], count: int) -> list[NDArray[np.int32]]:
    """For each list the rows that name it, ascending."""
    flat = probed.ravel()
    order = (np.argsort(flat, kind="stable") // probed.shape[1]).astype(np.int32)
    edges = np.cumsum(np.bincount(flat, minlength=count))[:-1]
    return np.split(order, edges)
