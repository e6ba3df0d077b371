"""The function ``density_path``: maps of the same data along a path of density weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from drsne.backends.numba.threads import Workers
from drsne.estimators import path
from drsne.estimators.drsne import DRSNE, report_early_end
from drsne.estimators.path import DensityPath


def density_path(X: ArrayLike, weights: Sequence[float] | None = None, **params: Any) -> DensityPath:
    """Return maps along a path of lambda, with their scores.

    Neighbours, affinities and the profile of the data are computed once. The map at 0 is plain t-SNE, the baseline of
    the scores. With the adaptive kernel the first positive weight has a fit of its own, and so has every weight at
    which the kernel adapts further than before. Every other map starts from the one before. All thirteen maps together
    take about five times as long as a fit.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data.
    weights : sequence of float, default=None
        The weights of the maps, ascending; by default thirteen from 0 to 70. A step to the next weight takes a tenth of
        ``max_iter``, however large it is: weights that differ by a factor of two at most are followed closely.
    **params
        Parameters of :class:`drsne.DRSNE` but for ``density_weight``, ``schedule`` and ``max_trustworthiness_drop``.

    Returns
    -------
    DensityPath
        The maps, their scores, a choice among them and pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import density_path
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 0.1, (50, 5)), rng.normal(3, 1.0, (50, 5))])
    >>> path = density_path(X, [0, 1, 10], perplexity=10, density_neighbors=10, random_state=0)
    >>> [Y.shape for Y in path.embeddings]
    [(100, 2), (100, 2), (100, 2)]
    >>> int(path.select(max_trustworthiness_drop=0.05)) in (0, 1, 2)
    True
    """
    if "density_weight" in params:
        raise TypeError(
            f"density_weight={params['density_weight']!r} cannot be given to density_path, which takes a list of them. "
            "Pass weights."
        )
    for name, instead in (("schedule", "max_iter"), ("max_trustworthiness_drop", "it to select() of the path")):
        if params.get(name) is not None:
            raise TypeError(f"{name}={params[name]!r} cannot be given to density_path. Pass {instead}.")
    model, listed = DRSNE(density_weight="auto", **params), path.check_weights(weights)
    data, dtype = model._checked(X)
    with Workers(model.n_jobs) as workers:
        found, followed, _ = model._follow(data, dtype, listed, workers)
    report_early_end(followed, found, f"the path ends at {found.weights[-1]:g}")
    return found
