"""The function ``density_path``: maps of the same data along a path of density weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from drsne.backends.numba.threads import Workers
from drsne.estimators import constraints, path
from drsne.estimators.drsne import DRSNE, report_early_end
from drsne.estimators.path import DensityPath


def density_path(
    X: ArrayLike, weights: Sequence[float] | None = None, *, sample_weight: ArrayLike | None = None, **params: Any
) -> DensityPath:
    """Return maps along a path of density weights, with their scores.

    Neighbours, affinities and the profile of the data are computed once. The map at 0 is plain t-SNE, which is the
    baseline of the scores. With the adaptive kernel, the first positive weight is fitted separately, and so is every
    weight at which the kernel adapts further than at the previous weight. Every other map starts from the previous map.
    The nineteen default maps take about eight times as long as one fit.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data.
    weights : sequence of float, default=None
        The density weights of the maps, in ascending order. If None, nineteen weights from 0 to 1120 are used. A step
        to the next weight takes 100 iterations, or a seventh of ``max_iter`` (a tenth with the fixed kernel).
        Neighbouring weights should therefore differ by at most a factor of about two. Above a weight of 70, the default
        density term is the paper's (see :class:`drsne.DRSNE`), and a step takes three times as long.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, as in :meth:`drsne.DRSNE.fit`. They count in the maps, not in the scores. If None, all
        weights are 1.
    **params
        Parameters of :class:`drsne.DRSNE`, except ``density_weight``, ``schedule`` and ``max_trustworthiness_drop``.

    Returns
    -------
    DensityPath
        The maps and their scores, with methods that choose one of the maps and plot them.

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
    for name in constraints.ON_PATH.keys() & params.keys():
        raise TypeError(
            f"{name}={params[name]!r} cannot be passed to density_path, which fits several weights. Pass weights "
            "instead."
        )
    for name, instead in (("schedule", "max_iter"), ("max_trustworthiness_drop", "it to select() of the path")):
        if params.get(name) is not None:
            raise TypeError(f"{name}={params[name]!r} cannot be passed to density_path. Pass {instead}.")
    model, listed = DRSNE(**constraints.ON_PATH, **params), path.check_weights(weights)
    with model._checked(X, sample_weight) as data, Workers(model.n_jobs) as workers:
        maps, followed, _ = model._follow(data, listed, workers)
    report_early_end(followed, maps, f"the path ends at {maps.weights[-1]:g}")
    return maps
