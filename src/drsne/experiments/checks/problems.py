"""What the checks measure on: Digits with a map of its principal components, and objectives on them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import datasets, engines
from drsne.affinities import DEFAULT_CALIBRATION, affinities
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.datasets import recipes
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn
from drsne.objectives.concentration import DEFAULT_SMOOTHING, Smoothing, profile
from drsne.objectives.drsne import DRSNEProblem, Objective
from drsne.objectives.neighborhoods import NeighborTable

Array = NDArray[np.float64]
K = 30
WEIGHT = 1e6  # lambda: what is left of the KL gradient when it is taken away again is then below rounding
NONE = Smoothing(relative=0.0)
_PERPLEXITY = 30.0


class Mapped(NamedTuple):
    """Data, a map of them, and what an objective needs of the data."""

    X: Array
    Y: Array
    near: KnnGraph  # the k nearest
    P: sp.csr_matrix


@lru_cache(maxsize=4)
def digits(n: int) -> Array:
    """``n`` points of Digits, standardised."""
    every = datasets.load("digits")
    return recipes.standardise(every.X if n >= len(every.X) else datasets.load("digits", n_samples=n).X)


@lru_cache(maxsize=4)
def mapped_digits(n: int, k: int = K) -> Mapped:
    """Digits and its two leading principal components."""
    X = digits(n)
    perplexity = min(_PERPLEXITY, n / 8)
    graph = knn(X, max(k, DEFAULT_CALIBRATION.n_neighbors(perplexity, len(X))))
    P = affinities(graph, perplexity, DEFAULT_CALIBRATION, Workers(1)).P
    return Mapped(X, recipes.pca(X, 2), graph.first(k), P)


def objective(
    smoothing: Smoothing = DEFAULT_SMOOTHING, *, precision: str = "double", mean: str = "attached"
) -> Objective:
    """The paper's concentration term, with one smoothing for both spaces."""
    return Objective(precision=precision, normalizer=mean, input_smoothing=smoothing, embedding_smoothing=smoothing)


def problem(given: Objective, mapped: Mapped) -> DRSNEProblem:
    """The objective on the data."""
    backend = NumbaBackend(Workers(1))
    return DRSNEProblem(
        given,
        P=mapped.P,
        neighbors=mapped.near.indices,
        target=profile(mapped.near.distances.mean(axis=1), 1.0, given.input_smoothing).log,
        weight=WEIGHT,
        engine=engines.load("exact")(backend, precision=given.precision),
        backend=backend,
    )


def loss(of: DRSNEProblem, Y: Array) -> float:
    """``L_conc`` of a map."""
    return float(of.evaluate(Y, density=0.0, losses=True).density or 0.0)


def gradient(of: DRSNEProblem, Y: Array) -> Array:
    """The gradient of ``L_conc``."""
    both, neighbors = of.evaluate(Y).gradient, of.evaluate(Y, density=0.0).gradient
    return np.asarray((both - neighbors) / (of.weight * len(Y)))


def radii(mapped: Mapped, Y: Array) -> Array:
    """Mean distances in the map to the neighbours in the data."""
    return NeighborTable(mapped.near.indices, NumbaBackend(Workers(1))).radii(Y, 0.0)
