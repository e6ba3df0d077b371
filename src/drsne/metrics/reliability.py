"""The reliability of the places in a map: whether a row that is left out and placed again returns to its place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.threads import Workers
from drsne.metrics._inputs import sampled_rows
from drsne.progress import ProgressBar


def reliability(model: Any, *, max_samples: int | None = None, random_state: Any = None) -> NDArray[np.float64]:
    """Return how reliable the place of every training row in a map is, between 0 and 1.

    Each row is left out of the map and placed again as a new row (:meth:`drsne.DRSNE.transform`), while all other rows
    stay where they are. If it moves by the distance d, and if its mean distance to its neighbours in the map is r, its
    reliability is ``r / (r + d)``. A reliability of 1 means that the row returns to its place. A reliability below 0.2
    means that it moves far beyond its neighbours. Such a row has another place in the map that suits it better, for
    example because it lies between two groups, or because its group was torn apart.

    Parameters
    ----------
    model : DRSNE or DenSNE
        A fitted model that can place new rows. It must have its training data, so ``metric="precomputed"`` is not
        supported.
    max_samples : int, default=None
        Use a random sample of this many rows. If None, use all rows.
    random_state : int or RandomState, default=None
        Seed or generator used to draw the random sample.

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

    from drsne.placement.place import placed_again

    check_is_fitted(model, "embedding_")
    reference = getattr(model, "_reference", None)
    if reference is None or reference.training.rows is None or reference.training.given:
        raise ValueError(
            "reliability needs a model that keeps its training data; this one was fitted with distances or given "
            "neighbours, was interrupted, or was saved without data. Fit it again from the data."
        )
    places = reference.places
    sampled = sampled_rows(len(places), max_samples, random_state)
    rows = np.arange(len(places)) if sampled is None else np.asarray(sampled)
    bar = ProgressBar(len(rows), "reliability", visible=bool(model.verbose))
    with Workers(model.n_jobs) as workers, bar:
        again = placed_again(reference, rows, workers, lambda done: bar(done, {}))
    k = min(max(reference.training.density_neighbors, 1) if reference.training.density_neighbors else 30, len(places) - 1)
    near, _ = cKDTree(places).query(places[rows], k + 1)
    radius = near[:, 1:].mean(axis=1)
    moved = np.linalg.norm(again - places[rows], axis=1)
    found = np.full(len(places), np.nan)
    with np.errstate(invalid="ignore"):
        found[rows] = np.where(moved == 0.0, 1.0, radius / (radius + moved))
    return found
