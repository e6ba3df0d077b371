"""What a fitted map does with new rows: their positions, their novelty, and how far rows move if they are placed again.

:class:`NewRows` is the part of the estimators that uses a fitted map. ``base`` adds what fits one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_is_fitted

from drsne import checks, logs
from drsne.backends import choice
from drsne.backends.numba.threads import Workers
from drsne.backends.protocol import Placer
from drsne.placement.lazy import is_lazy, lazily, uncontained
from drsne.placement.reference import Reference
from drsne.progress import ProgressBar

if TYPE_CHECKING:
    from drsne.placement.place import Description


class NewRows(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A map in which new rows can be placed."""

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
        return self._described(X).places

    def _described(
        self, X: ArrayLike, *, dtype: type | None = None, in_map: NDArray[np.float64] | None = None
    ) -> Description:
        """Return the places, the concentration and the novelty of new rows after one search for their neighbours.

        ``dtype`` is the type of the places, or None for that of the rows. If ``in_map`` is ``concentration_``, the
        concentration of the rows in the map is measured as well.
        """
        from drsne.placement.place import described

        reference, data = self._checked_new(X)
        bar = ProgressBar(data.shape[0], "transform", visible=bool(self.verbose))
        with logs.shown(self.verbose > 1), self._placer() as placer, bar:
            shared = {"pca": self.pca_, "in_map": in_map, "progress": lambda done: bar(done, {})}
            found = described(reference, data, placer, **shared)
        return found._replace(places=found.places.astype(dtype or data.dtype, copy=False))

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
        from drsne.placement.rows import novelty

        return self._numbers(novelty, "novelty", X)

    def _movements(self, rows: NDArray[np.intp], n_neighbors: int) -> NDArray[np.float64]:
        """Return how far training rows move if each is left out and placed again, on average.

        A row is placed again with its own values, and halfway to each of its nearest neighbours.
        """
        from drsne.placement.place import placed_again
        from drsne.placement.rows import halfway

        check_is_fitted(self, "embedding_")
        reference: Reference | None = getattr(self, "_reference", None)
        if reference is None or reference.training.rows is None or reference.training.given:
            raise ValueError(
                "Placing training rows again needs a model that keeps its training data; this one was fitted with "
                "distances or given neighbours, was interrupted, or was saved without data. Fit it again from the "
                "data, or load it with drsne.load(path, X=...)."
            )
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

    def _concentration(self, X: ArrayLike, method: str) -> Any:
        """Return the density of new rows in the data, in the unit of the estimator. ``method`` is the public name."""
        from drsne.placement.rows import concentration

        return self._numbers(concentration, method, X)

    def _numbers(self, function: Callable[..., NDArray[np.float64]], method: str, X: ArrayLike) -> Any:
        """Return one number for each new row, by a function of ``placement.rows`` that a public method stands for."""
        if is_lazy(X):
            check_is_fitted(self, "embedding_")
            return lazily(self, method, X, None)
        reference, data = self._checked_new(X)
        with self._placer() as placer:
            return function(reference, data, placer, pca=self.pca_)

    @contextmanager
    def _placer(self) -> Iterator[Placer]:
        """Yield what loops over new rows: PyTorch on the device of this model, or numba if the device is not there."""
        with Workers(self.n_jobs) as workers, choice.placing(self.backend, self.device, workers) as placer:
            yield placer

    def _checked_new(self, X: Any) -> tuple[Reference, Any]:
        """Return what new rows need, and the new rows after their checks."""
        check_is_fitted(self, "embedding_")
        reference: Reference | None = getattr(self, "_reference", None)
        if reference is None:
            raise ValueError("This model keeps nothing for new rows: its fit was interrupted. Fit it again.")
        reference.check_placeable()
        return reference, self._validated(X)

    def _validated(self, X: Any, *, reset: bool = False, ensure_min_samples: int = 0) -> Any:
        """Return data as :func:`sklearn.utils.validation.validate_data` does, but convert them only once."""
        data = checks.refuse_other_data("X", X)
        _check_feature_names(self, X, reset=reset)
        rules = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C", "input_name": "X"}
        data = check_array(data, ensure_min_samples=ensure_min_samples, estimator=self, **rules)
        _check_n_features(self, data, reset=reset)
        return data

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


# scikit-learn has wrapped the method when the class was made.
NewRows.transform = uncontained(NewRows.transform)  # type: ignore[method-assign]
