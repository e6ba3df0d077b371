"""The local outlier factor from scikit-learn. It is large if a point has a lower density than its neighbours."""

from sklearn.neighbors import LocalOutlierFactor

from drsne.anomaly._detector import Detector

DETECTOR = Detector(
    title="LOF",
    estimator=LocalOutlierFactor,
    settings={"n_neighbors": 20},
    training="negative_outlier_factor_",
    unitless=True,
)
