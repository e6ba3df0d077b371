"""The public functions beside the estimators: paths of density weights, saved models, and estimates of memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from numpy.typing import ArrayLike

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.estimators import constraints, memory
from drsne.estimators.densne import DenSNE
from drsne.estimators.drsne import DRSNE
from drsne.estimators.path import WEIGHTS, DensityPath, report_early_end
from drsne.io.models import loaded


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
    model, listed = DRSNE(**constraints.ON_PATH, **params), _checked_weights(weights)
    with model._checked(X, sample_weight) as data, Workers(model.n_jobs) as workers:
        maps, followed, _ = model._follow(data, listed, workers)
    report_early_end(followed, maps, f"the path ends at {maps.weights[-1]:g}")
    return maps


def _checked_weights(weights: Any) -> tuple[float, ...]:
    """Return the weights of a path as a tuple, or raise an error if they are not ascending numbers."""
    if weights is None:
        return WEIGHTS
    rule = "weights must be a list of distinct non-negative numbers in ascending order"
    hint = "Pass None for the default weights."
    if isinstance(weights, (str, bytes, set, frozenset, dict)) or not hasattr(weights, "__iter__"):
        raise TypeError(f"{rule}; got {weights!r}. {hint}")
    listed = list(weights)
    try:
        numbers = [checks.number("weights", w, at_least=0) for w in listed]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{rule}; got {listed!r}. {hint}") from error
    if not numbers:
        raise ValueError(f"{rule}; got none. {hint}")
    if any(b <= a for a, b in pairwise(numbers)):
        raise ValueError(f"{rule}; got {listed!r}. Pass sorted(set(weights)).")
    return tuple(numbers)


def load(path: str | os.PathLike[str], X: Any = None) -> Any:
    """Load a model that was saved with ``model.save(path)``.

    Parameters
    ----------
    path : str or path
        The file.
    X : array-like or sparse matrix, default=None
        The training data, for a model that was saved with ``include_data=False``. They must be the same rows in the
        same order and of the same type, which is verified with a checksum. Without them, the model is loaded, but it
        cannot place new rows.

    Returns
    -------
    DRSNE or DenSNE
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or has a newer format than this version of drsne can read.
    ValueError
        If ``X`` are not the training data.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> import drsne
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = drsne.DRSNE(perplexity=10, density_neighbors=10, max_iter=100, random_state=0).fit(X)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.drsne")
    >>> model.save(path)
    >>> bool((drsne.load(path).transform(X[:3]) == model.embedding_[:3]).all())
    True
    """
    return loaded(path, {"DRSNE": DRSNE, "DenSNE": DenSNE}, {"DensityPath": DensityPath}, X)


def memory_estimate(n_samples: int, n_features: int, **params: Any) -> int:
    """Return an estimate of the peak memory of ``DRSNE(**params).fit(X)``, in bytes.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of ``X``, which is assumed to be dense.
    **params
        Parameters of :class:`drsne.DRSNE`. Parameters that are not passed have their default values.

    Returns
    -------
    int
        Peak memory in bytes, including the interpreter and its libraries. It is accurate to within about a third. With
        a device such as "cuda", it is the memory of this device.

    Examples
    --------
    >>> import drsne
    >>> drsne.memory_estimate(1_000_000, 50) < 8e9
    True
    """
    n = checks.integer("n_samples", n_samples, at_least=1)
    d = checks.integer("n_features", n_features, at_least=1)
    return memory.estimate(n, d, DRSNE(**params)._checked_parameters())
