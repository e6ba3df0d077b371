"""Detectors: their scores against a plain rewrite, and what every one of them guarantees."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from covering import in_one_test
from scipy.sparse import csr_matrix
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.estimator_checks import check_estimator

from drsne.anomaly import CentroidDistance, KNeighborsDistance, anomaly_scores, detectors, find


@pytest.fixture(params=[2, 40], ids=["tree", "all pairs"])
def points(request):
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(size=(90, request.param)), rng.normal(4, 3, (15, request.param))])


def all_distances(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))


def neighbor_sums(A, k):
    D = all_distances(A, A)
    np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k].sum(axis=1)


def centroid_distance(A):
    return np.sqrt(((A - A.mean(axis=0)) ** 2).sum(axis=1))


def test_knn_is_the_sum_of_distances(points):
    for k in (1, 50, 104):
        expected = neighbor_sums(points, k)
        np.testing.assert_allclose(anomaly_scores(points, "knn", n_neighbors=k), expected, rtol=1e-12)
        model = KNeighborsDistance(n_neighbors=k).fit(points)
        np.testing.assert_allclose(model.negative_distance_, -expected, rtol=1e-12)
        assert model.n_neighbors_ == k
    np.testing.assert_allclose(anomaly_scores(points, "knn"), neighbor_sums(points, 50), rtol=1e-12)
    with pytest.warns(UserWarning, match="Lowered n_neighbors from 50 to 29"):
        model = KNeighborsDistance().fit(points[:30])
    assert model.n_neighbors_ == 29
    np.testing.assert_allclose(model.negative_distance_, -neighbor_sums(points[:30], 29), rtol=1e-12)


def test_knn_of_new_rows(points):
    """A fitted row that is passed as a new one finds itself."""
    model = KNeighborsDistance(n_neighbors=3).fit(points[:60])
    for new in (points[60:], points[:60]):
        expected = np.sort(all_distances(new, points[:60]), axis=1)[:, :3].sum(axis=1)
        np.testing.assert_allclose(model.score_samples(new), -expected, rtol=1e-12)


def test_twins_are_neighbours(points):
    twice = np.vstack([points, points[:1]])
    scores = anomaly_scores(twice, "knn", n_neighbors=1)
    assert scores[0] == scores[-1] == 0.0
    assert (scores[1:-1] > 0).all()
    # With more twins than neighbours, the search may not find the row itself; one of the zeros is dropped instead.
    many = np.vstack([np.tile(points[:1] + 0.1, (30, 1)), points])
    np.testing.assert_allclose(anomaly_scores(many, "knn", n_neighbors=5), neighbor_sums(many, 5), rtol=1e-12, atol=0)


def test_centroid_is_the_distance_to_the_mean(points):
    np.testing.assert_allclose(anomaly_scores(points, "centroid"), centroid_distance(points), rtol=1e-12)
    model = CentroidDistance().fit(points)
    np.testing.assert_allclose(model.centroid_, points.mean(axis=0), rtol=1e-12)
    assert model.score_samples(model.centroid_[None])[0] == 0.0


def test_the_others_are_scikit_learns(points):
    np.testing.assert_array_equal(
        anomaly_scores(points, "lof"), -LocalOutlierFactor(n_neighbors=20).fit(points).negative_outlier_factor_
    )
    forest = IsolationForest(n_estimators=500, random_state=777).fit(points)
    np.testing.assert_array_equal(anomaly_scores(points), -forest.score_samples(points))


@pytest.mark.parametrize("name", ["knn", "centroid"])
def test_motions_and_scale_keep_the_ranking(name, points):
    scores = anomaly_scores(points, name)
    turn, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(points.shape[1],) * 2))
    moved = anomaly_scores(points @ turn + 1000.0, name)
    np.testing.assert_allclose(moved, scores, rtol=1e-9)
    np.testing.assert_array_equal(np.argsort(moved), np.argsort(scores))
    order = np.random.default_rng(3).permutation(len(points))
    np.testing.assert_allclose(anomaly_scores(points[order], name), scores[order], rtol=1e-12)
    for factor in (2.0**600, 2.0**-600):  # squares would overflow, or vanish
        np.testing.assert_array_equal(anomaly_scores(points * factor, name), scores * factor)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@in_one_test("estimator", [KNeighborsDistance(n_neighbors=3), CentroidDistance()])
def test_checks_of_scikit_learn(estimator):
    check_estimator(estimator)


@pytest.mark.parametrize("name", detectors())
def test_every_detector(name):
    """Scores are finite, highest for an isolated point and those of an estimator with the sign of scikit-learn."""
    points = np.vstack([np.random.default_rng(0).normal(size=(80, 2)), [[25.0, -20.0]]])
    before = points.copy()
    scores = anomaly_scores(points, name)
    assert (scores.shape, scores.dtype, scores.argmax()) == ((81,), np.float64, 80)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(anomaly_scores(points.tolist(), name), scores)
    np.testing.assert_array_equal(points, before)
    detector = find(name)
    assert set(detector.settings) <= set(detector.parameters())
    model = detector.estimator(**detector.settings).fit(points)
    own = model.score_samples(points) if detector.training is None else getattr(model, detector.training)
    np.testing.assert_array_equal(scores, -own)
    np.testing.assert_array_equal(anomaly_scores(points, name, **model.get_params()), -own)
    with pytest.raises(TypeError, match=rf"'{name}' takes .*; got 'n_neighbour'"):
        anomaly_scores(points, name, n_neighbour=3)


@pytest.mark.filterwarnings("ignore:Lowered n_neighbors")
@pytest.mark.filterwarnings("ignore:n_neighbors")
@in_one_test("name", detectors())
def test_two_points_have_equal_scores(name):
    scores = anomaly_scores([[0.0], [1.0]], name)
    assert scores[0] == pytest.approx(scores[1])


def test_every_detector_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    assert [name for name in detectors() if f"| `{name}` |" not in page] == []


@in_one_test(
    ("Y", "kind", "message"),
    [
        ([[0.0, 1], [math.nan, 2], [1, math.inf]], ValueError, "Y must be finite.*2 of 3 rows.*row 1"),
        ([[0.0, 1]], ValueError, "Y must .*2 points.*got 1"),
        (np.empty((0, 2)), ValueError, "Y must .*2 points.*got 0"),
        ([["a", "b"], ["c", "d"]], ValueError, "Y must hold numbers"),
        ([1.0, 2.0], ValueError, r"Y must .*got shape \(2,\)\..*Y.reshape"),
        (np.zeros((3, 2, 2)), ValueError, r"Y must .*got shape \(3, 2, 2\)"),
        (np.zeros((3, 0)), ValueError, r"Y must .*got shape \(3, 0\)"),
        (np.zeros((3, 2), dtype=complex), ValueError, r"Y must .*real.*got shape \(3, 2\) of complex128"),
        (None, ValueError, "Y must .*got None"),
        ([[0.0], [1.0, 2.0]], ValueError, "Y must be an array.*lengths"),
        (csr_matrix(np.eye(3)), TypeError, "Y must .*dense.*got csr_matrix.*toarray"),
        (np.ma.array(np.eye(3), mask=np.eye(3)), ValueError, "Y must .*masked.*got 3"),
    ],
)
def test_wrong_maps(Y, kind, message):
    with pytest.raises(kind, match=message):
        anomaly_scores(Y)


def test_wrong_parameters():
    points = np.eye(9)
    for value, kind in ((0, ValueError), (2.5, ValueError), ("5", TypeError), (True, TypeError)):
        with pytest.raises(kind, match=r"n_neighbors must .*got"):
            KNeighborsDistance(n_neighbors=value).fit(points)
    with pytest.raises(ValueError, match=r"Y must .*'knn'.*got values up to 1e\+308"):
        anomaly_scores([[1e308], [-1e308], [0.0]], "knn", n_neighbors=2)
    close = {"loff": "lof", "LOF": "lof", "IF": "isolation_forest", "kNN": "knn", "Cent": "centroid"}
    for title, name in close.items():
        with pytest.raises(ValueError, match=f"detector must .*got '{title}'. Did you mean '{name}'"):
            anomaly_scores(points, title)
    with pytest.raises(TypeError, match=r"'knn' takes n_neighbors; got 'n_neighbours'\. .*'n_neighbors'"):
        anomaly_scores(points, "knn", n_neighbours=3)
    with pytest.raises(TypeError, match=r"'centroid' takes no parameters; got 'k'"):
        anomaly_scores(points, "centroid", k=3)


@pytest.mark.parametrize("detector", ["lof", "isolation_forest"])
def test_scores_of_a_map_that_is_far_small_or_large(detector):
    """Squares of distances may overflow, and single precision, which the forest uses, may not tell points apart."""
    Y = np.round(np.random.default_rng(0).normal(size=(80, 2)) * 2.0**10) * 2.0**-10  # exact after every motion here
    as_it_is, moved = anomaly_scores(Y, detector), anomaly_scores((Y + 3) * 2.0**-50, detector)
    units = (2.0**900, 0), (2.0**-40, 0), (1, 2.0**30), (2.0**-30, 1), (2.0**-900, 0)
    for unit, away in units if detector == "lof" else units[::3]:
        scores = anomaly_scores(Y * unit + away, detector)
        np.testing.assert_allclose(scores, as_it_is, rtol=0.02)
        np.testing.assert_allclose(scores, moved, rtol=1e-12)  # moved the same way
