"""Trustworthiness and continuity (Venna and Kaski, 2001): whether a map preserves neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from drsne.backends.numba.kernels.ranks import below
from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import (
    Array,
    Rows,
    Space,
    blocks,
    check_neighbors,
    check_pair,
    euclidean,
    in_turn,
    sampled_rows,
    space_of,
)
from drsne.neighbors.search import nearest
from drsne.precision import unit_scale

_MAX_TREE_DIMENSIONS = 15  # largest number of dimensions for which a tree is used


def trustworthiness(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the extent to which neighbours in the map are also neighbours in the data. 1 is best.

    The definition is the same as in scikit-learn:
    ``1 - 2 / (n k (2n - 3k - 1)) sum_i sum_{j in N_k^Y(i)} max(0, rank_X(i, j) - k)``.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.
    n_neighbors : int, default=10
        The number of neighbours k. It must be less than half of the number of samples.
    metric : str or callable, default="euclidean"
        The metric used on the data: any metric that the estimators accept. With "precomputed", ``X`` is the full
        distance matrix.
    max_samples : int, default=None
        Average over a random sample of this many points. If None, use all points.
    random_state : int or RandomState, default=None
        Seed or generator used to draw the random sample.

    Returns
    -------
    float
        A number between 0 and 1. 1 is best.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import trustworthiness
    >>> X = np.arange(30.0).reshape(10, 3) ** 1.5
    >>> trustworthiness(X, X[:, :2], n_neighbors=2)
    1.0
    """
    data, low = check_pair(X, Y, metric)
    k = check_neighbors(n_neighbors, len(low), half=True)
    rows = sampled_rows(len(low), max_samples, random_state)
    return float(kept(space_of(data, metric), own_neighbors(low, k, rows), k, rows)[0])


def continuity(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the extent to which neighbours in the data are also neighbours in the map. 1 is best.

    This is the trustworthiness with the data and the map exchanged.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.
    n_neighbors : int, default=10
        The number of neighbours k. It must be less than half of the number of samples.
    metric : str or callable, default="euclidean"
        The metric used on the data: any metric that the estimators accept. With "precomputed", ``X`` is the full
        distance matrix.
    max_samples : int, default=None
        Average over a random sample of this many points. If None, use all points.
    random_state : int or RandomState, default=None
        Seed or generator used to draw the random sample.

    Returns
    -------
    float
        A number between 0 and 1. 1 is best.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import continuity
    >>> X = np.arange(30.0).reshape(10, 3) ** 1.5
    >>> continuity(X, X[:, :2], n_neighbors=2)
    1.0
    """
    data, low = check_pair(X, Y, metric)
    k = check_neighbors(n_neighbors, len(low), half=True)
    rows = sampled_rows(len(low), max_samples, random_state)
    return float(kept(euclidean(low), own_neighbors(data, k, rows, metric), k, rows)[0])


def kept(space: Space, neighbors: NDArray[Any], k: int, rows: Rows, workers: Workers | None = None) -> Array:
    """Return 1 minus the normalised excess ranks of ``neighbors`` (n, m k) in ``space``, for each of m maps."""

    def excess(places: Rows) -> Any:
        block = rows[places]
        D = space.distances(block)
        D[np.arange(len(block)), block] = np.inf
        return np.maximum(_ranks(D, neighbors[places]) - k, 0).sum(axis=0)

    parts = list(blocks(np.arange(len(rows)), space.n))
    per_map = np.sum(in_turn(workers, excess, parts), axis=0).reshape(-1, k).sum(axis=1)
    return np.asarray(1.0 - 2.0 * per_map / float(len(rows) * k * (2 * space.n - 3 * k - 1)))


def own_neighbors(A: Any, k: int, rows: Rows, metric: Any = "euclidean") -> NDArray[np.intp]:
    """Return the k nearest neighbours of ``rows`` of ``A``, not counting the rows themselves.

    Maps have few dimensions, so scikit-learn's tree is used, which also determines the order of ties. Data with more
    dimensions use the exact search of this package. The brute-force search of scikit-learn uses OpenMP, which hangs in
    a forked process.
    """
    from sklearn.neighbors import NearestNeighbors

    plain = isinstance(metric, str) and metric == "euclidean"
    if issparse(A) or not plain or A.shape[1] > _MAX_TREE_DIMENSIONS:
        with Workers() as workers:
            return nearest(A, k, metric=metric, workers=workers, rows=rows).indices.astype(np.intp)
    A = A / unit_scale(A)
    tree = NearestNeighbors(n_neighbors=k + 1, algorithm="kd_tree").fit(A)
    nearest_rows = tree.kneighbors(A[rows], return_distance=False)
    own = nearest_rows == rows[:, None]
    own[~own.any(axis=1), 0] = True  # with many duplicates, the result may not contain the row itself
    return np.asarray(nearest_rows[~own].reshape(len(rows), k))


def _ranks(D: Array, neighbors: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rank of each neighbour in its row of distances, counted from 1."""
    counts, tied = np.empty(neighbors.shape, dtype=np.intp), np.empty(len(D), dtype=bool)
    below(D, neighbors, np.argsort(np.take_along_axis(D, neighbors, axis=1), axis=1), counts, tied)
    # As in scikit-learn, ties are ordered by sorting the row.
    for r in np.flatnonzero(tied):
        order = np.argsort(D[r])
        position = np.empty(len(order), dtype=np.intp)
        position[order] = np.arange(len(order))
        counts[r] = position[neighbors[r]]
    return counts + 1
