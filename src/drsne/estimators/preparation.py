"""Preparation of a problem from checked data: neighbours, affinities, target, scales and the initial map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks, engines, initialization
from drsne.affinities import DEFAULT_CALIBRATION, Affinities, Calibration, affinities, calibrated, offsets, symmetrize
from drsne.backends import PairList, choice
from drsne.backends.arrays import host
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.logs import LOGGER, timed
from drsne.neighbors.given import checked_neighbors
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.precomputed import available
from drsne.neighbors.search import nearest
from drsne.objectives.added_row import Law
from drsne.objectives.concentration import added_length, group_neighbors, profile, repeated, winsorized
from drsne.objectives.contrast import Dimension, automatic, local_dimension
from drsne.objectives.densne import DenSNEProblem, input_log_radii, standardized
from drsne.objectives.drsne import DRSNEProblem, Objective
from drsne.objectives.kernel import log_scales
from drsne.objectives.masses import mean as weighted_mean
from drsne.objectives.masses import slots
from drsne.pca import fitted_pca, scores
from drsne.placement.reference import CORRECTING, Training
from drsne.precision import rounded

Array = NDArray[np.float64]
_NEIGHBORS_PER_PERPLEXITY = 3.0  # smallest ratio of neighbours to perplexity; at lower ratios, affinities are similar
_MOST_SAMPLES_KEPT = 10_000  # largest number of samples for which the nearest neighbours are kept for scores
_NEIGHBORS_KEPT = 30
_MANY_FOR_ALL_PAIRS = 50_000  # largest number of points for which sums over all pairs take a reasonable time
_LIGHT = 0.05  # quantile of the masses that determines how many neighbours are searched for
_OUTSIDE = 1.2  # distance from the centre at which new rows can start, in units of the radius of the old map
_JITTER = 0.01  # distance by which new rows are moved at the start of an update, in units of the neighbour distances
_SPREADING_ROUNDS = 20  # largest number of steps from a known row to a new row without known neighbours

AnyProblem = TypeVar("AnyProblem", DRSNEProblem, DenSNEProblem)


@dataclass(frozen=True, kw_only=True)
class PreparationSettings:
    """The parameters of an estimator that determine what is optimised. The estimator documents them."""

    n_components: int
    perplexity: float
    metric: Any
    init: Any
    neighbors: Any
    pca_components: int | str | None
    engine: str
    engine_options: dict[str, Any] | None
    random_state: Any
    backend: str = "numba"
    device: Any = None
    density_neighbors: int = 0  # DenSNE uses the neighbours that have an affinity

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> PreparationSettings:
        """Return the settings among the parameters of an estimator."""
        return cls(**{field.name: parameters[field.name] for field in fields(cls) if field.name in parameters})

    @property
    def precomputed(self) -> bool:
        """Whether the data are distances."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def computed_by(self, workers: Workers) -> Any:
        """Return the backend; ``workers`` are the threads of numba."""
        name, device = choice.resolve(self.backend, self.device)
        if name == "numba":
            return NumbaBackend(workers)
        from drsne.backends.torch.backend import TorchBackend

        return TorchBackend(device)


class Prepared(NamedTuple, Generic[AnyProblem]):
    """The inputs of an optimisation."""

    problem: AnyProblem
    affinities: Affinities
    start: Array  # the map before the first iteration
    pca: Any  # fitted sklearn.decomposition.PCA, or None
    near: KnnGraph | None = None  # the nearest neighbours of the data, if there are few samples
    profile: Any = None  # log c~_i of the data before it is winsorised (DR-SNE), or log radii (den-SNE)
    training: Training | None = None  # what new rows need; None if neighbours were given without distances to them
    recall: float | None = None  # the recall of an approximate search for neighbours
    dimension: Dimension | None = None  # the local dimension of the data (DR-SNE)


class _Sizes(NamedTuple):
    """Perplexity and numbers of neighbours, adjusted to the data."""

    perplexity: float
    affinity_neighbors: int
    density_neighbors: int


