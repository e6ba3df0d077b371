"""The base class of the estimators: scikit-learn's interface, checks, the schedule and the fitted attributes.

``constraints`` has the rules of the parameters, and ``new_rows`` what a fitted map does with new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import Parameter, signature
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from drsne import checks, logs
from drsne.backends.numba.threads import Workers
from drsne.estimators import constraints, memory
from drsne.estimators.new_rows import NewRows
from drsne.neighbors.precomputed import check_precomputed
from drsne.optimize import defaults
from drsne.optimize.loop import Outcome, minimize
from drsne.optimize.schedule import Schedule
from drsne.placement.reference import Reference
from drsne.preparation import Settings, prepared
from drsne.progress import ProgressBar
from drsne.terms.problem import Problem, State
from drsne.terms.pull import OldPlaces

_NEIGHBORS = 30  # number of neighbours in the map that determine a length, for models without density_neighbors


class Checked(NamedTuple):
    """Data that were checked, and what else a fit is given."""

    X: Any  # as float64
    dtype: type  # of the returned map
    settings: Settings
    masses: NDArray[np.float64] | None = None  # weights of the rows, or None if all are 1
    radii: NDArray[np.float64] | None = None  # radii in the data that the rows were sampled from


class MapEstimator(NewRows):
    """An estimator whose ``fit`` sets ``embedding_``."""

    _KIND: ClassVar[str]  # the name of the estimator in the table of parameters
    _NAME: ClassVar[str]  # the name of the method in the progress bar
    _TERM: ClassVar[str]  # the name of the density term in the losses
    _LOWER: ClassVar[str]  # names of the parameters to lower if a fit overflows

    # Methods of the subclasses.
    _weight: Callable[..., float]  # the weight of the density term in a fit or an update
    _objective: Callable[[float], Any]  # the objective at a weight of the density term
    _density_share: Callable[[bool], float]  # the fraction of the iterations, at the end, that use the density term
    # Sets the fitted attributes of the density term. The array has its value at each point, (n,).
    _keep_density: Callable[[Outcome, Problem, NDArray[np.float64], float], None]
    _checked_masses: Callable[[Any, int], NDArray[np.float64] | None]  # the weights of the rows, None if all are 1

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Create an estimator, and raise an error with a suggestion if a parameter is misspelt."""
        kinds = {parameter.kind for parameter in signature(cls.__init__).parameters.values()}
        if not kinds & {Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL}:  # otherwise a subclass passes parameters on
            constraints.refuse_unknown(cls, named)
        estimator: Self = super().__new__(cls)
        return estimator

    def _store(self, given: dict[str, Any]) -> None:
        """Set the parameters to the local variables of ``__init__``, unchanged."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and raise an error with a suggestion if one is misspelt.

        Parameters
        ----------
        **params
            Parameters of the estimator.

        Returns
        -------
        estimator
            The estimator itself.
        """
        constraints.refuse_unknown(type(self), [name for name in params if "__" not in name], ValueError)
        super().set_params(**params)
        return self

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Embed ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. With ``metric="precomputed"``, distances of shape (n_samples, n_samples).
        y : None
            Ignored.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        with self._checked(X) as data:
            self._fit(data)
        return self

    def update(self, X: ArrayLike, previous_rows: ArrayLike, stiffness: float = 1.0) -> Self:
        """Fit the map again to data that have changed, and keep known rows near their old positions.

        Use this for data that are refreshed regularly, so that readers find groups where they were. The estimator is
        changed in place. All its parameters apply as in ``fit``, except that there is no early exaggeration and that an
        update takes 300 iterations (150 without a density term), or those of ``schedule``. With
        ``density_weight="auto"``, the weight of the old map is used. New rows start at the mean position of their
        neighbours. Weights of rows are not supported.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            All rows of the new data, known and new ones. The number of columns can change. If it does not, a data frame
            must have the column names of the last fit or update.
        previous_rows : array-like of int of shape (n_samples,)
            For each row of ``X``, its index (from 0) in the data of the last fit or update, or -1 for a new row. Rows
            that were removed do not appear, and no index may occur twice. The features of a known row may have changed.
        stiffness : float, default=1.0
            Strength of the pull of known rows towards their old positions, at least 0. The penalty of a known row is
            ``stiffness`` times the square of the distance that it has moved, in units of its mean distance to its
            neighbours in the old map. With 0, the old positions are only the start. With 100, known rows hardly move.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        check_is_fitted(self, "embedding_")
        stiffness = checks.number("stiffness", stiffness, at_least=0)
        old = np.asarray(self.embedding_, dtype=np.float64)
        if old.shape[1] != self.n_components:
            raise ValueError(
                f"n_components must stay {old.shape[1]}, the number of dimensions of the old map, in an update; got "
                f"{self.n_components}. Call fit instead."
            )
        reference: Reference | None = getattr(self, "_reference", None)
        if reference is not None and reference.training.masses is not None:
            raise ValueError("A map that was fitted with sample_weight cannot be updated. Call fit instead.")
        with self._checked(X, update=True) as data:
            rows = _checked_previous(previous_rows, data.X.shape[0], len(old))
            places = OldPlaces.of(old, rows, int(getattr(self, "density_neighbors", _NEIGHBORS)), stiffness)
            self._fit_one(data, self._weight(update=True), old=places)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Any:
        """Embed ``X`` and return the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. With ``metric="precomputed"``, distances of shape (n_samples, n_samples).
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            ``embedding_``.
        """
        return self.fit(X).embedding_

    def save(self, path: str | PathLike[str], *, include_data: bool = True) -> None:
        """Save the fitted model to a file. Use :func:`drsne.load` to restore it.

        The file holds arrays and JSON, and loading it executes no code. It contains all fitted attributes except
        ``affinities_``, and all parameters except ``callbacks``, ``neighbors`` and a ``random_state`` that is not an
        integer, which are None after loading. For a two-dimensional map, the file needs about 64 bytes per training
        row, plus the size of the training data.

        Parameters
        ----------
        path : str or path
            Path of the file, with any extension. An existing file is replaced.
        include_data : bool, default=True
            Whether to save the training data, with which new rows are compared. Without them, pass the training data to
            :func:`drsne.load`.

        Raises
        ------
        ValueError
            If a parameter cannot be saved, such as a function as ``metric``.
        """
        from drsne.io.models import save

        save(self, path, include_data=include_data)

    def _fit(self, data: Checked) -> None:
        """Fit checked data."""
        self._fit_one(data, self._weight())

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked_parameters(self, *, update: bool = False) -> dict[str, Any]:
        """Return all parameters, or raise an error for the first that is invalid. An ``update`` ignores ``init``."""
        params = {name: getattr(self, name) for name in constraints.rows(self._KIND)}
        if update and not isinstance(self.init, str):
            params["init"] = "pca"
        constraints.check(self._KIND, params)
        return params

    @contextmanager
    def _checked(self, X: Any, sample_weight: Any = None, *, update: bool = False) -> Iterator[Checked]:
        """Check the parameters and the data, and yield the data on the device of the fit, which follows.

        If that fails, restore what is known of the columns of the data, so that the last fit stays usable.
        """
        params = self._checked_parameters(update=update)
        names = ("n_features_in_", "feature_names_in_")
        before = {name: getattr(self, name) for name in names if hasattr(self, name)}
        last = self.__dict__.get("embedding_")
        try:
            data, dtype = self._check_data(X, update=update)
            shape = data.shape
            with memory.on_device(shape, params), logs.shown(self.verbose > 1):
                constraints.check_for(params, shape[0], dtype)
                memory.warn_if_short(shape, params, getattr(data, "nnz", None))
                masses = None if sample_weight is None else self._checked_masses(sample_weight, shape[0])
                yield Checked(data, dtype, Settings.of(params), masses)
        except BaseException:
            if last is not None and self.__dict__.get("embedding_") is last:  # otherwise there is a new, unfinished map
                for name in names:
                    self.__dict__.pop(name, None)
                self.__dict__.update(before)
            raise

    def _check_data(self, X: Any, *, update: bool = False) -> tuple[Any, type]:
        if update and not self._precomputed and getattr(X, "shape", ())[1:] == (self.n_features_in_,):
            _check_feature_names(self, X, reset=False)
        X = self._validated(X, reset=True, ensure_min_samples=3)
        X = check_precomputed(X) if self._precomputed else X
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X):
            return sp.csr_matrix(X, dtype=np.float64, copy=False), dtype
        return np.require(X, dtype=np.float64, requirements=["C", "A", "W"]), dtype

    def _schedule(self, n_samples: int, weight: float, objective: Any, *, update: bool = False) -> Schedule:
        """Return the user's schedule, or the default schedule of a fit or an update."""
        if self.schedule is not None:
            return self.schedule  # type: ignore[no-any-return]
        adaptive, density = objective.adapts(weight), weight > 0
        if update:
            momentum = defaults.MOMENTUM if adaptive else defaults.FIXED_MOMENTUM
            return defaults.update_schedule(n_samples, density=density, momentum=momentum)
        share = self._density_share(adaptive)
        max_iter = defaults.iterations(self.max_iter, adaptive=adaptive)
        self._warn_if_lowered(defaults.most_exaggerated(max_iter, density=density, share=share))
        return defaults.default_schedule(
            n_samples,
            max_iter=max_iter,
            n_iter_exaggeration=self.n_iter_exaggeration,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=self.learning_rate,
            density=density,
            share=share,
            adaptive=adaptive,
        )

    def _warn_if_lowered(self, most: int) -> None:
        requested = self.n_iter_exaggeration
        if requested > most and requested != constraints.rows(self._KIND)["n_iter_exaggeration"].default:
            checks.warn(
                f"Lowered n_iter_exaggeration from {requested} to {most}, which is half of the number of iterations "
                "without the density term. Raise max_iter, or pass a schedule."
            )

    def _progress(self, n_iter: int) -> ProgressBar:
        return ProgressBar(
            n_iter, self._NAME, visible=bool(self.verbose), preparing="finding neighbours and compiling ..."
        )

    def _fit_one(self, data: Checked, weight: float, *, old: OldPlaces | None = None) -> None:
        """Fit the map at one weight of the density term."""
        objective = self._objective(weight)
        schedule = self._schedule(data.X.shape[0], weight, objective, update=old is not None)
        with Workers(self.n_jobs) as workers, self._progress(schedule.n_iter) as bar:
            problems = prepared(data.settings, data.X, [objective], weight, workers, data.masses, data.radii)
            problem = problems[objective]
            if old is not None:
                old.applied(problem)
            state = problem.start()
            callbacks = constraints.callbacks(self.callbacks)
            outcome = minimize(problem, schedule=schedule, state=state, callbacks=callbacks, progress=bar)
            self._keep(outcome, problem, state, data.dtype, weight)
        self._report_early_end(outcome)

    def _keep(
        self, outcome: Outcome, problem: Problem, state: State, dtype: type, weight: float, on_path: bool = False
    ) -> None:
        """Set all fitted attributes at the end, so that a failed fit leaves those of the previous fit unchanged.

        On a path, the problem has a weight of 1, and the map at a weight of 0 has the fixed kernel.
        """
        adaptation = problem.about.objective.adaptation(weight) if weight or not on_path else 0.0
        density, stopped_by = None, outcome.stopped_by
        try:
            of_points = problem.of_points(outcome.embedding, state)[self._TERM]
            density = problem.of_new_row(outcome.embedding, state, density=weight if on_path else 1.0)
        except KeyboardInterrupt:  # the map is complete and is kept; the quantities of its points stay unknown
            of_points, stopped_by = np.full(len(outcome.embedding), np.nan), "interrupt"
        self.embedding_: NDArray[Any] = outcome.embedding.astype(dtype, copy=False)
        self.precisions_, self.scales_ = problem.affinities.precisions, problem.scales_at(adaptation)
        self.__dict__.pop("affinities_", None)
        if self.keep_affinities:
            self.affinities_ = problem.affinities.matrix()
        self.engine_, self.pca_, self.knn_recall_ = problem.engine.name, problem.about.pca, problem.about.recall
        self.kl_divergence_, self.history_ = outcome.losses["kl"], outcome.history
        self.n_iter_, self.stopped_by_ = outcome.n_iter, stopped_by
        self._keep_density(outcome, problem, of_points, weight)
        self._reference: Reference | None = None
        if density is not None:
            training = problem.about.training
            rows = training.rows
            if rows is not None and self.pca_ is None:  # rows are kept in the type in which they were given
                rows = rows.astype(dtype, copy=False)
            training = replace(training, rows=rows, log_scale=training.log_scale.times(adaptation))
            self._reference = Reference(training, np.asarray(self.embedding_, dtype=np.float64), self.scales_, density)

    def _report_early_end(self, outcome: Outcome, kept: str = "embedding_ is the last {}map") -> None:
        """Warn if the optimisation was interrupted, and raise an error if it overflowed. ``kept`` says what is kept."""
        if outcome.stopped_by == "interrupt":
            checks.warn(
                f"Interrupted after {outcome.n_iter} iterations; {kept.format('')}. Pass it as init to continue."
            )
        if outcome.stopped_by == "overflow":
            raise FloatingPointError(
                f"The gradient is no longer finite after {outcome.n_iter} iterations; {kept.format('finite ')}. Lower "
                f"{self._LOWER} or the scale of init."
            )


def _checked_previous(previous_rows: Any, n_samples: int, n_old: int) -> NDArray[np.intp]:
    """Return the old numbers of rows, or raise an error that says what is wrong with them."""
    rows = np.asarray(previous_rows)
    if rows.shape != (n_samples,) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"previous_rows must have one integer for each of the {n_samples} rows of X; got shape {rows.shape} of "
            f"{rows.dtype}. Pass the number of each row in the old data, or -1 for new rows."
        )
    known = rows[rows >= 0]
    repeated = len(known) - len(np.unique(known))
    problem = ""
    if len(rows) and (rows.min() < -1 or rows.max() >= n_old):
        problem = (
            f"be between -1 and {n_old - 1}, the last row of the old data; got values from {rows.min()} to "
            f"{rows.max()}. Pass -1 for new rows."
        )
    elif repeated:
        problem = (
            f"name each row of the old data at most once; got {repeated} repeated numbers. Pass -1 for copies of a row."
        )
    elif not len(known):
        problem = "name at least one row of the old data; got only -1. Call fit for entirely new data."
    if problem:
        raise ValueError(f"previous_rows must {problem}")
    return rows.astype(np.intp)
