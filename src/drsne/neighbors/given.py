"""Neighbours that the user passes.

They are checked, and sorted by distance and then by index. Duplicates and the point itself are removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph, looks_like_similarities


def checked_neighbors(neighbors: Any, n_samples: int, workers: Workers) -> KnnGraph:
    """Return the neighbours that the user passed, nearest first, without duplicates and without the point itself.

    Parameters
    ----------
    neighbors : (indices, distances) or sparse matrix of shape (n_samples, n_samples)
        Either two arrays of shape (n_samples, m), or a graph of distances, such as the result of scikit-learn's
        ``kneighbors_graph(mode="distance")``. In the arrays, the neighbours can be in any order, and missing neighbours
        have index -1.
    n_samples : int
        Number of rows of the data.
    workers : Workers
        The threads that sort the neighbours.

    Returns
    -------
    KnnGraph
        The neighbours. Every row has the same number of neighbours, which is the largest number that all rows have.
    """
    if sp.issparse(neighbors):
        indptr, indices, distances = _from_graph(neighbors, n_samples)
    else:
        indptr, indices, distances = _from_arrays(neighbors, n_samples)
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


def _from_arrays(neighbors: Any, n_samples: int) -> tuple[NDArray[Any], ...]:
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


def _from_graph(neighbors: Any, n_samples: int) -> tuple[NDArray[Any], ...]:
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
    graph = KnnGraph(np.empty((n, k), np.int32), np.empty((n, k)))
    workers.run(kernels.tidy, n, *stored, counts, *graph, grain=max(4096, n // 64))
    return graph
