"""Comparisons of points with all others on the processor, by numba, SciPy and scikit-learn.

The functions are those of :class:`drsne.backends.protocol.Comparisons`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels.metrics import below
from drsne.neighbors.search import nearest as nearest  # one of the functions

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
_BLOCK_BYTES = 16 * 2**20  # largest number of bytes for a block of distances


def block_bytes(A: Any) -> int:
    """Return the largest number of bytes for a block of distances."""
    return _BLOCK_BYTES


def distances(A: Any, metric: Any = "euclidean") -> Callable[[Rows], Array]:
    """Return a function that computes the distances from the given rows to all rows of ``A``."""
    from sklearn.metrics import pairwise_distances
    from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

    options = {}
    if metric == "seuclidean":  # use the variances of all rows, not those of a block
        options["V"] = A.var(axis=0, ddof=1)
    elif metric == "mahalanobis":
        options["VI"] = np.linalg.pinv(np.atleast_2d(np.cov(A.T)))
    A = A.astype(bool) if metric in PAIRWISE_BOOLEAN_FUNCTIONS else A

    def of_rows(rows: Rows) -> Array:
        with np.errstate(all="ignore"):  # scores that need finite distances check this themselves
            return np.asarray(pairwise_distances(A[rows], A, metric=metric, **options), dtype=np.float64)

    return of_rows


def ranks(D: Array, rows: Rows, neighbors: NDArray[Any]) -> NDArray[np.intp]:
    """Return the ranks of neighbours of ``rows`` among all points but the row itself, counted from 1.

    ``D`` are the distances from the rows to all points. It may be overwritten.
    """
    D[np.arange(len(rows)), rows] = np.inf
    counts, tied = np.empty(neighbors.shape, dtype=np.intp), np.empty(len(D), dtype=bool)
    below(D, neighbors, np.argsort(np.take_along_axis(D, neighbors, axis=1), axis=1), counts, tied)
    # As in scikit-learn, ties are ordered by sorting the row.
    for r in np.flatnonzero(tied):
        order = np.argsort(D[r])
        position = np.empty(len(order), dtype=np.intp)
        position[order] = np.arange(len(order))
        counts[r] = position[neighbors[r]]
    return counts + 1


def surroundings(Y: Array, k: int) -> tuple[Array, NDArray[np.intp]]:
    """Return the distances of all points of a map to their k nearest neighbours, and these neighbours."""
    from scipy.spatial import cKDTree

    found = cKDTree(Y).query(Y, k + 1)
    return found[0][:, 1:], found[1][:, 1:]


def edges(lengths: Array, neighbors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], Array, NDArray[np.intp]]:
    """Return both ends and the lengths of the edges to neighbours (n, k), and the order of ascending lengths."""
    n, k = neighbors.shape
    along = np.ascontiguousarray(lengths).ravel()
    return np.repeat(np.arange(n), k), np.ascontiguousarray(neighbors).ravel(), along, np.argsort(along, kind="stable")


def gaps(Y: Array, places: Array) -> Array:
    """Return the distances of places (m, d) to the nearest point of a map."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(Y).query(places)[0])
