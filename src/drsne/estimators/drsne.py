"""The estimator DRSNE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.estimators import constraints
from drsne.estimators.base import Checked, MapEstimator
from drsne.estimators.constraints import shared
from drsne.optimize.defaults import ADAPTIVE_SHARE, DENSITY_SHARE, most_exaggerated, path_schedules
from drsne.optimize.loop import Outcome
from drsne.optimize.schedule import Schedule
from drsne.preparation import prepared
from drsne.regions import Arranged
from drsne.terms.arrangement import Arrangement
from drsne.terms.objective import FULL_ADAPTATION, NEIGHBORHOODS, PROFILE_WEIGHT, Objective
from drsne.terms.problem import Problem
from drsne.terms.profile import rescaled

if TYPE_CHECKING:
    from drsne.estimators.path import DensityPath, Followed

ARRANGEMENT_WEIGHT = 1.0  # automatic weight of the arrangement term
_LARGEST_WEIGHT = 1e6  # largest weight of a row, and the inverse of the smallest one


@shared
class DRSNE(MapEstimator):
    """Density-regularised stochastic neighbour embedding.

    DR-SNE makes t-SNE maps in which dense regions of the data look dense and sparse regions look sparse. It minimises::

        L = sum_ij p_ij log(p_ij / q_ij) + lambda * (1/n) sum_i (log c~_i(data) - log c~_i(map))^2

    Here p are the affinities of t-SNE, and q_ij is proportional to 1 / (1 + d_ij^2 / (rho_i rho_j)), where rho_i is the
    scale of the kernel at point i. The concentration c_i of point i is the inverse of its mean distance to its k
    nearest neighbours, and c~_i = c_i / mean(c) is its relative concentration. In the map, c_i is measured over the
    neighbours in the data and over the neighbours in the map. :func:`drsne.presets.paper` returns the settings of the
    paper's method, which has rho = 1 and uses only the neighbours in the data.

    Parameters
    ----------
    {n_components}
    perplexity : float, default=30.0
        Effective number of neighbours in the KL term. If the data have too few samples for this perplexity, it is
        lowered, and a warning is issued.
    density_weight : float or "auto", default=1.0
        ``lambda``, the weight of the density term. 0 gives plain t-SNE. Useful values are between 0.3 and 10 with the
        adaptive kernel and between 1 and 50 with the fixed one, for any number of samples. (The values printed in the
        paper are ours divided by ``n_samples``.) Above a weight of 70, almost nothing but density counts. With
        ``neighborhoods="both"``, the density term is then the paper's: it compares the neighbours in the data only,
        with contrast 1 and without winsorising the target, so that the map reproduces the concentration profile of the
        data itself. "auto" fits a path of weights from 0 to 70 (:func:`drsne.density_path`) and keeps one of its maps:
        among those that ``max_trustworthiness_drop`` allows, the map with the largest mean of the concentration
        correlation and the two density rank correlations.
    density_neighbors : int, default=30
        k, the number of neighbours that determine the concentration of a point, not counting the point itself.
    density_exponent : float, default=1.0
        ``alpha`` in ``c = r^-alpha``, where r is the radius of a point. It is 1 in the paper. The exponent in the data
        is ``contrast_`` times as large. The density term and its gradient grow as ``alpha^2``, so exponents should be
        compared at equal ``lambda * alpha^2``.
    neighborhoods : {"both", "input", "embedding"}, default="both"
        Neighbours over which the concentration in the map is measured. "input" uses the neighbours of each point in the
        data, as in the paper. "embedding" uses its nearest neighbours in the map, which are what a reader of the map
        sees. "both" uses both kinds of neighbours, or only those in the data if the weight is above 70.
    contrast : float or "auto", default="auto"
        Power to which the map raises the concentration in the data: with 3, a region where points are twice as close as
        elsewhere is drawn with points that are eight times as close. "auto" enlarges ratios that would not stand out
        from chance, as in embeddings of text and in single cells, where distances differ little. It is computed from
        the spread of the radii and from the local dimension D of the data (``intrinsic_dimension_``). It is between 1
        and 2 if the radii differ clearly, and otherwise at most ``max(2, D / 2)``. At D / 2, ratios of density are the
        same in the map as in the data (docs/theory.md, section 8). "auto" is 1 with ``neighborhoods="input"`` and the
        fixed kernel, which is the paper's method. It is at most 20. With ``neighborhoods="both"`` and a weight above
        70, the contrast of the density term is always 1.
    kernel : {"auto", "adaptive", "fixed"}, default="auto"
        Kernel of the affinities in the map. The "fixed" kernel, which t-SNE and the paper use, has the same scale at
        all points. The "adaptive" kernel has its own scale at every point (``scales_``), taken from the radius of the
        point in the data, so that sparse groups are drawn larger and stay in one piece. "auto" means "adaptive" if the
        density term is used and "fixed" if ``density_weight=0``, which is plain t-SNE. At weights between 0 and 0.1,
        the automatic kernel adapts only in part.
    arrangement_weight : float or "auto", default=0.0
        Weight of the arrangement term, which places groups near each other in the map that are near each other in the
        data: it is one minus the correlation of the distances between about 100 regions in the data and in the map.
        The term acts in the first part of a fit and then fades out. "auto" is 1 from ``density_weight=0.1`` on, less
        for smaller weights of the density term, and 0 for ``density_weight=0``. On a path of weights, the map at 0 is
        plain t-SNE. A ``schedule`` of your own needs a phase with ``arrangement`` above 0.
    arrangement : {"auto", "metric", "geodesic"}, default="auto"
        Distances between regions in the data. "metric" takes the distances of their means, or of one row of each region
        if there are no means. "geodesic" takes the lengths of the shortest paths from neighbour to neighbour, which
        unroll sheets. "auto" takes these for sheets and curves, whose neighbours form one connected graph and whose
        local dimension is at most that of the map plus 0.5, if the map can show them much better: if they leave at most
        half as much unexplained in classical scaling. It takes metric distances for all other data.
    max_trustworthiness_drop : float, default=0.01
        The largest loss of trustworthiness, and of continuity, that ``density_weight="auto"`` allows relative to the
        map at ``lambda = 0``.
    {metric, init, neighbors, pca_components, engine, engine_options}
    max_iter : int or "auto", default="auto"
        Number of iterations. "auto" stands for 700 with the adaptive kernel and for 1000 with the fixed one. The
        density term is used in the last seventh of the iterations, or in the last half with the fixed kernel.
    n_iter_exaggeration : int, default=250
        Number of iterations with early exaggeration. If it exceeds half of the number of iterations without the density
        term, it is lowered to that half. With the adaptive kernel, the exaggeration is released gradually during the
        last 70 % of these iterations, while the scales of the kernel grow. With the fixed kernel, the exaggeration ends
        abruptly. With 0, there is no exaggeration, and an adaptive kernel has its full scales from the first iteration.
    {early_exaggeration, learning_rate}
    objective : Objective, default=None
        Detailed settings of the objective. They replace ``density_exponent``, ``neighborhoods`` and ``kernel``, which
        must then be left at their defaults. If ``objective`` has an ``input_exponent``, the contrast is
        ``input_exponent / embedding_exponent``, and ``contrast`` must stay "auto".
    schedule : Schedule, default=None
        Detailed settings of the optimisation. They replace ``max_iter``, ``n_iter_exaggeration``,
        ``early_exaggeration`` and ``learning_rate``, which must then be left at their defaults.
    {keep_affinities}
    callbacks : callable or list of callables, default=None
        Called after each iteration as ``callback(iteration, embedding, losses)``, with a copy of the map and a dict of
        the losses ``"kl"``, ``"concentration"`` and, if it is used, ``"arrangement"``. If a callback returns a true
        value, the optimisation stops.
    {n_jobs, backend, device, random_state, verbose}

    Attributes
    ----------
    {embedding_, affinities_, precisions_}
    input_concentration_, concentration_ : ndarray of shape (n_samples,)
        Log relative concentrations ``log c~_i`` in the data and in the map, in the same unit: 0 is average, and log 2
        is twice the average. In the map, they are measured over the neighbours in the data, or over the neighbours in
        the map if ``neighborhoods="embedding"``.
    kl_divergence_, concentration_loss_ : float
        The two main terms of the loss at the final map. The loss is
        ``kl_divergence_ + density_weight_ * concentration_loss_``.
    contrast_ : float
        Power of the concentration in the data to which the concentration in the map is matched (``contrast``).
    intrinsic_dimension_, intrinsic_dimension_error_ : float
        Maximum likelihood estimate of the local dimension D of the data (Levina and Bickel, 2004), measured over
        ``density_neighbors`` neighbours, and its standard error. The error can be too small by a factor of two. The
        estimate is too small for data with many dimensions and few rows. Both are nan if all neighbours of every row
        are equally far away.
    scales_ : ndarray of shape (n_samples,)
        ``rho_i``, the scale of the kernel at every point, with a geometric mean near 1. With the fixed kernel, all
        scales are 1.
    density_weight_ : float
        ``lambda`` of the map.
    arrangement_ : float
        Correlation of the distances between regions in the data and in the map, or nan without the arrangement term,
        which needs 80 rows.
    regions_ : ndarray of shape (n_samples,) or None
        The region of every row, or None without the arrangement term. It is -1 for rows that no path joins to a region.
    path_ : DensityPath or None
        With ``density_weight="auto"``, all maps that were fitted and their scores. Otherwise None.
    {n_iter_, stopped_by_}
    history_ : dict of ndarray
        Losses during the optimisation: ``iteration``, ``kl``, ``concentration``, ``arrangement`` (if it is used) and
        ``gradient_norm``, the norm of the gradient, including early exaggeration. Every 50th iteration is recorded, or
        every 100th if there are at least 20,000 samples.
    {engine_, knn_recall_, pca_, n_features_in_, feature_names_in_}

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

    _KIND = "DRSNE"
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
        contrast: float | str = "auto",
        kernel: str = "auto",
        arrangement_weight: float | str = 0.0,
        arrangement: str = "auto",
        max_trustworthiness_drop: float = 0.01,
        metric: Any = "euclidean",
        init: Any = "pca",
        neighbors: Any = None,
        pca_components: int | str | None = None,
        engine: str = "auto",
        engine_options: dict[str, Any] | None = None,
        max_iter: int | str = "auto",
        n_iter_exaggeration: int = 250,
        early_exaggeration: float = 12.0,
        learning_rate: float | str = "auto",
        objective: Objective | None = None,
        schedule: Schedule | None = None,
        keep_affinities: bool = True,
        callbacks: Any = None,
        n_jobs: int | None = None,
        backend: str = "numba",
        device: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def new_concentration(self, X: ArrayLike) -> Any:
        """Return the natural logarithm of the relative concentration of new rows in the data.

        It is computed from the ``density_neighbors`` nearest training rows, like ``input_concentration_``. Larger
        values mean denser surroundings: 0 is the mean concentration of the training rows, and log 2 = 0.69 is twice
        the mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The new rows, as in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The concentration of every row. For a Dask array or data frame, a lazy array or series.
        """
        return self._concentration(X, "new_concentration")

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Embed ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. With ``metric="precomputed"``, distances of shape (n_samples, n_samples).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, above 0, for data whose duplicates were removed and for landmarks. A row of weight m
            counts as m identical rows in ``perplexity``, ``density_neighbors`` and the loss, but these copies are not
            neighbours of each other. Weights are not normalised. They need not be integers, but neighbours are counted
            in whole numbers: a neighbour fills about as many entries of a list of k neighbours as its weight. If None,
            all weights are 1.

        Returns
        -------
        DRSNE
            The fitted estimator.
        """
        with self._checked(X, sample_weight) as data:
            self._fit(data)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Embed ``X`` and return the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. With ``metric="precomputed"``, distances of shape (n_samples, n_samples).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            ``embedding_``.
        """
        return self.fit(X, sample_weight=sample_weight).embedding_

    def _fit_landmarks(self, X: ArrayLike, sample_weight: ArrayLike | None, radii: NDArray[np.float64]) -> Self:
        """Embed rows that were sampled from larger data.

        The ``radii`` (n_samples,) of the rows in those data replace the radii among the rows in the target, in the
        scales and in the concentrations.
        """
        with self._checked(X, sample_weight) as data:
            self._fit(data._replace(radii=radii))
        return self

    def _checked_masses(self, sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
        from sklearn.utils.validation import _check_sample_weight

        checks.refuse_cells("sample_weight", sample_weight)
        masses: NDArray[np.float64] = _check_sample_weight(sample_weight, np.empty(n_samples), dtype=np.float64)
        least, largest = masses.min(), masses.max()
        if not least > 0.0:
            raise ValueError(
                f"sample_weight must be above 0 for every row; got {least:g} in row {int(masses.argmin())}. Drop rows "
                "that should not count."
            )
        if least < 1.0 / _LARGEST_WEIGHT or largest > _LARGEST_WEIGHT:
            raise ValueError(
                f"sample_weight must be between {1.0 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}; got values from "
                f"{least:g} to {largest:g}. A weight is a number of rows, so rescale the weights."
            )
        if (masses == 1.0).all():
            return None
        if self.engine not in ("auto", "exact", "tree"):
            raise ValueError(
                f"engine must be 'auto', 'exact' or 'tree' with sample_weight; got {self.engine!r}. Pass one of "
                "these, or omit sample_weight."
            )
        objective = self._objective(1.0)
        if objective.affinity_smoothing or objective.support != "symmetric":
            raise ValueError(
                "sample_weight needs an objective with affinity_smoothing=0 and support='symmetric'; got "
                f"{objective.affinity_smoothing:g} and {objective.support!r}. Omit sample_weight, or change objective."
            )
        return masses

    def _weight(self, *, update: bool = False) -> float:
        automatic = isinstance(self.density_weight, str)
        return float(self.density_weight_ if automatic and update else self.density_weight)

    def _fit(self, data: Checked) -> None:
        if isinstance(self.density_weight, str):
            self._fit_path(data)
        else:
            super()._fit(data)

    def _density_share(self, adaptive: bool) -> float:
        return ADAPTIVE_SHARE if adaptive else DENSITY_SHARE

    def _fit_path(self, data: Checked) -> None:
        """Fit maps along a path of weights, and keep the best map that meets the constraint."""
        from drsne.estimators import path

        with Workers(self.n_jobs) as workers:
            maps, followed, problem = self._follow(data, path.AUTO_WEIGHTS, workers)
            chosen = path.automatic(maps, self.max_trustworthiness_drop)
            weight = float(maps.weights[chosen])
            self._keep(followed.outcomes[chosen], problem, followed.state, data.dtype, weight, on_path=True)
            self.path_: DensityPath | None
            self.path_, self.stopped_by_ = maps, maps.stopped_by or self.stopped_by_
        path.report_early_end(followed, maps, f"embedding_ is the map at density_weight={weight:g}")

    def _follow(
        self, data: Checked, weights: Sequence[float], workers: Workers
    ) -> tuple[DensityPath, Followed, Problem]:
        """Fit the maps at lambda = 0 and at the ``weights``, and return them with their scores.

        Also return the problem of the map at 0, which is that of all weights up to 70.
        """
        from drsne.estimators import path

        path.check_scorable(data.X, self.metric, precomputed=self._precomputed)
        objective = self._objective(1.0)
        schedules = path_schedules(
            data.X.shape[0],
            max_iter=self.max_iter,
            adaptive=objective.adapts(1.0),
            n_iter_exaggeration=self.n_iter_exaggeration,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=self.learning_rate,
        )
        adaptive = schedules.first is not None
        fit = schedules.first or schedules.plain
        self._warn_if_lowered(most_exaggerated(fit.n_iter, density=adaptive, share=self._density_share(adaptive)))
        positive = [w for w in weights if w > 0]
        # Weights below 1 have the objective of 1. So does the map at 0, of which it determines only the density loss.
        objectives = {weight: self._objective(max(weight, 1.0)) for weight in (0.0, *positive)}
        fits = path.own_fits(objective, positive) if adaptive else []
        last = [weight for weight in positive if weight not in fits and objectives[weight] != objective]
        n_steps = len(positive) - len(fits) - len(last)
        with self._progress(schedules.n_iter(len(fits), n_steps, len(last))) as bar:
            distinct = list(dict.fromkeys(objectives.values()))
            problems = prepared(data.settings, data.X, distinct, 1.0, workers, data.masses, data.radii)
            at_zero = problems[objective]
            followed = path.follow(
                {weight: problems[each] for weight, each in objectives.items()},
                objective,
                at_zero.initial,
                schedules,
                callbacks=constraints.callbacks(self.callbacks),
                progress=bar,
            )
        if followed.outcomes[0].stopped_by == "overflow":
            self._report_early_end(followed.outcomes[0], "no map of the path is finished")
        maps = path.scored(
            followed, weights, data.X, workers, metric=self.metric, near=at_zero.about.near, dtype=data.dtype
        )
        contrasts = [problems[objectives[weight]].about.objective.contrast for weight in maps.weights.tolist()]
        maps = replace(maps, input_concentration=_in_data(at_zero), contrasts=np.array(contrasts))
        return maps, followed, at_zero

    def _objective(self, weight: float) -> Objective:
        objective: Objective | None = self.objective
        if objective is None:
            weights = NEIGHBORHOODS[self.neighborhoods]
            objective = Objective(
                input_weight=weights.input,
                embedding_weight=weights.embedding,
                embedding_exponent=float(self.density_exponent),
                kernel=self.kernel,
            )
        share, automatic = self.arrangement_weight, isinstance(self.arrangement_weight, str)
        if automatic:
            share = ARRANGEMENT_WEIGHT * min(1.0, weight / FULL_ADAPTATION)
        if share:
            arranged = Arranged(float(share), self.arrangement, automatic)
            objective = replace(objective, terms=(*objective.terms, arranged))
        if not isinstance(self.contrast, str):
            objective = replace(objective, input_exponent=float(self.contrast) * objective.embedding_exponent)
        if self.objective is None and self.neighborhoods == "both" and weight > PROFILE_WEIGHT:
            return objective.of_the_paper()
        # The fixed kernel with the neighbours in the data is the paper's method, which has no contrast.
        if objective.input_exponent is None and not objective.embedding_weight and not objective.adapts(weight):
            return replace(objective, input_exponent=objective.embedding_exponent)
        return objective

    def _keep_density(self, outcome: Outcome, problem: Problem, of_points: NDArray[np.float64], weight: float) -> None:
        self.density_weight_ = weight
        self.contrast_, self.input_concentration_ = problem.about.objective.contrast, _in_data(problem)
        self.intrinsic_dimension_, self.intrinsic_dimension_error_ = problem.about.dimension
        self.concentration_, self.concentration_loss_ = of_points, outcome.losses["concentration"]
        self.path_ = None
        regions = [
            np.where(term.shares > 0.0, term.regions, -1)
            for term in problem.loss.terms
            if isinstance(term, Arrangement)
        ]
        self.regions_ = regions[0] if regions else None
        self.arrangement_ = 1.0 - outcome.losses.get(Arrangement.name, np.nan)


def _in_data(problem: Problem) -> NDArray[np.float64]:
    """Return the log relative concentration of the data, without the contrast of the map."""
    return rescaled(problem.about.profile, 1.0 / problem.about.objective.contrast, masses=problem.masses)
