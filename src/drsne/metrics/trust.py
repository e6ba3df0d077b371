"""Trustworthiness and continuity (Venna and Kaski, 2001): whether near points stay near."""

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

_TREE_DIMENSIONS = 15


def trustworthiness(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
) -> float:
    """How far neighbours in the map are neighbours in the data: 1 is best.

    ``1 - 2 / (n k (2n - 3k - 1)) sum_i sum_{j in N_k^Y(i)} max(0, rank_X(i, j) - k)``, equal to scikit-learn's.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        Data and map.
    n_neighbors : int, default=10
        k, smaller than half of the samples.
    metric : str or callable, default="euclidean"
        How distances in the data are measured: any metric of the estimators. With "precomputed", ``X`` is the full
        matrix of distances.
    max_samples : int, default=None
        Average over a random sample of this many points (None: all).
    random_state : int or RandomState, default=None
        Seed of that sample.

    Returns
    -------
    float
        Between 0 and 1.

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
    """How far neighbours in the data are neighbours in the map: trustworthiness with the spaces swapped.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        Data and map.
    n_neighbors : int, default=10
        k, smaller than half of the samples.
    metric : str or callable, default="euclidean"
        How distances in the data are measured: any metric of the estimators. With "precomputed", ``X`` is the full
        matrix of distances.
    max_samples : int, default=None
        Average over a random sample of this many points (None: all).
    random_state : int or RandomState, default=None
        Seed of that sample.

    Returns
    -------
    float
        Between 0 and 1; 1 is best.
    """
    data, low = check_pair(X, Y, metric)
    k = check_neighbors(n_neighbors, len(low), half=True)
    rows = sampled_rows(len(low), max_samples, random_state)
    return float(kept(euclidean(low), own_neighbors(data, k, rows, metric), k, rows)[0])


def kept(space: Space, neighbors: NDArray[Any], k: int, rows: Rows, workers: Workers | None = None) -> Array:
    """1 less the normalised excess ranks in ``space`` of listed neighbours, for each k columns of the list."""

    def excess(places: Rows) -> Any:
        some = rows[places]
        D = space.distances(some)
        D[np.arange(len(some)), some] = np.inf
        return np.maximum(_ranks(D, neighbors[places]) - k, 0).sum(axis=0)

    parts = list(blocks(np.arange(len(rows)), space.n))
    per_map = np.sum(in_turn(workers, excess, parts), axis=0).reshape(-1, k).sum(axis=1)
    return np.asarray(1.0 - 2.0 * per_map / float(len(rows) * k * (2 * space.n - 3 * k - 1)))


def own_neighbors(A: Any, k: int, rows: Rows, metric: Any = "euclidean") -> NDArray[np.intp]:
    """Return the k nearest neighbours in ``A`` of ``rows`` of it, themselves left out.

    Maps have few dimensions: scikit-learn's tree, and its order of ties. Wide data: our own exact search, since
    scikit-learn's uses OpenMP, which hangs in a forked child.
    """
    from sklearn.neighbors import NearestNeighbors

    plain = isinstance(metric, str) and metric == "euclidean"
    if issparse(A) or not plain or A.shape[1] > _TREE_DIMENSIONS:
        with Workers() as workers:
            return nearest(A, k, metric=metric, workers=workers, rows=rows).indices.astype(np.intp)
    A = A / unit_scale(A)
    found = NearestNeighbors(n_neighbors=k + 1, algorithm="kd_tree").fit(A).kneighbors(A[rows], return_distance=False)
    own = found == rows[:, None]
    own[~own.any(axis=1), 0] = True  # hidden by duplicates
    return np.asarray(found[~own].reshape(len(rows), k))


def _ranks(D: Array, neighbors: NDArray[Any]) -> NDArray[np.intp]:
    """Rank (from 1) of each listed neighbour among a row of distances."""
    counts, tied = np.empty(neighbors.shape, dtype=np.intp), np.empty(len(D), dtype=bool)
    below(D, neighbors, np.argsort(np.take_along_axis(D, neighbors, axis=1), axis=1), counts, tied)
    # Equal distances: the order that a sort of the row gives them, as in scikit-learn.
    for r in np.flatnonzero(tied):
        order = np.argsort(D[r])
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        counts[r] = place[neighbors[r]]
    return counts + 1
