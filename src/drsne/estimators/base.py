"""The base class of the estimators: scikit-learn's interface, checks, the schedule and the fitted attributes.

A subclass lists its parameters, checks them, and says which objective it has and which attributes of the density term
it keeps. It also provides the class attributes of :class:`MapEstimator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import Parameter, signature
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_is_fitted

from drsne import checks, logs
from drsne.backends import choice
from drsne.backends.numba.threads import Workers
from drsne.backends.placing import Placer
from drsne.estimators import memory, parameters
from drsne.neighbors.precomputed import check_precomputed
from drsne.optimize.defaults import (
    FIXED_MOMENTUM,
    MOMENTUM,
    default_schedule,
    iterations,
    most_exaggerated,
    update_schedule,
)
from drsne.optimize.loop import Outcome, minimize
from drsne.optimize.schedule import Schedule
from drsne.pca import scores
from drsne.placement.lazy import is_lazy, lazily, uncontained
from drsne.placement.reference import Reference
from drsne.preparation import Settings, prepared
from drsne.progress import ProgressBar
from drsne.terms.new_row import Density
from drsne.terms.problem import Problem, State
from drsne.terms.pull import OldPlaces

if TYPE_CHECKING:
    from drsne.placement.place import Description

# Names of our parameters in other packages, and other spellings.
_OTHER_NAMES = {
    "n_neighbors": "perplexity",
    "n_iter": "max_iter",
    "dens_lambda": "density_weight",
    "lambda": "density_weight",
    "neighbourhoods": "neighborhoods",
    "density_neighbours": "density_neighbors",
    "n_epochs": "max_iter",
    "initialization": "init",
    "exaggeration": "early_exaggeration",
    "seed": "random_state",
    "early_exaggeration_iter": "n_iter_exaggeration",
}

_NEIGHBORS = 30  # number of neighbours in the map that determine a length, for models without density_neighbors
_PICKLE_VERSION = 1  # version of the attributes of fitted models


def _refuse_unknown(kind: Any, params: dict[str, Any], error: type[Exception] = TypeError) -> None:
    """Raise an error for the first name that is not a parameter, and suggest the parameter that is probably meant."""
    known = kind._get_param_names()
    others = {other: ours for other, ours in _OTHER_NAMES.items() if ours in known}
    for name in params:
        if name not in known:
            hint = checks.did_you_mean(name, [*known, *others])
            for other, ours in others.items():
                hint = hint.replace(repr(other), repr(ours))
            raise error(f"{kind.__name__} has no parameter {name!r}. {hint or 'It has ' + ', '.join(known) + '.'}")


def _checked_previous(previous_rows: Any, n_samples: int, n_old: int) -> NDArray[np.intp]:
    """Return the old numbers of rows, or raise an error that says what is wrong with them."""
    rows = np.asarray(previous_rows)
    if rows.shape != (n_samples,) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"previous_rows must have one integer for each of the {n_samples} rows of X; got shape {rows.shape} of "
            f"{rows.dtype}. Pass the number of each row in the old data, or -1 for new rows."
        )
    known = rows[rows >= 0]
    if len(rows) and (rows.min() < -1 or rows.max() >= n_old):
        raise ValueError(
            f"previous_rows must be between -1 and {n_old - 1}, the last row of the old data; got values from "
            f"{rows.min()} to {rows.max()}. Pass -1 for new rows."
        )
    if len(np.unique(known)) < len(known):
        raise ValueError(
            "previous_rows must name each row of the old data at most once; got "
            f"{len(known) - len(np.unique(known))} repeated numbers. Pass -1 for copies of a row."
        )
    if not len(known):
        raise ValueError(
            "previous_rows must name at least one row of the old data; got only -1. Call fit for entirely new data."
        )
    return rows.astype(np.intp)


def _out_of_memory(error: Exception) -> bool:
    """Return whether a device has too little memory. The error is that of PyTorch, which need not be installed."""
    return type(error).__name__ == "OutOfMemoryError"


class MapEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``fit`` sets ``embedding_``."""

    _NAME: ClassVar[str]  # the name of the method in the progress bar
    _TERM: ClassVar[str]  # the name of the density term in the losses
    _LOWER: ClassVar[str]  # names of the parameters to lower if a fit overflows

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Create an estimator, and raise an error with a suggestion if a parameter is misspelt."""
        kinds = {parameter.kind for parameter in signature(cls.__init__).parameters.values()}
        if not kinds & {Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL}:  # otherwise a subclass passes parameters on
            _refuse_unknown(cls, named)
        estimator: Self = super().__new__(cls)
        return estimator

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
        _refuse_unknown(type(self), {name: value for name, value in params.items() if "__" not in name}, ValueError)
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
        with self._unchanged_on_failure(X):
            data, dtype = self._checked(X)
            with logs.shown(self.verbose > 1):
                self._fit(data, dtype)
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
        with self._unchanged_on_failure(X):
            data, dtype = self._checked(X, update=True)
            rows = _checked_previous(previous_rows, data.shape[0], len(old))
            places = OldPlaces.of(old, rows, int(getattr(self, "density_neighbors", _NEIGHBORS)), stiffness)
            weight: Any = self.density_weight_ if self._automatic else self.density_weight
            with logs.shown(self.verbose > 1):
                self._fit_one(data, dtype, float(weight), old=places)
        return self

    @contextmanager
    def _on_device(self, X: Any) -> Iterator[None]:
        """Use the device of this estimator for a fit of ``X`` during a block, after a check that it is there."""
        with choice.current(self.backend, self.device):
            try:
                yield
            except Exception as error:
                if not _out_of_memory(error):
                    raise
                n, d = np.shape(X)
                needed = memory.on_gpu(n, d, {name: getattr(self, name) for name in self._defaults()})
                raise MemoryError(
                    f"The device has too little memory for this fit, which needs about {needed / 1e9:.1f} GB "
                    f"({str(error).split('. ')[0]}). Lower perplexity or density_neighbors, pass pca_components if the "
                    "data have many features, fit a sample, or omit device to use the processor."
                ) from error

    @contextmanager
    def _placer(self) -> Iterator[Placer]:
        """Yield what loops over new rows: PyTorch on the device of this model, or numba if the device is not there."""
        from drsne.backends.numba.placement import LIMITS, NumbaPlacer

        backend, device = choice.at_hand(self.backend, self.device)
        with Workers(self.n_jobs) as workers:
            if backend == "numba":
                yield NumbaPlacer(workers)
                return
            from drsne.backends.torch.placement import TorchPlacer

            with choice.current(backend, device):
                try:
                    yield TorchPlacer(device, LIMITS, workers)
                except Exception as error:
                    if not _out_of_memory(error):
                        raise
                    raise MemoryError(
                        f"The device has too little memory to place rows ({str(error).split('. ')[0]}). Free memory on "
                        "the device, or call set_params(backend='numba', device=None) to use the processor."
                    ) from error

    @contextmanager
    def _unchanged_on_failure(self, X: Any) -> Iterator[None]:
        """Restore what is known of the columns of the data if a fit fails, so that the last fit stays usable."""
        names = ("n_features_in_", "feature_names_in_")
        before = {name: getattr(self, name) for name in names if hasattr(self, name)}
        last = self.__dict__.get("embedding_")
        try:
            with self._on_device(X):
                yield
        except BaseException:
            if last is not None and self.__dict__.get("embedding_") is last:  # otherwise there is a new, unfinished map
                for name in names:
                    self.__dict__.pop(name, None)
                self.__dict__.update(before)
            raise

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

    def transform(self, X: ArrayLike) -> Any:
        """Place new rows in the map, which stays fixed.

        The position of a row does not depend on the other rows of ``X``, on the number of threads or on the process,
        bit for bit. A model with a ``device`` places rows there, with PyTorch. If the device is not there, numba places
        them on the processor, so a model of a GPU can be used everywhere; its positions then differ slightly. A row
        that equals a training row gets the position of that row. If several training rows are equal, it gets the
        position of the first one, so ``transform(X)`` equals ``embedding_`` only if the training data have no
        duplicates. Rows pass through ``pca_`` if the fit had one. A row that is unlike all training rows also gets a
        position, so look at :meth:`novelty` as well. New rows do not repel each other, so novel rows of the same kind
        are drawn in one or a few spots, which are not a dense group of the data. The model keeps the training data
        without copying them, so do not change the array in place after the fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The new rows. With ``metric="precomputed"``, their distances to the training rows, of shape (n_rows,
            n_samples). A Dask array or data frame is placed block by block when it is computed.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The positions of the rows. For a Dask array or data frame, a lazy one with the same blocks of rows.

        Raises
        ------
        ValueError
            If the model keeps nothing to compare new rows with: it was fitted with given ``neighbors``, saved without
            its data, or interrupted. Also if ``X`` has the wrong number of columns, other feature names or NaN.
        """
        if is_lazy(X):
            check_is_fitted(self, "embedding_")
            return lazily(self, "transform", X, list(self.get_feature_names_out()))
        places, _ = self._placed_and_known(X)
        return places

    def _placed_and_known(self, X: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the places of new rows, and the training rows that they equal, or -1."""
        from drsne.placement.place import placed

        reference, data = self._checked_new(X)
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        with self._placing(data.shape[0]) as (placer, progress):
            places, known = placed(reference, data, placer, pca=self.pca_, progress=progress)
        return places.astype(dtype, copy=False), known

    def _described(
        self, X: ArrayLike, *, dtype: type | None = None, in_map: NDArray[np.float64] | None = None
    ) -> Description:
        """Return the places, the concentration and the novelty of new rows after one search for their neighbours.

        ``dtype`` is the type of the places, or None for that of the rows. If ``in_map`` is ``concentration_``, the
        concentration of the rows in the map is measured as well.
        """
        from drsne.placement.place import described

        reference, data = self._checked_new(X)
        dtype = dtype or (np.float32 if data.dtype == np.float32 else np.float64)
        with self._placing(data.shape[0]) as (placer, progress):
            found = described(reference, data, placer, pca=self.pca_, in_map=in_map, progress=progress)
        return found._replace(places=found.places.astype(dtype, copy=False))

    @contextmanager
    def _placing(self, n_rows: int) -> Iterator[tuple[Placer, Callable[[int], None]]]:
        """Yield what loops over new rows, and a function that shows how many of them are done."""
        bar = ProgressBar(n_rows, "transform", visible=bool(self.verbose))
        with logs.shown(self.verbose > 1), self._placer() as placer, bar:
            yield placer, lambda done: bar(done, {})

    def novelty(self, X: ArrayLike) -> Any:
        """Return how far every new row is from the training rows.

        This is the distance of the row to its nearest training row, in units of the radius of that training row. The
        radius is the mean distance to its ``density_neighbors`` nearest training rows (for ``DenSNE``, the root of the
        mean squared distance, weighted by the affinities), and never less than a small length. The novelty is 0 for a
        row that equals a training row, and has no upper limit. Values up to about 1.5 are typical of the training data.
        From 1.5 to 3, treat the position of the row with caution. Above 3, the row is unlike all training rows, so do
        not interpret its exact position.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The new rows, as in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The novelty of every row. For a Dask array or data frame, a lazy array or series.
        """
        from drsne.placement.place import novelty

        if is_lazy(X):
            check_is_fitted(self, "embedding_")
            return lazily(self, "novelty", X, None)
        reference, data = self._checked_new(X)
        with self._placer() as placer:
            return novelty(reference, data, placer, pca=self.pca_)

    def _placed_again(self, rows: NDArray[np.intp], X: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the positions of training rows if each is left out of the map and placed as a new row.

        ``X`` are other values of these rows, before a PCA. If None, the rows have their values of the fit.
        """
        from drsne.placement.place import placed_again

        reference = self._with_rows()
        with self._placer() as placer:
            if X is not None and self.pca_ is not None:
                X = scores(self.pca_, X, placer.workers)
            return placed_again(reference, rows, placer, lambda done: None, X)

    def _movements(self, rows: NDArray[np.intp], n_neighbors: int) -> NDArray[np.float64]:
        """Return how far training rows move if each is left out and placed again, on average.

        A row is placed again with its own values, and halfway to each of its nearest neighbours.
        """
        from drsne.placement.place import halfway, placed_again

        reference = self._with_rows()
        n_neighbors = min(n_neighbors, reference.training.searched_neighbors, len(reference.places) - 2)
        moved = np.zeros(len(rows))
        bar = ProgressBar((n_neighbors + 1) * len(rows), "reliability", visible=bool(self.verbose))
        with self._placer() as placer, bar:
            for turn in range(n_neighbors + 1):
                X = halfway(reference, rows, turn - 1, placer) if turn else None
                base = turn * len(rows)
                places = placed_again(reference, rows, placer, lambda done, base=base: bar(base + done, {}), X)  # type: ignore[misc]
                moved += np.linalg.norm(places - reference.places[rows], axis=1)
        return moved / (n_neighbors + 1)

    def _with_rows(self) -> Reference:
        """Return what new rows need, or raise an error if the training data are not there."""
        check_is_fitted(self, "embedding_")
        reference: Reference | None = getattr(self, "_reference", None)
        if reference is None or reference.training.rows is None or reference.training.given:
            raise ValueError(
                "Placing training rows again needs a model that keeps its training data; this one was fitted with "
                "distances or given neighbours, was interrupted, or was saved without data. Fit it again from the "
                "data, or load it with drsne.load(path, X=...)."
            )
        return reference

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

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_pickle_version": _PICKLE_VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_pickle_version", 0)
        if "backend" in self._get_param_names():  # pickles of older versions do not have these parameters
            state = {"backend": "numba", "device": None, **state}
        if version > _PICKLE_VERSION:
            raise ValueError(
                f"This {type(self).__name__} was pickled by a newer version of drsne. Upgrade with pip install -U "
                "drsne, or exchange models by model.save(path)."
            )
        super().__setstate__(state)

    def _checked_new(self, X: Any) -> tuple[Reference, Any]:
        """Return what new rows need, and the new rows after their checks."""
        check_is_fitted(self, "embedding_")
        reference: Reference | None = getattr(self, "_reference", None)
        if reference is None:
            raise ValueError(
                "This model keeps nothing for new rows: its fit was interrupted, or it is from an older version of "
                "drsne. Fit it again."
            )
        reference.check_placeable()
        return reference, self._checked_columns(X)

    def _checked_columns(self, X: Any) -> Any:
        """Return data that have the columns of the training data."""
        return self._validated(X, reset=False, ensure_min_samples=0)

    def _validated(self, X: Any, *, reset: bool, ensure_min_samples: int) -> Any:
        """Return data as :func:`sklearn.utils.validation.validate_data` does, but convert them only once."""
        data = checks.refuse_other_data("X", X)
        _check_feature_names(self, X, reset=reset)
        data = check_array(
            data,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=ensure_min_samples,
            estimator=self,
            input_name="X",
        )
        _check_n_features(self, data, reset=reset)
        return data

    @staticmethod
    def _defaults() -> dict[str, Any]:
        """Return all parameters with their defaults.

        A subclass with fewer parameters has the others as attributes.
        """
        raise NotImplementedError

    def _check_parameters(self, params: dict[str, Any], defaults: dict[str, Any]) -> None:
        """Raise an error for the first parameter that is invalid regardless of the data."""
        raise NotImplementedError

    def _objective(self, weight: float) -> Any:
        """Return the objective at a weight of the density term."""
        raise NotImplementedError

    def _density_share(self, adaptive: bool) -> float:
        """Return the fraction of the iterations, at the end of a fit, that use the density term."""
        raise NotImplementedError

    def _keep_density(self, outcome: Outcome, problem: Problem, of_points: NDArray[np.float64], weight: float) -> None:
        """Set the fitted attributes of the density term, which has the value ``of_points`` (n,) at each point."""
        raise NotImplementedError

    def _fit(
        self,
        X: Any,
        dtype: type,
        masses: NDArray[np.float64] | None = None,
        radii: NDArray[np.float64] | None = None,
    ) -> None:
        """Fit checked data."""
        self._fit_one(X, dtype, float(self.density_weight), masses=masses, radii=radii)

    @property
    def _automatic(self) -> bool:
        return isinstance(self.density_weight, str)

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

    def _checked(self, X: Any, *, update: bool = False) -> tuple[Any, type]:
        """Check parameters and data, and return the data as float64 and the type of the returned map.

        An ``update`` begins with the old map and does not use ``init``.
        """
        defaults = self._defaults()
        params = {name: getattr(self, name) for name in defaults}
        if update and not isinstance(self.init, str):
            params["init"] = defaults["init"]
        self._check_parameters(params, defaults)
        data, dtype = self._check_data(X, update=update)
        parameters.check_for(params, data.shape[0], dtype)
        memory.warn_if_short(data, params)
        return data, dtype

    def _check_data(self, X: Any, *, update: bool = False) -> tuple[Any, type]:
        if update and not self._precomputed and getattr(X, "shape", ())[1:] == (self.n_features_in_,):
            _check_feature_names(self, X, reset=False)
        X = self._validated(X, reset=True, ensure_min_samples=3)
        X = check_precomputed(X) if self._precomputed else X
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X):
            return sp.csr_matrix(X, dtype=np.float64, copy=False), dtype
        return np.require(X, dtype=np.float64, requirements=["C", "A", "W"]), dtype

    def _settings(self, *, update: bool = False) -> Settings:
        settings = Settings.of({name: getattr(self, name) for name in self._defaults()})
        return replace(settings, init="pca") if update and not isinstance(settings.init, str) else settings

    def _schedule(self, n_samples: int, weight: float, objective: Any, *, update: bool = False) -> Schedule:
        """Return the user's schedule, or the default schedule of a fit or an update."""
        if self.schedule is not None:
            schedule: Schedule = self.schedule
            return schedule
        adaptive, density = objective.adapts(weight), weight > 0
        if update:
            return update_schedule(n_samples, density=density, momentum=MOMENTUM if adaptive else FIXED_MOMENTUM)
        share = self._density_share(adaptive)
        max_iter = iterations(self.max_iter, adaptive=adaptive)
        self._warn_if_lowered(most_exaggerated(max_iter, density=density, share=share))
        return default_schedule(
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
        if requested > most and requested != type(self)().n_iter_exaggeration:
            checks.warn(
                f"Lowered n_iter_exaggeration from {requested} to {most}, which is half of the number of iterations "
                "without the density term. Raise max_iter, or pass a schedule."
            )

    def _progress(self, n_iter: int) -> ProgressBar:
        return ProgressBar(
            n_iter, self._NAME, visible=bool(self.verbose), preparing="finding neighbours and compiling ..."
        )

    def _fit_one(
        self,
        X: Any,
        dtype: type,
        weight: float,
        *,
        old: OldPlaces | None = None,
        masses: NDArray[np.float64] | None = None,
        radii: NDArray[np.float64] | None = None,
    ) -> None:
        """Fit the map at one weight of the density term."""
        objective = self._objective(weight)
        schedule = self._schedule(X.shape[0], weight, objective, update=old is not None)
        with Workers(self.n_jobs) as workers, self._progress(schedule.n_iter) as bar:
            settings = self._settings(update=old is not None)
            problem = prepared(settings, X, objective, weight, workers, masses, radii)
            if old is not None:
                old.applied(problem)
            state = problem.start()
            callbacks = parameters.callbacks(self.callbacks)
            outcome = minimize(problem, schedule=schedule, state=state, callbacks=callbacks, progress=bar)
            self._keep(outcome, problem, state, dtype, weight)
        self._report_early_end(outcome)

    def _keep(
        self, outcome: Outcome, problem: Problem, state: State, dtype: type, weight: float, on_path: bool = False
    ) -> None:
        """Set all fitted attributes at the end, so that a failed fit leaves those of the previous fit unchanged.

        On a path, the problem has a weight of 1, and the map at a weight of 0 has the fixed kernel.
        """
        adaptation = problem.about.objective.adaptation(weight) if weight or not on_path else 0.0
        factor = weight if on_path else 1.0
        density, stopped_by = None, outcome.stopped_by
        try:
            of_points = problem.of_points(outcome.embedding, state)[self._TERM]
            density = problem.of_new_row(outcome.embedding, state, density=factor)
        except KeyboardInterrupt:  # the map is complete and is kept; the quantities of its points stay unknown
            of_points, stopped_by = np.full(len(outcome.embedding), np.nan), "interrupt"
        self.embedding_: NDArray[Any] = outcome.embedding.astype(dtype, copy=False)
        self.precisions_ = problem.affinities.precisions
        self.engine_ = problem.engine.name
        self.knn_recall_ = problem.about.recall
        self.__dict__.pop("affinities_", None)
        if self.keep_affinities:
            self.affinities_ = problem.affinities.matrix()
        self.pca_ = problem.about.pca
        self.kl_divergence_ = outcome.losses["kl"]
        self.n_iter_ = outcome.n_iter
        self.history_ = outcome.history
        self.stopped_by_ = stopped_by
        self.scales_ = problem.scales_at(adaptation)
        self._keep_density(outcome, problem, of_points, weight)
        self._keep_reference(problem, density, dtype, adaptation)

    def _keep_reference(self, problem: Problem, density: Density | None, dtype: type, adaptation: float) -> None:
        """Keep what new rows need. The training rows are kept in the type in which they were given."""
        training = problem.about.training
        self._reference: Reference | None = None
        if density is None or training is None:
            return
        rows = training.rows
        if rows is not None and rows.dtype != dtype and problem.about.pca is None:
            rows = rows.astype(dtype)
        training = replace(training, rows=rows, log_scale=training.log_scale.times(adaptation))
        self._reference = Reference(training, np.asarray(self.embedding_, dtype=np.float64), self.scales_, density)

    def _report_early_end(self, outcome: Outcome, kept: str = "embedding_ is the last {}map") -> None:
        """Warn if the optimisation was interrupted, and raise an error if it overflowed.

        ``kept`` says which map is kept; "{}" in this text is replaced by "finite " in the error.
        """
        if outcome.stopped_by == "interrupt":
            checks.warn(
                f"Interrupted after {outcome.n_iter} iterations; {kept.format('')}. Pass it as init to continue."
            )
        if outcome.stopped_by == "overflow":
            raise FloatingPointError(
                f"The gradient is no longer finite after {outcome.n_iter} iterations; {kept.format('finite ')}. Lower "
                f"{self._LOWER} or the scale of init."
            )


# scikit-learn has wrapped the method when the class was made.
MapEstimator.transform = uncontained(MapEstimator.transform)  # type: ignore[method-assign]
