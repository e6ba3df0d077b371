"""The reliability of the positions in a map: whether a row that is left out and placed again returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.metrics._inputs import sampled_rows, shared

_HALFWAY = 3  # number of neighbours to which a row is moved halfway
_NEIGHBORS = 30  # number of neighbours in the map that are the unit of length, for models without density_neighbors


@shared
def reliability(model: Any, *, max_samples: int | None = None, random_state: Any = None) -> NDArray[np.float64]:
    """Return how reliable the position of every training row in a map is, between 0 and 1.

    Each row is left out of the map and placed again as a new row (:meth:`drsne.DRSNE.transform`), while all other rows
    stay where they are. It is placed four times: with its own values, and after it was moved halfway to each of its
    three nearest neighbours in the data. If it moves by the distance d on average, and if its mean distance to its
    ``density_neighbors`` nearest neighbours in the map is r (30 neighbours for ``DenSNE``), its reliability is
    ``r / (r + d)``. A reliability near 1 means that the row returns to its position. At 0.5, it moves as far as its
    neighbours in the map are away, and below 0.2, it moves more than four times as far. Such a row could also have been
    drawn elsewhere, for example because it lies between two groups, or because its group is split in the map.

    Parameters
    ----------
    model : DRSNE or DenSNE
        A fitted model that has its training data. Models with ``metric="precomputed"`` or with given neighbours, and
        models that were saved without their data, are not supported.
    {max_samples, random_state}

    Returns
    -------
    ndarray of shape (n_samples,)
        The reliability of every row. It is nan for rows that are not in the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import DRSNE, metrics
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (60, 5)), rng.normal(9, 1, (60, 5))])
    >>> model = DRSNE(perplexity=10, density_neighbors=10, random_state=0).fit(X)
    >>> bool(np.median(metrics.reliability(model)) > 0.5)
    True
    """
    from scipy.spatial import cKDTree
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "embedding_")
    if not hasattr(model, "_movements"):
        raise TypeError(f"model must be a fitted DRSNE or DenSNE; got {type(model).__name__}. Pass one of these.")
    places = np.asarray(model.embedding_, dtype=np.float64)
    rows = sampled_rows(len(places), max_samples, random_state)
    moved = model._movements(rows, _HALFWAY)
    k = min(int(getattr(model, "density_neighbors", _NEIGHBORS)), len(places) - 1)
    distances, _ = cKDTree(places).query(places[rows], k + 1)  # the first one is the row itself
    radius = distances[:, 1:].mean(axis=1)
    found = np.full(len(places), np.nan)
    with np.errstate(invalid="ignore"):
        found[rows] = np.where(moved == 0.0, 1.0, radius / (radius + moved))
    return found
