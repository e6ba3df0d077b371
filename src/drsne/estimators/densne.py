"""DenSNE, the estimator: the objective of den-SNE with the same preparation, engines and optimisers as DRSNE."""

from __future__ import annotations

from typing import Any

import numpy as np

from drsne.backends.numba.threads import Workers
from drsne.estimators import parameters
from drsne.estimators.base import MapEstimator
from drsne.estimators.preparation import Prepared, prepare_densne
from drsne.objectives.densne import DenSNEProblem
from drsne.objectives.problem import State
from drsne.optimization.loop import Outcome
from drsne.optimization.schedule import Schedule


class DenSNE(MapEstimator):
    """den-SNE (Narayan, Berger and Cho, 2021): t-SNE with a correlation of local radii.

    Minimises::

        L = sum_ij p_ij log(p_ij / q_ij) - 2 lambda rho
        rho = cov(R, r) / sqrt(var(r) + variance_shift)

    where p and q are the affinities of t-SNE, r_i is the logarithm of point i's mean squared distance in the map over
    the stored pairs of p, weighted by 1 / (1 + d_ij^2), and R_i the same in the data, weighted by p_ij and
    standardised. ``lambda`` is that of den-SNE's own program, whose printed objective has lambda where the one it
    descends has 2 lambda (docs/theory.md, section 10).

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float, default=30.0
        Effective number of neighbours, of the KL term and of the radii. Lowered with a warning where the data have
        too few rows.
    density_weight : float, default=0.1
        ``lambda`` as in den-SNE's program (``dens_lambda``); 0 is plain t-SNE. Useful values lie between 0.05 and 1.
    density_fraction : float, default=0.5
        Share of the iterations, the last ones, with the density term (``dens_frac``).
    variance_shift : float, default=0.1
        Added to the variance of the map's log radii (``var_shift``): maps whose radii hardly differ gain from
        spreading them.
    metric : str or callable, default="euclidean"
        Any metric of scikit-learn's neighbours, or "precomputed" for a distance matrix or a sparse neighbour
        graph of distances.
    init : {"pca", "random"} or array of shape (n_samples, n_components), default="pca"
        Where the map starts. An array is taken as it is, so that a fit can go on from a map. For
        ``metric="precomputed"``, "pca" is classical scaling (matrix) or a diffusion map (graph).
    neighbors : (indices, distances), sparse matrix or None, default=None
        Ready neighbours of every row, instead of a search, as in :class:`drsne.DRSNE`.
    pca_components : int, "auto" or None, default=None
        Principal components that replace ``X`` in the search for neighbours and in the start; "auto" is 50 for data
        with more features, and nothing for others. None takes ``X`` as it is.
    engine : {"auto", "exact", "fft", "tree", "coarse"}, default="auto"
        How the repulsion is summed: over all pairs, on a mesh (1-D and 2-D), or over a tree (up to 3-D).
    engine_options : dict, default=None
        Options of the engine: ``accuracy`` ("normal" or "high") of "fft", ``theta`` of "tree" and "coarse".
    max_iter : int, default=1000
        Iterations: t-SNE first, then with the density term.
    n_iter_exaggeration : int, default=250
        Iterations with early exaggeration; at most half of those without the density term.
    early_exaggeration : float, default=12.0
        Factor on the attraction in those.
    learning_rate : float or "auto", default="auto"
        Of the t-SNE phases, as in scikit-learn: "auto" is ``max(n_samples / exaggeration / 4, 50)``.
    schedule : Schedule, default=None
        The optimisation in detail; covers ``max_iter``, ``n_iter_exaggeration``, ``early_exaggeration``,
        ``learning_rate`` and ``density_fraction``, which must then be left at their defaults.
    precision : {"single", "double"}, default="single"
        Arithmetic of a pair; sums over many are double.
    keep_affinities : bool, default=True
        Whether to keep ``affinities_``, by far the largest attribute.
    callbacks : callable or list of callables, default=None
        Called after each iteration as ``callback(iteration, embedding, losses)`` with a copy of the map and a
        dict of ``"kl"`` and ``"correlation"``; a true answer ends the run.
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
    input_log_radii_, log_radii_ : ndarray of shape (n_samples,)
        Logarithms of the local radii (weighted mean *squared* distances) in the data, in the units of ``X``, and in the
        map.
    kl_divergence_, correlation_ : float
        The two terms at the map, the second with the variance shift (``rho``); the loss is
        ``kl_divergence_ - 2 * density_weight * correlation_``.
    n_iter_ : int
        Iterations done.
    history_ : dict of ndarray
        ``iteration``, ``kl``, ``correlation`` and ``gradient_norm`` (of the loss being descended, early
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
    drsne.DRSNE : Keeps ratios of neighbourhood scales, point by point.
    drsne.presets.densne : Settings of den-SNE's own program.

    References
    ----------
    A. Narayan, B. Berger, H. Cho (2021). Assessing single-cell transcriptomic variability through density-preserving
    data visualization. Nature Biotechnology 39, 765-774.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import DenSNE
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 0.1, (50, 5)), rng.normal(3, 1.0, (50, 5))])
    >>> model = DenSNE(perplexity=10, random_state=0)
    >>> model.fit_transform(X).shape
    (100, 2)
    >>> bool(np.corrcoef(model.input_log_radii_, model.log_radii_)[0, 1] > 0.8)
    True
    """

    _NAME = "den-SNE"
    _TERM = "correlation"
    _LOWER = "learning_rate, density_weight"

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        density_weight: float = 0.1,
        density_fraction: float = 0.5,
        variance_shift: float = 0.1,
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
        schedule: Schedule | None = None,
        precision: str = "single",
        keep_affinities: bool = True,
        callbacks: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.density_weight = density_weight
        self.density_fraction = density_fraction
        self.variance_shift = variance_shift
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
        self.schedule = schedule
        self.precision = precision
        self.keep_affinities = keep_affinities
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @staticmethod
    def _defaults() -> dict[str, Any]:
        return dict(DenSNE().get_params(deep=False))

    def _check_parameters(self, given: dict[str, Any], defaults: dict[str, Any]) -> None:
        parameters.check_densne(given, defaults)

    def _fit(self, X: Any, dtype: type) -> None:
        weight = float(self.density_weight)
        schedule = self._schedule(X.shape[0], density=weight > 0, share=float(self.density_fraction))
        with Workers(self.n_jobs) as workers:
            prepared = prepare_densne(
                self._settings(),
                X,
                weight=weight,
                variance_shift=float(self.variance_shift),
                precision=self.precision,
                workers=workers,
            )
            outcome, state = self._minimize(prepared, schedule)
            self._keep(outcome, prepared, state, dtype)
        self._report_early_end(outcome)

    def _keep(self, outcome: Outcome, prepared: Prepared[DenSNEProblem], state: State, dtype: type) -> None:
        """Set the fitted attributes all at once, so that a fit that fails leaves those of the one before."""
        try:
            log_radii = prepared.problem.log_radii(outcome.embedding, state)
        except KeyboardInterrupt:  # one more, after the map is complete: the map is kept
            log_radii = np.full(len(outcome.embedding), np.nan)
        self._keep_shared(outcome, prepared, dtype)
        self.input_log_radii_, self.log_radii_ = prepared.profile, log_radii
        self.correlation_ = outcome.density
