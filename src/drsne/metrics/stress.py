"""Stress: how far all distances are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from drsne.metrics._inputs import blocks, check_pair, sampled_rows
from drsne.search import unit_scale


def stress(
    X: ArrayLike, Y: ArrayLike, scaled: bool = False, *, max_samples: int | None = None, random_state: Any = None
) -> float:
    """``sqrt(sum (D_X - D_Y)^2 / sum D_X^2)`` over all pairs: 0 is best.

    Parameters
    ----------
    X, Y : array-like of shape (n_samples, n_features) and (n_samples, n_components)
        Data and map.
    scaled : bool, default=False
        Bring the map to the scale that makes the stress smallest. Without it (the paper) the score says mostly
        how large the map is.
    max_samples : int, default=None
        Take the distances of a random sample of this many points to all others (None: all).
    random_state : int or RandomState, default=None
        Seed of that sample.

    Returns
    -------
    float
        At least 0; nan where all rows of ``X`` are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import stress
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> round(stress(X, 3 * X), 12), round(stress(X, 3 * X, scaled=True), 7)
    (2.0, 0.0)
    """
    from sklearn.metrics import pairwise_distances

    data, points = check_pair(X, Y)
    scale = max(unit_scale(data.data if issparse(data) else data), unit_scale(points))
    data, points = data / scale, points / scale  # squares stay finite
    if not issparse(data):
        data = data - data.mean(axis=0)  # far from the origin, distances from products would lose digits
    points = points - points.mean(axis=0)
    high = low = both = 0.0
    for some in blocks(sampled_rows(len(points), max_samples, random_state), len(points)):
        D, E = pairwise_distances(data[some], data), pairwise_distances(points[some], points)
        high, low, both = high + float((D * D).sum()), low + float((E * E).sum()), both + float((D * E).sum())
    if high == 0.0:
        return float("nan")
    factor = (both / low if low > 0 else 0.0) if scaled else 1.0
    return float(np.sqrt(max(0.0, high - 2.0 * factor * both + factor * factor * low) / high))
