"""Trustworthiness and continuity (Venna and Kaski, 2001): whether a map preserves neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import (
    Array,
    Rows,
    Space,
    among,
    euclidean,
    in_turn,
    own_neighbors,
    sampled,
    shared,
    space_of,
)


@shared
def trustworthiness(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the extent to which neighbours in the map are also neighbours in the data. 1 is best.

    The definition is the same as in scikit-learn:
    ``1 - 2 / (n k (2n - 3k - 1)) sum_i sum_{j in N_k^Y(i)} max(0, rank_X(i, j) - k)``.

    Parameters
    ----------
    {X, Y}
    n_neighbors : int, default=10
        The number of neighbours k. It must be less than half of the number of samples.
    {metric, max_samples, random_state, device}

    Returns
    -------
    float
        A number between 0 and 1. 1 is best.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import trustworthiness
    >>> X = np.arange(30.0).reshape(10, 3) ** 1.5
    >>> trustworthiness(X, X[:, :2], n_neighbors=2)
    1.0
    """
    data, low, k, rows = sampled(X, Y, n_neighbors, metric, max_samples, random_state, device, half=True)
    return float(kept(space_of(data, metric), own_neighbors(low, k, rows), k, rows)[0])


@shared
def continuity(
    X: ArrayLike,
    Y: ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: Any = "euclidean",
    max_samples: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> float:
    """Return the extent to which neighbours in the data are also neighbours in the map. 1 is best.

    This is the trustworthiness with the data and the map exchanged.

    Parameters
    ----------
    {X, Y}
    n_neighbors : int, default=10
        The number of neighbours k. It must be less than half of the number of samples.
    {metric, max_samples, random_state, device}

    Returns
    -------
    float
        A number between 0 and 1. 1 is best.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne.metrics import continuity
    >>> X = np.arange(30.0).reshape(10, 3) ** 1.5
    >>> continuity(X, X[:, :2], n_neighbors=2)
    1.0
    """
    data, low, k, rows = sampled(X, Y, n_neighbors, metric, max_samples, random_state, device, half=True)
    return float(kept(euclidean(low), own_neighbors(data, k, rows, metric), k, rows)[0])


def kept(space: Space, neighbors: NDArray[Any], k: int, rows: Rows, workers: Workers | None = None) -> Array:
    """Return 1 minus the normalised excess ranks of ``neighbors`` (n, m k) in ``space``, for each of m maps."""

    def excess(places: Rows) -> Any:
        block = rows[places]
        D = space.distances(block)
        return np.maximum(among(D).ranks(D, block, neighbors[places]) - k, 0).sum(axis=0)

    parts = space.blocks(np.arange(len(rows)))
    per_map = np.sum(in_turn(workers, excess, parts), axis=0).reshape(-1, k).sum(axis=1)
    return np.asarray(1.0 - 2.0 * per_map / float(len(rows) * k * (2 * space.n - 3 * k - 1)))
