"""A function that computes all scores of a map."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne import checks
from drsne.backends.arrays import host
from drsne.backends.numba.threads import Workers
from drsne.metrics import arrangement, density
from drsne.metrics._inputs import (
    Rows,
    check_labels,
    check_pair,
    euclidean,
    in_turn,
    nearest,
    own_neighbors,
    sampled_rows,
    shared,
    space_of,
)
from drsne.metrics.fragmentation import N_NEIGHBORS, torn_share
from drsne.metrics.separation import silhouette
from drsne.metrics.stress import of_maps as stress_of_maps
from drsne.metrics.trust import kept
from drsne.neighbors.graph import KnnGraph

NAMES = (
    "trustworthiness",
    "continuity",
    "concentration_correlation",
    "density_rank_correlation",
    "local_density_rank_correlation",
    "fragmentation",
    "stress",
    "triplets",
    "distance_correlation",
)  # the scores that need no labels
_RANK_NEIGHBORS = 10  # number of neighbours for trustworthiness and continuity
_DENSITY_NEIGHBORS = 30  # number of neighbours for the concentration and density correlations
_LOCAL_DENSITY_NEIGHBORS = 5  # number of neighbours for the local density correlation


@shared
def evaluate(
    X: ArrayLike,
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    max_samples: int | None = None,
    random_state: Any = None,
    *,
    metric: Any = "euclidean",
    device: Any = None,
) -> dict[str, float]:
    """Return all scores of a map.

    Each score uses its default number of neighbours, or fewer if there are very few points.

    Parameters
    ----------
    {X, Y}
    labels : array-like of shape (n_samples,), default=None
        The labels for ``silhouette`` and ``group_density_correlation``. If None, these scores are not computed.
    {max_samples, random_state, metric, device}
        The scores then differ only by rounding, and by the order of ties.

    Returns
    -------
    dict
        The scores by name: ``trustworthiness``, ``continuity``, ``concentration_correlation``,
        ``density_rank_correlation`` (with 30 neighbours), ``local_density_rank_correlation`` (the same score with 5
        neighbours), ``fragmentation``, ``stress``, ``triplets``,
        ``distance_correlation`` and, if there are labels, ``silhouette`` and
        ``group_density_correlation``.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import evaluate
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> sorted(evaluate(X, X[:, :2]))[:3]
    ['concentration_correlation', 'continuity', 'density_rank_correlation']
    """
    data, low = check_pair(X, Y, metric, device)
    seed = _seed(random_state)
    own = 0 if random_state is None else seed  # without a seed, two calls have the same triplets
    rows = sampled_rows(len(low), max_samples, seed)
    with Workers() as workers:
        found = of_maps(data, [low], rows, workers if device is None else None, metric=metric, seed=own)
    scores = {name: values[0] if isinstance(values, list) else float(values[0]) for name, values in found.items()}
    if labels is not None:
        scores["silhouette"] = silhouette(host(low), labels, max_samples=max_samples, random_state=seed)
        names, k = check_labels(labels, len(low))[rows], min(_DENSITY_NEIGHBORS, len(low) - 1)
        graph = nearest(data, k, metric, rows)
        scores["group_density_correlation"] = density.of_groups(graph.distances, low, names, k, rows)
    return scores


def of_maps(
    X: Any,
    maps: Sequence[Any],
    rows: Rows,
    workers: Workers | None,
    *,
    n_pairwise: int | None = None,
    metric: Any = "euclidean",
    near: KnnGraph | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the scores of several maps of the same data. The distances in the data are computed only once.

    Data and maps are arrays, or tensors on the same device, which need no ``workers``. The scores are means over
    ``rows``. Continuity and stress need all distances in every map, so they use only ``n_pairwise`` of these rows.
    ``near`` contains the neighbours of all points in the data, if they are known.
    """
    n = X.shape[0]
    k, few = min(_DENSITY_NEIGHBORS, n - 1), max(1, min(_RANK_NEIGHBORS, (n - 1) // 2))
    if near is None or near.indices.shape[1] < k:
        graph = nearest(X, k, metric, rows, workers)
    else:
        graph = KnnGraph(near.indices[rows, :k], near.distances[rows, :k])
    places = sampled_rows(len(rows), n_pairwise, 0)
    pairwise_rows, pairwise_neighbors = rows[places], graph.indices[places, :few]
    ks = (k, min(_LOCAL_DENSITY_NEIGHBORS, k))
    radii = np.ascontiguousarray(graph.distances[:, [k - 1 for k in ks]])
    edges = graph.first(N_NEIGHBORS)

    def of_map(Y: Any) -> tuple[Any, ...]:
        neighbors = own_neighbors(Y, few, rows)
        continuity = kept(euclidean(Y), pairwise_neighbors, few, pairwise_rows)[0]
        cc = density.concentrations(graph, Y, rows)
        return neighbors, continuity, cc, *density.of_distances(radii, Y, ks, rows), torn_share(edges, Y, rows)

    neighbors, continuity, cc, rho, local_rho, torn = zip(*in_turn(workers, of_map, maps), strict=True)
    threads = None if callable(metric) else workers  # a function that the user passes may not be thread-safe
    return {
        "trustworthiness": kept(space_of(X, metric), np.hstack(neighbors), few, rows, threads),
        "continuity": np.array(continuity),
        "concentration_correlation": np.array(cc),
        "density_rank_correlation": np.array(rho),
        "local_density_rank_correlation": np.array(local_rho),
        "fragmentation": np.array(torn),
        "stress": stress_of_maps(space_of(X, metric, centred=True), maps, pairwise_rows, workers=threads),
        **arrangement.of_maps(X, maps, pairwise_rows, np.random.RandomState(seed), threads, metric=metric),
    }


def _seed(random_state: Any) -> int:
    """Return a seed that all scores use, so that they have the same random sample."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(checks.random_numbers(random_state).randint(2**31 - 1))
