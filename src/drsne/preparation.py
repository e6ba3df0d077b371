"""From data to a problem: neighbours, affinities, target, scales and the initial map.

:func:`prepare` is public. It calls :func:`prepared`, as the estimators do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from drsne import checks, engines, initialization
from drsne.affinities import DEFAULT_CALIBRATION, Affinities, affinities, calibrated, offsets, symmetrize
from drsne.backends import PairList, choice
from drsne.backends.arrays import host
from drsne.backends.numba.threads import Workers
from drsne.logs import timed
from drsne.neighbors.graph import KnnGraph, Sizes, adjusted
from drsne.neighbors.precomputed import checked_neighbors
from drsne.neighbors.search import nearest
from drsne.pca import reduced
from drsne.placement.reference import CORRECTING, Law, Training, spacings
from drsne.precision import rounded
from drsne.terms.concentration import Concentration
from drsne.terms.contrast import Dimension, automatic, local_dimension
from drsne.terms.kl import StoredPairs, stored
from drsne.terms.log_radii import Correlation, LogRadii, input_log_radii, standardized
from drsne.terms.masses import mean as weighted_mean
from drsne.terms.masses import slots
from drsne.terms.objective import Objective
from drsne.terms.problem import Loss, Problem
from drsne.terms.profile import added_length, group_neighbors, log_scales, profile, repeated, winsorized

Array = NDArray[np.float64]
_MOST_SAMPLES_KEPT = 10_000  # largest number of samples for which the nearest neighbours are kept for scores
_NEIGHBORS_KEPT = 30


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The parameters of an estimator that determine what is optimised. The estimator documents them."""

    n_components: int = 2
    perplexity: float = 30.0
    density_neighbors: int = 0  # DenSNE uses the neighbours that have an affinity
    metric: Any = "euclidean"
    init: Any = "pca"
    neighbors: Any = None
    pca_components: int | str | None = None
    engine: str = "auto"
    engine_options: dict[str, Any] | None = None
    random_state: Any = None
    backend: str = "numba"
    device: Any = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Settings:
        """Return the settings among the parameters of an estimator."""
        return cls(**{field.name: parameters[field.name] for field in fields(cls) if field.name in parameters})

    @property
    def precomputed(self) -> bool:
        """Whether the data are distances."""
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def computed_by(self, workers: Workers) -> Any:
        """Return the backend; ``workers`` are the threads of numba."""
        return choice.fitting(self.backend, self.device, workers)


class Data(NamedTuple):
    """The data, or their principal components, with their nearest neighbours. Terms are prepared from them."""

    X: Any
    graph: KnnGraph  # as many neighbours as affinities and densities need; tensors if a device has found them
    sizes: Sizes
    settings: Settings
    rng: np.random.RandomState
    workers: Workers
    backend: Any
    pca: Any = None
    masses: Array | None = None
    recall: float | None = None  # the recall of an approximate search on a device
    radii: Array | None = None  # radii in the data that the rows were sampled from, or None
    affinities: Any = None  # Affinities, as soon as terms are prepared


class About(NamedTuple):
    """What is known of the data of a problem."""

    objective: Any  # with the exponents that were chosen for the data
    profile: Array  # log c~_i of the data before it is winsorised (DR-SNE), or log radii (den-SNE)
    training: Training  # what new rows need
    dimension: Dimension | None = None  # the local dimension of the data (DR-SNE)
    pca: Any = None  # fitted sklearn.decomposition.PCA, or None
    recall: float | None = None  # the recall of an approximate search for neighbours
    near: KnnGraph | None = None  # the nearest neighbours of the data, if there are few samples