class _Neighbors(NamedTuple):
    """The data, or their principal components, with their nearest neighbours."""

    X: Any
    graph: KnnGraph  # as many neighbours as affinities and densities need; tensors if a device has found them
    sizes: _Sizes
    rng: np.random.RandomState
    pca: Any
    masses: Array | None = None
    recall: float | None = None  # the recall of an approximate search on a device
    radii: Array | None = None  # radii in the data that the rows were sampled from, or None

    @property
    def of_affinities(self) -> KnnGraph:
        """The neighbours that have an affinity."""
        return slots(self.graph, self.masses, self.sizes.affinity_neighbors)


def prepare_drsne(
    settings: PreparationSettings,
    X: Any,
    objective: Objective,
    weight: float,
    workers: Workers,
    masses: Array | None = None,
    radii: Array | None = None,
) -> Prepared[DRSNEProblem]:
    """Return the problem of DR-SNE on ``X`` at a density weight, and the initial map."""
    return prepare_density_terms(settings, X, [objective], weight, workers, masses, radii)[objective]


def prepare_density_terms(
    settings: PreparationSettings,
    X: Any,
    objectives: Sequence[Objective],
    weight: float,
    workers: Workers,
    masses: Array | None = None,
    radii: Array | None = None,
) -> dict[Objective, Prepared[DRSNEProblem]]:
    """Return a problem for each of several objectives that differ only in their density terms.

    Neighbours, affinities and the initial map are computed once. ``radii`` are those of the rows in larger data that
    they were sampled from; they replace the radii among the rows.
    """
    objective = objectives[0]
    # The last bits of distances do not matter in single precision, but they do in the presets of the paper.
    compiled = objective.precision == "double"
    backend = settings.computed_by(workers)
    usual = objective.calibration.shift and objective.support == "symmetric" and not compiled
    on_device = backend if usual else None
    near = _neighbors(
        settings, X, objective.calibration, workers, compiled=compiled, masses=masses, radii=radii, backend=on_device
    )
    real, sizes = _real(objective.precision), near.sizes
    with timed("Calibrated affinities to the perplexity %g", sizes.perplexity):
        symmetric = affinities(near.of_affinities, sizes.perplexity, objective.calibration, workers, real, masses)
    with timed("Made the initial map"):
        start = _start(settings, near, symmetric, backend, workers)
    if on_device is not None and backend.name == "torch":
        backend.forget()
    graph = slots(near.graph, masses, sizes.density_neighbors)
    kept = None
    if X.shape[0] <= _MOST_SAMPLES_KEPT and near.pca is None and settings.neighbors is None:
        few = near.graph.first(_NEIGHBORS_KEPT)
        # Copies, because a view would keep the whole graph.
        kept = KnnGraph(np.array(host(few.indices)), np.array(host(few.distances), dtype=np.float64))
    prepared = {}
    for each in objectives:
        problem, log, training, dimension = _drsne_problem(settings, near, graph, each, symmetric, weight, backend)
        prepared[each] = Prepared(problem, symmetric, start, near.pca, kept, log, training, near.recall, dimension)
    return prepared


def prepare_densne(
    settings: PreparationSettings,
    X: Any,
    *,
    weight: float,
    variance_shift: float,
    precision: str,
    workers: Workers,
) -> Prepared[DenSNEProblem]:
    """Return the problem of den-SNE on ``X``, and the initial map."""
    near = _neighbors(settings, X, DEFAULT_CALIBRATION, workers)
    graph, perplexity = near.of_affinities, near.sizes.perplexity
    conditional, precisions = calibrated(graph, perplexity, DEFAULT_CALIBRATION, workers, _real(precision))
    log_radii = input_log_radii(graph, conditional)
    target = standardized(log_radii)
    P = symmetrize(graph.indices, conditional, workers)
    backend = settings.computed_by(workers)
    found = Affinities(P, precisions, offsets(graph.distances, conditional, precisions))
    start = _start(settings, near, found, backend, workers)
    problem = DenSNEProblem(
        P=P,
        target=rounded(target) if precision == "single" else target,
        weight=weight,
        variance_shift=variance_shift,
        precision=precision,
        engine=_engine(settings, len(target), precision, backend),
        backend=backend,
    )
    spread = float(log_radii.std(ddof=1)) if target.any() else 1.0
    training = _training(
        settings,
        near,
        found,
        radii=np.exp(0.5 * log_radii),
        density_neighbors=0,
        # The log radii of den-SNE are those of squared distances.
        target=Law(2.0 / spread, -float(log_radii.mean()) / spread, float(target.min()), float(target.max())),
        concentration=Law(2.0),
    )
    return Prepared(problem, found, start, near.pca, None, log_radii, training, near.recall)


