"""The estimator DRSNEDetector: outliers of data, found in a map."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from drsne.anomaly import find
from drsne.estimators import constraints
from drsne.estimators.base import MapEstimator
from drsne.estimators.drsne import DRSNE
from drsne.terms.objective import NEIGHBORHOODS, Objective

Array = NDArray[np.float64]
# With a higher contrast, dense small groups are drawn so dense that they are no longer found as outliers.
_BOTH = NEIGHBORHOODS["both"]
_OBJECTIVE = Objective(input_weight=_BOTH.input, embedding_weight=_BOTH.embedding, max_contrast=2.0)


class DRSNEDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Detect outliers by their positions in a DR-SNE map.

    The data are embedded, and a detector of :mod:`drsne.anomaly` scores the points of the map. New rows are placed in
    the map (:meth:`DRSNE.transform`) and scored by their positions. Rows that equal training rows get the scores of
    these rows. Rows that are far from all training rows are drawn in sparse regions, so their scores are low.

    A map does not always help. On six data sets, detection in the map was clearly better than detection in the data on
    three, equal on one and worse on two (docs/models.md).

    Parameters
    ----------
    estimator : DRSNE or DenSNE, default=None
        The estimator of the map. It is cloned. If None, it is a :class:`DRSNE` with its default settings, except that
        it uses this ``n_jobs`` and limits the automatic contrast to 2. With a higher contrast, dense small groups are
        drawn so dense that they are no longer found as outliers.
    detector : str, default="knn"
        The detector: "knn" (the sum of the distances to the 50 nearest points), "lof", "isolation_forest" or
        "centroid", with the settings of :mod:`drsne.anomaly`.
    contamination : "auto" or float, default="auto"
        The fraction of outliers among the training rows, above 0 and at most 0.5. It sets the threshold of ``predict``.
        With "auto", the tenth of the training rows with the lowest scores are outliers, even if the data have none. In
        scikit-learn, "auto" uses a fixed threshold instead.
    n_jobs : int, default=None
        Number of threads, if ``estimator`` is None.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the map. It is ignored if ``estimator`` has its own ``random_state``.

    Attributes
    ----------
    estimator_ : DRSNE or DenSNE
        The fitted estimator of the map.
    detector_ : estimator
        The fitted detector of the points of the map.
    embedding_ : ndarray of shape (n_samples, n_components)
        The map.
    training_scores_ : ndarray of shape (n_samples,)
        The scores of the training rows. More abnormal rows have lower scores. ``score_samples`` returns the same for
        training rows, except for duplicates, which get the score of the first one.
    offset_ : float
        The threshold: ``decision_function`` is ``score_samples - offset_``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features seen during ``fit``, if ``X`` has feature names.

    Examples
    --------
    >>> import numpy as np
    >>> from drsne import DRSNE, DRSNEDetector
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (95, 4)), rng.uniform(-12, 12, (5, 4))])
    >>> detector = DRSNEDetector(DRSNE(perplexity=10, density_neighbors=10, random_state=0), contamination=0.05).fit(X)
    >>> int((detector.predict(X) == -1).sum())
    5
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        detector: str = "knn",
        contamination: float | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.detector = detector
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Embed ``X`` and score its rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.

        Returns
        -------
        DRSNEDetector
            The fitted detector.
        """
        constraints.check("DRSNEDetector", {name: getattr(self, name) for name in constraints.rows("DRSNEDetector")})
        chosen = find(self.detector)
        share = 0.1 if isinstance(self.contamination, str) else float(self.contamination)
        if not isinstance(self.estimator, MapEstimator | None):
            raise TypeError(
                f"estimator must be a DRSNE, a DenSNE or None; got {type(self.estimator).__name__}. Pass None for the "
                "default map."
            )
        estimator = DRSNE(objective=_OBJECTIVE, n_jobs=self.n_jobs) if self.estimator is None else clone(self.estimator)
        if estimator.random_state is None:
            estimator.set_params(random_state=self.random_state)
        self.estimator_ = estimator.fit(X)
        self.embedding_: Array = np.asarray(self.estimator_.embedding_, dtype=np.float64)
        self.__dict__.pop("feature_names_in_", None)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        novelty = {"novelty": True} if "novelty" in chosen.parameters() else {}  # the detector can score new points
        self.detector_, self.training_scores_ = chosen.fitted(self.embedding_, novelty)
        self.offset_ = float(np.percentile(self.training_scores_, 100.0 * share))
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None, **kwargs: Any) -> NDArray[np.intp]:
        """Embed ``X`` and return -1 for outliers and 1 for other rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.
        **kwargs
            Not used.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 for outliers and 1 for other rows.
        """
        self.fit(X)
        return np.where(self.training_scores_ < self.offset_, -1, 1)

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the scores of rows. More abnormal rows have lower scores, as in scikit-learn.

        A row that equals a training row gets the score of that row. Any other row is placed in the map and scored
        there.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The scores.
        """
        check_is_fitted(self, "estimator_")
        found = self.estimator_._described(X)
        places, known = found.places, found.twins
        scores = np.empty(len(places))
        old = known >= 0
        scores[old] = self.training_scores_[known[old]]
        if (~old).any():
            scores[~old] = self.detector_.score_samples(places[~old])
        return scores

    def decision_function(self, X: ArrayLike) -> Array:
        """Return ``score_samples(X) - offset_``. Negative values are outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The scores minus the threshold.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return -1 for outliers and 1 for other rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            -1 or 1.
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.estimator is not None and bool(self.estimator._precomputed)
        return tags
