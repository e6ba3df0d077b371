"""Stress: how well a map preserves all distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.backends.arrays import divided, inner
from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import Array, Rows, Space, among, check_pair, in_turn, sampled_rows, shared, space_of
from drsne.precision import unit_scale


@shared
def stress(
    X: ArrayLike,
    Y: ArrayLike,
    scaled: bool = False,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the stress ``sqrt(sum (D_X - D_Y)^2 / sum D_X^2)`` over all pairs. 0 is best.

    Parameters
    ----------
    {X, Y}
    scaled : bool, default=False
        Whether to scale the map so that the stress is as small as possible. Without scaling, as in the paper, the score
        depends mostly on the size of the map.
    {metric, max_samples, random_state, device}

    Returns
    -------
    float
        A non-negative number, or nan if all rows of ``X`` are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import stress
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> round(stress(X, 3 * X), 12), round(stress(X, 3 * X, scaled=True), 7)
    (2.0, 0.0)
    """
    data, points = check_pair(X, Y, metric, device)
    rows = sampled_rows(len(points), max_samples, random_state)
    return float(of_maps(space_of(data, metric, centred=True), [points], rows, scaled)[0])


def of_maps(
    space: Space, maps: Sequence[Any], rows: Rows, scaled: bool = False, workers: Workers | None = None
) -> Array:
    """Return the stress of several maps of the same data, arrays or tensors."""
    # Scaling prevents overflow in squares. Centring improves the accuracy of distances from inner products.
    scales = [unit_scale(Y) for Y in maps]
    unit = [divided(Y, scale) for Y, scale in zip(maps, scales, strict=True)]
    in_maps = [among(Y).distances(Y - Y.mean(axis=0)) for Y in unit]

    def sums(block: Rows) -> Array:
        D = space.distances(block)
        products = np.full((3, len(maps)), inner(D, D))
        for m, distances in enumerate(in_maps):
            E = distances(block)
            products[1:, m] = inner(E, E), inner(D, E)
        return products

    highs, low, both = np.sum(in_turn(workers, sums, space.blocks(rows)), axis=0)
    high = float(highs[0])
    if not 0.0 < high < np.inf:
        return np.full(len(maps), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # the map may be much larger than the data
        factor = np.array(scales) / space.scale
        if scaled:
            factor = np.divide(both, low, out=np.zeros_like(both), where=low > 0)
        values = np.sqrt(np.maximum(0.0, high - 2.0 * factor * both + factor * factor * low) / high)
    return np.asarray(np.where(np.isnan(values), np.inf, values))
