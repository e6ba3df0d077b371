"""Trustworthiness and continuity (Venna and Kaski, 2001): whether near points stay near."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from drsne.graph import nearest
from drsne.metrics._inputs import Array, Rows, blocks, check_neighbors, check_pair, sampled_rows
from drsne.parallel import Workers
from drsne.search import unit_scale

_TREE_DIMENSIONS = 15


def trustworthiness(
    X: ArrayLike, Y: ArrayLike, n_neighbors: int = 10, *, max_samples: int | None = None, random_state: Any = None
) -> float:
    """How far neighbours in the map are neighbours in the data: 1 is best.

    ``1 - 2 / (n k (2n - 3k - 1)) sum_i sum_{j in N_k^Y(i)} max(0, rank_X(i, j) - k)``, equal to scikit-learn's.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        Data and map.
    n_neighbors : int, default=10
        k, smaller than half of the samples.
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
    data, low = check_pair(X, Y)
    k = check_neighbors(n_neighbors, len(low), half=True)
    return _intrusions(data, low, k, sampled_rows(len(low), max_samples, random_state))


def continuity(
    X: ArrayLike, Y: ArrayLike, n_neighbors: int = 10, *, max_samples: int | None = None, random_state: Any = None
) -> float:
    """How far neighbours in the data are neighbours in the map: trustworthiness with the spaces swapped.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        Data and map.
    n_neighbors : int, default=10
        k, smaller than half of the samples.
    max_samples : int, default=None
        Average over a random sample of this many points (None: all).
    random_state : int or RandomState, default=None
        Seed of that sample.

    Returns
    -------
    float
        Between 0 and 1; 1 is best.
    """
    data, low = check_pair(X, Y)
    k = check_neighbors(n_neighbors, len(low), half=True)
    return _intrusions(low, data, k, sampled_rows(len(low), max_samples, random_state))


def _intrusions(truth: Any, other: Any, k: int, rows: Rows) -> float:
    """1 less the normalised excess ranks in ``truth`` of the neighbours in ``other``."""
    from sklearn.metrics import pairwise_distances

    n = truth.shape[0]
    truth, other = truth / _scale(truth), other / _scale(other)  # exact, and squares stay finite
    neighbors = own_neighbors(other, k, rows)
    excess, at = 0, 0
    for some in blocks(rows, n):
        D = pairwise_distances(truth[some], truth)
        D[np.arange(len(some)), some] = np.inf
        ranks = _ranks(D, neighbors[at : at + len(some)])
        excess += int(np.maximum(ranks - k, 0).sum())
        at += len(some)
    return 1.0 - 2.0 * excess / float(len(rows) * k * (2 * n - 3 * k - 1))


def _scale(A: Any) -> float:
    return unit_scale(A.data if issparse(A) else A)


def own_neighbors(A: Any, k: int, rows: Rows) -> NDArray[np.intp]:
    """The k nearest neighbours in ``A`` of ``rows`` of it, themselves left out.

    Maps have few dimensions: scikit-learn's tree, and its order of ties. Wide data: our own exact search, since
    scikit-learn's uses OpenMP, which hangs in a forked child.
    """
    from sklearn.neighbors import NearestNeighbors

    if issparse(A) or A.shape[1] > _TREE_DIMENSIONS:
        with Workers() as workers:
            return nearest(A, k, metric="euclidean", workers=workers, rows=rows).indices.astype(np.intp)
    found = NearestNeighbors(n_neighbors=k + 1, algorithm="kd_tree").fit(A).kneighbors(A[rows], return_distance=False)
    own = found == rows[:, None]
    own[~own.any(axis=1), 0] = True  # hidden by duplicates
    return np.asarray(found[~own].reshape(len(rows), k))


def _ranks(D: Array, neighbors: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rank (from 1) of each listed neighbour among a row of distances."""
    ranks = np.empty(neighbors.shape, dtype=np.intp)
    tied = np.zeros(len(D), dtype=bool)
    for m, column in enumerate(neighbors.T):
        d = D[np.arange(len(D)), column][:, None]
        ranks[:, m] = (d > D).sum(axis=1) + 1
        tied |= (d >= D).sum(axis=1) > ranks[:, m]
    # Equal distances: the order that a sort of the row gives them, as in scikit-learn.
    for r in np.flatnonzero(tied):
        order = np.argsort(D[r])
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(1, len(order) + 1)
        ranks[r] = place[neighbors[r]]
    return ranks
