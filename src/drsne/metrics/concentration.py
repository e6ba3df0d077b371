"""The paper's concentration correlation (CC): whether a dense neighbourhood of the data is dense in the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.backends.arrays import divided, taken
from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import Array, Rows, among, blocks, check_neighbors, check_pair, pearson, sampled_rows
from drsne.neighbors.graph import KnnGraph
from drsne.precision import unit_scale

_FLOOR = 1e-8  # smallest radius, as a fraction of the median radius; points with k duplicates have the radius 0


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
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        The data and the map.
    n_neighbors : int, default=30
        The number of neighbours k, not counting the point itself. The main table of the paper uses 29.
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
        A number between -1 and 1, or nan if the concentration is constant in the data or in the map.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import concentration_correlation
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> round(concentration_correlation(X, 2 * X, n_neighbors=5), 12)
    1.0
    """
    data, low = check_pair(X, Y, metric, device)
    k = check_neighbors(n_neighbors, len(low))
    rows = sampled_rows(len(low), max_samples, random_state)
    with Workers() as workers:
        graph = among(data).nearest(data, k, metric=metric, workers=workers, rows=rows)
    return correlation(graph, low, rows)


def correlation(graph: KnnGraph, Y: Any, rows: Rows) -> float:
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
