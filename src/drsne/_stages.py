"""From checked data to an objective that can be minimised: neighbours, affinities, target and start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import _checks, engines, initialization
from drsne._rounding import rounded
from drsne.affinities import Affinities, affinities
from drsne.concentration import profile
from drsne.graph import KnnGraph, available, nearest
from drsne.objective import Objective, Problem
from drsne.parallel import Workers
from drsne.ready import given
from drsne.reduction import fitted_pca, scores

Array = NDArray[np.float64]
_LARGEST_SHARE = 0.75  # of a point's neighbours, for the perplexity


class Stage(NamedTuple):
    """What an optimisation starts from."""

    problem: Problem
    affinities: Affinities
    start: Array
    pca: Any  # fitted sklearn.decomposition.PCA, or None


class _Sizes(NamedTuple):
    """Sizes after they were fitted to the data."""

    perplexity: float
    affinity_neighbors: int
    density_neighbors: int


def prepare(model: Any, X: Any, objective: Objective, weight: float, workers: Workers) -> Stage:
    """All that comes before the optimisation, for an estimator's parameters; the neighbours' distances are let go."""
    from sklearn.utils import check_random_state

    rng = check_random_state(model.random_state)
    pca = fitted_pca(X, model.pca_components) if model.pca_components is not None else None
    X = X if pca is None else scores(pca, X)
    ready = None if model.neighbors is None else given(model.neighbors, X.shape[0], workers)
    sizes = _sizes(model, X, objective, ready)
    wanted = max(sizes.affinity_neighbors, sizes.density_neighbors)
    graph = nearest(X, wanted, metric=model.metric, workers=workers) if ready is None else ready.first(wanted)
    near = graph.first(sizes.affinity_neighbors)
    dtype = np.float32 if objective.precision == "single" else np.float64
    found = affinities(near, sizes.perplexity, objective.calibration, workers, dtype)
    start = _start(model, X, found.P, rng, workers)
    problem = _problem(model, graph.first(sizes.density_neighbors), objective, found.P, weight, workers)
    return Stage(problem, found, start, pca)


def _is_precomputed(model: Any) -> bool:
    return isinstance(model.metric, str) and model.metric == "precomputed"


def _sizes(model: Any, X: Any, objective: Objective, ready: KnnGraph | None) -> _Sizes:
    """Perplexity and k as asked, or lowered to what the data allow, with one warning.

    Near the number of neighbours all affinities are alike and a map shows nothing; a third of it is a good value.
    """
    most = X.shape[0] - 1 if ready is None else ready.indices.shape[1]
    if _is_precomputed(model) and sp.issparse(X):
        most = min(most, available(X))
        if most < 1:
            raise ValueError(
                "X must list at least one neighbour for every sample with metric='precomputed'; some have none. "
                "Build the graph with more neighbours."
            )
    perplexity, k = float(model.perplexity), int(model.density_neighbors)
    lowered = []
    if perplexity > max(1.0, _LARGEST_SHARE * most):
        perplexity = max(1.0, most / 3.0)
        lowered.append(f"perplexity from {model.perplexity:g} to {perplexity:.4g}")
    if k > most:
        k = most
        lowered.append(f"density_neighbors from {model.density_neighbors} to {k}")
    if lowered:
        _checks.warn(f"Lowered {' and '.join(lowered)}: {X.shape[0]} samples with {most} neighbours each.")
    return _Sizes(perplexity, min(most, objective.calibration.n_neighbors(perplexity, X.shape[0])), k)


def _problem(
    model: Any, graph: KnnGraph, objective: Objective, P: sp.csr_matrix, weight: float, workers: Workers
) -> Problem:
    target = profile(graph.distances.mean(axis=1), objective.input_exponent, objective.input_smoothing).log
    n, d = len(target), int(model.n_components)
    name = engines.resolve(model.engine, n, d)
    return Problem(
        objective,
        P=P,
        neighbors=np.ascontiguousarray(graph.indices),
        # Rounded: what the data's units leave in the last bits must not reach the map.
        target=rounded(target) if objective.precision == "single" else target,
        weight=weight,
        engine=engines.build(name, workers, precision=objective.precision, options=model.engine_options),
        workers=workers,
    )


def _start(model: Any, X: Any, P: sp.csr_matrix, rng: np.random.RandomState, workers: Workers) -> Array:
    n, d = X.shape[0], int(model.n_components)
    if not isinstance(model.init, str):
        return initialization.given(model.init, n, d)
    if model.init == "random":
        return initialization.random(n, d, rng)
    if not _is_precomputed(model):
        return initialization.pca(X, d, rng, workers)
    if sp.issparse(X):
        return initialization.diffusion(P, d, rng)
    return initialization.classical_scaling(X, d, rng, workers)
