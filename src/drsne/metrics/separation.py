"""The silhouette score of labels in a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne.metrics._inputs import check_labels, sampled_rows, shared

_WORKING_MEMORY = 16  # memory in MiB for a block of distances


@shared
def silhouette(Y: ArrayLike, labels: ArrayLike, *, max_samples: int | None = None, random_state: Any = None) -> float:
    """Return the mean silhouette of ``labels`` in the map. It is computed by scikit-learn with limited memory.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The map.
    labels : array-like of shape (n_samples,)
        The label of each point. Points whose label is None or nan are left out.
    {max_samples, random_state}

    Returns
    -------
    float
        A number between -1 and 1. 1 is best. The result is nan if the (sampled) labels are all equal or all different.

    Examples
    --------
    >>> from drsne.metrics import silhouette
    >>> round(silhouette([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"]), 2)
    0.98
    """
    from sklearn import config_context
    from sklearn.metrics import silhouette_score
    from sklearn.utils import check_array

    low = check_array(Y, dtype=np.float64, input_name="Y")
    names = check_labels(labels, len(low))
    rows = sampled_rows(len(low), max_samples, random_state)
    rows = rows[names[rows] >= 0]
    if not 1 < len(np.unique(names[rows])) < len(rows):
        return float("nan")
    with config_context(working_memory=_WORKING_MEMORY):
        return float(silhouette_score(low[rows], names[rows]))
