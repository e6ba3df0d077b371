"""Estimators that score rows by distances, with the interface of scikit-learn's outlier detectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from drsne import checks
from drsne.precision import unit_scale

_MAX_TREE_DIMENSIONS = 15  # largest number of dimensions for which a tree is used

Array = NDArray[np.float64]


class _Distance(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the checks of the data, and the scale at which squares do not overflow."""

    _fit: Callable[[Array], None]
    _scores: Callable[[Array], Array]

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the estimator to the rows of ``X``, and score them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, with at least two rows.
        y : None
            Ignored.

        Returns
        -------
        Self
            The fitted estimator.
        """
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._scale = unit_scale(data)
        self._fit(data)
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the scores of rows. More abnormal rows have lower scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            The negative distances, or the negative sums of distances.
        """
        check_is_fitted(self)
        return self._scores(validate_data(self, X, dtype=np.float64, reset=False))


class CentroidDistance(_Distance):
    """Score rows by the negative Euclidean distance to the mean of the rows that were fitted.

    Attributes
    ----------
    centroid_ : ndarray of shape (n_features,)
        The mean of all fitted rows, as in the paper.
    negative_distance_ : ndarray of shape (n_samples,)
        The scores of the fitted rows. More abnormal rows have lower scores.
    n_features_in_ : int
        The number of columns.

    Examples
    --------
    >>> from drsne.anomaly import CentroidDistance
    >>> CentroidDistance().fit([[0.0, 0.0], [6.0, 8.0]]).negative_distance_.tolist()
    [-5.0, -5.0]
    """

    def _fit(self, data: Array) -> None:
        self.centroid_ = (data / self._scale).mean(axis=0) * self._scale
        self.negative_distance_ = self._scores(data)

    def _scores(self, X: Array) -> Array:
        difference = X / self._scale - self.centroid_ / self._scale
        return np.asarray(-self._scale * np.linalg.norm(difference, axis=1))


class KNeighborsDistance(_Distance):
    """Score rows by the negative sum of the Euclidean distances to their k nearest neighbours among the fitted rows.

    The scores of the fitted rows are in ``negative_distance_``. Pass only new rows to ``score_samples``, where a fitted
    row would be its own neighbour at distance 0.

    Parameters
    ----------
    n_neighbors : int, default=50
        The number of neighbours k. If there are fewer than k other rows, all of them are used and a warning is given.

    Attributes
    ----------
    negative_distance_ : ndarray of shape (n_samples,)
        The scores of the fitted rows. More abnormal rows have lower scores. A row is not its own neighbour, but
        duplicates of a row are its neighbours.
    n_neighbors_ : int
        The number of neighbours that was used.
    n_features_in_ : int
        The number of columns.

    Examples
    --------
    >>> from drsne.anomaly import KNeighborsDistance
    >>> model = KNeighborsDistance(n_neighbors=1).fit([[0.0], [1.0], [5.0]])
    >>> model.negative_distance_.tolist()
    [-1.0, -1.0, -4.0]
    >>> model.score_samples([[7.0]]).tolist()
    [-2.0]
    """

    def __init__(self, n_neighbors: int = 50) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, data: Array) -> None:
        k = checks.integer("n_neighbors", self.n_neighbors, at_least=1)
        self.n_neighbors_ = min(k, len(data) - 1)
        if self.n_neighbors_ < k:
            checks.warn(f"Lowered n_neighbors from {k} to {self.n_neighbors_}, the number of other rows.")
        self._origin = (data / self._scale).mean(axis=0)
        self._rows = self._centred(data)
        self._tree = data.shape[1] <= _MAX_TREE_DIMENSIONS
        algorithm = "kd_tree" if self._tree else "brute"
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors_, algorithm=algorithm).fit(self._rows)
        self.negative_distance_ = -self._sums(self._rows, *self._search.kneighbors())  # a row is not its own neighbour

    def _scores(self, X: Array) -> Array:
        rows = self._centred(X)
        return -self._sums(rows, *self._search.kneighbors(rows))

    def _centred(self, X: Array) -> Array:
        """Return the rows, centred and scaled so that squares do not overflow and inner products are accurate."""
        return np.asarray(X / self._scale - self._origin)

    def _sums(self, rows: Array, distances: Array, neighbors: NDArray[np.intp]) -> Array:
        if not self._tree:
            # The search computed these distances from inner products. Because of rounding errors, equal rows have
            # nonzero distances, so the distances are computed again.
            distances = np.array(
                [np.linalg.norm(self._rows[j] - row, axis=1) for row, j in zip(rows, neighbors, strict=True)]
            )
        return np.asarray(distances.sum(axis=1) * self._scale)
