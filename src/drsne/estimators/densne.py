"""The estimator DenSNE: the objective of den-SNE, with the same preparation, engines and optimisers as DRSNE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne.estimators.base import MapEstimator
from drsne.estimators.constraints import shared
from drsne.optimize.loop import Outcome
from drsne.optimize.schedule import Schedule
from drsne.terms.log_radii import Correlation
from drsne.terms.problem import Problem


@shared
class DenSNE(MapEstimator):
    """den-SNE (Narayan, Berger and Cho, 2021): t-SNE with a correlation of local radii.

    It minimises::

        L = sum_ij p_ij log(p_ij / q_ij) - 2 lambda rho
        rho = cov(R, r) / sqrt(var(r) + variance_shift)

    Here p and q are the affinities of t-SNE, and r_i is the logarithm of the local radius of point i in the map. The
    radius is the weighted mean of the squared distances to the points that share a stored pair of p with point i, with
    the weights 1 / (1 + d_ij^2). R_i is the corresponding logarithm for the data, with the weights p_ij, and is
    standardised. ``lambda`` is that of den-SNE's own program. The objective in its paper has the factor lambda, but the
    program follows the gradient with 2 lambda (docs/theory.md, section 10).

    Parameters
    ----------
    {n_components}
    perplexity : float, default=30.0
        Effective number of neighbours in the KL term and in the radii. If the data have too few samples for this
        perplexity, it is lowered, and a warning is issued.
    density_weight : float, default=0.1
        ``lambda`` of den-SNE's program (``dens_lambda``). 0 gives plain t-SNE. Useful values are between 0.05 and 1.
    density_fraction : float, default=0.5
        Fraction of the iterations, at the end of the run, that use the density term (``dens_frac``).
    variance_shift : float, default=0.1
        Constant that is added to the variance of the log radii in the map (``var_shift``). Because of this constant,
        the objective improves if nearly equal radii in the map are spread out.
    {metric, init, neighbors, pca_components, engine, engine_options}
    max_iter : int, default=1000
        Number of iterations. The density term is used in the last ``density_fraction`` of them.
    n_iter_exaggeration : int, default=250
        Number of iterations with early exaggeration. If it exceeds half of the number of iterations without the density
        term, it is lowered to that half.
    {early_exaggeration, learning_rate}
    schedule : Schedule, default=None
        Detailed settings of the optimisation. They replace ``max_iter``, ``n_iter_exaggeration``,
        ``early_exaggeration``, ``learning_rate`` and ``density_fraction``, which must then be left at their defaults.
    precision : {"single", "double"}, default="single"
        Floating-point precision of the terms of each pair of points. Sums over many pairs always have double precision.
    {keep_affinities}
    callbacks : callable or list of callables, default=None
        Called after each iteration as ``callback(iteration, embedding, losses)``, with a copy of the map and a dict of
        the losses ``"kl"`` and ``"correlation"``. If a callback returns a true value, the optimisation stops.
    {n_jobs, backend, device, random_state, verbose}

    Attributes
    ----------
    {embedding_, affinities_, precisions_}
    input_log_radii_, log_radii_ : ndarray of shape (n_samples,)
        Logarithms of the local radii (weighted means of *squared* distances) in the data, in the units of ``X``, and in
        the map.
    kl_divergence_, correlation_ : float
        The two terms of the loss at the final map. The correlation ``rho`` includes the variance shift. The loss is
        ``kl_divergence_ - 2 * density_weight * correlation_``.
    {n_iter_, stopped_by_}
    history_ : dict of ndarray
        Losses during the optimisation: ``iteration``, ``kl``, ``correlation`` and ``gradient_norm``, the norm of the
        gradient, including early exaggeration. Every 50th iteration is recorded, or every 100th if there are at least
        20,000 samples.
    {engine_, knn_recall_, pca_, n_features_in_, feature_names_in_}

    See Also
    --------
    drsne.DRSNE : Keeps ratios of local radii, point by point.

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

    _KIND = "DenSNE"
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
        backend: str = "numba",
        device: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def new_log_radii(self, X: ArrayLike) -> Any:
        """Return the log local radii of new rows in the data, as in ``input_log_radii_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The new rows, as in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The log radius of every row. For a Dask array or data frame, a lazy array or series.
        """
        return self._concentration(X, "new_log_radii")

    def _weight(self, *, update: bool = False) -> float:
        return float(self.density_weight)

    def _objective(self, weight: float) -> Correlation:
        return Correlation(variance_shift=float(self.variance_shift), precision=self.precision)

    def _density_share(self, adaptive: bool) -> float:
        return float(self.density_fraction)

    def _keep_density(self, outcome: Outcome, problem: Problem, of_points: NDArray[np.float64], weight: float) -> None:
        self.input_log_radii_, self.log_radii_ = problem.about.profile, of_points
        self.correlation_ = outcome.losses["correlation"]