class Held(NamedTuple):
    """Old places of some rows, near which an update keeps them."""

    places: Array  # (n, d); nan for new rows
    strength: Array  # strength of the pull towards them, (n,); 0 for new rows
    unit: float  # median distance of points to their neighbours in the old map

    def start(self, P: sp.csr_matrix, usual: Array) -> Array:
        """Return a map to start from: the old places, and for new rows the means of those of their neighbours.

        New rows that no known row reaches start where the ``usual`` initial map would have them, after an affine
        transformation that brings its known rows near their old places, but not far outside of the old map. All new
        rows are moved a little, in the directions of the usual initial map, because points that coincide do not repel
        each other.
        """
        old = ~np.isnan(self.places[:, 0])
        base = np.column_stack([usual, np.ones(len(usual))])
        affine = base @ np.linalg.lstsq(base[old], self.places[old], rcond=None)[0]
        centre = self.places[old].mean(axis=0)
        reach = _OUTSIDE * float(np.linalg.norm(self.places[old] - centre, axis=1).max())
        away = affine - centre
        length = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
        affine = centre + away * np.minimum(1.0, reach / length)
        places, known = np.where(old[:, None], self.places, affine), old.copy()
        new = P[np.flatnonzero(~old)]
        for _ in range(_SPREADING_ROUNDS):
            if known.all():
                break
            weights = new @ known
            reached = weights > 0.0
            means = (new @ (places * known[:, None]))[reached] / weights[reached, None]
            places[np.flatnonzero(~old)[reached]] = means
            known[np.flatnonzero(~old)[reached]] = True
        away = usual - usual.mean(axis=0)
        spread = float(np.sqrt((away**2).mean())) or 1.0
        return np.where(old[:, None], places, places + (_JITTER * self.unit / spread) * away)

    @classmethod
    def of(cls, old: Array, rows: NDArray[np.intp], k: int, stiffness: float) -> Held:
        """Return the places of the rows with these numbers in an old map.

        The pull on a row is measured in units of its mean distance to its k nearest neighbours in the old map.
        """
        from scipy.spatial import cKDTree

        distances, _ = cKDTree(old).query(old, min(k, len(old) - 1) + 1)  # the first one is the row itself
        radii = np.maximum(distances[:, 1:].mean(axis=1), 1e-6 * float(np.ptp(old)) + 1e-300)
        known = rows >= 0
        places = np.where(known[:, None], old[rows], np.nan)
        return cls(places, np.where(known, stiffness / radii[rows] ** 2, 0.0), float(np.median(radii)))

    def applied(self, prepared: Prepared[Any]) -> Prepared[Any]:
        """Return a problem with the pull towards the old places, and the map to start from."""
        start = self.start(prepared.affinities.matrix(), prepared.start)
        prepared.problem.hold(start, self.strength)
        return prepared._replace(start=start)


def _training(settings: PreparationSettings, near: _Neighbors, found: Affinities, **rules: Any) -> Training:
    """Return what new rows need to know of the data."""
    return Training(
        rows=None if settings.precomputed else near.X,
        metric=settings.metric,
        precisions=found.precisions,
        offsets=found.offsets,
        perplexity=near.sizes.perplexity,
        affinity_neighbors=near.sizes.affinity_neighbors,
        searched_neighbors=near.graph.indices.shape[1],
        given=settings.neighbors is not None,
        spacings=_spacings(near.graph, rules["radii"]),
        **rules,
    )


