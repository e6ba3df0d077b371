"""Data -> nearest neighbours: indices and distances, the point itself left out.

Exact search. The Euclidean distance has a search of its own, blocked (memory O(n x block)) and the same
for every number of threads; other metrics are scikit-learn's; ``metric="precomputed"`` takes a distance
matrix or a sparse neighbour graph. Approximate search is left to others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from drsne import _checks
from drsne.kernels import neighbors as kernels
from drsne.parallel import Workers

_EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")
_BLOCK_BYTES = 32 * 2**20


class KnnGraph(NamedTuple):
    """Each row's ``k`` nearest neighbours, nearest first, ties by index."""

    indices: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)


def check_metric(metric: Any) -> None:
    """Raise unless ``metric`` is callable, "precomputed" or a name that scikit-learn's neighbours know."""
    from sklearn.neighbors import VALID_METRICS

    if not callable(metric):
        allowed = {name for name in VALID_METRICS["brute"] if name != "nan_euclidean"} | {"precomputed"}
        _checks.choice("metric", metric, allowed, also=" or a callable")


def knn(X: ArrayLike, k: int, *, metric: Any = "euclidean", n_jobs: int | None = None) -> KnnGraph:
    """The ``k`` nearest neighbours of every row of ``X``, the row itself left out.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; a distance matrix or a sparse neighbour graph with ``metric="precomputed"``.
    k : int
        Neighbours per row, without the row itself.
    metric : str or callable, default="euclidean"
        What scikit-learn's neighbours offer, or "precomputed".
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    KnnGraph
        ``indices`` (int32) and ``distances`` (float64), both (n_samples, k).

    Examples
    --------
    >>> from drsne.graph import knn
    >>> graph = knn([[0.0], [1.0], [3.0]], 1)
    >>> graph.indices.ravel().tolist(), graph.distances.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 2.0])
    """
    from sklearn.utils import check_array

    check_metric(metric)
    data: Any = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=2)
    k = _checks.integer("k", k, at_least=1)
    if k >= data.shape[0]:
        raise ValueError(f"k must be smaller than n_samples={data.shape[0]}; got {k}. Lower it.")
    if metric == "precomputed" and sp.issparse(data) and k > available(data):
        raise ValueError(f"k must be at most {available(data)}, the fewest neighbours a row of X lists; got {k}.")
    with Workers(n_jobs) as workers:
        return nearest(data, k, metric=metric, workers=workers)


def nearest(X: Any, k: int, *, metric: Any, workers: Workers, rows: NDArray[np.intp] | None = None) -> KnnGraph:
    """:func:`knn` on checked float64 data, for all rows or for ``rows`` of it."""
    rows = np.arange(X.shape[0]) if rows is None else rows
    if metric == "precomputed":
        return _from_graph(X, k, rows) if sp.issparse(X) else _from_matrix(X, k, rows, workers)
    if metric in _EUCLIDEAN and not sp.issparse(X):
        graph = _euclidean(X, k, rows, workers)
    elif metric in _EUCLIDEAN:
        graph = _sparse_euclidean(X, k, rows, workers)
    else:
        return _scikit_learn(X, k, metric, rows, workers)
    return graph if metric != "sqeuclidean" else KnnGraph(graph.indices, graph.distances**2)


def available(graph: sp.csr_matrix) -> int:
    """How many neighbours every row of a sparse neighbour graph has, itself left out."""
    graph = sp.csr_matrix(graph)
    own = np.zeros(graph.shape[0], dtype=np.int64)
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    np.add.at(own, row[row == graph.indices], 1)
    return int((np.diff(graph.indptr) - own).min())


def unit_scale(X: NDArray[np.float64]) -> float:
    """A power of two near the largest magnitude in ``X``: dividing by it is exact and keeps squares finite."""
    largest = float(np.abs(X).max(initial=0.0))
    return float(2.0 ** min(np.frexp(largest)[1], 1023)) if largest > 0 else 1.0


