"""Nearest training rows of new rows, for every metric.

The neighbours of a new row do not depend on the other new rows: matrix products, whose rounding depends on their shape,
are not used, and metrics of scikit-learn are computed for one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.backends.numba.kernels import lists as list_kernels
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.exact import Points, rescaled
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.inverted_file import APPROXIMATE_FROM, PROBES, Checked, Lists, Tiles, enough_probes
from drsne.neighbors.search import EUCLIDEAN, Distances, canonical, unit_rows

Search = Callable[[Any, int, Workers], KnnGraph]
_GRAIN = 16  # number of new rows per block
_ROWS_AT_ONCE = 4096
_FOR_CHECKS = 90  # number of neighbours for which the recall of the lists is measured


def search_among(
    X: Any, metric: Any, workers: Workers, dense: Callable[[NDArray[np.float64]], Any] | None = None
) -> Search:
    """Return a function that finds the nearest rows of ``X`` for new rows.

    ``X`` are checked float64 data. For 50,000 dense rows or more and a Euclidean or cosine metric, the function
    compares a new row with the rows in the nearest lists of an inverted file, unless these contain too few of the
    neighbours. Otherwise it finds the nearest of all rows. It skips lists whose rows are proved to be farther away.
    Another search among dense rows by Euclidean distances can be given: ``dense(X)(Q, k)`` returns the numbers and
    distances of the rows of ``X`` that are nearest to the rows of ``Q``.
    """
    if metric in EUCLIDEAN:
        search = _euclidean(X, workers, dense)
        if metric != "sqeuclidean":
            return search

        def squared(Q: Any, k: int, workers: Workers) -> KnnGraph:
            graph = search(Q, k, workers)
            with np.errstate(over="ignore"):  # the caller checks that distances are finite
                return KnnGraph(graph.indices, graph.distances**2)

        return squared
    if metric == "cosine" and (unit := unit_rows(X)) is not None:
        return _cosine(_euclidean(unit, workers, dense))
    return _other(X, metric)


def _euclidean(X: Any, workers: Workers, dense: Callable[[NDArray[np.float64]], Any] | None) -> Search:
    if sp.issparse(X):
        X = canonical(X)
        return _first_of_equal(X, _sparse(X))
    if dense is None:
        return _first_of_equal(X, _dense(X, workers))
    given = dense(X)

    def search(Q: NDArray[np.float64], k: int, workers: Workers) -> KnnGraph:
        return KnnGraph(*given(Q, k))

    return _first_of_equal(X, search)


def _first_of_equal(X: Any, search: Search) -> Search:
    """Return a search that puts the first row that equals a new row in front, even if many rows equal it."""
    equal = EqualRows(X)

    def found(Q: Any, k: int, workers: Workers) -> KnnGraph:
        graph = search(Q, k, workers)
        some = np.flatnonzero(graph.distances[:, 0] == 0.0)
        if len(some):
            _put_first(equal.first(canonical(Q[some]) if sp.issparse(Q) else Q[some]), some, graph)
        return graph

    return found


def _dense(X: NDArray[np.float64], workers: Workers) -> Search:
    """Return a search among dense rows, which are divided into lists."""
    n = len(X)
    points = Points.of(X)
    lists, probes = None, 0
    if n >= APPROXIMATE_FROM:
        lists = Lists.of(points.centred, PROBES, workers)
        probes, good = enough_probes(lists, Checked.of(X, min(_FOR_CHECKS, n - 1), workers))
        lists = lists if good else None
    tiles = Tiles.halved(points.centred) if lists is None else Tiles.of(points.centred, lists)
    centres = None if lists is None else lists.centres
    del lists
    points = points._replace(centred=None)  # the tiles have the centred points in single precision
    scale, mean, second = points.origin

    def search(Q: NDArray[np.float64], k: int, workers: Workers) -> KnnGraph:
        m = len(Q)
        queries = (Q / scale - mean) / second
        own = Q if points.scale == (1.0, 1.0) else Q / scale / second
        if centres is None:
            probed = np.arange(len(tiles.centres), dtype=np.int32)[None]
        else:
            probed = np.empty((m, probes), np.int32)
            workers.run(list_kernels.probes, m, queries, centres, probed, grain=_GRAIN)
        names, filled, bound = np.empty((m, 2 * (k + k // 4 + 16)), np.int32), np.empty(m, np.int32), np.empty(m)
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(queries[:, tiles.columns])
            workers.run(list_kernels.shortlists, m, rows, *tiles[:-1], probed, k, names, filled, bound, grain=_GRAIN)
        return _ranked(points, own, m, k, (names, filled, bound * points.square), workers)

    return search


def _ranked(points: Points, rows: Any, m: int, k: int, listed: tuple[Any, Any, Any], workers: Workers) -> KnnGraph:
    """Return the k nearest of the listed candidates of new rows, or of all rows if a list is not proved complete."""
    graph = KnnGraph.empty(m, k)
    every, none = np.arange(m, dtype=np.intp), np.full(m, -1, np.intp)
    workers.run(points.rank, m, rows, points.points, every, none, *listed, *graph, grain=_GRAIN)
    return rescaled(graph, points)


def _sparse(X: sp.csr_matrix) -> Search:
    points = Points.of(X)
    scale = points.origin[0]

    def search(Q: Any, k: int, workers: Workers) -> KnnGraph:
        own, m = canonical(Q), Q.shape[0]
        rows = own.indptr.astype(np.int64), own.indices.astype(np.int32), own.data / scale
        nothing = np.empty((m, 0), np.int32), np.zeros(m, np.int32), np.full(m, -np.inf)
        return _ranked(points, rows, m, k, nothing, workers)

    return search


def _cosine(among_unit_rows: Search) -> Search:
    """Return a search by cosine distance, which is half of the squared distance between rows of unit length."""

    def search(Q: Any, k: int, workers: Workers) -> KnnGraph:
        zero = np.asarray(abs(Q).max(axis=1).todense()).ravel() == 0 if sp.issparse(Q) else ~Q.any(axis=1)
        parts = [Q[i : i + 1] if zero[i] else unit_rows(Q[i : i + 1]) for i in range(Q.shape[0])]
        unit = sp.csr_matrix(sp.vstack(parts)) if sp.issparse(Q) else np.concatenate(parts)
        graph = among_unit_rows(unit, k, workers)
        distances = 0.5 * graph.distances**2
        distances[zero] = 1.0  # by convention; all training rows are equally far from a row of zeros
        return KnnGraph(graph.indices, distances)

    return search


def _other(X: Any, metric: Any) -> Search:
    """Return a search by a metric of scikit-learn or a callable, for one row at a time."""
    distances = Distances(X, metric)
    equal = EqualRows(distances.rows)

    def search(Q: Any, k: int, workers: Workers) -> KnnGraph:
        Q, graph = distances.converted(Q), KnnGraph.empty(Q.shape[0], k)
        for i in range(Q.shape[0]):
            out = graph.indices[i : i + 1], graph.distances[i : i + 1]
            workers.run(kernels.nearest_in_rows, 1, distances.to(Q[i : i + 1], workers), np.array([-1]), *out)
        # By rounding, or by the definition of a metric, equal rows can have a distance.
        _put_first(equal.first(Q), np.arange(Q.shape[0]), graph)
        return graph

    return search


def _put_first(twins: NDArray[np.intp], some: NDArray[np.intp], graph: KnnGraph) -> None:
    """Put the training rows that equal ``some`` rows in front of their neighbours, at the distance 0. -1 is no row."""
    for i, twin in zip(some, twins, strict=True):
        indices, distances = graph.indices[i], graph.distances[i]
        if twin < 0 or (indices[0] == twin and distances[0] == 0.0):
            continue
        at = np.flatnonzero(indices == twin)
        last = int(at[0]) if len(at) else len(indices) - 1
        indices[1 : last + 1], distances[1 : last + 1] = indices[:last].copy(), distances[:last].copy()
        indices[0], distances[0] = twin, 0.0


def hashes(X: Any) -> NDArray[np.uint64]:
    """Return a number for each row of dense data, or of sparse data in canonical format. Equal rows have equal ones."""
    factors = 2 * np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) + np.uint64(1)
    out = np.empty(X.shape[0], np.uint64)
    for start in range(0, len(out), _ROWS_AT_ONCE):
        some = X[start : start + _ROWS_AT_ONCE]
        bits = ((some.data if sp.issparse(some) else np.ascontiguousarray(some)) + 0.0).view(np.uint64)
        bits ^= bits >> np.uint64(32)  # numbers with few digits differ only in their first bits
        bits = sp.csr_matrix((bits, some.indices, some.indptr), some.shape) if sp.issparse(some) else bits
        out[start : start + _ROWS_AT_ONCE] = bits @ factors
    return out


class EqualRows:
    """The rows of dense float64 or boolean data, or of sparse data in canonical format, sorted by their hashes."""

    def __init__(self, X: Any) -> None:
        self._X = X

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        found = hashes(self._X)
        order = np.argsort(found, kind="stable")
        return found[order], order

    def first(self, Q: Any) -> NDArray[np.intp]:
        """Return the first row that equals each row of ``Q``, or -1."""
        values, order = self._sorted
        wanted, first = hashes(Q), np.full(Q.shape[0], -1, np.intp)
        at, end = (np.searchsorted(values, wanted, side=side) for side in ("left", "right"))
        while len(left := np.flatnonzero(at < end)):
            rows = order[at[left]]
            same = np.asarray((self._X[rows] != Q[left]).sum(axis=1)).ravel() == 0
            first[left[same]] = rows[same]
            at[left] = np.where(same, end[left], at[left] + 1)  # different rows can have the same hash
        return first
