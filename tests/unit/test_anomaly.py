"""Detectors, their scores against a plain rewrite, and the oracle selections."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from at_hand import need
from scipy.sparse import csr_matrix
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.estimator_checks import parametrize_with_checks

from drsne import anomaly, datasets
from drsne.anomaly import CentroidDistance, Choice, KNeighborsDistance, anomaly_scores, evaluate_anomaly
from drsne.datasets import recipes


@pytest.fixture(params=[2, 40], ids=["tree", "all pairs"])
def points(request):
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(size=(90, request.param)), rng.normal(4, 3, (15, request.param))])


@pytest.fixture
def labels():
    return np.repeat([0, 1], [90, 15])


def all_distances(A, B):
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))


def neighbor_sums(A, k):
    D = all_distances(A, A)
    np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k].sum(axis=1)


def centroid_distance(A):
    return np.sqrt(((A - A.mean(axis=0)) ** 2).sum(axis=1))


@pytest.mark.parametrize("k", [1, 50, 104])
def test_knn_is_the_sum_of_distances(points, k):
    expected = neighbor_sums(points, k)
    np.testing.assert_allclose(anomaly_scores(points, "knn", n_neighbors=k), expected, rtol=1e-12)
    model = KNeighborsDistance(n_neighbors=k).fit(points)
    np.testing.assert_allclose(model.negative_distance_, -expected, rtol=1e-12)
    assert model.n_neighbors_ == k


def test_knn_takes_50_neighbours(points):
    np.testing.assert_allclose(anomaly_scores(points, "knn"), neighbor_sums(points, 50), rtol=1e-12)


def test_knn_of_new_rows(points):
    model = KNeighborsDistance(n_neighbors=3).fit(points[:60])
    expected = np.sort(all_distances(points[60:], points[:60]), axis=1)[:, :3].sum(axis=1)
    np.testing.assert_allclose(model.score_samples(points[60:]), -expected, rtol=1e-12)
    # A fitted row that is passed as a new one finds itself.
    closer = np.sort(all_distances(points[:60], points[:60]), axis=1)[:, :3].sum(axis=1)
    np.testing.assert_allclose(model.score_samples(points[:60]), -closer, rtol=1e-12)


def test_a_twin_is_a_neighbour(points):
    twice = np.vstack([points, points[:1]])
    scores = anomaly_scores(twice, "knn", n_neighbors=1)
    assert scores[0] == scores[-1] == 0.0
    assert (scores[1:-1] > 0).all()
    np.testing.assert_allclose(anomaly_scores(twice, "knn", n_neighbors=4), neighbor_sums(twice, 4), rtol=1e-12)


def test_more_twins_than_neighbours(points):
    """The search may then not find the row itself; one of the zeros is dropped instead."""
    many = np.vstack([np.tile(points[:1] + 0.1, (30, 1)), points])
    scores = anomaly_scores(many, "knn", n_neighbors=5)
    np.testing.assert_array_equal(scores[:30], 0.0)
    np.testing.assert_allclose(scores, neighbor_sums(many, 5), rtol=1e-12, atol=1e-14)


def test_fewer_points_than_neighbours(points):
    with pytest.warns(UserWarning, match="Lowered n_neighbors from 50 to 29"):
        model = KNeighborsDistance().fit(points[:30])
    assert model.n_neighbors_ == 29
    np.testing.assert_allclose(model.negative_distance_, -neighbor_sums(points[:30], 29), rtol=1e-12)


def test_centroid_is_the_distance_to_the_mean(points):
    np.testing.assert_allclose(anomaly_scores(points, "centroid"), centroid_distance(points), rtol=1e-12)
    model = CentroidDistance().fit(points)
    np.testing.assert_allclose(model.centroid_, points.mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(model.score_samples(points), model.negative_distance_)
    assert model.score_samples(model.centroid_[None])[0] == 0.0


def test_the_others_are_scikit_learns(points):
    np.testing.assert_array_equal(
        anomaly_scores(points, "lof"), -LocalOutlierFactor(n_neighbors=20).fit(points).negative_outlier_factor_
    )
    forest = IsolationForest(n_estimators=500, random_state=777).fit(points)
    np.testing.assert_array_equal(anomaly_scores(points), -forest.score_samples(points))
    other = IsolationForest(n_estimators=20, random_state=1).fit(points)
    np.testing.assert_array_equal(
        anomaly_scores(points, "isolation_forest", n_estimators=20, random_state=1), -other.score_samples(points)
    )


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


def test_scores_too_large_to_hold():
    with pytest.raises(ValueError, match=r"Y must .*'knn'.*got values up to 1e\+308"):
        anomaly_scores([[1e308], [-1e308], [0.0]], "knn", n_neighbors=2)


@parametrize_with_checks([KNeighborsDistance(n_neighbors=3), CentroidDistance()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("value", "kind"), [(0, ValueError), (2.5, ValueError), ("5", TypeError), (True, TypeError)])
def test_wrong_neighbours(value, kind, points):
    with pytest.raises(kind, match=r"n_neighbors must .*got"):
        KNeighborsDistance(n_neighbors=value).fit(points)


def test_evaluation(points, labels):
    found = evaluate_anomaly(points, labels)
    assert list(found) == anomaly.detectors()
    for name, scored in found.items():
        scores = anomaly_scores(points, name)
        assert scored == {
            "auprc": average_precision_score(labels, scores),
            "auroc": roc_auc_score(labels, scores),
        }
        assert scored["auroc"] > 0.6  # higher is more anomalous
    assert evaluate_anomaly(points, labels) == found


@pytest.mark.parametrize("kind", [bool, float, np.int8, object, list])
def test_labels_of_every_kind(kind, points, labels):
    given = labels.tolist() if kind is list else labels.astype(kind)
    assert evaluate_anomaly(points, given, "knn") == evaluate_anomaly(points, labels, ["knn"])


def test_labels_of_pandas(points, labels):
    pandas = pytest.importorskip("pandas")
    expected = evaluate_anomaly(points, labels, "knn")
    assert evaluate_anomaly(pandas.DataFrame(points), pandas.Series(labels).astype("boolean"), "knn") == expected


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 0, 0], "y must .*got 0 for all 4"),
        ([True] * 4, "y must .*got 1 for all 4"),
        ([0, 1, 2, 1], r"y must .*got 2\. Pass y == c"),
        ([1, 1, -1, 1], r"y must .*got -1\. .*y == -1"),
        ([0, 1, math.nan, 1], "y must .*got nan"),
        (["0", "1", "0", "1"], "y must .*got '0', '1'"),
        ([0, 1, None, 1], "y must .*got None"),
        ([0.5, 0.25, 0.125, 0.75], "y must .*got 0.5, 0.25, 0.125, 0.75"),
        ([0, 1, 1], "y must .*4 rows.*got 3"),
        ([[0], [1], [0], [1]], r"y must have one dimension.*got shape \(4, 1\).*np.ravel"),
        (None, "y must .*got None"),
        (np.ma.array([0, 1, 0, 1], mask=[0, 1, 0, 0]), "y must .*masked.*got 1"),
        ({"a": 1}, "y must have one dimension.*got dict"),
        (csr_matrix([[0, 1, 0, 1]]), "y must have one dimension.*got csr_matrix"),
        ([[0], [1], [0, 1], [1]], "y must be an array.*lengths"),
        (np.array([0, [1], 1, [1]], dtype=object), r"y must .*got \[1\]"),
    ],
)
def test_wrong_labels(y, message):
    with pytest.raises(ValueError, match=message):
        evaluate_anomaly([[0.0, 0], [1, 2], [2, 1], [5, 5]], y, "centroid")


@pytest.mark.parametrize(
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
    with pytest.raises(kind, match=message):
        evaluate_anomaly(Y, [0, 0, 1])


def test_unknown_detectors(points, labels):
    with pytest.raises(ValueError, match=r"detector must .*got 'loff'\. Did you mean 'lof'\?$"):
        anomaly_scores(points, "loff")
    with pytest.raises(ValueError, match=r"detector must .*got 'selection'"):
        anomaly_scores(points, "selection")
    for title, name in {"LOF": "lof", "IF": "isolation_forest", "kNN": "knn", "Cent": "centroid"}.items():
        with pytest.raises(ValueError, match=f"got '{title}'. Did you mean '{name}'"):
            anomaly_scores(points, title)
    with pytest.raises(ValueError, match=r"detectors must .*got 'isolationforest'\. .*'isolation_forest'"):
        evaluate_anomaly(points, labels, ["knn", "isolationforest"])
    with pytest.raises(ValueError, match=r"detectors must .*got none"):
        evaluate_anomaly(points, labels, [])


def test_unknown_parameters(points):
    with pytest.raises(TypeError, match=r"'knn' takes n_neighbors; got 'n_neighbours'\. .*'n_neighbors'"):
        anomaly_scores(points, "knn", n_neighbours=3)
    with pytest.raises(TypeError, match=r"'centroid' takes no parameters; got 'k'"):
        anomaly_scores(points, "centroid", k=3)


@pytest.mark.parametrize("name", anomaly.detectors())
def test_a_collapsed_map_is_refused(name, labels):
    collapsed = np.full((105, 2), 0.3)
    assert np.ptp(anomaly_scores(collapsed, name)) < 1e-12  # the scores themselves exist
    with pytest.raises(ValueError, match=rf"'{name}' gives every point .*the same score"):
        evaluate_anomaly(collapsed, labels, name)


def test_equal_but_for_rounding_is_refused():
    angle = np.linspace(0, 2 * np.pi, 105, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1
    assert np.ptp(anomaly_scores(ring, "centroid")) > 0
    with pytest.raises(ValueError, match="'centroid' gives every point"):
        evaluate_anomaly(ring, np.arange(105) < 5, "centroid")


GRID = {
    (0.0, 40): [{"isolation_forest": 0.2, "lof": 0.6}, {"isolation_forest": 0.4, "lof": 0.5}],
    (0.5, 80): [{"isolation_forest": 0.7, "lof": 0.1}, {"isolation_forest": 0.5, "lof": 0.2}],
    (0.5, 40): [{"lof": 0.3, "isolation_forest": 0.6}, {"isolation_forest": 0.6, "lof": 0.4}],
}


def test_oracle_best_takes_each_detectors_own():
    found = anomaly.oracle_best(GRID)
    assert found["lof"] == Choice((0.0, 40), pytest.approx(0.55), pytest.approx(np.std([0.6, 0.5], ddof=1)))
    # (0.5, 80) has the same mean: the smaller second parameter is taken.
    assert found["isolation_forest"] == Choice((0.5, 40), pytest.approx(0.6), 0.0)


def test_oracle_single_takes_one_setting():
    found = anomaly.oracle_single(GRID)
    assert {choice.setting for choice in found.values()} == {(0.5, 40)}
    assert found["lof"].mean == pytest.approx(0.35)
    assert found["lof"].std == pytest.approx(np.std([0.3, 0.4], ddof=1))
    by_lof = anomaly.oracle_single(GRID, "lof")
    assert by_lof["isolation_forest"] == Choice((0.0, 40), pytest.approx(0.3), pytest.approx(math.sqrt(0.02)))
    for name, choice in anomaly.oracle_best(GRID).items():
        assert found[name].mean <= choice.mean


def test_ties_go_to_the_smaller_first_parameter():
    same = [{"lof": 0.1}, {"lof": 0.2}, {"lof": 0.3}]
    grid = {(1.0, 40): same, (0.1, 300): same[::-1], (0.1, 80): [same[1], same[0], same[2]], (2.0, 1): same}
    assert anomaly.oracle_best(grid)["lof"].setting == (0.1, 80)
    assert anomaly.oracle_single(grid, "lof")["lof"].setting == (0.1, 80)


def test_one_seed_has_no_deviation():
    mean, std = anomaly.oracle_best({30: [{"lof": 0.25}]})["lof"][1:]
    assert mean == 0.25
    assert math.isnan(std)


def test_settings_without_order():
    alone = {"a": [{"lof": 0.2}], 3: [{"lof": 0.1}]}
    assert anomaly.oracle_best(alone)["lof"].setting == "a"
    with pytest.raises(TypeError, match=r"settings .*must be sortable.*got \['a', 3\]"):
        anomaly.oracle_best({"a": [{"lof": 0.2}], 3: [{"lof": 0.2}]})


@pytest.mark.parametrize(
    ("results", "kind", "message"),
    [
        ({}, ValueError, "results must .*setting; got none"),
        ({1: []}, ValueError, "results must .*seed.*got none for 1"),
        ({1: [{}]}, ValueError, "results must .*detector; got none for 1"),
        ({1: [{"lof": 0.1}] * 2, 2: [{"lof": 0.1}]}, ValueError, "results must .*seeds.*got 2 for 1 and 1 for 2"),
        ({1: [{"lof": 0.1}], 2: [{"knn": 0.1}]}, ValueError, "results must .*got lof for 1 and knn for 2"),
        ({1: [{"lof": math.nan}]}, ValueError, r"results\[1\], lof must .*got nan"),
        ([1], TypeError, r"results must be a mapping.*got \[1\]"),
        (None, TypeError, "results must be a mapping.*got None"),
        ({1: {"lof": 0.5}}, TypeError, "results must .*list.*for 1"),
        ({1: [0.5]}, TypeError, r"results must .*mapping.*got \[0.5\] for 1"),
        ({1: [{"lof": {"auprc": 0.1}}]}, TypeError, r'results\[1\], lof must .*"auprc"'),
    ],
)
def test_wrong_results(results, kind, message):
    with pytest.raises(kind, match=message):
        anomaly.oracle_best(results)


def test_a_detector_without_results():
    with pytest.raises(ValueError, match=r"detector must .*got 'lov'\. .*'lof'"):
        anomaly.oracle_single(GRID, "lov")


# AUPRC in the standardised data themselves (HIGH-D): kNN, LOF, IF and Cent of the paper's result files.
HIGH_D = {
    "thyroid": (lambda: datasets.load("thyroid"), (0.1220, 0.1245, 0.0985, 0.1029)),
    "shuttle": (recipes.shuttle_sample, (0.418, 0.299, 0.642, 0.609)),
    "fashion_mnist": (recipes.fashion_anomalies, (0.423, 0.114, 0.537, 0.459)),
}


@pytest.mark.parametrize("name", HIGH_D)
def test_the_papers_scores_of_the_data(name):
    need(name)
    load, expected = HIGH_D[name]
    data = load()
    found = evaluate_anomaly(recipes.standardise(data.X), data.y)
    measured = [found[detector]["auprc"] for detector in ("knn", "lof", "isolation_forest", "centroid")]
    assert measured == pytest.approx(expected, abs=0.002)


def test_the_papers_score_of_the_spiral():
    data = datasets.load("spiral")
    assert data.y.sum() == 251
    found = evaluate_anomaly(recipes.standardise(data.X), data.y, "knn")
    assert found["knn"]["auprc"] == pytest.approx(0.689, abs=0.002)


@pytest.mark.parametrize("detector", ["lof", "isolation_forest"])
@pytest.mark.parametrize(("unit", "away"), [(2.0**900, 0), (2.0**-40, 0), (2.0**-900, 0), (1, 2.0**30), (2.0**-30, 1)])
def test_scores_of_a_map_that_is_far_small_or_large(detector, unit, away):
    """Squares of distances may overflow, and single precision, which the forest uses, may not tell points apart."""
    Y, as_it_is, moved = _scored_map(detector)
    scores = anomaly_scores(Y * unit + away, detector)
    np.testing.assert_allclose(scores, as_it_is, rtol=0.02)
    np.testing.assert_allclose(scores, moved, rtol=1e-12)  # moved the same way


@functools.cache
def _scored_map(detector):
    """Return a map, its scores, and its scores after it was moved and shrunk."""
    Y = np.round(np.random.default_rng(0).normal(size=(80, 2)) * 2.0**10) * 2.0**-10  # exact after every motion here
    return Y, anomaly_scores(Y, detector), anomaly_scores((Y + 3) * 2.0**-50, detector)


def test_detectors_that_are_no_names(points, labels):
    for wrong in (5, b"knn"):
        with pytest.raises(TypeError, match=rf"detectors must .*got {wrong!r}"):
            evaluate_anomaly([[0.0], [1.0], [2.0]], [0, 0, 1], wrong)
    (name,) = evaluate_anomaly(points, labels, np.array(["knn"]))
    assert type(name) is str
