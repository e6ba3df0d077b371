"""Nearest neighbours of the data: indices and distances, without the row itself.

Euclidean and cosine distances are searched by ``exact`` and ``inverted_file`` (with ``descent``). The results do not
depend on the number of threads. Other metrics use the distances of scikit-learn, which are ranked here. With
``metric="precomputed"``, the data are a distance matrix or a sparse neighbour graph (``precomputed``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from drsne import checks
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.exact import exact, is_little, uncompiled
from drsne.neighbors.graph import KnnGraph, available
from drsne.neighbors.inverted_file import APPROXIMATE_FROM, approximate
from drsne.neighbors.precomputed import NOISE, blocks, check_precomputed, from_graph, from_matrix
from drsne.precision import NEARLY_DOUBLE, rounded

EUCLIDEAN = ("euclidean", "l2", "minkowski", "sqeuclidean")  # minkowski is used with its default, p = 2
MANHATTAN = ("cityblock", "l1", "manhattan")
_SPARSE = (*MANHATTAN, "cosine")  # metrics for sparse data, in addition to the Euclidean ones


def check_metric(metric: Any) -> None:
    """Raise an error unless ``metric`` is callable, "precomputed" or a metric of scikit-learn's nearest neighbours."""
    if isinstance(metric, str) and metric in (*EUCLIDEAN, "cosine", "precomputed"):
        return  # without importing the others, which takes a tenth of a second
    from sklearn.neighbors import VALID_METRICS

    if not callable(metric):
        allowed = {name for name in VALID_METRICS["brute"] if name != "nan_euclidean"} | {"precomputed"}
        checks.choice("metric", metric, allowed, also=" or a callable")


def knn(
    X: ArrayLike, k: int, *, metric: Any = "euclidean", method: str = "auto", n_jobs: int | None = None
) -> KnnGraph:
    """Return the ``k`` nearest neighbours of every row of ``X``, without the row itself.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. With ``metric="precomputed"``, a distance matrix or a sparse graph of distances to neighbours.
    k : int
        Number of neighbours of each row, without the row itself.
    metric : str or callable, default="euclidean"
        Any metric that scikit-learn's nearest neighbours accept, or "precomputed".
    method : {"auto", "exact", "approximate"}, default="auto"
        The kind of search. "approximate" uses an inverted file, whose time grows much more slowly than the square of
        the number of rows. If this finds too few neighbours, they are refined by nearest-neighbour descent. If that
        does not help, all rows are searched exactly, with a warning. "approximate" needs dense data and a Euclidean or
        cosine metric. Its result does not depend on the number of threads. "auto" searches approximately for 50,000
        rows or more if that is possible, and exactly otherwise.
    n_jobs : int, default=None
        Number of threads, as in joblib.

    Returns
    -------
    KnnGraph
        ``indices`` (int32) and ``distances`` (float64), both of shape (n_samples, k).

    Examples
    --------
    >>> from drsne.neighbors.search import knn
    >>> graph = knn([[0.0], [1.0], [3.0]], 1)
    >>> graph.indices.ravel().tolist(), graph.distances.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 2.0])
    """
    from sklearn.utils import check_array

    check_metric(metric)
    checks.choice("method", method, ("auto", "exact", "approximate"))
    data: Any = checks.refuse_other_data("X", X)
    data = check_array(data, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=2)
    k = checks.integer("k", k, at_least=1)
    if k >= data.shape[0]:
        raise ValueError(f"k must be smaller than n_samples={data.shape[0]}; got {k}. Lower k.")
    if isinstance(metric, str) and metric == "precomputed":
        if method == "approximate":
            raise ValueError(
                "method must be 'auto' or 'exact' with metric='precomputed'; got 'approximate'. Pass method='exact'."
            )
        data = check_precomputed(data)
        if sp.issparse(data) and k > (most := available(data)):
            raise ValueError(
                f"k must be at most {most}, the smallest number of neighbours stored in any row of X; got {k}. Lower "
                "k, or build the graph with more neighbours."
            )
    with Workers(n_jobs) as workers:
        return nearest(data, k, metric=metric, workers=workers, method=method)


def nearest(
    X: Any, k: int, *, metric: Any, workers: Workers, rows: NDArray[np.intp] | None = None, method: str = "auto"
) -> KnnGraph:
    """Return the result of :func:`knn` for checked float64 data. A search for only some ``rows`` is exact.

    With ``method="uncompiled"``, little data are searched without compiled code. The last bits of the distances can
    then differ. Other data are searched as with "auto".
    """
    return checked(_search(X, k, metric, rows, method, workers), metric)


def checked(graph: KnnGraph, metric: Any) -> KnnGraph:
    """Return neighbours, or raise an error if a distance is negative or not finite."""
    worst = graph.distances.min(initial=0.0), graph.distances.max(initial=0.0)
    if worst[0] < 0 or not np.isfinite(worst).all():
        raise ValueError(
            f"Distances must be finite and non-negative; metric={metric!r} gave "
            f"{worst[0] if worst[0] < 0 else worst[1]} (inf can also stand for nan). Rescale or drop the rows that "
            "the metric cannot compare, or choose another metric."
        )
    return graph


