"""Isolation forest of scikit-learn, whose score is large if few random cuts separate a point from the others."""

from sklearn.ensemble import IsolationForest

from drsne.anomaly._detector import Detector

DETECTOR = Detector(
    title="IF",
    estimator=IsolationForest,
    settings={"n_estimators": 500, "random_state": 777, "contamination": "auto"},  # the paper's, for every map
    unitless=True,
)
