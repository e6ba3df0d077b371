"""What the estimators share: scikit-learn's contract, the data checked, the schedule, fitted attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from drsne import _checks, engines
from drsne.affinities import Affinities
from drsne.graph import check_precomputed
from drsne.optimize import Outcome, Schedule
from drsne.presets import default_schedule, most_exaggerated


class MapEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``fit`` sets ``embedding_``."""

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

    def _schedule(self, n_samples: int, *, density: bool, share: float, adaptive: bool = False) -> Schedule:
        """Return the given schedule, or the default one with the density term in the last ``share`` of it."""
        if self.schedule is not None:
            given: Schedule = self.schedule
            return given
        self._warn_if_lowered(most_exaggerated(self.max_iter, density=density, share=share))
        return default_schedule(
            n_samples,
            max_iter=self.max_iter,
            n_iter_exaggeration=self.n_iter_exaggeration,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=self.learning_rate,
            density=density,
            share=share,
            adaptive=adaptive,
        )

    def _warn_if_lowered(self, most: int) -> None:
        asked = self.n_iter_exaggeration
        if asked > most and asked != type(self)().n_iter_exaggeration:
            _checks.warn(
                f"Lowered n_iter_exaggeration from {asked} to {most}, half of the iterations without the density term. "
                "Raise max_iter, or pass a schedule."
            )

    def _keep_shared(self, outcome: Outcome, found: Affinities, pca: Any, dtype: type, adaptive: bool = False) -> None:
        """The fitted attributes that every map has."""
        self.embedding_: NDArray[Any] = outcome.embedding.astype(dtype, copy=False)
        self.precisions_ = found.precisions
        self.engine_ = engines.resolve(self.engine, len(outcome.embedding), outcome.embedding.shape[1], adaptive)
        self.__dict__.pop("affinities_", None)
        if self.keep_affinities:
            self.affinities_ = found.P
        self.pca_ = pca
        self.kl_divergence_ = outcome.kl
        self.n_iter_ = outcome.n_iter
        self.history_ = outcome.history


def complain(outcome: Outcome, levers: str, kept: str = "embedding_ is the last {}map") -> None:
    """Say what ended a run before its time; ``levers`` are the parameters to lower where it overflowed."""
    if outcome.stopped_by == "interrupt":
        _checks.warn(f"Interrupted after {outcome.n_iter} iterations; {kept.format('')}. Pass it as init to go on.")
    if outcome.stopped_by == "overflow":
        raise FloatingPointError(
            f"The gradient is no longer finite after {outcome.n_iter} iterations; {kept.format('finite ')}. Lower "
            f"{levers} or the scale of init."
        )
