"""Rank correlations of densities: whether points (the paper's rho_S) and groups that look dense in a map are dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import Array, Rows, among, check_labels, check_neighbors, check_pair, pearson, sampled_rows
from drsne.precision import rounded


def density_rank_correlation(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 30,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the Spearman correlation between the distances to the k-th neighbour in the data and in the map.

    The neighbours are found separately in each space. Powers do not change ranks, so this is also the rank correlation
    between the kNN volume densities in the two spaces.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.
    n_neighbors : int, default=30
        The number of neighbours k, not counting the point itself.
    metric : str or callable, default="euclidean"
        The metric used on the data: any metric that the estimators accept. With "precomputed", ``X`` is the full
        distance matrix.
    max_samples : int, default=None
        Use a random sample of this many points. If None, use all points.
    random_state : int, RandomState or Generator, default=None
        Seed or generator used to draw the random sample.
    device : {None, "cpu", "cuda", "cuda:1", ...}, default=None
        Device of PyTorch on which points are compared, or None for the processor without PyTorch. A device needs dense
        data and the metric "euclidean" or "cosine". Ties go to the smallest row number.

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
    data, low = check_pair(X, Y, metric, device)
    k = check_neighbors(n_neighbors, len(low))
    rows = sampled_rows(len(low), max_samples, random_state)
    with Workers() as workers:
        graph = among(data).nearest(data, k, metric=metric, workers=workers, rows=rows)
    return correlation(graph.distances[:, -1], low, k, rows)


def correlation(radius: Array, Y: Any, k: int, rows: Rows) -> float:
    """Compute the score from the distances of ``rows`` to their k-th neighbours in the data."""
    return correlations(radius[:, None], Y, (k,), rows)[0]


def correlations(radii: Array, Y: Any, ks: Sequence[int], rows: Rows) -> list[float]:
    """Return the score for each k in ``ks`` with one neighbour search. Column c of ``radii`` belongs to ``ks[c]``."""
    from scipy.stats import rankdata

    distances = among(Y).nearest_distances(Y, max(ks), rows)
    # Equal distances may differ slightly if their terms were summed in a different order. Rounding makes them equal.
    return [
        pearson(rankdata(rounded(radii[:, c])), rankdata(rounded(np.ascontiguousarray(distances[:, k - 1]))))
        for c, k in enumerate(ks)
    ]


def group_density_correlation(
    X: ArrayLike,
    Y: ArrayLike,
    labels: ArrayLike,
    n_neighbors: int = 30,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the Spearman correlation between the densities of groups in the data and in the map.

    The radius of a point is its mean distance to its k nearest neighbours, which are found separately in each space.
    The density of a group is represented by the median log radius of its points. The score answers whether a group that
    looks denser than another is denser in the data, whatever happens within the groups.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.
    labels : array-like of shape (n_samples,)
        The group of each point. Points whose label is None or nan belong to no group.
    n_neighbors : int, default=30
        The number of neighbours k, not counting the point itself.
    metric : str or callable, default="euclidean"
        The metric used on the data: any metric that the estimators accept. With "precomputed", ``X`` is the full
        distance matrix.
    max_samples : int, default=None
        Use a random sample of this many points. If None, use all points.
    random_state : int, RandomState or Generator, default=None
        Seed or generator used to draw the random sample.
    device : {None, "cpu", "cuda", "cuda:1", ...}, default=None
        Device of PyTorch on which points are compared, or None for the processor without PyTorch. A device needs dense
        data and the metric "euclidean" or "cosine". Ties go to the smallest row number.

    Returns
    -------
    float
        A number between -1 and 1. It is nan if there are fewer than two groups, or if all groups are equally dense in
        the data or in the map.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import group_density_correlation
    >>> labels = np.repeat(["dense", "middle", "sparse"], 50)
    >>> X = np.random.default_rng(0).normal(size=(150, 3)) * np.repeat([[0.1], [1.0], [5.0]], 50, axis=0)
    >>> group_density_correlation(X, X[:, :2], labels, n_neighbors=5)
    1.0
    """
    data, low = check_pair(X, Y, metric, device)
    k = check_neighbors(n_neighbors, len(low))
    groups = check_labels(labels, len(low))
    rows = sampled_rows(len(low), max_samples, random_state)
    with Workers() as workers:
        graph = among(data).nearest(data, k, metric=metric, workers=workers, rows=rows)
    return of_groups(graph.distances, low, groups[rows], k, rows)


def of_groups(distances: Array, Y: Any, groups: Rows, k: int, rows: Rows) -> float:
    """Compute the score from the distances of ``rows`` to neighbours in the data, and the numbers of their groups."""
    from scipy.stats import rankdata

    known = np.flatnonzero(groups >= 0)
    medians = []
    for each in (distances, among(Y).nearest_distances(Y, k, rows)):
        with np.errstate(divide="ignore"):
            logs = np.log(each[:, :k].mean(axis=1))[known]
        found = np.array([np.median(logs[groups[known] == group]) for group in np.unique(groups[known])])
        medians.append(rankdata(rounded(np.maximum(found, -1e300))))
    return pearson(*medians) if len(medians[0]) > 1 else float("nan")
