"""Sum of distances to the nearest neighbours: large where a point is alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from drsne import checks
from drsne.anomaly._detector import Detector
from drsne.precision import unit_scale

_TREE_DIMENSIONS = 15

Array = NDArray[np.float64]


class KNeighborsDistance(BaseEstimator):  # type: ignore[misc]
    """Negative sum of Euclidean distances to the k nearest neighbours among the rows that were fitted.

    Parameters
    ----------
    n_neighbors : int, default=50
        k. Where fewer other rows are fitted, all of them are taken, with a warning.

    Attributes
    ----------
    negative_distance_ : ndarray of shape (n_samples,)
        Scores of the fitted rows, lower where more abnormal. A row is no neighbour of its own; an equal row is.
    n_neighbors_ : int
        k as taken.
    n_features_in_ : int
        Columns.

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

    def fit(self, X: ArrayLike, y: Any = None) -> KNeighborsDistance:
        """Keep the rows of ``X`` and score them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, at least two rows.
        y : None
            Ignored.

        Returns
        -------
        KNeighborsDistance
            The fitted estimator.
        """
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        k = checks.integer("n_neighbors", self.n_neighbors, at_least=1)
        self.n_neighbors_ = min(k, len(data) - 1)
        if self.n_neighbors_ < k:
            checks.warn(f"Lowered n_neighbors from {k} to {self.n_neighbors_}, the other rows that there are.")
        self._scale = unit_scale(data)
        self._origin = (data / self._scale).mean(axis=0)
        self._rows = self._moved(data)
        self._tree = data.shape[1] <= _TREE_DIMENSIONS
        algorithm = "kd_tree" if self._tree else "brute"
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors_, algorithm=algorithm).fit(self._rows)
        self.negative_distance_ = -self._sums(self._rows, *self._search.kneighbors())  # the row itself left out
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Scores of new rows, lower where more abnormal.

        Fitted rows would find themselves at distance 0: their scores are ``negative_distance_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Negative sums of distances.
        """
        check_is_fitted(self)
        rows = self._moved(validate_data(self, X, dtype=np.float64, reset=False))
        return -self._sums(rows, *self._search.kneighbors(rows))

    def _moved(self, X: Array) -> Array:
        """Rows about the mean at unit scale, where squares stay finite and products keep their digits."""
        return np.asarray(X / self._scale - self._origin)

    def _sums(self, rows: Array, distances: Array, near: NDArray[np.intp]) -> Array:
        if not self._tree:
            # All pairs come from products, whose rounding would set equal rows apart: measure the chosen anew.
            distances = np.array(
                [np.linalg.norm(self._rows[j] - row, axis=1) for row, j in zip(rows, near, strict=True)]
            )
        return np.asarray(distances.sum(axis=1) * self._scale)


DETECTOR = Detector(title="kNN", estimator=KNeighborsDistance, training="negative_distance_")
