"""Stage 3: the nearest rows of the landmarks among all rows of the data, by an exact search over the partitions.

The smallest distances of all partitions are those of the nearest rows of the whole data. Some rows of the uniform
sample are searched too. They show how accurate the concentrations of rows are that are not landmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.threads import Workers
from drsne.distributed.sources import Part
from drsne.distributed.work import CONCENTRATION, LANDMARKS, QUERIES, STATISTICS, Work
from drsne.neighbors.queries import search_among
from drsne.terms.profile import group_neighbors, repeated

_TILE = 256  # largest number of queries that are compared with rows at once
_PAIRS = 65_536  # number of distances that are computed exactly at once
_EUCLIDEAN = ("euclidean", "l2", "minkowski")

Array = NDArray[np.float64]


def tiles(X: Array, size: int = _TILE) -> Iterator[NDArray[np.intp]]:
    """Yield groups of at most ``size`` rows that are close to each other, by halving along the widest column."""
    waiting = [np.arange(len(X))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            yield np.sort(rows)
            continue
        column = int(X[rows].var(axis=0).argmax())
        order = rows[np.argsort(X[rows, column], kind="stable")]
        waiting += [order[len(order) // 2 :], order[: len(order) // 2]]


class Nearest:
    """The smallest distances of queries to the rows of the blocks that were added.

    Distances are those of Euclid. Matrix products in single precision find the pairs that may be close enough. Their
    distances are then summed in double precision, so the result does not depend on the rounding of the products. The
    products are centred at each tile of queries, because rounding errors grow with the distance from the origin.
    ``reach`` are distances beyond which rows are not needed, and ``groups`` are the tiles, if they are known.
    """

    def __init__(
        self, queries: NDArray[Any], k: int, reach: Array, groups: Sequence[NDArray[np.intp]] | None = None
    ) -> None:
        self._queries = np.asarray(queries, np.float64)
        self.distances = np.full((len(self._queries), k), np.inf)
        self._reach = reach.copy()
        self._tiles = list(tiles(self._queries)) if groups is None else groups
        self._centres = np.array([self._queries[rows].mean(axis=0) for rows in self._tiles])

    def add(self, block: NDArray[Any]) -> None:
        """Compare all queries with the rows of a block."""
        rows = np.asarray(block, np.float64)
        from_centres, doubt = _squares(rows, self._centres)
        for some, centre, rough in zip(self._tiles, self._centres, from_centres, strict=True):
            own = self._queries[some] - centre
            own_squares = np.einsum("ij,ij->i", own, own)
            farthest = (np.sqrt(own_squares) + self._reach[some]).max() * (1.0 + 1e-6)
            near = np.flatnonzero(rough <= farthest**2 + doubt)
            if len(near):
                away = rows[near] - centre
                squares = np.einsum("ij,ij->i", away, away)
                queries, others = self._candidates(some, own, own_squares, away, squares)
                self._keep(some, queries, self._lengths(some[queries], rows, near[others]))

    def _candidates(
        self, some: NDArray[np.intp], own: Array, own_squares: Array, away: Array, squares: Array
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return pairs of queries of a tile and rows that include all pairs within reach."""
        scale = max(1e-150, float(np.sqrt(max(own_squares.max(), squares.max()))))
        doubt = 2.0 * (own.shape[1] + 16) * float(np.finfo(np.float32).eps)
        # |q|^2 + |b|^2 - 2 q b <= reach^2, with room for the rounding of all terms; |b|^2 is part of the products
        least = 0.5 * (own_squares * (1.0 - doubt) - self._reach[some] ** 2 * (1.0 + 1e-6)) / scale**2
        rest = -0.5 * squares * (1.0 - doubt) / scale**2
        left = np.column_stack([own / scale, np.ones(len(own))]).astype(np.float32)
        right = np.column_stack([away / scale, rest]).astype(np.float32)
        within = left @ right.T >= (least.astype(np.float32) - np.float32(1e-30))[:, None]
        queries, rows = np.divmod(np.flatnonzero(within), len(away))
        return queries, rows

    def _lengths(self, queries: NDArray[np.intp], rows: Array, near: NDArray[np.intp]) -> Array:
        out = np.empty(len(queries))
        for start in range(0, len(out), _PAIRS):
            pairs = slice(start, start + _PAIRS)
            out[pairs] = ((self._queries[queries[pairs]] - rows[near[pairs]]) ** 2).sum(axis=1)
        return np.sqrt(out)

    def _keep(self, some: NDArray[np.intp], place: NDArray[np.intp], lengths: Array) -> None:
        """Keep the smallest lengths of each query. ``place`` (sorted) are the positions of the queries in ``some``."""
        if not len(place):
            return
        k = self.distances.shape[1]
        order = np.lexsort((lengths, place))
        place, lengths = place[order], lengths[order]
        rank = np.arange(len(place)) - np.searchsorted(place, place)
        first = rank < k
        table = np.full((len(some), k), np.inf)
        table[place[first], rank[first]] = lengths[first]
        best = smallest(self.distances[some], table)
        self.distances[some] = best
        self._reach[some] = np.minimum(self._reach[some], best[:, -1])