def _spacings(graph: KnnGraph, radii: Array) -> Array | None:
    """Return the radii, with those of rows that have duplicates measured to other rows, or None without duplicates.

    Duplicates have no radius that says how far other rows are. Rows of which only duplicates are listed get the median
    of the others.
    """
    doubled = np.flatnonzero(host(graph.distances[:, 0]) == 0.0)
    if not len(doubled):
        return None
    distances = np.asarray(host(graph.distances[doubled]), dtype=np.float64)
    apart = distances > 0.0
    with np.errstate(invalid="ignore"):
        means = (distances * apart).sum(axis=1) / apart.sum(axis=1)
    spacings = radii.copy()
    spacings[doubled] = np.maximum(means, radii[doubled])
    known = np.isfinite(spacings)
    spacings[~known] = np.median(spacings[known]) if known.any() else 0.0
    return spacings


def _real(precision: str) -> type:
    return np.float32 if precision == "single" else np.float64


def _neighbors(
    settings: PreparationSettings,
    X: Any,
    calibration: Calibration,
    workers: Workers,
    *,
    compiled: bool = True,
    masses: Array | None = None,
    radii: Array | None = None,
    backend: Any = None,
) -> _Neighbors:
    """Return the nearest neighbours of the data, or of their principal components.

    The ``backend`` is that of a device, which searches by itself if it can, or None.
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(settings.random_state)
    pca = fitted_pca(X, settings.pca_components) if settings.pca_components is not None else None
    X = X if pca is None else scores(pca, X, workers)
    supplied = None
    if settings.neighbors is not None:
        supplied = checked_neighbors(settings.neighbors, X.shape[0], workers)
    sizes = _sizes(settings, X, calibration, supplied, masses, radii is not None)
    k = max(sizes.affinity_neighbors, sizes.density_neighbors)
    if masses is not None:  # light neighbours fill less than one entry
        most = X.shape[0] - 1 if supplied is None else supplied.indices.shape[1]
        k = min(most, math.ceil(k / min(1.0, float(np.quantile(masses, _LIGHT)))))
    recall = None
    with timed("Found %d neighbours of each of %d samples", k, X.shape[0]):
        if supplied is None and backend is not None and searches(backend, X, settings.metric):
            indices, distances, recall = backend.nearest(X, k, cosine=settings.metric == "cosine")
            graph = KnnGraph(indices, distances)
            if masses is not None:  # affinities of rows with masses are computed on the processor
                graph = KnnGraph(host(indices), host(distances))
        elif supplied is None:
            method = "auto" if compiled else "uncompiled"
            graph = nearest(X, k, metric=settings.metric, workers=workers, method=method)
        else:
            graph = supplied.first(k)
    return _Neighbors(X, graph, sizes, rng, pca, masses, recall, radii)


def _sizes(
    settings: PreparationSettings,
    X: Any,
    calibration: Calibration,
    supplied: KnnGraph | None,
    masses: Array | None,
    landmarks: bool,
) -> _Sizes:
    """Return the perplexity and k, lowered with a warning if there are too few samples or ``supplied`` neighbours.

    A perplexity can be at most a third of the number of neighbours. If the perplexity were near that number, all
    affinities would be similar and the map would show nothing.
    """
    most = X.shape[0] - 1 if supplied is None else supplied.indices.shape[1]
    if settings.precomputed and sp.issparse(X):
        most = min(most, available(X))
        if most < 1:
            raise ValueError(
                "X must list at least one neighbour for every sample with metric='precomputed'; got samples without "
                "neighbours. Build the graph with more neighbours."
            )
    n_samples = X.shape[0]
    if masses is not None:  # a row of mass m counts as m rows
        n_samples = max(3, math.floor(masses.sum() - masses.max()) + 1)
        most = n_samples - 1 if most == X.shape[0] - 1 else most
    perplexity, k = float(settings.perplexity), int(settings.density_neighbors)
    lowered = []
    if perplexity > max(1.0, most / _NEIGHBORS_PER_PERPLEXITY):
        perplexity = max(1.0, most / _NEIGHBORS_PER_PERPLEXITY)
        lowered.append(f"perplexity from {settings.perplexity:g} to {perplexity:.4g}")
    if k > most:
        k = most
        lowered.append(f"density_neighbors from {settings.density_neighbors} to {k}")
    if lowered:
        why = _why_lowered(settings, X.shape[0], most, supplied, masses, landmarks)
        checks.warn(f"Lowered {' and '.join(lowered)}, because {why}")
    return _Sizes(perplexity, min(most, calibration.n_neighbors(perplexity, n_samples)), k)


def _why_lowered(
    settings: PreparationSettings,
    n_samples: int,
    most: int,
    supplied: KnnGraph | None,
    masses: Array | None,
    landmarks: bool,
) -> str:
    """Return the reason why there are too few neighbours, and what to do about it."""
    if landmarks:
        return (
            f"the weights of the other landmarks add up to only about {most}. Pass a larger n_landmarks, or smaller "
            "values."
        )
    if masses is not None:
        return (
            f"the sample_weight of the other rows adds up to only about {most}. Pass larger weights, or smaller values."
        )
    if supplied is None and most == n_samples - 1:
        return f"X has only {n_samples} samples. Pass smaller values to avoid this warning."
    needed = int(max(np.ceil(_NEIGHBORS_PER_PERPLEXITY * settings.perplexity), settings.density_neighbors))
    if needed >= n_samples:
        return (
            f"the graph has only {most} neighbours for each of {n_samples} samples. Pass smaller values to avoid this "
            "warning."
        )
    return (
        f"the graph has only {most} neighbours for each sample. Build it with n_neighbors={needed + 1} (the sample "
        "itself included), or pass smaller values to avoid this warning."
    )


def _drsne_problem(
    settings: PreparationSettings,
    near: _Neighbors,
    graph: KnnGraph,
    objective: Objective,
    found: Affinities,
    weight: float,
    backend: Any,
) -> tuple[DRSNEProblem, Array, Training, Dimension]:
    """Return the problem, the profile of the data before it is winsorised, what new rows need, and the dimension."""
    kept = group_neighbors(graph.distances) if objective.small_groups else None
    among_rows = np.asarray(host(repeated(graph.distances, kept).mean(axis=1)), dtype=np.float64)
    radii, corrections, shift = among_rows, None, 0.0
    if near.radii is not None:
        radii = near.radii
        least = float(np.finfo(np.float64).tiny)
        corrections = np.log(np.maximum(radii, least) / np.maximum(among_rows, least))
    masses = near.masses
    if corrections is not None:
        of_neighbors = corrections[host(near.graph.indices[:, :CORRECTING])].mean(axis=1)
        shift = weighted_mean(corrections - of_neighbors, masses)
    distinct = near.graph.first(graph.indices.shape[1]).distances  # without those that are repeated for their masses
    before_gap = kept if masses is None or kept is None else group_neighbors(distinct)
    dimension = local_dimension(distinct, before_gap, masses)
    objective = objective.at(automatic(radii, dimension.value, objective.input_smoothing, masses))
    assert objective.input_exponent is not None
    assert objective.scale_exponent is not None
    exponent = float(objective.input_exponent)
    high_profile = profile(radii, exponent, objective.input_smoothing, masses)
    input_profile = high_profile.log
    target = winsorized(input_profile, objective.target_quantile, masses)
    log_scale, of_scales = None, Law()
    if objective.adapts(weight):
        power = float(objective.scale_exponent)
        log_scale = log_scales(radii, power, objective.input_smoothing, masses=masses)
        mean = weighted_mean(np.log(high_profile.radius), masses)
        of_scales = Law(power, -power * mean, float(log_scale.min()), float(log_scale.max()))
    # The values are rounded, because the last bits depend on the units of the data, but the map must not.
    round_off = rounded if objective.precision == "single" else np.asarray
    problem = DRSNEProblem(
        objective,
        P=found.P,
        neighbors=graph.indices,
        target=round_off(target),
        weight=weight,
        engine=_engine(settings, len(input_profile), objective.precision, backend, log_scale is not None, masses),
        backend=backend,
        masses=masses,
        log_scales=None if log_scale is None else round_off(log_scale),
        adaptation=objective.adaptation(weight),
        kept=kept,
    )
    smoothing = objective.input_smoothing
    low = profile(radii, objective.embedding_exponent, smoothing, masses)
    training = _training(
        settings,
        near,
        found,
        radii=among_rows,
        corrections=corrections,
        correction_shift=shift,
        density_neighbors=graph.indices.shape[1],
        small_groups=objective.small_groups,
        added=added_length(radii, smoothing, masses),
        masses=masses,
        calibration=objective.calibration,
        target=_target_law(Law.of_profile(high_profile, exponent, smoothing.profile), input_profile, target),
        log_scale=of_scales,
        concentration=Law.of_profile(low, objective.embedding_exponent, smoothing.profile),
        affinity_smoothing=objective.affinity_smoothing,
        distance_smoothing=objective.distance_smoothing,
        mass=problem.terms.pairs["objective"].mass,
        directed=objective.support == "directed",
    )
    return problem, round_off(input_profile), training, dimension


def _target_law(law: Law, log: Array, target: Array) -> Law:
    """Return the law of the targets of new rows, which stay in the range of those of the training rows."""
    middle = int(np.argsort(log)[len(log) // 2])
    shift = float(target[middle] - log[middle])
    return law._replace(low=float(target.min()) - shift, high=float(target.max()) - shift, shift=shift)


def _engine(
    settings: PreparationSettings,
    n_samples: int,
    precision: str,
    backend: Any,
    adaptive: bool = False,
    masses: Array | None = None,
) -> engines.Engine:
    if masses is not None and backend.name == "numba":
        from drsne.engines._weighted import WeightedEngine

        theta = 0.0 if settings.engine == "exact" else (settings.engine_options or {}).get("theta")
        return WeightedEngine(backend, masses, theta)
    name = engines.resolve(settings.engine, n_samples, int(settings.n_components), adaptive, backend.name)
    if backend.name == "torch" and name == "exact" and n_samples > _MANY_FOR_ALL_PAIRS:
        checks.warn(
            f"PyTorch sums over all pairs of {n_samples} points for n_components={settings.n_components}, which takes "
            "long. Pass n_components=2, or backend='numba' without a device."
        )
    LOGGER.debug("Engine %r with the %s kernel", name, "adaptive" if adaptive else "fixed")
    return engines.build(name, backend, precision=precision, options=settings.engine_options, masses=masses)


def searches(backend: Any, X: Any, metric: Any) -> bool:
    """Return whether a backend finds the neighbours of these data itself."""
    if backend.name != "torch" or not isinstance(X, np.ndarray) or metric not in ("euclidean", "cosine"):
        return False
    return bool(metric == "euclidean" or X.any(axis=1).all())  # rows of zeros have no direction


def _start(settings: PreparationSettings, near: _Neighbors, found: Affinities, backend: Any, workers: Workers) -> Array:
    """Return the map before the first iteration."""
    X, rng = near.X, near.rng
    n, d = X.shape[0], int(settings.n_components)
    if not isinstance(settings.init, str):
        return initialization.checked_init(settings.init, n, d)
    if settings.init == "random":
        return initialization.random(n, d, rng)
    if not settings.precomputed:
        if isinstance(found.P, PairList):
            return initialization.as_start(backend.components(X, d), rng)
        return initialization.pca(X, d, rng, workers)
    if sp.issparse(X):
        return initialization.diffusion(found.P, d, rng)
    return initialization.classical_scaling(X, d, rng, workers)
