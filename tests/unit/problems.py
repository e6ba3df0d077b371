"""Small problems with everything in double precision, for numerical differentiation, and paths of given maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from drsne import Objective, Smoothing, engines
from drsne.affinities import affinities
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.backends.numpy import NumpyBackend
from drsne.estimators.path import DensityPath
from drsne.neighbors.search import nearest
from drsne.preparation import problem_of
from drsne.terms.problem import Problem
from drsne.terms.profile import profile


class Toy:
    """What the loop needs of a problem besides ``evaluate``."""

    backend = NumpyBackend()
    reordered_every = None
    names = ("kl", "concentration")

    def start(self):
        return None


EXACT = Smoothing(relative=0.0)
DOUBLE = Objective(precision="double", input_smoothing=EXACT, embedding_smoothing=EXACT)


def small_problem(objective: Objective = DOUBLE, *, n=40, k=7, weight=3.0, seed=0, backend=None, **given) -> Problem:
    """Return a problem on random data; ``given`` is passed on to it: log_scales, kept."""
    objective = objective.at(1.0)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * np.exp(rng.normal(size=(n, 1)))
    workers = Workers(1)
    backend = NumbaBackend(workers) if backend is None else backend
    graph = nearest(X, n - 1, metric="euclidean", workers=workers)
    near = graph.first(objective.calibration.n_neighbors(5.0, n))
    P = affinities(near, 5.0, objective.calibration, workers).P
    target = profile(graph.distances[:, :k].mean(axis=1), objective.input_exponent, objective.input_smoothing).log
    engine = engines.load("exact")(backend, precision=objective.precision)
    near = graph.indices[:, :k]
    return problem_of(
        objective, P=P, neighbors=near, target=target, weight=weight, engine=engine, backend=backend, **given
    )


def some_map(n=40, d=2, seed=1, scale=2.0):
    return np.random.default_rng(seed).normal(size=(n, d)) * scale


def path_of(embeddings, weights=(0.0, 1.0), **scores):
    """Return a path with these maps, weights and scores."""
    nothing = np.zeros(len(weights))
    return DensityPath(
        weights=np.array(weights, dtype=float),
        embeddings=list(embeddings),
        metrics={name: np.array(values) for name, values in scores.items()},
        kl_divergence=nothing,
        concentration_loss=nothing,
        baseline=0.9,
    )


def some_log_scales(n=40, spread=1.0, seed=2):
    """Log scales of an adaptive kernel, between -spread and spread."""
    return np.random.default_rng(seed).uniform(-spread, spread, n)


def numerical_gradient(loss, Y, step=1e-4):
    """Central differences of fourth order."""
    G = np.zeros_like(Y)
    for at in np.ndindex(*Y.shape):
        values = []
        for h in (-2, -1, 1, 2):
            moved = Y.copy()
            moved[at] += h * step
            values.append(loss(moved))
        G[at] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return G


def relative_error(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def with_(objective: Objective, **changes) -> Objective:
    return replace(objective, **changes)


def neighbors_of(problem: Problem):
    return problem.loss.terms[0].neighborhoods[0].neighbors


def pairs_of(problem: Problem, name="objective"):
    """A as a matrix, and the mass of the stored pairs."""
    stored = problem.loss.pairs_of(name)
    n, pairs = problem.n_samples, stored.pairs
    return csr_matrix((pairs.values, pairs.columns, pairs.indptr), shape=(n, n)), stored.mass


def affinities_of(problem: Problem):
    return pairs_of(problem, "all")[0]


def radii_of(problem: Problem, Y):
    """Mean distances to the neighbours in the data."""
    return np.linalg.norm(Y[:, None] - Y[neighbors_of(problem)], axis=2).mean(axis=1)