def _squares(rows: Array, centres: Array) -> tuple[Array, float]:
    """Return squared distances of rows to centres, (centres, rows), and how far they can be from their values."""
    middle = centres.mean(axis=0)
    away, others = rows - middle, centres - middle
    own, own_others = np.einsum("ij,ij->i", away, away), np.einsum("ij,ij->i", others, others)
    found = own_others[:, None] + own - 2.0 * (others @ away.T)
    doubt = 8.0 * (rows.shape[1] + 16) * float(np.finfo(np.float64).eps)
    return found, doubt * float(own.max(initial=0.0) + own_others.max(initial=0.0))


def smallest(one: Array, other: Array) -> Array:
    """Return the smallest entries of each row of two tables, in ascending order."""
    return np.sort(np.concatenate([one, other], axis=1), axis=1)[:, : one.shape[1]]


def prepare(work: Work, metric: Any, k: int, n_checked: int, n_jobs: Any) -> None:
    """Write the queries, which are the landmarks and some rows of the sample, and bounds of their distances."""
    X = work.load(work.path(LANDMARKS))["X"]
    sample = work.load(work.path(STATISTICS))["X"]
    queries = np.concatenate([X, sample[spread(len(sample), n_checked)]])
    k = min(k, len(X))
    with Workers(n_jobs) as workers:
        # The landmarks are rows of the data, so the k-th nearest row is at most as far away as the k-th landmark.
        found = search_among(np.asarray(X, np.float64), metric, workers)(np.asarray(queries, np.float64), k, workers)
    work.save(work.path(QUERIES), {"X": queries, "reach": found.distances[:, -1], "k": k})


def spread(n: int, wanted: int) -> NDArray[np.intp]:
    """Return at most ``wanted`` of n places at equal intervals."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, wanted)).astype(np.intp))


@lru_cache(maxsize=1)
def _queries(path: Path, version: tuple[int, ...]) -> tuple[dict[str, NDArray[Any]], list[NDArray[np.intp]]]:
    """Return the queries and their tiles; a worker reads them once."""
    found = Work(path.parent).load(path)
    return found, list(tiles(np.asarray(found["X"], np.float64)))


def search(part: Part, number: int, work: Work, metric: Any, n_jobs: Any) -> None:
    """Write the distances of the nearest rows of a partition to every query."""
    queries, groups = _queries(work.path(QUERIES), work.version(work.path(QUERIES)))
    k, merged = int(queries["k"]), work.path(CONCENTRATION)
    if metric in _EUCLIDEAN:
        # Rows are not needed beyond the distances at which the finished partitions have enough of them.
        known = work.load(merged)["distances"][:, -1] if merged.exists() else np.inf
        found = Nearest(queries["X"], k, np.minimum(queries["reach"], known), groups)
        with Workers(1):  # one thread of BLAS
            for block in part.blocks():
                found.add(block)
        distances = found.distances
    else:
        distances = np.full((len(queries["X"]), k), np.inf)
        Q = np.asarray(queries["X"], np.float64)
        with Workers(n_jobs) as workers:
            for block in part.blocks():
                few = min(k, len(block))
                near = search_among(np.asarray(block, np.float64), metric, workers)(Q, few, workers).distances
                distances = smallest(distances, np.pad(near, ((0, 0), (0, k - few)), constant_values=np.inf))
    work.save(work.path(CONCENTRATION, number), {"distances": distances})


class Merged:
    """The smallest distances over the partitions that are finished."""

    def __init__(self, work: Work, n_parts: int) -> None:
        self._work, self._path = work, work.path(CONCENTRATION)
        if self._path.exists():
            found = work.load(self._path)
            self._distances, self._included = found["distances"], found["included"]
        else:
            queries = work.load(work.path(QUERIES))
            self._distances = np.full((len(queries["X"]), int(queries["k"])), np.inf)
            self._included = np.zeros(n_parts, bool)
        for number in sorted(set(range(n_parts)).difference(work.missing(CONCENTRATION, n_parts))):
            self.add(number)

    @property
    def missing(self) -> list[int]:
        """The partitions that are not finished."""
        return [int(number) for number in np.flatnonzero(~self._included)]

    def add(self, number: int) -> None:
        """Include a partition, and remove its own file."""
        path = self._work.path(CONCENTRATION, number)
        if not self._included[number]:
            self._distances = smallest(self._distances, self._work.load(path)["distances"])
            self._included[number] = True
            self._work.save(self._path, {"distances": self._distances, "included": self._included})
        path.unlink(missing_ok=True)


def radii(work: Work, *, small_groups: bool) -> Array:
    """Return the radius of every query in the whole data, with the rule of a fit for groups of few rows."""
    distances = work.load(work.path(CONCENTRATION))["distances"][:, 1:]  # the first one is the row itself
    kept = group_neighbors(distances) if small_groups else None
    return np.asarray(repeated(distances, kept).mean(axis=1))
