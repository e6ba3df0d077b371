"""Nearest neighbours from a full distance matrix or from a sparse graph of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.given import tidied
from drsne.neighbors.graph import KnnGraph, looks_like_similarities

_BLOCK_BYTES = 16 * 2**20
NOISE = 1e-9  # largest amount by which rounding may put a distance below zero
_ROUNDING = 1e-3  # largest difference, relative to the largest distance, that counts as rounding in single precision


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
    _check_diagonal(X)
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


def _check_diagonal(X: Any) -> None:
    """Raise an error unless the distances of samples to themselves are zero but for rounding, or are not listed."""
    own = X.diagonal()
    row = int(np.abs(own).argmax())
    if abs(own[row]) <= _ROUNDING * max(abs(float(X.max())), abs(float(X.min()))):
        return
    raise ValueError(
        "X must have zeros on its diagonal with metric='precomputed', because a sample has the distance 0 to itself "
        f"(up to {_ROUNDING:g} of the largest distance is taken for rounding); got {own[row]:g} in row {row}. "
        "Pass distances, not similarities, or set the diagonal to 0."
    )


def _is_symmetric(X: NDArray[np.float64]) -> bool:
    """Return whether a matrix equals its transpose to about a thousandth, comparing a block of rows at a time."""
    allowed = _ROUNDING * max(abs(float(X.max(initial=0.0))), abs(float(X.min(initial=0.0))))
    every = np.arange(len(X))
    return all(
        np.allclose(X[out], X[:, out].T, rtol=_ROUNDING, atol=allowed, equal_nan=True)
        for _, out in blocks(every, len(X))
    )


def available(graph: sp.csr_matrix) -> int:
    """Return the smallest number of neighbours in any row of a sparse neighbour graph, without the row itself."""
    graph = sp.csr_matrix(graph)
    own = np.zeros(graph.shape[0], dtype=np.int64)
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    np.add.at(own, row[row == graph.indices], 1)
    return int((np.diff(graph.indptr) - own).min())


def blocks(rows: NDArray[np.intp], n: int) -> Iterator[tuple[NDArray[np.intp], slice]]:
    """Yield blocks of ``rows`` with their positions.

    The distances of a block to all ``n`` points fit into a fixed amount of memory.
    """
    step = max(1, _BLOCK_BYTES // (8 * n))
    for start in range(0, len(rows), step):
        yield rows[start : start + step], slice(start, min(start + step, len(rows)))


def from_matrix(D: NDArray[np.float64], k: int, rows: NDArray[np.intp], workers: Workers) -> KnnGraph:
    """Return the ``k`` nearest neighbours of ``rows`` from a full matrix of distances."""
    indices, distances = np.empty((len(rows), k), np.int32), np.empty((len(rows), k))
    for some, out in blocks(rows, D.shape[1]):
        block = np.array(D[some], dtype=np.float64, order="C")
        block[np.arange(len(some)), some] = np.inf
        if (least := block.min()) < -NOISE:
            raise ValueError(
                f"X must hold non-negative distances with metric='precomputed'; got {least:g}. "
                "Pass distances, not similarities."
            )
        np.maximum(block, 0.0, out=block)
        workers.run(kernels.nearest_in_rows, len(some), block, some, indices[out], distances[out])
    return KnnGraph(indices, distances)


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
