"""Silhouette of given labels in the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.metrics._inputs import sampled_rows

_WORKING_MEMORY = 16  # MiB for a block of distances


def silhouette(Y: ArrayLike, labels: ArrayLike, *, max_samples: int | None = None, random_state: Any = None) -> float:
    """Mean silhouette of ``labels`` in the map (scikit-learn's, in bounded memory).

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The map.
    labels : array-like of shape (n_samples,)
        A label for each point.
    max_samples : int, default=None
        Score a random sample of this many points among themselves (None: all).
    random_state : int or RandomState, default=None
        Seed of that sample.

    Returns
    -------
    float
        Between -1 and 1, 1 is best; nan where the (sampled) labels are all equal or all different.

    Examples
    --------
    >>> from drsne.metrics import silhouette
    >>> round(silhouette([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"]), 2)
    0.98
    """
    from sklearn import config_context
    from sklearn.metrics import silhouette_score
    from sklearn.utils import check_array

    low, names = check_array(Y, dtype=np.float64, input_name="Y"), np.asarray(labels)
    if names.shape != (len(low),):
        raise ValueError(f"labels must have shape ({len(low)},), one for each row of Y; got {names.shape}.")
    rows = sampled_rows(len(low), max_samples, random_state)
    if not 1 < len(np.unique(names[rows])) < len(rows):
        return float("nan")
    with config_context(working_memory=_WORKING_MEMORY):
        return float(silhouette_score(low[rows], names[rows]))
