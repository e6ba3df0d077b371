"""Approximate Euclidean nearest neighbours by an inverted file.

k-means on a sample of the rows gives the centres of the lists, every row belongs to the list of its nearest centre,
and every row is compared with the rows in the lists of the centres nearest to it (its probes). The neighbours of some
rows are also searched exactly; if too few of them were found, all rows are searched exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.exact import TILE_COLUMNS, TILE_ROWS, Points, Shortlists, exact, rescaled
from drsne.neighbors.graph import KnnGraph

# Chosen by benchmarks/search.py (figures in benchmarks/results/search.md).
APPROXIMATE_FROM = 50_000  # rows from which on the approximate search is the faster one by far
PROBES = 32  # lists that a row is compared with
LISTS_PER_ROOT = 2.0  # number of lists divided by the root of the number of rows
_SAMPLE = 64  # rows per list that k-means runs on
_LLOYD_ITERATIONS = 8
_CHECKED, _LEAST_RECALL = 200, 0.9  # rows that are also searched exactly, and the recall that they must show


def approximate(X: NDArray[np.float64], k: int, workers: Workers, *, probes: int = PROBES) -> KnnGraph:
    """The ``k`` nearest rows of each row of ``X`` among those in its nearest lists."""
    points = Points.of(X)
    n = len(X)
    lanes = points.centred.astype(np.float32)
    lists = Shortlists.empty(n, k, n, np.float32)
    found = KnnGraph(np.empty((n, k), np.int32), np.empty((n, k)))
    centres = _centres(lanes, int(LISTS_PER_ROOT * np.sqrt(n)), workers)
    probed = _probed(lanes, centres, min(probes, len(centres)), workers)
    members = _members(probed[:, :1], len(centres))
    for centre, inside, visitors in zip(centres, members, _members(probed, len(centres)), strict=True):
        _show(points.centred, centre, inside, visitors, lists, workers)
    bounds = np.where(lists.filled < k, -np.inf, np.inf)  # a row that met fewer than k others is searched in full
    arguments = (*points.parts, np.arange(n, dtype=np.int32), lists.names, lists.filled, bounds)
    workers.run(points.rank, n, *arguments, *found)
    found = rescaled(found, points)
    del lists, lanes, points
    some = np.unique(np.linspace(0, n - 1, _CHECKED).astype(np.intp))
    reach = exact(X, k, some, workers).distances[:, -1:]
    recall = float((found.distances[some] <= reach * (1.0 + 1e-9)).mean())  # of equally near points any will do
    if recall >= _LEAST_RECALL:
        return found
    checks.warn(
        f"The approximate search found only {recall:.0%} of the neighbours of {len(some)} rows, so all rows were "
        "searched exactly, which takes longer. Pass ready neighbours to skip the search."
    )
    return exact(X, k, np.arange(n), workers)


def _show(
    Z: NDArray[np.float64],
    centre: NDArray[np.float32],
    inside: NDArray[np.int32],
    visitors: NDArray[np.int32],
    lists: Shortlists,
    workers: Workers,
) -> None:
    """Offer the rows ``inside`` a list to the shortlists of its ``visitors``, each of whom comes once.

    Products are of differences from the list's centre: near rows differ little from it, wherever it lies.
    """
    shown = (Z[inside] - centre).astype(np.float32)
    norms = np.einsum("ij,ij->i", shown, shown)

    def show(block: int, lo: int, hi: int) -> None:
        for start in range(lo, hi, TILE_ROWS):
            some = visitors[start : min(start + TILE_ROWS, hi)]
            coming = (Z[some] - centre).astype(np.float32)
            own = np.einsum("ij,ij->i", coming, coming)
            for first in range(0, len(inside), TILE_COLUMNS):
                tile = slice(first, first + TILE_COLUMNS)
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
        for start in range(lo, hi, TILE_ROWS):
            some = slice(start, min(start + TILE_ROWS, hi))
            part = sample[some]
            kernels.nearest_centre(part @ centres.T, norms, part, centres, doubt, label[some], 0, 0, len(part))

    for _ in range(_LLOYD_ITERATIONS):
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
        for start in range(lo, hi, TILE_ROWS):
            some = slice(start, min(start + TILE_ROWS, hi))
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
