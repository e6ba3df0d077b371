"""The evaluation of detectors with labels, the oracle selections, and the paper's scores of the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from at_hand import need
from sklearn.metrics import average_precision_score, roc_auc_score

from drsne import anomaly
from drsne.anomaly import anomaly_scores
from drsne_paper import datasets, oracle
from drsne_paper.datasets import recipes
from drsne_paper.oracle import Choice
from drsne_paper.scoring import evaluate_anomaly


@pytest.fixture
def points():
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(size=(90, 2)), rng.normal(4, 3, (15, 2))])


@pytest.fixture
def labels():
    return np.repeat([0, 1], [90, 15])


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


def test_a_collapsed_map_is_refused(labels):
    with pytest.raises(ValueError, match=r"gives every point .*the same score"):
        evaluate_anomaly(np.full((105, 2), 0.3), labels)


def test_equal_but_for_rounding_is_refused():
    angle = np.linspace(0, 2 * np.pi, 105, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1
    assert np.ptp(anomaly_scores(ring, "centroid")) > 0
    with pytest.raises(ValueError, match="'centroid' gives every point"):
        evaluate_anomaly(ring, np.arange(105) < 5)


GRID = {
    (0.0, 40): [{"isolation_forest": 0.2, "lof": 0.6}, {"isolation_forest": 0.4, "lof": 0.5}],
    (0.5, 80): [{"isolation_forest": 0.7, "lof": 0.1}, {"isolation_forest": 0.5, "lof": 0.2}],
    (0.5, 40): [{"lof": 0.3, "isolation_forest": 0.6}, {"isolation_forest": 0.6, "lof": 0.4}],
}


def test_oracle_best_takes_each_detectors_own():
    found = oracle.oracle_best(GRID)
    assert found["lof"] == Choice((0.0, 40), pytest.approx(0.55), pytest.approx(np.std([0.6, 0.5], ddof=1)))
    # (0.5, 80) has the same mean: the smaller second parameter is taken.
    assert found["isolation_forest"] == Choice((0.5, 40), pytest.approx(0.6), 0.0)


def test_oracle_single_takes_one_setting():
    found = oracle.oracle_single(GRID)
    assert {choice.setting for choice in found.values()} == {(0.5, 40)}
    assert found["lof"].mean == pytest.approx(0.35)
    assert found["lof"].std == pytest.approx(np.std([0.3, 0.4], ddof=1))
    by_lof = oracle.oracle_single(GRID, "lof")
    assert by_lof["isolation_forest"] == Choice((0.0, 40), pytest.approx(0.3), pytest.approx(math.sqrt(0.02)))
    for name, choice in oracle.oracle_best(GRID).items():
        assert found[name].mean <= choice.mean


def test_ties_go_to_the_smaller_first_parameter():
    same = [{"lof": 0.1}, {"lof": 0.2}, {"lof": 0.3}]
    grid = {(1.0, 40): same, (0.1, 300): same[::-1], (0.1, 80): [same[1], same[0], same[2]], (2.0, 1): same}
    assert oracle.oracle_best(grid)["lof"].setting == (0.1, 80)
    assert oracle.oracle_single(grid, "lof")["lof"].setting == (0.1, 80)


def test_one_seed_has_no_deviation():
    mean, std = oracle.oracle_best({30: [{"lof": 0.25}]})["lof"][1:]
    assert mean == 0.25
    assert math.isnan(std)


def test_settings_without_order():
    alone = {"a": [{"lof": 0.2}], 3: [{"lof": 0.1}]}
    assert oracle.oracle_best(alone)["lof"].setting == "a"
    with pytest.raises(TypeError, match=r"settings .*must be sortable.*got \['a', 3\]"):
        oracle.oracle_best({"a": [{"lof": 0.2}], 3: [{"lof": 0.2}]})


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({}, "at least one setting"),
        ({1: []}, "at least one seed"),
        ({1: [{"lof": 0.1}] * 2, 2: [{"lof": 0.1}]}, "seeds.*got 2 for 1 and 1 for 2"),
        ({1: [{"lof": 0.1}], 2: [{"knn": 0.1}]}, "same detectors.*2 differs from 1"),
    ],
)
def test_wrong_results(results, message):
    with pytest.raises(ValueError, match=message):
        oracle.oracle_best(results)


def test_a_detector_without_results():
    with pytest.raises(ValueError, match=r"detector must .*got 'lov'\. .*'lof'"):
        oracle.oracle_single(GRID, "lov")


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
    found = evaluate_anomaly(recipes.standardise(data.X), data.y)
    assert found["knn"]["auprc"] == pytest.approx(0.689, abs=0.002)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1], [0, 1, 2], [-1, 1, 1]])
def test_labels_that_are_not_of_both_kinds(labels):
    with pytest.raises(ValueError, match="labels must be 1 for anomalous points"):
        evaluate_anomaly([[0.0], [1.0], [3.0]], labels)
