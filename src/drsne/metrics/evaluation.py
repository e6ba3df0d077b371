"""All scores of a map at once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike

from drsne.graph import nearest
from drsne.metrics import concentration, density
from drsne.metrics._inputs import check_pair, sampled_rows
from drsne.metrics.separation import silhouette
from drsne.metrics.stress import stress
from drsne.metrics.trust import continuity, trustworthiness
from drsne.parallel import Workers

_RANK_NEIGHBORS = 10
_DENSITY_NEIGHBORS = 30


def evaluate(
    X: ArrayLike,
    Y: ArrayLike,
    labels: ArrayLike | None = None,
    max_samples: int | None = None,
    random_state: Any = None,
) -> dict[str, float]:
    """Every score of this module, by name, at its default neighbourhood (smaller where there are too few points).

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        Data and map.
    labels : array-like of shape (n_samples,), default=None
        Labels for ``silhouette``, which is left out without them.
    max_samples : int, default=None
        Score a random sample of this many points against all others (None: all).
    random_state : int or RandomState, default=None
        Seed of that sample.

    Returns
    -------
    dict
        ``trustworthiness``, ``continuity``, ``concentration_correlation``, ``density_rank_correlation``,
        ``stress`` and, with labels, ``silhouette``.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import evaluate
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> sorted(evaluate(X, X[:, :2]))[:3]
    ['concentration_correlation', 'continuity', 'density_rank_correlation']
    """
    data, low = check_pair(X, Y)
    n = len(low)
    seed = _seed(random_state)
    rows = sampled_rows(n, max_samples, seed)
    k = min(_DENSITY_NEIGHBORS, n - 1)
    few = max(1, min(_RANK_NEIGHBORS, (n - 1) // 2))
    with Workers() as workers:
        graph = nearest(data, k, metric="euclidean", workers=workers, rows=rows)
    out = {
        "trustworthiness": trustworthiness(data, low, few, max_samples=max_samples, random_state=seed),
        "continuity": continuity(data, low, few, max_samples=max_samples, random_state=seed),
        "concentration_correlation": concentration.correlation(graph, low, rows),
        "density_rank_correlation": density.correlation(graph.distances[:, -1], low, k, rows),
        "stress": stress(data, low, max_samples=max_samples, random_state=seed),
    }
    if labels is not None:
        out["silhouette"] = silhouette(low, labels, max_samples=max_samples, random_state=seed)
    return out


def _seed(random_state: Any) -> int:
    """One seed for all scores, so that they share their sample."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