def prepare(
    X: ArrayLike,
    objective: Objective | Correlation | None = None,
    *,
    density_weight: float = 1.0,
    density_neighbors: int = 30,
    affinities: sp.csr_matrix | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    **settings: Any,
) -> Problem:
    """Return the problem that a fit of ``X`` minimises, to change it or to minimise it with another schedule.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. With ``metric="precomputed"``, distances of shape (n_samples, n_samples).
    objective : Objective, default=None
        The objective. None stands for that of :class:`drsne.DRSNE` with its default parameters.
    density_weight : float, default=1.0
        lambda, the weight of the density term.
    density_neighbors : int, default=30
        k, the number of neighbours that determine the concentration of a point.
    affinities : csr_matrix of shape (n_samples, n_samples), default=None
        Symmetric affinities that sum to one, which replace those of the data.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, as in :meth:`drsne.DRSNE.fit`.
    n_jobs : int, default=None
        Number of threads, as in joblib.
    **settings
        These parameters of :class:`drsne.DRSNE`: ``n_components``, ``perplexity``, ``metric``, ``init``, ``neighbors``,
        ``pca_components``, ``engine``, ``engine_options``, ``random_state``, ``backend`` and ``device``.

    Returns
    -------
    Problem
        The problem. ``initial`` is its initial map, ``affinities`` are its affinities, ``add`` adds a term, and
        ``evaluate`` returns the gradient of n times the loss and the losses at a map.

    Examples
    --------
    >>> import numpy as np
    >>> import drsne
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> problem = drsne.prepare(X, perplexity=10, density_neighbors=10, random_state=0)
    >>> early = drsne.Phase(n_iter=100, optimizer=drsne.Momentum(rate=0.5), exaggeration=12)
    >>> late = drsne.Phase(n_iter=100, optimizer=drsne.Adam(rate=1.0), density=True)
    >>> outcome = drsne.minimize(problem, schedule=drsne.Schedule(phases=(early, late)))
    >>> outcome.embedding.shape
    (100, 2)
    >>> sorted(outcome.losses)
    ['concentration', 'kl']
    """
    from sklearn.utils.validation import _check_sample_weight, check_array

    X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=3)
    masses = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
    chosen = Objective(embedding_weight=0.7) if objective is None else objective
    checked = Settings(density_neighbors=density_neighbors, **settings)
    with Workers(n_jobs) as workers:
        return prepared(checked, X, [chosen], density_weight, workers, masses, given=affinities)[chosen]


def prepared(
    settings: Settings,
    X: Any,
    objectives: Sequence[Any],
    weight: float,
    workers: Workers,
    masses: Array | None = None,
    radii: Array | None = None,
    given: sp.csr_matrix | None = None,
) -> dict[Any, Problem]:
    """Return a problem for each of several objectives that differ only in their density terms.

    Neighbours, affinities and the initial map are computed once. ``radii`` are those of the rows in larger data that
    they were sampled from; they replace the radii among the rows. ``given`` affinities replace those of the data.
    """
    objective = objectives[0]
    data = _neighbors(settings, X, objective, workers, masses, radii)
    with timed("Calibrated affinities to the perplexity %g", data.sizes.perplexity):
        data = data._replace(affinities=_affinities(data, objective))
    if given is not None:
        data = data._replace(affinities=data.affinities._replace(P=_checked_affinities(given, X.shape[0], objective)))
    with timed("Made the initial map"):
        start = _start(data)
    data.backend.forget()
    near, problems = _near(data), {}
    for each in objectives:
        problem, about = (_correlation_problem if isinstance(each, Correlation) else _problem)(data, each, weight)
        for prepare_term in each.terms:
            if (term := prepare_term(data)) is not None:
                problem.add(term)
        problem.initial, problem.affinities = start, data.affinities
        problem.about = about._replace(pca=data.pca, recall=data.recall, near=near)
        problems[each] = problem
    return problems


def _neighbors(
    settings: Settings, X: Any, objective: Any, workers: Workers, masses: Array | None, radii: Array | None
) -> Data:
    """Return the nearest neighbours of the data, or of their principal components."""
    rng, backend = checks.random_numbers(settings.random_state), settings.computed_by(workers)
    pca, X = (None, X) if settings.pca_components is None else reduced(X, settings.pca_components, workers)
    given = settings.neighbors
    supplied = None if given is None else checked_neighbors(given, X.shape[0], workers)
    n_supplied = None if supplied is None else supplied.indices.shape[1]
    wanted = settings.perplexity, settings.density_neighbors, objective.calibration
    sizes = adjusted(
        *wanted, X, precomputed=settings.precomputed, supplied=n_supplied, masses=masses, landmarks=radii is not None
    )
    k = sizes.searched(masses, X.shape[0] - 1 if n_supplied is None else n_supplied)
    recall = None
    with timed("Found %d neighbours of each of %d samples", k, X.shape[0]):
        if supplied is not None:
            graph = supplied.first(k)
        elif objective.on_device and backend.searches(X, settings.metric):
            indices, distances, recall = backend.nearest(X, k, cosine=settings.metric == "cosine")
            graph = KnnGraph(indices, distances)
            if masses is not None:  # affinities of rows with masses are computed on the processor
                graph = KnnGraph(host(indices), host(distances))
        else:
            # The last bits of distances do not matter in single precision, but they do in the presets of the paper.
            method = "auto" if objective.exact_bits else "uncompiled"
            graph = nearest(X, k, metric=settings.metric, workers=workers, method=method)
    return Data(X, graph, sizes, settings, rng, workers, backend, pca, masses, recall, radii)


