"""Correlations of densities: whether points and groups that look dense in a map are dense in the data.

The paper's CC compares concentrations, and its rho_S compares the ranks of distances to the k-th neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.backends.arrays import divided, taken
from drsne.metrics._inputs import (
    Array,
    Rows,
    among,
    blocks,
    check_labels,
    nearest,
    nearest_distances,
    pearson,
    sampled,
    shared,
)
from drsne.neighbors.graph import KnnGraph
from drsne.precision import rounded, unit_scale

_FLOOR = 1e-8  # smallest radius, as a fraction of the median radius; points with k duplicates have the radius 0


@shared
def concentration_correlation(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 30,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the Pearson correlation between the log concentrations in the data and in the map.

    The concentration of a point is the inverse of the mean distance to its k neighbours. Its neighbours in the data are
    used in both spaces. DR-SNE optimises this quantity; :func:`density_rank_correlation` is independent of it.

    Parameters
    ----------
    {X, Y}
    n_neighbors : int, default=30
        The number of neighbours k, not counting the point itself. The main table of the paper uses 29.
    {metric, max_samples, random_state, device}

    Returns
    -------
    float
        A number between -1 and 1, or nan if the concentration is constant in the data or in the map.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import concentration_correlation
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> round(concentration_correlation(X, 2 * X, n_neighbors=5), 12)
    1.0
    """
    data, low, k, rows = sampled(X, Y, n_neighbors, metric, max_samples, random_state, device)
    graph = nearest(data, k, metric, rows)
    return concentrations(graph, low, rows)


def concentrations(graph: KnnGraph, Y: Any, rows: Rows) -> float:
    """Compute the score from the nearest neighbours of ``rows`` in the data. ``Y`` is an array or a tensor."""
    Y = divided(Y, unit_scale(Y))
    radii, start = np.empty(len(rows)), 0
    for block in blocks(rows, graph.indices.shape[1] * Y.shape[1], among(Y).block_bytes(Y)):
        stop = start + len(block)
        neighbors = graph.indices[start:stop]
        away = taken(Y, block)[:, None] - taken(Y, neighbors)
        radii[start:stop] = np.sqrt((away**2).sum(axis=2)).mean(axis=1)
        start = stop
    return pearson(_log(graph.distances.mean(axis=1)), _log(radii))


def _log(radii: Array) -> Array:
    floor = max(_FLOOR * float(np.median(radii)), np.finfo(np.float64).tiny)
    return np.log(np.maximum(radii, floor))


@shared
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
    {X, Y}
    {n_neighbors, metric, max_samples, random_state, device}

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
    data, low, k, rows = sampled(X, Y, n_neighbors, metric, max_samples, random_state, device)
    graph = nearest(data, k, metric, rows)
    return of_distances(graph.distances[:, -1:], low, (k,), rows)[0]


def of_distances(radii: Array, Y: Any, ks: Sequence[int], rows: Rows) -> list[float]:
    """Return the score for each k in ``ks`` with one neighbour search. Column c of ``radii`` belongs to ``ks[c]``."""
    from scipy.stats import rankdata

    distances = nearest_distances(Y, max(ks), rows)
    # Equal distances may differ slightly if their terms were summed in a different order. Rounding makes them equal.
    return [
        pearson(rankdata(rounded(radii[:, c])), rankdata(rounded(np.ascontiguousarray(distances[:, k - 1]))))
        for c, k in enumerate(ks)
    ]


@shared
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
    {X, Y}
    labels : array-like of shape (n_samples,)
        The group of each point. Points whose label is None or nan belong to no group.
    {n_neighbors, metric, max_samples, random_state, device}

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
    data, low, k, rows = sampled(X, Y, n_neighbors, metric, max_samples, random_state, device)
    groups = check_labels(labels, len(low))
    graph = nearest(data, k, metric, rows)
    return of_groups(graph.distances, low, groups[rows], k, rows)


def of_groups(distances: Array, Y: Any, groups: Rows, k: int, rows: Rows) -> float:
    """Compute the score from the distances of ``rows`` to neighbours in the data, and the numbers of their groups."""
    from scipy.stats import rankdata

    known = np.flatnonzero(groups >= 0)
    medians = []
    for each in (distances, nearest_distances(Y, k, rows)):
        with np.errstate(divide="ignore"):
            logs = np.log(each[:, :k].mean(axis=1))[known]
        found = np.array([np.median(logs[groups[known] == group]) for group in np.unique(groups[known])])
        medians.append(rankdata(rounded(np.maximum(found, -1e300))))
    return pearson(*medians) if len(medians[0]) > 1 else float("nan")
