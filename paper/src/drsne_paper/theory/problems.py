"""The data of the checks, maps of them (two principal components), and objectives for these data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import Objective, Smoothing
from drsne_paper import datasets
from drsne_paper._private import (
    DEFAULT_CALIBRATION,
    DEFAULT_SMOOTHING,
    KnnGraph,
    NeighborTable,
    NumbaBackend,
    Problem,
    Workers,
    affinities,
    engines,
    knn,
    problem_of,
    profile,
)
from drsne_paper.datasets import recipes
from drsne_paper.methods import Workspace

Array = NDArray[np.float64]
K = 30
WEIGHT = 1e6  # lambda, so large that errors from subtracting the KL gradient are below rounding
NONE = Smoothing(relative=0.0)
GAUSSIAN, SEED = "gaussian", 0  # the name and the seed of the data that are drawn here
_PERPLEXITY = 30.0


class Mapped(NamedTuple):
    """Data, a map of them, and the properties of the data that an objective needs."""

    X: Array
    Y: Array
    near: KnnGraph  # the k nearest neighbours
    P: sp.csr_matrix


def load(name: str, *, n_samples: int, d: int | None = None) -> Any:
    """Return Digits (standardised), Controlled Clusters, or a standard Gaussian in ``d`` dimensions."""
    if name == GAUSSIAN:
        X = np.random.RandomState(SEED).randn(n_samples, d or 1)
        return datasets.Data(X=X, y=None, name=name, description="A standard Gaussian.", source="Generated.")
    if name != "digits":
        return datasets.load(name, n_samples=n_samples)
    every = datasets.load("digits")
    data = every if n_samples >= len(every.X) else datasets.load("digits", n_samples=n_samples)
    return datasets.Data(
        X=recipes.standardise(data.X), y=data.y, name=name, description=data.description, source=data.source
    )


def mapped(workspace: Workspace, k: int = K) -> Mapped:
    """Return the data with their two leading principal components as a map."""

    def make() -> Mapped:
        X = workspace.X
        perplexity = min(_PERPLEXITY, len(X) / 8)
        graph = knn(X, max(k, DEFAULT_CALIBRATION.n_neighbors(perplexity, len(X))))
        P = affinities(graph, perplexity, DEFAULT_CALIBRATION, Workers(1)).P
        return Mapped(X, recipes.pca(X, 2), graph.first(k), P)

    return workspace.cached(("mapped", k), make)


def objective(
    smoothing: Smoothing = DEFAULT_SMOOTHING, *, precision: str = "double", mean: str = "attached"
) -> Objective:
    """Return the paper's concentration term, with one smoothing for both spaces."""
    return Objective(
        input_exponent=1.0,
        precision=precision,
        normalizer=mean,
        input_smoothing=smoothing,
        embedding_smoothing=smoothing,
    )


def problem(given: Objective, points: Mapped) -> Problem:
    """Return the objective for the data."""
    backend = NumbaBackend(Workers(1))
    return problem_of(
        given,
        P=points.P,
        neighbors=points.near.indices,
        target=profile(points.near.distances.mean(axis=1), 1.0, given.input_smoothing).log,
        weight=WEIGHT,
        engine=engines.load("exact")(backend, precision=given.precision),
        backend=backend,
    )


def target_of(of: Problem) -> Array:
    """Return the profile that the map should have."""
    term: Any = of.loss.terms[0]
    return np.asarray(term.target)


def loss(of: Problem, Y: Array) -> float:
    """Return ``L_conc`` of a map."""
    losses = of.evaluate(Y, density=0.0, losses=True).losses or {}
    return losses["concentration"]


def gradient(of: Problem, Y: Array) -> Array:
    """Return the gradient of ``L_conc``."""
    both, neighbors = of.evaluate(Y).gradient, of.evaluate(Y, density=0.0).gradient
    return np.asarray((both - neighbors) / (WEIGHT * len(Y)))


def radii(points: Mapped, Y: Array) -> Array:
    """Return the mean distance in the map from each point to its neighbours in the data."""
    return NeighborTable(points.near.indices, NumbaBackend(Workers(1))).radii(Y, 0.0)