def _affinities(data: Data, objective: Any) -> Affinities:
    """Return the affinities of the data, and their log radii if the objective is that of den-SNE."""
    graph = slots(data.graph, data.masses, data.sizes.affinity_neighbors)
    perplexity, workers = data.sizes.perplexity, data.workers
    real = np.float32 if objective.precision == "single" else np.float64
    if not isinstance(objective, Correlation):
        return affinities(graph, perplexity, objective.calibration, workers, real, data.masses)
    conditional, precisions = calibrated(graph, perplexity, DEFAULT_CALIBRATION, workers, real)
    own, log_radii = offsets(graph.distances, conditional, precisions), input_log_radii(graph, conditional)
    return Affinities(symmetrize(graph.indices, conditional, workers), precisions, own, log_radii)


def _checked_affinities(given: Any, n_samples: int, objective: Any) -> sp.csr_matrix:
    """Return affinities that the user passed, or raise an error if they do not suit the data."""
    P = sp.csr_matrix(given, dtype=np.float64)
    if P.shape != (n_samples, n_samples) or abs(P.sum() - 1.0) > 1e-3 or abs(P - P.T).max() > 1e-9:
        raise ValueError(
            f"affinities must be a symmetric matrix of shape {(n_samples, n_samples)} whose values sum to 1; got shape "
            f"{P.shape} with the sum {P.sum():g}. Add its transpose to it, and divide it by its sum."
        )
    return stored(P, objective.precision)


def _near(data: Data) -> KnnGraph | None:
    """Return the nearest neighbours of the data for scores, if there are few samples."""
    if data.X.shape[0] > _MOST_SAMPLES_KEPT or data.pca is not None or data.settings.neighbors is not None:
        return None
    few = data.graph.first(_NEIGHBORS_KEPT)
    # Copies, because a view would keep the whole graph.
    return KnnGraph(np.array(host(few.indices)), np.array(host(few.distances), dtype=np.float64))


def _start(data: Data) -> Array:
    """Return the map before the first iteration."""
    n, d, init = data.X.shape[0], int(data.settings.n_components), data.settings.init
    if not isinstance(init, str):
        return initialization.checked_init(init, n, d)
    if init == "random":
        return initialization.random(n, d, data.rng)
    P = data.affinities.P
    if not data.settings.precomputed:
        if isinstance(P, PairList):
            return initialization.as_start(data.backend.components(data.X, d), data.rng)
        return initialization.pca(data.X, d, data.rng, data.workers)
    if sp.issparse(data.X):
        return initialization.diffusion(P, d, data.rng)
    return initialization.classical_scaling(data.X, d, data.rng, data.workers)


def _training(data: Data, **rules: Any) -> Training:
    """Return what new rows need to know of the data."""
    return Training(
        rows=None if data.settings.precomputed else data.X,
        metric=data.settings.metric,
        precisions=data.affinities.precisions,
        offsets=data.affinities.offsets,
        perplexity=data.sizes.perplexity,
        affinity_neighbors=data.sizes.affinity_neighbors,
        searched_neighbors=data.graph.indices.shape[1],
        given=data.settings.neighbors is not None,
        spacings=spacings(data.graph, rules["radii"]),
        **rules,
    )


def _engine(data: Data, precision: str, adaptive: bool = False) -> engines.Engine:
    own, n, d = data.settings, data.X.shape[0], int(data.settings.n_components)
    chosen = own.engine, own.engine_options, data.backend, n, d
    return engines.chosen(*chosen, precision=precision, adaptive=adaptive, masses=data.masses)


class _Radii(NamedTuple):
    """Radii of the rows in the data."""

    radii: Array  # (n,)
    among_rows: Array  # the same among the rows, if the data are a sample of larger data
    kept: Any  # how many of the density neighbours of each row count, (n,), or None for all
    dimension: Dimension
    corrections: Array | None = None  # log ratios of ``radii`` to ``among_rows``
    shift: float = 0.0  # mean difference of these to the mean corrections of the neighbours of a row


def _radii(data: Data, graph: KnnGraph, objective: Objective) -> _Radii:
    """Return the radii of the rows over the density neighbours ``graph``, and the local dimension of the data."""
    kept = group_neighbors(graph.distances) if objective.small_groups else None
    among_rows = np.asarray(host(repeated(graph.distances, kept).mean(axis=1)), dtype=np.float64)
    distinct = data.graph.first(graph.indices.shape[1]).distances  # without those that are repeated for their masses
    before_gap = kept if data.masses is None or kept is None else group_neighbors(distinct)
    dimension = local_dimension(distinct, before_gap, data.masses)
    if data.radii is None:
        return _Radii(among_rows, among_rows, kept, dimension)
    least = float(np.finfo(np.float64).tiny)
    corrections = np.log(np.maximum(data.radii, least) / np.maximum(among_rows, least))
    of_neighbors = corrections[host(data.graph.indices[:, :CORRECTING])].mean(axis=1)
    shift = weighted_mean(corrections - of_neighbors, data.masses)
    return _Radii(data.radii, among_rows, kept, dimension, corrections, shift)


