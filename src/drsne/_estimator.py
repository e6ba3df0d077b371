"""The estimator: check parameters, call the stages, keep what they return."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from drsne import _checks, _parameters, engines, initialization, memory
from drsne._rounding import rounded
from drsne.affinities import Affinities, affinities
from drsne.concentration import profile
from drsne.graph import KnnGraph, available, check_precomputed, nearest
from drsne.objective import Objective, Problem
from drsne.optimize import Outcome, Schedule, minimize
from drsne.parallel import Workers
from drsne.presets import default_schedule, most_exaggerated
from drsne.progress import ProgressBar
from drsne.ready import given
from drsne.reduction import fitted_pca, scores

Array = NDArray[np.float64]
_LARGEST_SHARE = 0.75  # of a point's neighbours, for the perplexity


class _Sizes(NamedTuple):
    """Sizes after they were fitted to the data."""

    perplexity: float
    affinity_neighbors: int
    density_neighbors: int


class DRSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Density-regularised stochastic neighbour embedding.

    A t-SNE map whose points are also as crowded, relative to each other, as they are in the data: minimises::

        L = sum_ij p_ij log(p_ij / q_ij) + lambda * (1/n) sum_i (log c~_i(data) - log c~_i(map))^2

    where p and q are the affinities of t-SNE, c_i is the inverse mean distance of point i to its k nearest
    neighbours *in the data*, measured in the data and in the map, and c~_i = c_i / mean(c) is its relative
    concentration.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float, default=30.0
        Effective number of neighbours of the KL term. Lowered with a warning where the data have too few rows.
    density_weight : float, default=2.0
        ``lambda``, the weight of the density term; 0 is plain t-SNE. Useful values lie between 1 and 50,
        whatever the number of samples. (The values printed in the paper are ours divided by ``n_samples``.)
    density_neighbors : int, default=30
        k, neighbours that make up a point's concentration, without the point itself.
    density_exponent : float, default=1.0
        ``alpha`` in ``c = r^-alpha``, in both spaces; 1 in the paper. Loss and gradient grow as
        ``alpha^2``: compare exponents at equal ``lambda * alpha^2``.
    neighborhoods : {"input"}, default="input"
        Whose neighbours the concentration of the map is measured over: those in the data.
    metric : str or callable, default="euclidean"
        Any metric of scikit-learn's neighbours, or "precomputed" for a distance matrix or a sparse neighbour
        graph of distances.
    init : {"pca", "random"} or array of shape (n_samples, n_components), default="pca"
        Where the map starts. An array is taken as it is, so that a fit can go on from a map. For
        ``metric="precomputed"``, "pca" is classical scaling (matrix) or a diffusion map (graph).
    neighbors : (indices, distances), sparse matrix or None, default=None
        Ready neighbours of every row, instead of a search: two arrays of shape (n_samples, m), columns in any
        order, the row itself listed or not, -1 for none; or a sparse graph of distances as scikit-learn makes.
        ``metric`` is then not used.
    pca_components : int, "auto" or None, default=None
        Principal components that replace ``X`` in the search for neighbours and in the start; "auto" is 50 for data
        with more features, and nothing for others. None takes ``X`` as it is.
    engine : {"auto", "exact", "fft", "tree"}, default="auto"
        How the repulsion is summed: over all pairs, on a mesh (1-D and 2-D), or over a tree (up to 3-D). "auto" is
        the fastest for the number of samples and dimensions.
    engine_options : dict, default=None
        Options of the engine: ``accuracy`` ("normal" or "high") of "fft", ``theta`` of "tree".
    max_iter : int, default=1000
        Iterations: t-SNE first, the density term in the last half.
    n_iter_exaggeration : int, default=250
        Iterations with early exaggeration; at most half of those without the density term.
    early_exaggeration : float, default=12.0
        Factor on the attraction in those.
    learning_rate : float or "auto", default="auto"
        Of the t-SNE phases, as in scikit-learn: "auto" is ``max(n_samples / exaggeration / 4, 50)``.
    objective : Objective, default=None
        The objective in detail; covers ``density_exponent``, which must then be left at its default.
    schedule : Schedule, default=None
        The optimisation in detail; covers ``max_iter``, ``n_iter_exaggeration``, ``early_exaggeration`` and
        ``learning_rate``, which must then be left at their defaults.
    keep_affinities : bool, default=True
        Whether to keep ``affinities_``, by far the largest attribute.
    callbacks : callable or list of callables, default=None
        Called after each iteration as ``callback(iteration, embedding, losses)`` with a copy of the map and a
        dict of ``"kl"`` and ``"concentration"``; a true answer ends the run.
    n_jobs : int, default=None
        Threads, as in joblib: None is 1, -1 every core. The map does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start. The same seed gives the same map.
    verbose : int, default=0
        1 shows a progress bar on standard error.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The map.
    affinities_ : csr_matrix of shape (n_samples, n_samples)
        Symmetric affinities ``p_ij``, summing to one; only with ``keep_affinities``.
    precisions_ : ndarray of shape (n_samples,)
        ``beta_i`` in ``p_j|i ~ exp(-beta_i d_ij^2)``.
    input_concentration_, concentration_ : ndarray of shape (n_samples,)
        ``log c~_i`` in the data and in the map: 0 is average, log 2 twice as crowded.
    kl_divergence_, concentration_loss_ : float
        The two terms at the map; the loss is ``kl_divergence_ + density_weight * concentration_loss_``.
    n_iter_ : int
        Iterations done.
    history_ : dict of ndarray
        ``iteration``, ``kl``, ``concentration`` and ``gradient_norm`` (of the loss being descended, early
        exaggeration included), every tenth iteration, from 20,000 samples on every fiftieth.
    engine_ : str
        Name of the engine that was used.
    pca_ : sklearn.decomposition.PCA or None
        What ``pca_components`` fitted.
    n_features_in_ : int
        Features seen during fit.
    feature_names_in_ : ndarray of str
        Their names, where ``X`` has names.

    See Also
    --------
    drsne.presets.paper : Settings that reproduce the paper.
    drsne.metrics.evaluate : Scores of a map.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import DRSNE
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 0.1, (50, 5)), rng.normal(3, 1.0, (50, 5))])
    >>> model = DRSNE(perplexity=10, density_neighbors=10, random_state=0)
    >>> model.fit_transform(X).shape
    (100, 2)
    >>> bool(np.corrcoef(model.input_concentration_, model.concentration_)[0, 1] > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        density_weight: float = 2.0,
        density_neighbors: int = 30,
        density_exponent: float = 1.0,
        neighborhoods: str = "input",
        metric: Any = "euclidean",
        init: Any = "pca",
        neighbors: Any = None,
        pca_components: int | str | None = None,
        engine: str = "auto",
        engine_options: dict[str, Any] | None = None,
        max_iter: int = 1000,
        n_iter_exaggeration: int = 250,
        early_exaggeration: float = 12.0,
        learning_rate: float | str = "auto",
        objective: Objective | None = None,
        schedule: Schedule | None = None,
        keep_affinities: bool = True,
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.density_weight = density_weight
        self.density_neighbors = density_neighbors
        self.density_exponent = density_exponent
        self.neighborhoods = neighborhoods
        self.metric = metric
        self.init = init
        self.neighbors = neighbors
        self.pca_components = pca_components
        self.engine = engine
        self.engine_options = engine_options
        self.max_iter = max_iter
        self.n_iter_exaggeration = n_iter_exaggeration
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.objective = objective
        self.schedule = schedule
        self.keep_affinities = keep_affinities
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None) -> DRSNE:
        """Embed ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; distances of shape (n_samples, n_samples) with ``metric="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        DRSNE
            The fitted estimator.
        """
        defaults = DRSNE().get_params(deep=False)
        params = {name: getattr(self, name) for name in defaults}
        _parameters.check(params, defaults)
        data, dtype = self._check_data(X)
        _parameters.check_for(params, data.shape[0])
        memory.warn_if_short(data, params)
        objective = self._objective()
        schedule = self._schedule(data.shape[0])
        rng = check_random_state(self.random_state)
        with Workers(self.n_jobs) as workers:
            pca = fitted_pca(data, self.pca_components) if self.pca_components is not None else None
            data = data if pca is None else scores(pca, data)
            problem, found, start = self._prepare(data, objective, rng, workers)
            with ProgressBar(schedule.n_iter, visible=bool(self.verbose)) as bar:
                watchers = _parameters.callbacks(self.callbacks)
                outcome = minimize(problem, start, schedule, callbacks=watchers, progress=bar)
            self._keep(outcome, problem, found, dtype)
        self.pca_ = pca
        self._complain(outcome)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Any:
        """Embed ``X`` and return the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; distances of shape (n_samples, n_samples) with ``metric="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            ``embedding_``.
        """
        return self.fit(X).embedding_

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_data(self, X: Any) -> tuple[Any, type]:
        """``X`` as float64, and the type the map is returned in."""
        _checks.refuse_text("X", X)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", ensure_min_samples=3)
        X = check_precomputed(X) if self._precomputed else X
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X):
            return sp.csr_matrix(X, dtype=np.float64, copy=False), dtype
        return np.require(X, dtype=np.float64, requirements=["C", "A", "W"]), dtype

    def _objective(self) -> Objective:
        if self.objective is not None:
            return self.objective
        exponent = float(self.density_exponent)
        return Objective(input_exponent=exponent, embedding_exponent=exponent)

    def _schedule(self, n_samples: int) -> Schedule:
        if self.schedule is not None:
            return self.schedule
        density, asked = self.density_weight > 0, self.n_iter_exaggeration
        most = most_exaggerated(self.max_iter, density=density)
        if asked > most and asked != DRSNE().n_iter_exaggeration:
            _checks.warn(
                f"Lowered n_iter_exaggeration from {asked} to {most}, half of the iterations without the density term. "
                "Raise max_iter, or pass a schedule."
            )
        return default_schedule(
            n_samples,
            max_iter=self.max_iter,
            n_iter_exaggeration=self.n_iter_exaggeration,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=self.learning_rate,
            density=density,
        )

    def _prepare(
        self, X: Any, objective: Objective, rng: np.random.RandomState, workers: Workers
    ) -> tuple[Problem, Affinities, Array]:
        """Neighbours, affinities and start; the neighbours' distances are let go."""
        ready = None if self.neighbors is None else given(self.neighbors, X.shape[0], workers)
        sizes = self._sizes(X, objective, ready)
        wanted = max(sizes.affinity_neighbors, sizes.density_neighbors)
        graph = nearest(X, wanted, metric=self.metric, workers=workers) if ready is None else ready.first(wanted)
        near = graph.first(sizes.affinity_neighbors)
        dtype = np.float32 if objective.precision == "single" else np.float64
        found = affinities(near, sizes.perplexity, objective.calibration, workers, dtype)
        start = self._start(X, found.P, rng, workers)
        return self._problem(graph.first(sizes.density_neighbors), objective, found.P, workers), found, start

    def _sizes(self, X: Any, objective: Objective, ready: KnnGraph | None) -> _Sizes:
        """Perplexity and k as asked, or lowered to what the data allow, with one warning.

        Near the number of neighbours all affinities are alike and a map shows nothing; a third of it is a good value.
        """
        most = X.shape[0] - 1 if ready is None else ready.indices.shape[1]
        if self._precomputed and sp.issparse(X):
            most = min(most, available(X))
            if most < 1:
                raise ValueError(
                    "X must list at least one neighbour for every sample with metric='precomputed'; some have none. "
                    "Build the graph with more neighbours."
                )
        perplexity, k = float(self.perplexity), int(self.density_neighbors)
        lowered = []
        if perplexity > max(1.0, _LARGEST_SHARE * most):
            perplexity = max(1.0, most / 3.0)
            lowered.append(f"perplexity from {self.perplexity:g} to {perplexity:.4g}")
        if k > most:
            k = most
            lowered.append(f"density_neighbors from {self.density_neighbors} to {k}")
        if lowered:
            _checks.warn(f"Lowered {' and '.join(lowered)}: {X.shape[0]} samples with {most} neighbours each.")
        return _Sizes(perplexity, min(most, objective.calibration.n_neighbors(perplexity, X.shape[0])), k)

    def _problem(self, graph: KnnGraph, objective: Objective, P: sp.csr_matrix, workers: Workers) -> Problem:
        target = profile(graph.distances.mean(axis=1), objective.input_exponent, objective.input_smoothing).log
        n, d = len(target), int(self.n_components)
        name = engines.resolve(self.engine, n, d)
        return Problem(
            objective,
            P=P,
            neighbors=np.ascontiguousarray(graph.indices),
            # Rounded: what the data's units leave in the last bits must not reach the map.
            target=rounded(target) if objective.precision == "single" else target,
            weight=float(self.density_weight),
            engine=engines.build(
                name,
                workers,
                precision=objective.precision,
                options=self.engine_options,
            ),
            workers=workers,
        )

    def _start(self, X: Any, P: sp.csr_matrix, rng: np.random.RandomState, workers: Workers) -> Array:
        n, d = X.shape[0], int(self.n_components)
        if not isinstance(self.init, str):
            return initialization.given(self.init, n, d)
        if self.init == "random":
            return initialization.random(n, d, rng)
        if not self._precomputed:
            return initialization.pca(X, d, rng, workers)
        if sp.issparse(X):
            return initialization.diffusion(P, d, rng)
        return initialization.classical_scaling(X, d, rng, workers)

    def _keep(self, outcome: Outcome, problem: Problem, found: Affinities, dtype: type) -> None:
        """Fitted attributes, all at once: a fit that fails leaves those of the one before."""
        try:
            concentration = problem.concentration(outcome.embedding)
        except KeyboardInterrupt:  # one more, after the map is done: the map counts
            concentration = np.full(len(outcome.embedding), np.nan)
        self.embedding_: NDArray[Any] = outcome.embedding.astype(dtype, copy=False)
        self.precisions_, self.engine_ = found.precisions, engines.resolve(self.engine, *outcome.embedding.shape)
        self.__dict__.pop("affinities_", None)
        if self.keep_affinities:
            self.affinities_ = found.P
        self.input_concentration_ = problem.target
        self.concentration_ = concentration
        self.kl_divergence_ = outcome.kl
        self.concentration_loss_ = outcome.concentration
        self.n_iter_ = outcome.n_iter
        self.history_ = outcome.history

    def _complain(self, outcome: Outcome) -> None:
        if outcome.stopped_by == "interrupt":
            _checks.warn(
                f"Interrupted after {outcome.n_iter} iterations; embedding_ is the last map. Pass it as init to go on."
            )
        if outcome.stopped_by == "overflow":
            raise FloatingPointError(
                f"The gradient is no longer finite after {outcome.n_iter} iterations; embedding_ is the last finite "
                "map. Lower learning_rate, density_weight, density_exponent or the scale of init."
            )


def memory_estimate(n_samples: int, n_features: int, **params: Any) -> int:
    """Peak memory of ``DRSNE(**params).fit(X)``, in bytes.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of dense data.
    **params
        Parameters of :class:`drsne.DRSNE`; those not given have their defaults.

    Returns
    -------
    int
        Bytes, the interpreter and its libraries included; an estimate, within about a third.

    Examples
    --------
    >>> import drsne
    >>> drsne.memory_estimate(1_000_000, 50) < 8e9
    True
    """
    n = _checks.integer("n_samples", n_samples, at_least=1)
    d = _checks.integer("n_features", n_features, at_least=1)
    given = DRSNE(**params).get_params(deep=False)
    _parameters.check(given, DRSNE().get_params(deep=False))
    return memory.estimate(n, d, given)
