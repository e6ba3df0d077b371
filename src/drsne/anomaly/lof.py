"""Local outlier factor of scikit-learn, which is large if the density at a point is lower than at its neighbours."""

from sklearn.neighbors import LocalOutlierFactor

from drsne.anomaly._detector import Detector

DETECTOR = Detector(
    title="LOF",
    estimator=LocalOutlierFactor,
    settings={"n_neighbors": 20},
    training="negative_outlier_factor_",
    unitless=True,
)
