"""The isolation forest from scikit-learn. A point has a large score if few random cuts separate it from the others."""

from sklearn.ensemble import IsolationForest

from drsne.anomaly._detector import Detector

DETECTOR = Detector(
    title="IF",
    estimator=IsolationForest,
    settings={"n_estimators": 500, "random_state": 777, "contamination": "auto"},  # as in the paper, for every map
    unitless=True,
)