def _problem(data: Data, objective: Objective, weight: float) -> tuple[Problem, About]:
    """Return the problem of DR-SNE, and what is known of its data."""
    masses, smoothing = data.masses, objective.input_smoothing
    graph = slots(data.graph, masses, data.sizes.density_neighbors)
    found = _radii(data, graph, objective)
    radii = found.radii
    objective = objective.at(automatic(radii, found.dimension.value, smoothing, masses))
    assert objective.input_exponent is not None
    assert objective.scale_exponent is not None
    exponent, power = float(objective.input_exponent), float(objective.scale_exponent)
    high = profile(radii, exponent, smoothing, masses)
    target = winsorized(high.log, objective.target_quantile, masses)
    log_scale, of_scales = None, Law()
    if objective.adapts(weight):
        log_scale = log_scales(radii, power, smoothing, masses=masses)
        mean = weighted_mean(np.log(high.radius), masses)
        of_scales = Law(power, -power * mean, float(log_scale.min()), float(log_scale.max()))
    # The values are rounded, because the last bits depend on the units of the data, but the map must not.
    round_off = rounded if objective.precision == "single" else np.asarray
    problem = problem_of(
        objective,
        data.affinities.P,
        graph.indices,
        round_off(target),
        weight,
        _engine(data, objective.precision, log_scale is not None),
        data.backend,
        log_scales=None if log_scale is None else round_off(log_scale),
        adaptation=objective.adaptation(weight),
        kept=found.kept,
        masses=masses,
    )
    low = profile(radii, objective.embedding_exponent, smoothing, masses)
    training = _training(
        data,
        radii=found.among_rows,
        corrections=found.corrections,
        correction_shift=found.shift,
        density_neighbors=graph.indices.shape[1],
        small_groups=objective.small_groups,
        added=added_length(radii, smoothing, masses),
        masses=masses,
        calibration=objective.calibration,
        target=Law.of_profile(high, exponent, smoothing.profile).within(high.log, target),
        log_scale=of_scales,
        concentration=Law.of_profile(low, objective.embedding_exponent, smoothing.profile),
        affinity_smoothing=objective.affinity_smoothing,
        distance_smoothing=objective.distance_smoothing,
        mass=problem.loss.pairs["objective"].mass,
        directed=objective.support == "directed",
    )
    return problem, About(objective, round_off(high.log), training, found.dimension)


def problem_of(
    objective: Objective,
    P: sp.csr_matrix | PairList,
    neighbors: NDArray[np.int32],
    target: Array,
    weight: float,
    engine: engines.Engine,
    backend: Any,
    *,
    log_scales: Array | None = None,
    adaptation: float = 1.0,
    kept: NDArray[np.int32] | None = None,
    masses: Array | None = None,
) -> Problem:
    """Return the problem of DR-SNE for symmetric affinities ``P``, density ``neighbors`` (n, k) and a ``target`` (n,).

    See :class:`drsne.terms.problem.Problem` and :meth:`drsne.terms.concentration.Concentration.of` for the others.
    """
    P, delta = stored(P, objective.precision), objective.affinity_smoothing
    pairs = {"objective": StoredPairs.of(P, delta, masses)}
    if objective.support == "directed":
        assert not isinstance(P, PairList)  # preparations on a device are for the default support
        scaled = P / P.sum(dtype=np.float64)
        pairs = {"objective": StoredPairs.directed(P, neighbors, delta), "all": StoredPairs.of(scaled, delta)}
    return Problem(
        Loss(pairs, (Concentration.of(objective, weight, target, neighbors, kept, masses),), log_scales),
        precision=objective.precision,
        engine=engine,
        backend=backend,
        affinity_smoothing=delta,
        distance_smoothing=objective.distance_smoothing,
        adaptation=adaptation,
        masses=masses,
    )


def _correlation_problem(data: Data, objective: Correlation, weight: float) -> tuple[Problem, About]:
    """Return the problem of den-SNE, and what is known of its data."""
    precision, log_radii = objective.precision, data.affinities.log_radii
    target = standardized(log_radii)
    compared = rounded(target) if precision == "single" else target
    term = LogRadii(weight=weight, target=compared, variance_shift=objective.variance_shift)
    pairs = {"objective": StoredPairs.of(stored(data.affinities.P, precision), 0.0)}
    engine = _engine(data, precision)
    problem = Problem(Loss(pairs, (term,)), precision=precision, engine=engine, backend=data.backend)
    spread = float(log_radii.std(ddof=1)) if target.any() else 1.0
    training = _training(
        data,
        radii=np.exp(0.5 * log_radii),
        density_neighbors=0,
        # The log radii of den-SNE are those of squared distances.
        target=Law(2.0 / spread, -float(log_radii.mean()) / spread, float(target.min()), float(target.max())),
        concentration=Law(2.0),
    )
    return problem, About(objective, log_radii, training)
