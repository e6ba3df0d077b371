"""DRSNE, the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.estimators import parameters, path
from drsne.estimators.base import MapEstimator
from drsne.estimators.path import DensityPath
from drsne.estimators.preparation import Prepared, prepare_drsne
from drsne.objectives.concentration import rescaled
from drsne.objectives.drsne import NEIGHBORHOODS, DRSNEProblem, Objective
from drsne.objectives.problem import State
from drsne.optimization.loop import Outcome
from drsne.optimization.schedule import Schedule
from drsne.presets import ADAPTIVE_SHARE, DENSITY_SHARE, most_exaggerated, path_schedules


class DRSNE(MapEstimator):
    """Density-regularised stochastic neighbour embedding.

    A t-SNE map in which dense regions of the data look dense and sparse regions look sparse. It minimises::

        L = sum_ij p_ij log(p_ij / q_ij) + lambda * (1/n) sum_i (log c~_i(data) - log c~_i(map))^2

    where p are the affinities of t-SNE, q_ij is proportional to 1 / (1 + d_ij^2 / (rho_i rho_j)) with the scale rho_i
    of the data around point i, c_i is the inverse mean distance of point i to its k nearest neighbours, and
    c~_i = c_i / mean(c) is its relative concentration. In the map, c_i is measured over the neighbours in the data and
    over those in the map. :func:`drsne.presets.paper` has the paper's method, with rho = 1 and the neighbours in the
    data alone.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float, default=30.0
        Effective number of neighbours of the KL term. Lowered with a warning where the data have too few rows.
    density_weight : float or "auto", default=1.0
        ``lambda``, the weight of the density term; 0 is plain t-SNE. Useful values lie between 0.3 and 10 with the
        adaptive kernel and between 1 and 50 with the fixed one, whatever the number of samples. (The values printed in
        the paper are ours divided by ``n_samples``.) "auto" follows a path of weights (:func:`drsne.density_path`) and
        keeps the map whose mean of concentration correlation and both density rank correlations is largest among
        those that ``max_trustworthiness_drop`` allows.
    density_neighbors : int, default=30
        k, neighbours that make up a point's concentration, without the point itself.
    density_exponent : float, default=1.0
        ``alpha`` in ``c = r^-alpha``, in both spaces (in the data up to twice that, for the neighbourhoods "embedding"
        and "both"); 1 in the paper. Loss and gradient grow as ``alpha^2``: compare exponents at equal
        ``lambda * alpha^2``.
    neighborhoods : {"both", "input", "embedding"}, default="both"
        Over whose neighbours the concentration of the map is measured: those of each point in the data (the
        paper's), its own nearest ones in the map, which is what a reader of the map sees, or both. The last two match
        it to a power of the data's, ``contrast_``: where neighbourhoods differ little in width, as in data of many
        dimensions, they differ up to the square of that in the map, and stand out from chance (docs/theory.md,
        section 8).
    kernel : {"auto", "adaptive", "fixed"}, default="auto"
        The kernel of the map's affinities. "fixed" is that of t-SNE and of the paper: one width for all points.
        "adaptive" gives every point the scale that its neighbourhood has in the data (``scales_``), so that sparse
        groups are drawn larger and stay whole. "auto" is adaptive if the density term takes part, and fixed at
        ``density_weight=0``, which is plain t-SNE; between 0 and 0.1 it adapts in part.
    max_trustworthiness_drop : float, default=0.01
        With ``density_weight="auto"``: how much trustworthiness, and how much continuity, may be lost against
        ``lambda = 0``.
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
    engine : {"auto", "exact", "fft", "tree", "coarse"}, default="auto"
        How the repulsion is summed: over all pairs, on a mesh (1-D and 2-D), or over a tree (up to 3-D). "auto" is
        the fastest for the number of samples and dimensions.
    engine_options : dict, default=None
        Options of the engine: ``accuracy`` ("normal" or "high") of "fft", ``theta`` of "tree" and "coarse".
    max_iter : int, default=1000
        Iterations. The density term takes part in the last 10 % of them, with the fixed kernel in the last half.
    n_iter_exaggeration : int, default=250
        Iterations with early exaggeration; at most half of those without the density term. With the adaptive kernel
        the exaggeration is released gradually in the last 70 % of them, while the scales of the kernel grow. With the
        fixed kernel it ends at once. With 0 there is no exaggeration, and an adaptive kernel has its full scales from
        the first iteration.
    early_exaggeration : float, default=12.0
        Multiplies the attractive forces during early exaggeration.
    learning_rate : float or "auto", default="auto"
        Of the t-SNE phases, as in scikit-learn: "auto" is ``max(n_samples / exaggeration / 4, 50)``.
    objective : Objective, default=None
        The objective in detail; covers ``density_exponent``, ``neighborhoods`` and ``kernel``, which must then be left
        at their defaults.
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
        1 shows a progress bar on standard error; 2 also logs what each step does and how long it takes, through
        :mod:`logging` under the name "drsne".

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The map.
    affinities_ : csr_matrix of shape (n_samples, n_samples)
        Symmetric affinities ``p_ij``, summing to one; only with ``keep_affinities``.
    precisions_ : ndarray of shape (n_samples,)
        ``beta_i`` in ``p_j|i ~ exp(-beta_i d_ij^2)``.
    input_concentration_, concentration_ : ndarray of shape (n_samples,)
        ``log c~_i`` in the data and in the map, in one unit: 0 is average, log 2 twice as concentrated. The map's is
        over the neighbours in the data, or in the map for ``neighborhoods="embedding"``.
    kl_divergence_, concentration_loss_ : float
        The two terms at the map; the loss is ``kl_divergence_ + density_weight_ * concentration_loss_``.
    contrast_ : float
        The power of the data's concentration that the map's is matched to: 1 for ``neighborhoods="input"`` with the
        fixed kernel.
    scales_ : ndarray of shape (n_samples,)
        ``rho_i``, the scale of the kernel at every point, with a geometric mean near 1; all 1 for the fixed kernel.
    density_weight_ : float
        ``lambda`` of the map.
    path_ : DensityPath or None
        All maps of ``density_weight="auto"``, with their scores.
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

    _NAME = "DR-SNE"
    _TERM = "concentration"
    _LOWER = "learning_rate, density_weight, density_exponent"

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        density_weight: float | str = 1.0,
        density_neighbors: int = 30,
        density_exponent: float = 1.0,
        neighborhoods: str = "both",
        kernel: str = "auto",
        max_trustworthiness_drop: float = 0.01,
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
        self.kernel = kernel
        self.max_trustworthiness_drop = max_trustworthiness_drop
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

    @staticmethod
    def _defaults() -> dict[str, Any]:
        return dict(DRSNE().get_params(deep=False))

    def _check_parameters(self, given: dict[str, Any], defaults: dict[str, Any]) -> None:
        parameters.check(given, defaults)

    def _fit(self, X: Any, dtype: type) -> None:
        if isinstance(self.density_weight, str):
            self._fit_path(X, dtype)
        else:
            self._fit_one(X, dtype)

    def _fit_one(self, X: Any, dtype: type) -> None:
        """Fit the map at one density weight."""
        weight = float(self.density_weight)
        objective = self._objective(weight)
        adaptive = objective.adapts(weight)
        share = ADAPTIVE_SHARE if adaptive else DENSITY_SHARE
        schedule = self._schedule(X.shape[0], density=weight > 0, share=share, adaptive=adaptive)
        with Workers(self.n_jobs) as workers:
            prepared = prepare_drsne(self._settings(), X, objective, weight, workers)
            outcome, state = self._minimize(prepared, schedule)
            self._keep(outcome, prepared, state, weight, dtype, objective.adaptation(weight))
        self.path_: DensityPath | None = None
        self._report_early_end(outcome)

    def _fit_path(self, X: Any, dtype: type) -> None:
        """Fit maps along a path of weights, and keep the best that meets the constraint."""
        with Workers(self.n_jobs) as workers:
            found, followed, prepared = self._follow(X, dtype, path.WEIGHTS, workers)
            chosen = path.automatic(found, self.max_trustworthiness_drop)
            weight = float(found.weights[chosen])
            adaptation = path.adaptation(prepared.problem.objective, weight)
            self._keep(followed.outcomes[chosen], prepared, followed.state, weight, dtype, adaptation)
            self.path_ = found
        report_early_end(followed, found, f"embedding_ is the map at density_weight={weight:g}")

    def _follow(
        self, X: Any, dtype: type, weights: Sequence[float], workers: Workers
    ) -> tuple[DensityPath, path.Followed, Prepared[DRSNEProblem]]:
        """Return the maps at lambda = 0 and at the weights, with their scores."""
        if self._precomputed and sp.issparse(X):
            raise ValueError(
                "A path of density weights needs all distances to score its maps; X is a sparse graph with "
                "metric='precomputed'. Pass the data or a full distance matrix, or a number as density_weight."
            )
        path.check_scorable(X, self.metric)
        objective = self._objective(1.0)
        schedules = path_schedules(
            X.shape[0],
            max_iter=self.max_iter,
            adaptive=objective.adapts(1.0),
            n_iter_exaggeration=self.n_iter_exaggeration,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=self.learning_rate,
        )
        density = schedules.first is not None
        share = ADAPTIVE_SHARE if density else DENSITY_SHARE
        self._warn_if_lowered(most_exaggerated(schedules.plain.n_iter, density=density, share=share))
        prepared = prepare_drsne(self._settings(), X, objective, 1.0, workers)
        positive = [w for w in weights if w > 0]
        n_iter = schedules.n_iter(len(positive), len(path.own_fits(objective, positive)))
        with self._progress(n_iter) as bar:
            watchers = parameters.callbacks(self.callbacks)
            followed = path.follow(
                prepared.problem, prepared.start, weights, schedules, callbacks=watchers, progress=bar
            )
        if followed.outcomes[0].stopped_by == "overflow":
            self._report_early_end(followed.outcomes[0], "no map of the path is finished")
        found = path.scored(followed.outcomes, weights, X, workers, metric=self.metric, near=prepared.near, dtype=dtype)
        return found, followed, prepared

    def _objective(self, weight: float) -> Objective:
        if self.objective is not None:
            return self.objective
        exponent, weights = float(self.density_exponent), NEIGHBORHOODS[self.neighborhoods]
        objective = Objective(
            input_weight=weights.input,
            embedding_weight=weights.embedding,
            input_exponent="auto",
            embedding_exponent=exponent,
            kernel=self.kernel,
        )
        # The neighbours in the data with the fixed kernel are the paper's, which keeps the ratios of the data.
        plain = not weights.contrasted and not objective.adapts(weight)
        return replace(objective, input_exponent=exponent) if plain else objective

    def _keep(
        self,
        outcome: Outcome,
        prepared: Prepared[DRSNEProblem],
        state: State,
        weight: float,
        dtype: type,
        adaptation: float,
    ) -> None:
        """Set the fitted attributes all at once, so that a fit that fails leaves those of the one before."""
        problem = prepared.problem
        try:
            concentration = problem.concentration(outcome.embedding, state)
        except KeyboardInterrupt:  # one more, after the map is complete: the map is kept
            concentration = np.full(len(outcome.embedding), np.nan)
        self._keep_shared(outcome, prepared, dtype, problem.adaptive)
        self.density_weight_ = weight
        self.contrast_ = float(problem.objective.input_exponent) / problem.objective.embedding_exponent
        self.input_concentration_ = rescaled(prepared.profile, 1.0 / self.contrast_)
        self.scales_ = problem.scales_at(adaptation)
        self.concentration_ = concentration
        self.concentration_loss_ = outcome.density


def report_early_end(followed: path.Followed, found: DensityPath, kept: str) -> None:
    """Warn if a path of weights ended early; ``kept`` says which maps there are."""
    if followed.stopped_by == "interrupt":
        checks.warn(f"Interrupted after {followed.n_iter} iterations of a path of weights; {kept}.")
    elif followed.stopped_by == "overflow":
        checks.warn(
            f"The gradient was no longer finite after {followed.n_iter} iterations of a path of weights; {kept}. Lower "
            "the larger weights."
        )
    elif np.isnan(found.baseline):
        checks.warn(f"Interrupted while the maps of a path were scored, so that they have no scores; {kept}.")
