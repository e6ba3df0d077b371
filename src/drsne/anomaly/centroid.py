"""The distance to the mean of all points. It is large at the border of a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from drsne.anomaly._detector import Detector
from drsne.precision import unit_scale

Array = NDArray[np.float64]


class CentroidDistance(BaseEstimator):  # type: ignore[misc]
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

    def fit(self, X: ArrayLike, y: Any = None) -> CentroidDistance:
        """Compute the mean of the rows of ``X`` and score them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, with at least two rows.
        y : None
            Ignored.

        Returns
        -------
        CentroidDistance
            The fitted estimator.
        """
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._scale = unit_scale(data)  # a scale at which squares do not overflow
        self.centroid_ = (data / self._scale).mean(axis=0) * self._scale
        self.negative_distance_ = self._scores(data)
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the scores of fitted or new rows. More abnormal rows have lower scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            The negative distances.
        """
        check_is_fitted(self)
        return self._scores(validate_data(self, X, dtype=np.float64, reset=False))

    def _scores(self, X: Array) -> Array:
        difference = X / self._scale - self.centroid_ / self._scale
        return np.asarray(-self._scale * np.linalg.norm(difference, axis=1))


DETECTOR = Detector(title="Cent", estimator=CentroidDistance, training="negative_distance_")