def _search(X: Any, k: int, metric: Any, rows: NDArray[np.intp] | None, method: str, workers: Workers) -> KnnGraph:
    every = np.arange(X.shape[0]) if rows is None else rows
    if isinstance(metric, str) and metric == "precomputed":
        return from_graph(X, k, every) if sp.issparse(X) else from_matrix(X, k, every, workers)
    if metric in EUCLIDEAN:
        graph = _euclidean(canonical(X) if sp.issparse(X) else X, k, rows, method, workers)
        if metric != "sqeuclidean":
            return graph
        with np.errstate(over="ignore"):  # the caller checks that distances are finite
            return KnnGraph(graph.indices, graph.distances**2)
    if metric == "cosine" and (unit := unit_rows(X)) is not None:
        graph = _euclidean(unit, k, rows, method, workers)
        return KnnGraph(graph.indices, 0.5 * graph.distances**2)
    if method == "approximate":
        raise ValueError(
            "method='approximate' needs a Euclidean or cosine metric, and no rows of zeros with cosine; got "
            f"metric={metric!r}. Pass method='exact'."
        )
    distances, graph = Distances(X, metric), KnnGraph.empty(len(every), k)
    for some, out in blocks(every, X.shape[0]):
        D = distances.to(distances.rows[some], workers)
        workers.run(kernels.nearest_in_rows, len(some), D, some, graph.indices[out], graph.distances[out])
    return graph


def _euclidean(X: Any, k: int, rows: NDArray[np.intp] | None, method: str, workers: Workers) -> KnnGraph:
    n = X.shape[0]
    if method == "uncompiled" and rows is None and is_little(X):
        return uncompiled(X, k, workers)
    inexact = method == "approximate" or (method != "exact" and n >= APPROXIMATE_FROM and not sp.issparse(X))
    if inexact and rows is None:
        if sp.issparse(X):
            raise ValueError("method='approximate' needs dense data; got a sparse matrix. Pass method='exact'.")
        return approximate(X, k, workers)
    return exact(X, k, np.arange(n) if rows is None else rows, workers)


def canonical(X: sp.csr_matrix) -> sp.csr_matrix:
    """Return a copy with sorted columns, each listed once, so that the caller's arrays are never sorted in place."""
    Z = sp.csr_matrix(X, copy=True)
    Z.sum_duplicates()
    return Z


def unit_rows(X: Any) -> Any:
    """Return the rows scaled to unit length, or None if a row consists of zeros.

    The squared distances between scaled rows are twice the cosine distances.
    """
    from sklearn.preprocessing import normalize

    if sp.issparse(X):
        X = canonical(X)
        X.eliminate_zeros()
        largest = np.asarray(abs(X).max(axis=1).todense()).ravel()
    else:
        largest = np.abs(X).max(axis=1)
    if (largest == 0).any():
        return None
    return normalize(sp.csr_matrix(sp.diags(1.0 / largest) @ X) if sp.issparse(X) else X / largest[:, None])


class Distances:
    """Distances to the ``rows`` of some data, by a metric of scikit-learn or a callable.

    scikit-learn's own search is not used, because it runs on OpenMP, which does not survive a fork.
    """

    def __init__(self, X: Any, metric: Any) -> None:
        from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

        if sp.issparse(X) and not callable(metric) and metric not in _SPARSE:
            raise ValueError(f"metric must support sparse data if X is sparse; got {metric!r}. Pass X.toarray().")
        if metric == "haversine" and X.shape[1] != 2:
            raise ValueError(
                "metric='haversine' needs two columns, latitude and longitude in radians; got "
                f"{X.shape[1]}. Pass these two columns, or another metric."
            )
        self._metric, self._boolean = metric, metric in PAIRWISE_BOOLEAN_FUNCTIONS
        self._options = {}  # the arguments of a metric that scikit-learn would compute from the data
        if metric == "seuclidean":
            self._options = {"V": X.var(axis=0, ddof=1)}
        elif metric == "mahalanobis":
            self._options = {"VI": np.linalg.pinv(np.atleast_2d(np.cov(X.T)))}
        self.rows = self.converted(X)

    def converted(self, rows: Any) -> Any:
        """Return rows in the form that the metric needs."""
        rows = canonical(rows) if sp.issparse(rows) else rows
        return rows.astype(bool) if self._boolean else rows

    def to(self, Q: Any, workers: Workers) -> NDArray[np.float64]:
        """Return the distances of converted rows ``Q`` to all rows of the data."""
        from sklearn.metrics import pairwise_distances

        if sp.issparse(Q) and self._metric in MANHATTAN:  # scikit-learn uses OpenMP here as well
            D = np.empty((Q.shape[0], self.rows.shape[0]))
            parts = [(A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data) for A in (Q, self.rows)]
            workers.run(kernels.sparse_manhattan, len(D), *parts[0], *parts[1], np.arange(len(D)), D)
        else:
            with np.errstate(all="ignore"):  # the caller checks that distances are finite
                D = pairwise_distances(Q, self.rows, metric=self._metric, **self._options)
                D = np.asarray(D, dtype=np.float64)
        return D if callable(self._metric) else rounded(np.where((D < 0) & (D > -NOISE), 0.0, D), NEARLY_DOUBLE)
