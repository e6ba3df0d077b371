"""From checked data to an objective that can be minimised: neighbours, affinities, target and start."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import _checks, engines, initialization
from drsne._rounding import rounded
from drsne.affinities import DEFAULT_CALIBRATION, Affinities, Calibration, affinities, calibrated, symmetrize
from drsne.concentration import group_neighbors, log_scales, profile, repeated, winsorized
from drsne.correlation import CorrelationProblem
from drsne.graph import KnnGraph, available, nearest
from drsne.objective import Objective, Problem
from drsne.parallel import Workers
from drsne.radii import input_log_radii, standardized
from drsne.ready import given
from drsne.reduction import fitted_pca, scores

Array = NDArray[np.float64]
_LARGEST_SHARE = 0.75  # of a point's neighbours, for the perplexity
_FEW, _NEAR = 10_000, 30  # points whose neighbours are kept with their distances, and how many of them


Minimised = TypeVar("Minimised", Problem, CorrelationProblem)


class Stage(NamedTuple, Generic[Minimised]):
    """What an optimisation starts from."""

    problem: Minimised
    affinities: Affinities
    start: Array
    pca: Any  # fitted sklearn.decomposition.PCA, or None
    near: KnnGraph | None = None  # the nearest neighbours of the data, where there are few points
    profile: Any = None  # log c~_i of the data before its target is winsorised, or None for den-SNE


class _Sizes(NamedTuple):
    """Sizes after they were fitted to the data."""

    perplexity: float
    affinity_neighbors: int
    density_neighbors: int


class _Ground(NamedTuple):
    """What affinities, target and start are made from."""

    X: Any
    graph: KnnGraph  # as many neighbours as any of them wants
    sizes: _Sizes
    rng: np.random.RandomState
    pca: Any

    @property
    def near(self) -> KnnGraph:
        """The neighbours that carry affinity."""
        return self.graph.first(self.sizes.affinity_neighbors)


def prepare(model: Any, X: Any, objective: Objective, weight: float, workers: Workers) -> Stage[Problem]:
    """All that comes before the optimisation, for an estimator's parameters; many neighbours' distances are let go."""
    ground = _ground(model, X, objective.calibration, int(model.density_neighbors), workers)
    sizes = ground.sizes
    found = affinities(ground.near, sizes.perplexity, objective.calibration, workers, _real(objective.precision))
    start = _start(model, ground.X, found.P, ground.rng, workers)
    problem, data_profile = _problem(
        model, ground.graph.first(sizes.density_neighbors), objective, found.P, weight, workers
    )
    few = X.shape[0] <= _FEW and ground.pca is None and model.neighbors is None
    near = ground.graph.first(_NEAR) if few else None
    if near is not None:
        near = KnnGraph(near.indices.copy(), near.distances.copy())  # not a view of all of them
    return Stage(problem, found, start, ground.pca, near, data_profile)


class Radii(NamedTuple):
    """den-SNE's start, with the log radii of the data."""

    stage: Stage[CorrelationProblem]
    log: Array


def prepare_radii(model: Any, X: Any, workers: Workers) -> Radii:
    """The same for den-SNE."""
    ground = _ground(model, X, DEFAULT_CALIBRATION, 0, workers)
    near, perplexity = ground.near, ground.sizes.perplexity
    conditional, precisions = calibrated(near, perplexity, DEFAULT_CALIBRATION, workers, _real(model.precision))
    log = input_log_radii(near, conditional)
    target = standardized(log)
    P = symmetrize(near.indices, conditional, workers)
    start = _start(model, ground.X, P, ground.rng, workers)
    problem = CorrelationProblem(
        P=P,
        target=rounded(target) if model.precision == "single" else target,
        weight=float(model.density_weight),
        variance_shift=float(model.variance_shift),
        precision=model.precision,
        engine=_engine(model, len(target), model.precision, workers),
        workers=workers,
    )
    return Radii(Stage(problem, Affinities(P, precisions), start, ground.pca), log)


def _real(precision: str) -> type:
    return np.float32 if precision == "single" else np.float64


def _ground(model: Any, X: Any, calibration: Calibration, density_neighbors: int, workers: Workers) -> _Ground:
    """Neighbours of the data, or of its principal components."""
    from sklearn.utils import check_random_state

    rng = check_random_state(model.random_state)
    pca = fitted_pca(X, model.pca_components) if model.pca_components is not None else None
    X = X if pca is None else scores(pca, X)
    ready = None if model.neighbors is None else given(model.neighbors, X.shape[0], workers)
    sizes = _sizes(model, X, calibration, density_neighbors, ready)
    wanted = max(sizes.affinity_neighbors, sizes.density_neighbors)
    graph = nearest(X, wanted, metric=model.metric, workers=workers) if ready is None else ready.first(wanted)
    return _Ground(X, graph, sizes, rng, pca)


def _is_precomputed(model: Any) -> bool:
    return isinstance(model.metric, str) and model.metric == "precomputed"


def _sizes(model: Any, X: Any, calibration: Calibration, density_neighbors: int, ready: KnnGraph | None) -> _Sizes:
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
    perplexity, k = float(model.perplexity), density_neighbors
    lowered = []
    if perplexity > max(1.0, _LARGEST_SHARE * most):
        perplexity = max(1.0, most / 3.0)
        lowered.append(f"perplexity from {model.perplexity:g} to {perplexity:.4g}")
    if k > most:
        k = most
        lowered.append(f"density_neighbors from {density_neighbors} to {k}")
    if lowered:
        _checks.warn(f"Lowered {' and '.join(lowered)}: {X.shape[0]} samples with {most} neighbours each.")
    return _Sizes(perplexity, min(most, calibration.n_neighbors(perplexity, X.shape[0])), k)


def _problem(
    model: Any, graph: KnnGraph, objective: Objective, P: sp.csr_matrix, weight: float, workers: Workers
) -> tuple[Problem, Array]:
    """Return what is minimised, and the profile of the data before it is winsorised."""
    kept = group_neighbors(graph.distances) if objective.small_groups else None
    radii = repeated(graph.distances, kept).mean(axis=1)
    objective = objective.at(radii)
    exponent = float(objective.input_exponent)
    whole = profile(radii, exponent, objective.input_smoothing).log
    log_scale = None
    if objective.adapts(weight):
        log_scale = log_scales(radii, exponent / objective.embedding_exponent, objective.input_smoothing)
    # Rounded: what the data's units leave in the last bits must not reach the map.
    settle = rounded if objective.precision == "single" else np.asarray
    problem = Problem(
        objective,
        P=P,
        neighbors=graph.indices,
        target=settle(winsorized(whole, objective.target_quantile)),
        weight=weight,
        engine=_engine(model, len(whole), objective.precision, workers, log_scale is not None),
        workers=workers,
        log_scale=None if log_scale is None else settle(log_scale),
        adaptation=objective.adaptation(weight),
        kept=kept,
    )
    return problem, settle(whole)


def _engine(model: Any, n_samples: int, precision: str, workers: Workers, adaptive: bool = False) -> engines.Engine:
    name = engines.resolve(model.engine, n_samples, int(model.n_components), adaptive)
    return engines.build(name, workers, precision=precision, options=model.engine_options)


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
