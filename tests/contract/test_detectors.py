"""What every detector in the folder guarantees: finite scores, higher for isolated points, the same at every call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from covering import in_one_test

from drsne import anomaly
from drsne.anomaly import find


@pytest.fixture
def points():
    """Return a group of points, and one point far from it."""
    return np.vstack([np.random.default_rng(0).normal(size=(80, 2)), [[25.0, -20.0]]])


@pytest.mark.parametrize("name", anomaly.detectors())
def test_scores(name, points):
    before = points.copy()
    scores = anomaly.anomaly_scores(points, name)
    assert scores.shape == (81,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert scores.argmax() == 80
    np.testing.assert_array_equal(anomaly.anomaly_scores(points.tolist(), name), scores)
    np.testing.assert_array_equal(points, before)


@pytest.mark.parametrize("name", anomaly.detectors())
def test_an_estimator_with_the_sign_of_scikit_learn(name, points):
    """Lower is more abnormal; the settings are parameters of the estimator, and can be replaced."""
    detector = find(name)
    assert set(detector.settings) <= set(detector.parameters())
    model = detector.estimator().fit(points)
    own = model.score_samples(points) if detector.training is None else getattr(model, detector.training)
    assert own.argmin() == 80
    np.testing.assert_array_equal(anomaly.anomaly_scores(points, name), -own)
    np.testing.assert_array_equal(anomaly.anomaly_scores(points, name, **model.get_params()), -own)


@in_one_test("name", anomaly.detectors())
def test_unknown_parameters(name, points):
    with pytest.raises(TypeError, match=rf"'{name}' takes .*; got 'n_neighbour'"):
        anomaly.anomaly_scores(points, name, n_neighbour=3)


@in_one_test("name", anomaly.detectors())
def test_few_points(name):
    """Two points are enough, and have equal scores; a warning names the parameter that is lowered."""
    if name in ("knn", "lof"):
        with pytest.warns(UserWarning, match="n_neighbors"):
            scores = anomaly.anomaly_scores([[0.0], [1.0]], name)
    else:
        scores = anomaly.anomaly_scores([[0.0], [1.0]], name)
    assert scores[0] == pytest.approx(scores[1])


def test_every_detector_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    assert [name for name in anomaly.detectors() if f"| `{name}` |" not in page] == []
