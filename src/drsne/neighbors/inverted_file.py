"""Approximate Euclidean nearest neighbours by an inverted file.

The centres of the lists are found by k-means on a sample of the rows. Every row belongs to the list of its nearest
centre. A row is compared with the rows in the lists of its nearest centres (its probes). Some rows are also searched
exactly, to measure the recall. If the recall is too small, all rows are searched exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.kernels._turns import whole
from drsne.backends.numba.threads import Workers
from drsne.neighbors.exact import TILE_COLUMNS, TILE_ROWS, Points, Shortlists, exact, rescaled
from drsne.neighbors.graph import KnnGraph

# Chosen by benchmarks/search.py (results in benchmarks/results/search.md).
APPROXIMATE_FROM = 50_000  # smallest number of rows for which the approximate search is much faster
PROBES = 32  # number of lists that a row is compared with
LISTS_PER_ROOT = 2.0  # number of lists divided by the square root of the number of rows
_SAMPLE = 64  # number of rows per list in the sample for k-means
_LLOYD_ITERATIONS = 8
_CHECKED, _LEAST_RECALL = 200, 0.9  # number of rows that are also searched exactly, and the smallest allowed recall


def approximate(X: NDArray[np.float64], k: int, workers: Workers, *, probes: int = PROBES) -> KnnGraph:
    """Return the ``k`` nearest neighbours of every row of ``X`` among the rows in its ``probes`` nearest lists."""
    points = Points.of(X)
    n = len(X)
    rows = points.centred.astype(np.float32)
    shortlists = Shortlists.empty(n, k, n, np.float32)
    graph = KnnGraph(np.empty((n, k), np.int32), np.empty((n, k)))
    centres = _centres(rows, int(LISTS_PER_ROOT * np.sqrt(n)), workers)
    probed = _probed(rows, centres, min(probes, len(centres)), workers)
    members = _members(probed[:, :1], len(centres))
    for centre, inside, searching in zip(centres, members, _members(probed, len(centres)), strict=True):
        _compare(points.centred, centre, inside, searching, shortlists, workers)
    # A row that was compared with fewer than k others is searched in full.
    bounds = np.where(shortlists.filled < k, -np.inf, np.inf)
    arguments = (*points.parts, np.arange(n, dtype=np.int32), shortlists.names, shortlists.filled, bounds)
    workers.run(points.rank, n, *arguments, *graph)
    graph = rescaled(graph, points)
    del shortlists, rows, points
    some = np.unique(np.linspace(0, n - 1, _CHECKED).astype(np.intp))
    reach = exact(X, k, some, workers).distances[:, -1:]
    recall = float((graph.distances[some] <= reach * (1.0 + 1e-9)).mean())  # ties count as found
    if recall >= _LEAST_RECALL:
        return graph
    checks.warn(
        f"The approximate search found only {recall:.0%} of the neighbours of {len(some)} rows, so all rows were "
        "searched exactly, which takes longer. Pass precomputed neighbours to skip the search."
    )
    return exact(X, k, np.arange(n), workers)


def _compare(
    Z: NDArray[np.float64],
    centre: NDArray[np.float32],
    inside: NDArray[np.int32],
    searching: NDArray[np.int32],
    shortlists: Shortlists,
    workers: Workers,
) -> None:
    """Add the rows ``inside`` a list to the shortlists of the rows that are ``searching`` it.

    The products are computed from differences from the centre of the list, which are small for near rows.
    """
    members = (Z[inside] - centre).astype(np.float32)
    norms = np.einsum("ij,ij->i", members, members)

    def compare(block: int, lo: int, hi: int) -> None:
        for start in range(lo, hi, TILE_ROWS):
            some = searching[start : min(start + TILE_ROWS, hi)]
            queries = (Z[some] - centre).astype(np.float32)
            own = np.einsum("ij,ij->i", queries, queries)
            for first in range(0, len(inside), TILE_COLUMNS):
                tile = slice(first, first + TILE_COLUMNS)
                products = queries @ members[tile].T
                kernels.scan(products, norms[tile], inside[tile], some, own, some, *shortlists, whole(len(some)))

    workers.run(compare, len(searching), grain=512)


def _centres(rows: NDArray[np.float32], count: int, workers: Workers) -> NDArray[np.float32]:
    """Return the centres of the lists, found by k-means on a fixed sample of the rows (Lloyd iterations)."""
    rng = np.random.RandomState(0)
    sample = rows[np.sort(rng.permutation(len(rows))[: count * _SAMPLE])]
    centres = sample[np.sort(rng.permutation(len(sample))[:count])]
    doubt = (2 * rows.shape[1] + 16) * float(np.finfo(np.float32).eps)
    label = np.empty(len(sample), np.int32)

    def assign(block: int, lo: int, hi: int) -> None:
        norms = np.einsum("ij,ij->i", centres, centres)
        for start in range(lo, hi, TILE_ROWS):
            some = slice(start, min(start + TILE_ROWS, hi))
            part = sample[some]
            kernels.nearest_centre(part @ centres.T, norms, part, centres, doubt, label[some], whole(len(part)))

    for _ in range(_LLOYD_ITERATIONS):
        workers.run(assign, len(sample))
        sums = np.stack([np.bincount(label, column, len(centres)) for column in sample.T], axis=1)
        sizes = np.bincount(label, minlength=len(centres))
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres).astype(np.float32)
    return centres


def _probed(
    rows: NDArray[np.float32], centres: NDArray[np.float32], probes: int, workers: Workers
) -> NDArray[np.int32]:
    """Return the nearest centres of every row, (n, probes). The nearest comes first; the others are not sorted."""
    norms = np.einsum("ij,ij->i", centres, centres)
    out = np.empty((len(rows), probes), np.int32)

    def probe(block: int, lo: int, hi: int) -> None:
        for start in range(lo, hi, TILE_ROWS):
            some = slice(start, min(start + TILE_ROWS, hi))
            value = norms - 2.0 * (rows[some] @ centres.T)
            near = np.argpartition(value, min(probes, len(centres) - 1), axis=1)[:, :probes]
            first = np.take_along_axis(value, near, axis=1).argmin(axis=1)[:, None]
            nearest = np.take_along_axis(near, first, axis=1)
            np.put_along_axis(near, first, near[:, :1].copy(), axis=1)
            near[:, :1] = nearest
            out[some] = near

    workers.run(probe, len(rows))
    return out


def _members(probed: NDArray[np.int32], count: int) -> list[NDArray[np.int32]]:
    """Return the rows that probe each of ``count`` lists, in ascending order."""
    flat = probed.ravel()
    order = (np.argsort(flat, kind="stable") // probed.shape[1]).astype(np.int32)
    edges = np.cumsum(np.bincount(flat, minlength=count))[:-1]
    return np.split(order, edges)