def _euclidean(X: NDArray[np.float64], k: int, rows: NDArray[np.intp], workers: Workers) -> KnnGraph:
    scale = unit_scale(X)
    Z = X / scale
    Z -= Z.mean(axis=0)
    # Data far from the origin or all alike leave small differences: bring those to unit scale too.
    second = unit_scale(Z)
    Z /= second
    norms = np.einsum("ij,ij->i", Z, Z)
    n, d = Z.shape
    shortlist = min(n - 1, k + max(8, k // 4))
    doubt = (d + 8) * np.finfo(np.float64).eps
    indices = np.empty((len(rows), k), np.int32)
    distances = np.empty((len(rows), k))
    step = max(1, _BLOCK_BYTES // (8 * n))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        out = slice(start, start + len(some))
        products = Z[some] @ Z.T
        workers.run(
            kernels.nearest, len(some), products, Z, norms, some, shortlist, doubt, indices[out], distances[out]
        )
    distances *= second
    distances *= scale
    return KnnGraph(indices, distances)


def _sparse_euclidean(X: sp.csr_matrix, k: int, rows: NDArray[np.intp], workers: Workers) -> KnnGraph:
    scale = unit_scale(X.data)
    Z = sp.csr_matrix((X.data / scale, X.indices.copy(), X.indptr.copy()), shape=X.shape)
    Z.sum_duplicates()  # sorts in place: never the caller's arrays
    graph = _scikit_learn(Z, k, "euclidean", rows, workers)
    indptr, columns = Z.indptr.astype(np.int64), Z.indices.astype(np.int32)
    workers.run(kernels.sparse_distances, len(rows), indptr, columns, Z.data, rows, graph.indices, graph.distances)
    return KnnGraph(graph.indices, graph.distances * scale)


def _scikit_learn(X: Any, k: int, metric: Any, rows: NDArray[np.intp], workers: Workers) -> KnnGraph:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=k + 1, metric=metric, algorithm="brute", n_jobs=workers.n_threads).fit(X)
    distances, indices = search.kneighbors(X[rows])
    # Among duplicates the point itself need not be first, and may be missing: then the last one goes.
    own = indices == rows[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (len(rows), k)
    return KnnGraph(
        np.ascontiguousarray(indices[~own].reshape(shape), dtype=np.int32),
        np.ascontiguousarray(distances[~own].reshape(shape), dtype=np.float64),
    )


def _from_matrix(D: NDArray[np.float64], k: int, rows: NDArray[np.intp], workers: Workers) -> KnnGraph:
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X must be a square distance matrix with metric='precomputed'; got shape {D.shape}. "
            "Pass distances between all samples, or another metric."
        )
    if D.min() < 0:
        raise ValueError(
            f"X must hold distances of at least 0 with metric='precomputed'; got {D.min():g}. "
            "Pass distances, not similarities."
        )
    indices = np.empty((len(rows), k), np.int32)
    distances = np.empty((len(rows), k))
    step = max(1, _BLOCK_BYTES // (8 * D.shape[1]))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        out = slice(start, start + len(some))
        block = np.array(D[some], dtype=np.float64, order="C")
        workers.run(kernels.nearest_in_rows, len(some), block, some, indices[out], distances[out])
    return KnnGraph(indices, distances)


def _from_graph(graph: sp.csr_matrix, k: int, rows: NDArray[np.intp]) -> KnnGraph:
    if graph.shape[0] != graph.shape[1]:
        raise ValueError(
            f"X must be a square neighbour graph with metric='precomputed'; got shape {graph.shape}. "
            "Build it with sklearn.neighbors.kneighbors_graph(..., mode='distance')."
        )
    if graph.nnz and graph.data.min() < 0:
        raise ValueError(
            f"X must hold distances of at least 0 with metric='precomputed'; got {graph.data.min():g}. "
            "Pass a graph built with mode='distance'."
        )
    indices = np.empty((len(rows), k), np.int32)
    distances = np.empty((len(rows), k))
    for r, i in enumerate(rows):
        stored = slice(graph.indptr[i], graph.indptr[i + 1])
        j, d = graph.indices[stored], graph.data[stored]
        j, d = j[j != i], d[j != i]
        first = np.lexsort((j, d))[:k]
        indices[r], distances[r] = j[first], d[first]
    return KnnGraph(indices, distances)
