"""Neighbours and distances that the user passes: a matrix or a graph of distances, or the neighbours of every row.

They are checked, and sorted by distance and then by index. Duplicates and the point itself are removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph, looks_like_similarities

_BLOCK_BYTES = 16 * 2**20
NOISE = 1e-9  # largest amount by which rounding may put a distance below zero
_ROUNDING = 1e-3  # largest difference, relative to the largest distance, that counts as rounding in single precision


def checked_neighbors(neighbors: Any, n_samples: int, workers: Workers) -> KnnGraph:
    """Return the neighbours that the user passed, nearest first, without duplicates and without the point itself.

    ``neighbors`` are two arrays (n, m), the indices in any order (-1 for a missing neighbour) and the distances, or a
    graph of distances (n, n), such as that of scikit-learn's ``kneighbors_graph(mode="distance")``. Every row of the
    result has the same number of neighbours, which is the largest number that all rows have.
    """
    parts = (_parts_of_graph if sp.issparse(neighbors) else _parts_of_arrays)(neighbors, n_samples)
    indptr, indices, distances = parts
    if indices.size and (indices.min() < -1 or indices.max() >= n_samples):
        wrong = indices.max() if indices.max() >= n_samples else indices.min()
        raise ValueError(
            f"neighbors must have indices from 0 to n_samples - 1 = {n_samples - 1}, or -1 for missing neighbours; got "
            f"{wrong}. Build them from the same rows as X."
        )
    some = distances[indices >= 0] if indices.min(initial=0) < 0 else distances
    if not np.isfinite(some).all() or some.min(initial=0.0) < 0:
        wrong = some.min() if some.min(initial=0.0) < 0 else "nan or inf"
        raise ValueError(
            f"neighbors must have finite non-negative distances; got {wrong}. Pass distances, not similarities."
        )
    return tidied(indptr, indices, distances, workers)


def check_kind(neighbors: Any) -> None:
    """Raise an error if ``neighbors`` is neither a pair nor a sparse matrix."""
    if not sp.issparse(neighbors) and (not isinstance(neighbors, (tuple, list)) or len(neighbors) != 2):
        raise TypeError(
            "neighbors must be a pair (indices, distances), a sparse graph of distances or None; got "
            f"{type(neighbors).__name__}. Pass (indices, distances), or None to search for them."
        )


def _parts_of_arrays(neighbors: Any, n_samples: int) -> tuple[NDArray[Any], ...]:
    """Return indices and distances as the offsets, columns and values of a CSR matrix."""
    check_kind(neighbors)
    try:
        indices, distances = np.asarray(neighbors[0]), np.asarray(neighbors[1])
    except ValueError as error:  # the rows have different lengths
        raise ValueError(
            f"neighbors must be two arrays of shape (n_samples={n_samples}, m); got rows of different lengths. Fill "
            "short rows with indices of -1."
        ) from error
    if indices.ndim != 2 or indices.shape != distances.shape or len(indices) != n_samples or indices.shape[1] < 1:
        raise ValueError(
            f"neighbors must be two arrays of shape (n_samples={n_samples}, m); got {indices.shape} and "
            f"{distances.shape}. Pass one row per sample in both."
        )
    if indices.dtype.kind not in "iu" or distances.dtype.kind not in "fiu":
        raise ValueError(
            f"neighbors must be integer indices and real distances; got {indices.dtype} and {distances.dtype}. "
            "Pass (indices, distances), in this order."
        )
    n, m = indices.shape
    starts = np.arange(0, n * m + 1, m, dtype=np.int64)
    return starts, indices.astype(np.int64).ravel(), distances.astype(np.float64, copy=False).ravel()


def _parts_of_graph(neighbors: Any, n_samples: int) -> tuple[NDArray[Any], ...]:
    """Return the offsets, columns and values of a graph."""
    if neighbors.shape != (n_samples, n_samples):
        raise ValueError(
            f"neighbors must be a graph of shape (n_samples, n_samples)={(n_samples, n_samples)}; got "
            f"{neighbors.shape}. Build it from the same rows as X."
        )
    if neighbors.dtype.kind not in "fiu":
        raise ValueError(
            f"neighbors must be a graph of real distances; got {neighbors.dtype}. Build it with mode='distance'."
        )
    graph = sp.csr_matrix(neighbors)
    if looks_like_similarities(graph):
        checks.warn(
            "neighbors looks like a graph of similarities, not of distances: its largest value is 1 for nearly every "
            "sample. Pass distances (scanpy: adata.obsp['distances'], not 'connectivities'; scikit-learn: "
            "mode='distance')."
        )
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data.astype(np.float64)


def tidied(
    indptr: NDArray[Any], indices: NDArray[Any], distances: NDArray[Any], workers: Workers, at_most: int | None = None
) -> KnnGraph:
    """Return the neighbours of every row, nearest first, leaving out duplicates, the row itself and entries of -1.

    Ties are sorted by index. All rows have the same number of neighbours: the number of the row with the fewest
    neighbours, but at most ``at_most``.
    """
    n = len(indptr) - 1
    stored = (indptr.astype(np.int64), indices.astype(np.int64, copy=False), distances.astype(np.float64, copy=False))
    counts, no_output = np.empty(n, np.int64), (np.empty((0, 0), np.int32), np.empty((0, 0)))
    workers.run(kernels.tidy, n, *stored, counts, *no_output, grain=max(4096, n // 64))
    if counts.min() < 1:
        row = int(counts.argmin())
        raise ValueError(
            f"neighbors must list at least one other sample for every sample; row {row} lists none. "
            "Build them with more neighbours."
        )
    k = int(counts.min() if at_most is None else min(at_most, counts.min()))
    graph = KnnGraph.empty(n, k)
    workers.run(kernels.tidy, n, *stored, counts, *graph, grain=max(4096, n // 64))
    return graph


def check_precomputed(X: Any) -> Any:
    """Return a distance matrix or neighbour graph after checking that it is square with zeros on its diagonal.

    A sparse graph is returned with each pair listed once. A warning is issued if the values of a sparse graph look like
    similarities, or if a full matrix is not symmetric.
    """
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be square with metric='precomputed'; got shape {X.shape}. Pass a matrix of the distances between "
            "all samples, a sparse neighbour graph, or another metric."
        )
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    own = X.diagonal()
    row = int(np.abs(own).argmax())
    if abs(own[row]) > _ROUNDING * max(abs(float(X.max())), abs(float(X.min()))):
        raise ValueError(
            "X must have zeros on its diagonal with metric='precomputed', because a sample has the distance 0 to "
            f"itself (up to {_ROUNDING:g} of the largest distance is taken for rounding); got {own[row]:g} in row "
            f"{row}. Pass distances, not similarities, or set the diagonal to 0."
        )
    if sp.issparse(X) and looks_like_similarities(X):
        checks.warn(
            "X looks like similarities, not distances: its largest values are 1 for nearly every sample. With "
            "metric='precomputed', pass distances (scanpy: adata.obsp['distances'], not 'connectivities'; "
            "scikit-learn: mode='distance')."
        )
    elif not sp.issparse(X) and not _is_symmetric(X):
        checks.warn(
            "X is not symmetric, so it is not a matrix of distances. Each row is used as the distances from its "
            "sample. Pass (X + X.T) / 2 to use the mean of both directions."
        )
    return X


def _is_symmetric(X: NDArray[np.float64]) -> bool:
    """Return whether a matrix equals its transpose to about a thousandth, comparing a block of rows at a time."""
    allowed = _ROUNDING * max(abs(float(X.max(initial=0.0))), abs(float(X.min(initial=0.0))))
    every = np.arange(len(X))
    return all(
        np.allclose(X[out], X[:, out].T, rtol=_ROUNDING, atol=allowed, equal_nan=True)
        for _, out in blocks(every, len(X))
    )


def blocks(rows: NDArray[np.intp], n: int) -> Iterator[tuple[NDArray[np.intp], slice]]:
    """Yield blocks of ``rows`` with their positions.

    The distances of a block to all ``n`` points fit into a fixed amount of memory.
    """
    step = max(1, _BLOCK_BYTES // (8 * n))
    for start in range(0, len(rows), step):
        yield rows[start : start + step], slice(start, min(start + step, len(rows)))


def from_matrix(D: NDArray[np.float64], k: int, rows: NDArray[np.intp], workers: Workers) -> KnnGraph:
    """Return the ``k`` nearest neighbours of ``rows`` from a full matrix of distances."""
    graph = KnnGraph.empty(len(rows), k)
    for some, out in blocks(rows, D.shape[1]):
        block = np.array(D[some], dtype=np.float64, order="C")
        block[np.arange(len(some)), some] = np.inf
        if (least := block.min()) < -NOISE:
            raise ValueError(
                f"X must hold non-negative distances with metric='precomputed'; got {least:g}. "
                "Pass distances, not similarities."
            )
        np.maximum(block, 0.0, out=block)
        workers.run(kernels.nearest_in_rows, len(some), block, some, graph.indices[out], graph.distances[out])
    return graph


def from_graph(graph: sp.csr_matrix, k: int, rows: NDArray[np.intp]) -> KnnGraph:
    """Return the ``k`` nearest neighbours of ``rows`` from a sparse graph of distances."""
    if graph.nnz and graph.data.min() < 0:
        raise ValueError(
            f"X must hold non-negative distances with metric='precomputed'; got {graph.data.min():g}. "
            "Pass a graph built with mode='distance'."
        )
    with Workers(1) as workers:
        every = tidied(graph.indptr, graph.indices, graph.data, workers, at_most=k)
    return KnnGraph(every.indices[rows], every.distances[rows])


def among_distances(D: Any, k: int, workers: Workers) -> KnnGraph:
    """Return the nearest training rows of new rows from a matrix, or a sparse graph, of distances (m, n)."""
    m = D.shape[0]
    graph = KnnGraph.empty(m, k)
    smallest = D.data.min(initial=0.0) if sp.issparse(D) else D.min(initial=0.0)
    if smallest < -NOISE:
        raise ValueError(
            f"X must hold non-negative distances with metric='precomputed'; got {smallest:g}. Pass distances, not "
            "similarities."
        )
    if not sp.issparse(D):
        workers.run(kernels.nearest_in_rows, m, np.maximum(D, 0.0), np.full(m, -1), *graph, grain=16)
        return graph
    counts = np.diff(D.indptr)
    if m and counts.min() < k:
        raise ValueError(
            f"X must list at least {k} training rows for every new row, as many as the fit used; row "
            f"{int(counts.argmin())} lists {int(counts.min())}. Build the graph with n_neighbors={k}."
        )
    for i in range(m):
        names, lengths = (part[D.indptr[i] : D.indptr[i + 1]] for part in (D.indices, D.data))
        lengths = np.maximum(lengths, 0.0)
        nearest = np.lexsort((names, lengths))[:k]
        graph.indices[i], graph.distances[i] = names[nearest], lengths[nearest]
    return graph
