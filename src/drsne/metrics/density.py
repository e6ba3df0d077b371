"""Rank correlation of kNN densities (the paper's rho_S): whether what looks dense in the map is dense in the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import Array, Rows, check_neighbors, check_pair, pearson, sampled_rows
from drsne.neighbors.search import nearest
from drsne.precision import rounded, unit_scale


def density_rank_correlation(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 30,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
) -> float:
    """Return the Spearman correlation of the distances to the k-th neighbour in the data and in the map.

    Each space has its own neighbours. Exponents do not change ranks, so this is also the correlation of the kNN volume
    densities in the two spaces.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.
    n_neighbors : int, default=30
        The number of neighbours k, without the point itself.
    metric : str or callable, default="euclidean"
        The metric of the data: any metric of the estimators. With "precomputed", ``X`` is the full matrix of distances.
    max_samples : int, default=None
        Use a random sample of this many points. None uses all points.
    random_state : int or RandomState, default=None
        The seed of the random sample.

    Returns
    -------
    float
        A number between -1 and 1, or nan if the distances are constant in the data or in the map.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import density_rank_correlation
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> density_rank_correlation(X, -X, n_neighbors=5)
    1.0
    """
    data, low = check_pair(X, Y, metric)
    k = check_neighbors(n_neighbors, len(low))
    rows = sampled_rows(len(low), max_samples, random_state)
    with Workers() as workers:
        radius = nearest(data, k, metric=metric, workers=workers, rows=rows).distances[:, -1]
    return correlation(radius, low, k, rows)


def correlation(radius: Array, Y: Array, k: int, rows: Rows) -> float:
    """Return the score from the distances of ``rows`` to their k-th neighbour in the data."""
    return correlations(radius[:, None], Y, (k,), rows)[0]


def correlations(radii: Array, Y: Array, ks: Sequence[int], rows: Rows) -> list[float]:
    """Return the scores for several ``ks`` from one search of the map; column c of ``radii`` belongs to ``ks[c]``."""
    from scipy.stats import rankdata
    from sklearn.neighbors import NearestNeighbors

    Y = Y / unit_scale(Y)
    largest = max(ks)
    if Y.shape[1] <= 3:  # a tree is faster than all pairs in the few dimensions of a map; the point itself comes first
        tree = NearestNeighbors(n_neighbors=largest + 1, algorithm="kd_tree").fit(Y)
        distances = tree.kneighbors(Y[rows])[0][:, 1:]
    else:
        with Workers() as workers:
            distances = nearest(Y, largest, metric="euclidean", workers=workers, rows=rows).distances
    # After rounding, distances that should be equal are equal, in whatever order they were summed.
    return [
        pearson(rankdata(rounded(radii[:, c])), rankdata(rounded(np.ascontiguousarray(distances[:, k - 1]))))
        for c, k in enumerate(ks)
    ]
