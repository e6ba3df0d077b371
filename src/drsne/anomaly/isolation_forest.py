"""Isolation forest of scikit-learn: large where few random cuts set a point apart."""

from sklearn.ensemble import IsolationForest

from drsne.anomaly._detector import Detector

DETECTOR = Detector(
    title="IF",
    estimator=IsolationForest,
    settings={"n_estimators": 500, "random_state": 777, "contamination": "auto"},  # the paper's seed, for every map
    unitless=True,
)
