"""From checked data to a problem that can be minimised: neighbours, affinities, target, scales and start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks, engines, initialization
from drsne.affinities import DEFAULT_CALIBRATION, Affinities, Calibration, affinities, calibrated, symmetrize
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.logs import LOGGER, timed
from drsne.neighbors.given import given
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.precomputed import available
from drsne.neighbors.search import nearest
from drsne.objectives.concentration import group_neighbors, profile, repeated, winsorized
from drsne.objectives.densne import DenSNEProblem, input_log_radii, standardized
from drsne.objectives.drsne import DRSNEProblem, Objective
from drsne.objectives.kernel import log_scales
from drsne.pca import fitted_pca, scores
from drsne.precision import rounded

Array = NDArray[np.float64]
_NEIGHBORS_PER_PERPLEXITY = 3.0  # that a perplexity needs at least: with fewer, all affinities are alike
_FEW, _NEAR = 10_000, 30  # points whose neighbours are kept with their distances, and how many of them

AnyProblem = TypeVar("AnyProblem", DRSNEProblem, DenSNEProblem)


@dataclass(frozen=True, kw_only=True)
class PreparationSettings:
    """The parameters of an estimator that decide what is optimised; they are described there."""

    n_components: int
    perplexity: float
    metric: Any
    init: Any
    neighbors: Any
    pca_components: int | str | None
    engine: str
    engine_options: dict[str, Any] | None
    random_state: Any
    density_neighbors: int = 0  # den-SNE's are those of the perplexity

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> PreparationSettings:
        """Return the settings among the parameters of an estimator."""
        return cls(**{field.name: parameters[field.name] for field in fields(cls) if field.name in parameters})

    @property
    def precomputed(self) -> bool:
        """Whether the data are distances."""
        return isinstance(self.metric, str) and self.metric == "precomputed"


class Prepared(NamedTuple, Generic[AnyProblem]):
    """What an optimisation starts from."""

    problem: AnyProblem
    affinities: Affinities
    start: Array  # the map before the first iteration
    pca: Any  # fitted sklearn.decomposition.PCA, or None
    near: KnnGraph | None = None  # the nearest neighbours of the data, if there are few points
    profile: Any = None  # log c~_i of the data before it is winsorised (DR-SNE), or log radii (den-SNE)


class _Sizes(NamedTuple):
    """Perplexity and numbers of neighbours, adjusted to the data."""

    perplexity: float
    affinity_neighbors: int
    density_neighbors: int


class _Neighbors(NamedTuple):
    """The data, or their principal components, with their nearest neighbours."""

    X: Any
    graph: KnnGraph  # as many neighbours as affinities and densities need
    sizes: _Sizes
    rng: np.random.RandomState
    pca: Any

    @property
    def of_affinities(self) -> KnnGraph:
        """The neighbours that have an affinity."""
        return self.graph.first(self.sizes.affinity_neighbors)


def prepare_drsne(
    settings: PreparationSettings, X: Any, objective: Objective, weight: float, workers: Workers
) -> Prepared[DRSNEProblem]:
    """Return the problem of DR-SNE on ``X`` at a density weight, and the map to start from."""
    found = _neighbors(settings, X, objective.calibration, workers)
    real = _real(objective.precision)
    near = found.of_affinities
    with timed("Calibrated affinities to the perplexity %g", found.sizes.perplexity):
        calibrated_affinities = affinities(near, found.sizes.perplexity, objective.calibration, workers, real)
    with timed("Made the map to start from"):
        start = _start(settings, found.X, calibrated_affinities.P, found.rng, workers)
    graph = found.graph.first(found.sizes.density_neighbors)
    problem, whole = _drsne_problem(settings, graph, objective, calibrated_affinities.P, weight, workers)
    kept = None
    if X.shape[0] <= _FEW and found.pca is None and settings.neighbors is None:
        nearest_few = found.graph.first(_NEAR)
        kept = KnnGraph(nearest_few.indices.copy(), nearest_few.distances.copy())  # a view would keep all of them
    return Prepared(problem, calibrated_affinities, start, found.pca, kept, whole)


def prepare_densne(
    settings: PreparationSettings,
    X: Any,
    *,
    weight: float,
    variance_shift: float,
    precision: str,
    workers: Workers,
) -> Prepared[DenSNEProblem]:
    """Return the problem of den-SNE on ``X``, and the map to start from."""
    found = _neighbors(settings, X, DEFAULT_CALIBRATION, workers)
    near, perplexity = found.of_affinities, found.sizes.perplexity
    conditional, precisions = calibrated(near, perplexity, DEFAULT_CALIBRATION, workers, _real(precision))
    log_radii = input_log_radii(near, conditional)
    target = standardized(log_radii)
    P = symmetrize(near.indices, conditional, workers)
    start = _start(settings, found.X, P, found.rng, workers)
    backend = NumbaBackend(workers)
    problem = DenSNEProblem(
        P=P,
        target=rounded(target) if precision == "single" else target,
        weight=weight,
        variance_shift=variance_shift,
        precision=precision,
        engine=_engine(settings, len(target), precision, backend),
        backend=backend,
    )
    return Prepared(problem, Affinities(P, precisions), start, found.pca, profile=log_radii)


def _real(precision: str) -> type:
    return np.float32 if precision == "single" else np.float64


def _neighbors(settings: PreparationSettings, X: Any, calibration: Calibration, workers: Workers) -> _Neighbors:
    """Return the neighbours of the data, or of their principal components."""
    from sklearn.utils import check_random_state

    rng = check_random_state(settings.random_state)
    pca = fitted_pca(X, settings.pca_components) if settings.pca_components is not None else None
    X = X if pca is None else scores(pca, X)
    ready = None if settings.neighbors is None else given(settings.neighbors, X.shape[0], workers)
    sizes = _sizes(settings, X, calibration, ready)
    wanted = max(sizes.affinity_neighbors, sizes.density_neighbors)
    with timed("Found %d neighbours of each of %d samples", wanted, X.shape[0]):
        graph = nearest(X, wanted, metric=settings.metric, workers=workers) if ready is None else ready.first(wanted)
    return _Neighbors(X, graph, sizes, rng, pca)


def _sizes(settings: PreparationSettings, X: Any, calibration: Calibration, ready: KnnGraph | None) -> _Sizes:
    """Return the perplexity and k as asked for, or lowered to what the data allow, with one warning.

    A perplexity can be a third of the number of neighbours at most. If it were near that number, all affinities would
    be alike and the map would show nothing.
    """
    most = X.shape[0] - 1 if ready is None else ready.indices.shape[1]
    if settings.precomputed and sp.issparse(X):
        most = min(most, available(X))
        if most < 1:
            raise ValueError(
                "X must list at least one neighbour for every sample with metric='precomputed'; some have none. "
                "Build the graph with more neighbours."
            )
    perplexity, k = float(settings.perplexity), int(settings.density_neighbors)
    lowered = []
    if perplexity > max(1.0, most / _NEIGHBORS_PER_PERPLEXITY):
        perplexity = max(1.0, most / _NEIGHBORS_PER_PERPLEXITY)
        lowered.append(f"perplexity from {settings.perplexity:g} to {perplexity:.4g}")
    if k > most:
        k = most
        lowered.append(f"density_neighbors from {settings.density_neighbors} to {k}")
    if lowered:
        checks.warn(f"Lowered {' and '.join(lowered)}, because {_why_lowered(settings, X.shape[0], most, ready)}")
    return _Sizes(perplexity, min(most, calibration.n_neighbors(perplexity, X.shape[0])), k)


def _why_lowered(settings: PreparationSettings, n_samples: int, most: int, ready: KnnGraph | None) -> str:
    """Return the reason why there are too few neighbours, and the way out."""
    if ready is None and most == n_samples - 1:
        return f"X has only {n_samples} samples. Pass smaller values to avoid this warning."
    needed = int(max(np.ceil(_NEIGHBORS_PER_PERPLEXITY * settings.perplexity), settings.density_neighbors))
    if needed >= n_samples:
        return f"the graph has only {most} neighbours for each of {n_samples} samples."
    return (
        f"the graph has only {most} neighbours for each sample. Build it with n_neighbors={needed + 1} (the sample "
        "itself included), or pass smaller values to avoid this warning."
    )


def _drsne_problem(
    settings: PreparationSettings,
    graph: KnnGraph,
    objective: Objective,
    P: sp.csr_matrix,
    weight: float,
    workers: Workers,
) -> tuple[DRSNEProblem, Array]:
    """Return what is minimised, and the profile of the data before it is winsorised."""
    kept = group_neighbors(graph.distances) if objective.small_groups else None
    radii = repeated(graph.distances, kept).mean(axis=1)
    objective = objective.at(radii)
    exponent = float(objective.input_exponent)
    whole = profile(radii, exponent, objective.input_smoothing).log
    log_scale = None
    if objective.adapts(weight):
        log_scale = log_scales(radii, exponent / objective.embedding_exponent, objective.input_smoothing)
    # Rounded, because the last bits depend on the units of the data, and the map must not.
    settle = rounded if objective.precision == "single" else np.asarray
    backend = NumbaBackend(workers)
    problem = DRSNEProblem(
        objective,
        P=P,
        neighbors=graph.indices,
        target=settle(winsorized(whole, objective.target_quantile)),
        weight=weight,
        engine=_engine(settings, len(whole), objective.precision, backend, log_scale is not None),
        backend=backend,
        log_scales=None if log_scale is None else settle(log_scale),
        adaptation=objective.adaptation(weight),
        kept=kept,
    )
    return problem, settle(whole)


def _engine(
    settings: PreparationSettings, n_samples: int, precision: str, backend: NumbaBackend, adaptive: bool = False
) -> engines.Engine:
    name = engines.resolve(settings.engine, n_samples, int(settings.n_components), adaptive)
    LOGGER.debug("Engine %r with the %s kernel", name, "adaptive" if adaptive else "fixed")
    return engines.build(name, backend, precision=precision, options=settings.engine_options)


def _start(
    settings: PreparationSettings, X: Any, P: sp.csr_matrix, rng: np.random.RandomState, workers: Workers
) -> Array:
    """Return the map before the first iteration."""
    n, d = X.shape[0], int(settings.n_components)
    if not isinstance(settings.init, str):
        return initialization.given(settings.init, n, d)
    if settings.init == "random":
        return initialization.random(n, d, rng)
    if not settings.precomputed:
        return initialization.pca(X, d, rng, workers)
    if sp.issparse(X):
        return initialization.diffusion(P, d, rng)
    return initialization.classical_scaling(X, d, rng, workers)
