"""Approximate Euclidean nearest neighbours by an inverted file.

The centres of the lists are found by k-means on a sample of the rows. Every row belongs to the list of its nearest
centre. A row is compared with the rows in the lists of its nearest centres (its probes). Some rows are also searched
exactly, to measure the recall. If the recall is too small, the neighbours are refined (``descent``). If that does not
help, or if it would take longer, all rows are searched exactly.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import lists as list_kernels
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.kernels._turns import whole
from drsne.backends.numba.threads import Workers
from drsne.neighbors import descent
from drsne.neighbors.exact import TILE_ROWS, Points, exact, rescaled
from drsne.neighbors.graph import KnnGraph

# Chosen in a study (benchmarks/results/search.md).
APPROXIMATE_FROM = 50_000  # smallest number of rows for which the approximate search is much faster
PROBES = 32  # largest number of lists that a row is compared with
LISTS_PER_ROOT = 2.0  # number of lists divided by the square root of the number of rows
_SAMPLE = 32  # number of rows per list in the sample for k-means
_LLOYD_ITERATIONS = 5
_CHECKED = 200  # number of rows that are also searched exactly
_VERY_GOOD_RECALL = 0.99  # recall at which no more lists are probed
_GOOD_RECALL = 0.96  # recall at which the neighbours are not refined
_REFINED_RECALL = 0.953  # recall at which a refinement ends; a little above .95, because it is measured on few rows
_LEAST_RECALL = 0.9  # smallest allowed recall after that
_PART, _STEP = 512, 32_768  # largest number of rows that are compared at once, and whose candidates are in memory
WIDTH = 128  # number of rows of a tile
_SPREAD_SAMPLE = 256  # largest number of rows from which the column is chosen along which rows are divided
_TILES_AT_ONCE = 64  # number of tiles that are filled at once
_ROUNDING = 1.0 + 1e-6  # more than the rounding errors of a radius that is computed in single precision


class Lists(NamedTuple):
    """The lists of an inverted file."""

    centres: NDArray[np.float32]  # (lists, d)
    order: NDArray[np.int32]  # the rows, sorted by list
    first: NDArray[np.int64]  # where each list begins in that order, (lists + 1,)
    residual: NDArray[np.float32]  # differences of the rows from the centres of their lists, in that order
    probed: NDArray[np.int32]  # the lists that each row is compared with, in that order; its own comes first

    @classmethod
    def of(cls, Z: NDArray[np.float64], probes: int, workers: Workers) -> Lists:
        """Return the lists of the rows of ``Z``."""
        n = len(Z)
        rows = Z.astype(np.float32)
        centres = _centres(rows, int(LISTS_PER_ROOT * np.sqrt(n)), workers)
        probed = np.empty((n, min(probes, len(centres))), np.int32)
        workers.run(list_kernels.nearest_lists, n, rows, centres, probed)
        order = np.argsort(probed[:, 0], kind="stable").astype(np.int32)
        sizes = np.bincount(probed[:, 0], minlength=len(centres))
        probed = probed[order]
        residual = rows  # its memory is used again
        for start in range(0, n, _STEP):
            some = slice(start, start + _STEP)
            residual[some] = Z[order[some]] - centres[probed[some, 0]]
        return cls(centres, order, np.append(0, np.cumsum(sizes)), residual, probed)

    def parts(self) -> NDArray[np.int64]:
        """Return (list, start, end) of parts of the lists that are small enough to be compared at once."""
        parts = [
            (c, start, min(start + _PART, end))
            for c, (begin, end) in enumerate(pairwise(self.first.tolist()))
            for start in range(begin, end, _PART)
        ]
        return np.array(parts, np.int64)


class Checked(NamedTuple):
    """Some rows that are also searched exactly, to measure the recall."""

    rows: NDArray[np.intp]
    indices: NDArray[np.int32]  # the neighbours of each row, (rows, k)
    reach: NDArray[np.float64]  # distance of the k-th neighbour of each row, (rows, 1)

    @classmethod
    def of(cls, X: NDArray[np.float64], k: int, workers: Workers) -> Checked:
        """Return checked rows at equal intervals."""
        rows = np.unique(np.linspace(0, len(X) - 1, _CHECKED).astype(np.intp))
        graph = exact(X, k, rows, workers)
        return cls(rows, graph.indices, graph.distances[:, -1:])

    def recall(self, distances: NDArray[np.float64]) -> float:
        """Return the fraction of neighbours that were found, from their distances; ties count as found."""
        return float((distances <= self.reach * (1.0 + 1e-9)).mean())


def approximate(X: NDArray[np.float64], k: int, workers: Workers, *, probes: int = PROBES) -> KnnGraph:
    """Return the ``k`` nearest neighbours of every row of ``X`` among the rows in at most ``probes`` lists."""
    checked = Checked.of(X, k, workers)
    points = Points.of(X)
    lists = Lists.of(points.centred, probes, workers)
    enough, good = enough_probes(lists, checked)
    width = k if good or not descent.pays(len(X), k) else descent.width(len(X), k)
    lists = lists._replace(probed=np.ascontiguousarray(lists.probed[:, :enough]))
    order, graph = lists.order, _searched(points, lists, width, workers)
    del lists
    recall = checked.recall(graph.distances[checked.rows, :k])
    if recall < _GOOD_RECALL and descent.pays(len(X), k):
        graph = _refined(points, graph.indices, k, order, checked, workers)
        recall = checked.recall(graph.distances[checked.rows])
    if recall >= _LEAST_RECALL:
        return KnnGraph(*map(np.ascontiguousarray, graph.first(k)))
    checks.warn(
        f"The approximate search found only {recall:.0%} of the neighbours of {len(checked.rows)} rows, so all rows "
        "were searched exactly, which takes longer. Pass precomputed neighbours to skip the search."
    )
    return exact(X, k, np.arange(len(X)), workers)


def enough_probes(lists: Lists, checked: Checked) -> tuple[int, bool]:
    """Return the number of probes, chosen by the lists that contain the neighbours of the checked rows.

    It is the smallest number with a very good recall, or the largest number. Also return whether the recall is good. If
    it is not, the neighbours will be refined. A refinement that begins with fewer probes needs more rounds, which take
    longer than the probes.
    """
    label, position = np.empty(len(lists.order), np.int32), np.empty(len(lists.order), np.int32)
    label[lists.order], position[lists.order] = lists.probed[:, 0], np.arange(len(position), dtype=np.int32)
    probed = lists.probed[position[checked.rows]]
    found = (label[checked.indices][:, :, None] == probed[:, None, :]).cumsum(axis=2).mean(axis=(0, 1))
    if found[-1] >= _VERY_GOOD_RECALL:
        return int(np.argmax(found >= _VERY_GOOD_RECALL)) + 1, True
    return len(found), bool(found[-1] >= _GOOD_RECALL)


def _searched(points: Points, lists: Lists, k: int, workers: Workers) -> KnnGraph:
    """Return the neighbours of every row in the lists that it probes."""
    parts, n = lists.parts(), len(lists.order)
    graph = KnnGraph.empty(n, k)
    room = list_kernels.room(k)
    begin = 0
    while begin < len(parts):
        lo = int(parts[begin, 1])
        end = max(begin + 1, int(np.searchsorted(parts[:, 2], lo + _STEP, side="right")))
        hi = int(parts[end - 1, 2])
        names, filled = np.empty((hi - lo, room), np.int32), np.zeros(hi - lo, np.int32)
        index = lists.residual, lists.order, lists.first, lists.centres, lists.probed
        workers.run(list_kernels.compare, end - begin, *index, parts[begin:end], lo, k, names, filled, grain=1)
        _rank(points, lists.order[lo:hi], names, filled, graph, workers)
        begin = end
    return rescaled(graph, points)


def _rank(
    points: Points,
    rows: NDArray[np.int32],
    candidates: NDArray[np.int32],
    filled: NDArray[np.int32],
    graph: KnnGraph,
    workers: Workers,
) -> None:
    """Write the nearest candidates of ``rows`` to the graph."""
    m, k = len(rows), graph.indices.shape[1]
    out = KnnGraph.empty(m, k)
    # A row that was compared with fewer than k others is searched in full.
    bounds = np.where(filled < k, -np.inf, np.inf)
    workers.run(points.rank, m, points.points, points.points, rows, rows, candidates, filled, bounds, *out)
    graph.indices[rows], graph.distances[rows] = out


def _refined(
    points: Points, indices: NDArray[np.int32], k: int, order: NDArray[np.int32], checked: Checked, workers: Workers
) -> KnnGraph:
    """Return the k nearest of ``indices``, refined by nearest-neighbour descent, in which rows are sorted by list."""
    n, width = indices.shape
    position = np.empty(n, np.int32)
    position[order] = np.arange(n, dtype=np.int32)
    near, rows = np.empty((n, width), np.int32), np.empty((n, points.centred.shape[1]), np.float32)
    for start in range(0, n, _STEP):
        some = slice(start, start + _STEP)
        near[some], rows[some] = position[indices[order[some]]], points.centred[order[some]]

    def ranked(some: NDArray[np.int32], near: NDArray[np.int32], graph: KnnGraph) -> None:
        _rank(points, some, order[near], np.full(len(some), width, np.int32), graph, workers)

    graph = KnnGraph.empty(n, k)

    def recall(near: NDArray[np.int32]) -> float:
        ranked(checked.rows.astype(np.int32), near[position[checked.rows]], graph)
        some = KnnGraph(graph.indices[checked.rows], graph.distances[checked.rows])
        return checked.recall(rescaled(some, points).distances)

    descent.refined(rows, near, workers, recall, _REFINED_RECALL)
    for start in range(0, n, _STEP):
        some = slice(start, start + _STEP)
        ranked(order[some], near[some], graph)
    return rescaled(graph, points)


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


class Tiles(NamedTuple):
    """Lists of training rows in tiles, with which new rows are compared.

    A tile contains the values of its rows column by column, so that a new row is compared with all rows of a tile at
    once. The columns with the largest variance come first, so that few columns suffice to tell that most tiles contain
    no near row. ``kernels/lists.py`` compares the rows.
    """

    tiles: NDArray[np.float32]  # differences of the rows from the centres of their lists, (tiles, d, WIDTH)
    order: NDArray[np.int32]  # the number of the row in each place of the tiles, (tiles * WIDTH,)
    first: NDArray[np.int64]  # the first tile of each list, (lists + 1,)
    centres: NDArray[np.float32]  # (lists, d)
    radii: NDArray[np.float64]  # no row of a list is farther from its centre, (lists,)
    columns: NDArray[np.intp]  # the columns of the data in the order of these arrays, (d,)

    @classmethod
    def halved(cls, Z: NDArray[np.float64]) -> Tiles:
        """Return the tiles of rows that are divided in halves until each list has one tile."""
        order = _halves(Z)
        first = np.append(np.arange(0, len(Z), WIDTH), len(Z))
        centres = np.stack([Z[order[lo:hi]].mean(axis=0) for lo, hi in pairwise(first)])
        return cls._filled(Z, order, first, centres.astype(np.float32))

    @classmethod
    def of(cls, Z: NDArray[np.float64], lists: Lists) -> Tiles:
        """Return the tiles of the lists of an inverted file."""
        return cls._filled(Z, lists.order, lists.first, lists.centres)

    @classmethod
    def _filled(
        cls, Z: NDArray[np.float64], order: NDArray[np.int32], first: NDArray[np.int64], centres: NDArray[np.float32]
    ) -> Tiles:
        """Return the tiles of rows that are sorted by list; the list c has the rows first[c] to first[c + 1]."""
        sizes = np.diff(first)
        tile = np.append(0, np.cumsum(-(-sizes // WIDTH)))
        columns = np.argsort(-np.einsum("ij,ij->j", Z, Z), kind="stable")
        tiles = np.empty((tile[-1], Z.shape[1], WIDTH), np.float32)
        row = np.full(tile[-1] * WIDTH, -1, np.int32)  # -1 is a place without a row
        row[np.repeat(tile[:-1] * WIDTH - first[:-1], sizes) + np.arange(len(Z))] = order
        owner = np.repeat(np.arange(len(sizes)), np.diff(tile))
        radii = np.zeros(len(sizes))
        for start in range(0, len(tiles), _TILES_AT_ONCE):
            some = slice(start, start + _TILES_AT_ONCE)
            names, centre = (
                row[start * WIDTH : (start + _TILES_AT_ONCE) * WIDTH].reshape(-1, WIDTH),
                centres[owner[some]],
            )
            residual = (Z[names] - centre[:, None])[:, :, columns].astype(np.float32)
            squares = np.einsum("tij,tij->ti", residual, residual, dtype=np.float64)
            np.maximum.at(radii, owner[some], np.sqrt(np.where(names >= 0, squares, 0.0).max(axis=1)))
            residual[names < 0] = np.inf
            tiles[some] = residual.transpose(0, 2, 1)
        return cls(tiles, row, tile, np.ascontiguousarray(centres[:, columns]), radii * _ROUNDING, columns)


def _halves(Z: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return an order of the rows in which the rows of a tile are near each other.

    A part is divided along its widest column, into two parts that are full tiles.
    """
    order = np.arange(len(Z), dtype=np.int32)
    parts = [(0, len(Z))]
    while parts:
        lo, hi = parts.pop()
        if hi - lo <= WIDTH:
            continue
        rows = order[lo:hi]
        widest = int(Z[rows[:: -(-len(rows) // _SPREAD_SAMPLE)]].var(axis=0).argmax())
        middle = -(-len(rows) // WIDTH) // 2 * WIDTH
        order[lo:hi] = rows[np.argpartition(Z[rows, widest], middle)]
        parts += [(lo, lo + middle), (lo + middle, hi)]
    return order
