"""DenSNE, the estimator: den-SNE's objective on the same stages, engines and optimisers as DRSNE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from drsne import _parameters, memory
from drsne._base import MapEstimator, complain
from drsne._stages import Radii, prepare_radii
from drsne.optimize import Outcome, Schedule, minimize
from drsne.parallel import Workers
from drsne.progress import ProgressBar

_LEVERS = "learning_rate, density_weight"


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
        1 shows a progress bar on standard error.

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

    def fit(self, X: ArrayLike, y: Any = None) -> DenSNE:
        """Embed ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; distances of shape (n_samples, n_samples) with ``metric="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        DenSNE
            The fitted estimator.
        """
        defaults = DenSNE().get_params(deep=False)
        params = {name: getattr(self, name) for name in defaults}
        _parameters.check_densne(params, defaults)
        data, dtype = self._check_data(X)
        _parameters.check_for(params, data.shape[0])
        memory.warn_if_short(data, params)
        density = float(self.density_weight) > 0
        schedule = self._schedule(data.shape[0], density=density, share=float(self.density_fraction))
        with Workers(self.n_jobs) as workers:
            radii = prepare_radii(self, data, workers)
            with ProgressBar(schedule.n_iter, "den-SNE", visible=bool(self.verbose)) as bar:
                watchers = _parameters.callbacks(self.callbacks)
                stage = radii.stage
                outcome = minimize(
                    stage.problem, stage.start, schedule, callbacks=watchers, progress=bar, term="correlation"
                )
            self._keep(outcome, radii, dtype)
        complain(outcome, _LEVERS)
        return self

    def _keep(self, outcome: Outcome, radii: Radii, dtype: type) -> None:
        """Fitted attributes, all at once: a fit that fails leaves those of the one before."""
        stage = radii.stage
        try:
            log_radii = stage.problem.log_radii(outcome.embedding)
        except KeyboardInterrupt:  # one more, after the map is done: the map counts
            log_radii = np.full(len(outcome.embedding), np.nan)
        self._keep_shared(outcome, stage.affinities, stage.pca, dtype)
        self.input_log_radii_, self.log_radii_ = radii.log, log_radii
        self.correlation_ = outcome.density
