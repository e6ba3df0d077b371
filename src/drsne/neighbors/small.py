"""Exact Euclidean nearest neighbours of little data, by SciPy's distances between all rows.

The compiled search (:mod:`drsne.neighbors.exact`) takes less time, but several seconds of compilation in a first fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph

_MOST_WORK = 4e8  # largest number of differences of features, which take about 0.3 s
_LARGEST = 1e100  # largest value whose squared differences cannot overflow
_ROWS = 256  # number of rows in a block


def suits(X: Any) -> bool:
    """Return whether the distances between all rows of ``X`` take less time than a compilation."""
    if sp.issparse(X) or X.shape[0] ** 2 * float(X.shape[1]) > _MOST_WORK:
        return False
    largest = float(np.abs(X).max(initial=0.0))
    return 1.0 / _LARGEST < largest < _LARGEST


def small(X: NDArray[np.float64], k: int, workers: Workers) -> KnnGraph:
    """Return the ``k`` nearest neighbours of every row, nearest first. Ties are sorted by index."""
    from scipy.spatial.distance import cdist

    def of(start: int) -> KnnGraph:
        distances = cdist(X[start : start + _ROWS], X)
        own = np.arange(len(distances))
        distances[own, start + own] = np.inf
        return _nearest(distances, k)

    parts = workers.each(of, range(0, len(X), _ROWS))
    return KnnGraph(*(np.concatenate(some) for some in zip(*parts, strict=True)))


def _nearest(distances: NDArray[np.float64], k: int) -> KnnGraph:
    """Return the columns of the ``k`` smallest values of every row."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    among = distances <= kth
    indices = np.empty((len(distances), k), np.int32)
    counts = among.sum(axis=1)
    usual = counts == k
    indices[usual] = np.nonzero(among[usual])[1].reshape(-1, k)
    for row in np.flatnonzero(~usual):  # several columns have the k-th smallest value
        columns = np.flatnonzero(among[row])
        indices[row] = columns[np.argsort(distances[row, columns], kind="stable")[:k]]
    found = np.take_along_axis(distances, indices.astype(np.intp), axis=1)
    order = np.argsort(found, axis=1, kind="stable")
    return KnnGraph(np.take_along_axis(indices, order, axis=1), np.take_along_axis(found, order, axis=1))
