from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value, in_one_test
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness as scikit_learn_trustworthiness
from sklearn.metrics import silhouette_score

from drsne import metrics
from drsne.metrics import evaluation

SCORES = (
    metrics.trustworthiness,
    metrics.continuity,
    metrics.concentration_correlation,
    metrics.density_rank_correlation,
    metrics.stress,
)


def pair(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)))
    return X, X[:, :2] + 0.3 * rng.normal(size=(n, 2))


@in_one_test("k", [1, 5, 10, 40])
def test_trustworthiness_equals_scikit_learn(k):
    raw = load_digits().data[:300]  # whole numbers: many equal distances
    for X, Y in (pair(), (raw, raw[:, 20:22] + pair(300)[1]), (raw, np.round(raw[:, 20:22]))):
        assert metrics.trustworthiness(X, Y, k) == pytest.approx(
            scikit_learn_trustworthiness(X, Y, n_neighbors=k), abs=1e-12
        )
        # continuity ranks neighbours in X, where whole numbers tie and no order is the right one
        tolerance = 3e-4 if X is raw else 1e-12
        assert metrics.continuity(X, Y, k) == pytest.approx(
            scikit_learn_trustworthiness(Y, X, n_neighbors=k), abs=tolerance
        )


def test_concentration_correlation_by_hand():
    X, Y = pair()
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    near = np.argsort(D, axis=1)[:, 1:13]
    high = np.take_along_axis(D, near, axis=1).mean(axis=1)
    low = np.linalg.norm(Y[:, None] - Y[near], axis=2).mean(axis=1)
    expected = np.corrcoef(np.log(1 / high), np.log(1 / low))[0, 1]
    assert metrics.concentration_correlation(X, Y, 12) == pytest.approx(expected, abs=1e-12)


def test_density_rank_correlation_by_hand():
    X, Y = pair()
    kth = [np.sort(np.linalg.norm(A[:, None] - A[None], axis=2), axis=1)[:, 12] for A in (X, Y)]
    expected = spearmanr(*kth)[0]
    assert metrics.density_rank_correlation(X, Y, 12) == pytest.approx(expected, abs=1e-6)
    wide = np.hstack([Y, Y, Y])  # the search for maps of many dimensions
    assert metrics.density_rank_correlation(X, wide, 12) == pytest.approx(expected, abs=1e-6)


@in_one_test("scaled", [False, True])
def test_stress_by_hand(scaled):
    X, Y = pair()
    D, E = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (X, Y))
    factor = (D * E).sum() / (E * E).sum() if scaled else 1.0
    expected = np.sqrt(((D - factor * E) ** 2).sum() / (D**2).sum())
    assert metrics.stress(X, Y, scaled=scaled) == pytest.approx(expected, rel=1e-10)
    if scaled:
        assert metrics.stress(X, 7 * Y, scaled=True) == pytest.approx(expected, rel=1e-10)


def test_group_density_correlation_by_hand():
    X, Y = pair()
    labels = np.array([*"abcdef", None], dtype=object)[np.random.default_rng(3).integers(7, size=300)]
    medians = []
    for A in (X, Y):
        near = np.sort(np.linalg.norm(A[:, None] - A[None], axis=2), axis=1)[:, 1:13]
        medians.append([np.median(np.log(near.mean(axis=1))[labels == name]) for name in "abcdef"])
    expected = spearmanr(*medians)[0]
    assert abs(expected) < 1
    assert metrics.group_density_correlation(X, Y, labels, 12) == pytest.approx(expected)
    assert metrics.group_density_correlation(X, 9 * Y[:, ::-1], labels, 12) == pytest.approx(expected)
    numbers = np.where(labels == None, np.nan, [ord(name or "z") for name in labels])  # noqa: E711
    assert metrics.group_density_correlation(X, Y, numbers.astype(float), 12) == pytest.approx(expected)
    pandas = pytest.importorskip("pandas")
    for kind in ("string", "category"):
        series = pandas.Series(labels, dtype=kind)
        assert metrics.group_density_correlation(X, Y, series, 12) == pytest.approx(expected)
    scores = metrics.evaluate(X, Y, labels)
    known = np.flatnonzero([name is not None for name in labels])
    assert scores["silhouette"] == pytest.approx(metrics.silhouette(Y[known], labels[known].astype(str)))
    assert scores["group_density_correlation"] == metrics.group_density_correlation(X, Y, labels)
    mixed = [1, "1"] * 150  # a number and a text are different labels
    assert not np.isnan(metrics.group_density_correlation(X, Y, np.array(mixed, dtype=object), 12))
    assert np.isnan(metrics.group_density_correlation(X, Y, ["a"] * 300, 12))
    assert np.isnan(metrics.group_density_correlation(X, Y, [None] * 300, 12))
    with pytest.raises(ValueError, match="labels must have shape"):
        metrics.group_density_correlation(X, Y, ["a"], 12)


def test_silhouette_is_scikit_learns():
    X, Y = pair()
    labels = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    assert metrics.silhouette(Y, labels) == pytest.approx(silhouette_score(Y, labels), abs=1e-12)


@in_one_test("score", SCORES)
def test_invariance_under_rotation_translation_and_order(score):
    X, Y = pair()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    order = np.random.default_rng(2).permutation(len(X))
    assert score(X, Y @ turn + 5) == pytest.approx(score(X, Y), abs=1e-9)
    assert score(X[order], Y[order]) == pytest.approx(score(X, Y), abs=1e-9)
    if score is not metrics.stress:
        assert score(X, 1e4 * Y) == pytest.approx(score(X, Y), abs=1e-7)


@in_one_test("score", SCORES)
def test_samples_estimate_the_whole(score):
    X, Y = pair(1500)
    whole = score(X, Y)
    sampled = [score(X, Y, max_samples=700, random_state=seed) for seed in range(3)]
    assert sampled[0] != whole
    assert np.mean(sampled) == pytest.approx(whole, abs=0.03)
    assert score(X, Y, max_samples=700, random_state=0) == sampled[0]
    assert score(X, Y, max_samples=5000) == whole


@in_one_test("scale", [2.0**-600, 2.0**600])
def test_units_do_not_matter(scale):
    X, Y = pair()
    assert metrics.evaluate(scale * X, scale * Y) == pytest.approx(metrics.evaluate(X, Y), rel=1e-9)


def test_a_perfect_map():
    X, _ = pair(d=2)
    scores = metrics.evaluate(X, X)
    assert scores == pytest.approx(
        {
            "trustworthiness": 1.0,
            "continuity": 1.0,
            "concentration_correlation": 1.0,
            "density_rank_correlation": 1.0,
            "local_density_rank_correlation": 1.0,
            "fragmentation": 0.0,
            "stress": 0.0,
            "triplets": 1.0,
            "distance_correlation": 1.0,
        },
        abs=1e-7,
    )


def test_evaluate_gathers_the_scores():
    X, Y = pair()
    labels = X[:, 0] > 0
    scores = metrics.evaluate(X, Y, labels)
    names = {score.__name__ for score in SCORES} | {"local_density_rank_correlation", "fragmentation"}
    names |= {"triplets", "distance_correlation"}
    assert set(scores) == names | {"silhouette", "group_density_correlation"}
    assert set(evaluation.NAMES) == names
    assert scores["local_density_rank_correlation"] == metrics.density_rank_correlation(X, Y, n_neighbors=5)
    for score in (*SCORES, metrics.fragmentation):
        assert scores[score.__name__] == pytest.approx(score(X, Y), abs=1e-12)
    assert scores["silhouette"] == metrics.silhouette(Y, labels)
    assert scores["group_density_correlation"] == metrics.group_density_correlation(X, Y, labels)
    assert all(isinstance(value, float) for value in scores.values())
    some = metrics.evaluate(X, Y, labels, max_samples=100, random_state=0)
    assert some == metrics.evaluate(X, Y, labels, max_samples=100, random_state=0)
    assert some["trustworthiness"] == metrics.trustworthiness(X, Y, max_samples=100, random_state=0)
    assert np.isfinite(list(metrics.evaluate(X[:5], Y[:5]).values())).all()


def test_order_of_random_distances():
    """The scores of large distances are near those of all triplets and pairs, and know how near."""
    X, Y = pair(400)
    D, E = (squareform(pdist(A)) for A in (X, Y))
    off = ~np.eye(len(X), dtype=bool)
    order = np.mean([np.mean((D[i][:, None] < D[i]) == (E[i][:, None] < E[i])) for i in range(len(X))])
    exact = {metrics.triplets: order, metrics.distance_correlation: spearmanr(D[off], E[off])[0]}
    for score, expected in exact.items():
        found = [score(X, Y, max_samples=100, random_state=seed) for seed in range(20)]
        assert np.mean(found) == pytest.approx(expected, abs=0.01)
        assert np.mean([each.standard_error for each in found]) == pytest.approx(np.std(found), rel=0.6)
        assert 0.5 < expected < 1.0
        assert score(D, Y, metric="precomputed") == pytest.approx(score(X, Y), abs=1e-9)
        assert score(sp.csr_matrix(X), Y) == pytest.approx(score(X, Y), abs=1e-9)
        assert score(X, 3.0 * Y) == pytest.approx(score(X, Y), abs=1e-9)
        assert np.isnan(score(np.zeros((30, 2)), Y[:30]))
        assert metrics.evaluate(X, Y, random_state=3)[score.__name__] == pytest.approx(
            score(X, Y, random_state=3), abs=0.03
        )
    ties = np.zeros((400, 2))
    assert metrics.triplets(X, ties) == 0.5


def minkowski_three(a, b):
    return float((np.abs(a - b) ** 3).sum() ** (1 / 3))


METRICS = {
    "cosine": "cosine",
    "manhattan": "cityblock",
    "chebyshev": "chebyshev",
    "seuclidean": "seuclidean",
    "mahalanobis": "mahalanobis",
    minkowski_three: minkowski_three,
}


@each_value({"metric": METRICS, "score": [*SCORES, metrics.fragmentation]})
def test_metrics_of_the_data(score, metric):
    """Every metric gives what its matrix of distances gives."""
    X, Y = pair(120)
    D = squareform(pdist(X, METRICS[metric]))
    found = score(X, Y, metric=metric)
    assert found == pytest.approx(score(D, Y, metric="precomputed"), abs=1e-9)
    assert metrics.evaluate(X, Y, metric=metric)[score.__name__] == pytest.approx(found, abs=1e-9)
    plain = squareform(pdist(X))
    assert score(plain, Y, metric="precomputed") == pytest.approx(score(X, Y), abs=1e-9)


@in_one_test(
    ("X", "metric", "message"),
    [
        (np.eye(40), "cosin", "metric must be one of"),
        (np.ones((40, 3)), "precomputed", "square"),
        (sp.csr_matrix(2.0 - 2.0 * np.eye(40)), "precomputed", "full distance matrix"),
    ],
)
def test_wrong_metrics_are_refused(X, metric, message):
    for score in (*SCORES, metrics.fragmentation, metrics.evaluate):
        with pytest.raises(ValueError, match=message):
            score(X, np.random.default_rng(0).normal(size=(40, 2)), metric=metric)


@in_one_test("score", [*SCORES, metrics.fragmentation])
def test_every_score_far_from_the_origin(score):
    """Distances that come from inner products would lose all their digits."""
    X, Y = pair()
    far, map_far = X + 1e9, Y + 1e9
    near, map_near = far - 1e9, map_far - 1e9  # with the same rounding
    expected = score(near, map_near)
    assert score(far, map_near) == pytest.approx(expected, abs=1e-6)
    assert score(near, map_far) == pytest.approx(expected, abs=1e-6)
    assert score(far, map_far) == pytest.approx(expected, abs=1e-6)
    assert score(sp.csr_matrix(far), map_far) == pytest.approx(expected, abs=1e-6)


def test_sparse_data_stay_sparse(monkeypatch):
    X, Y = pair(60)
    X = np.where(X > 0.5, X, 0.0)
    expected = metrics.trustworthiness(X, Y)
    monkeypatch.setattr(sp.csr_matrix, "toarray", lambda *_: pytest.fail("a sparse matrix was made dense"))
    assert metrics.trustworthiness(sp.csr_matrix(X), Y) == pytest.approx(expected, abs=1e-9)


@in_one_test("metric", ["euclidean", "manhattan"])
def test_scales_beyond_squares_give_no_warning(metric):
    X, Y = pair(40)
    for scale in (1e-305, 1e150, 1e290):
        scores = metrics.evaluate(scale * X, Y, metric=metric)
        expected = metrics.evaluate(X, Y, metric=metric)
        assert scores.pop("stress") >= 0.0
        assert scores == pytest.approx({name: expected[name] for name in scores}, abs=1e-6)


def test_undefined_scores_are_nan_without_a_warning():
    X, Y = pair(40)
    assert np.isnan(metrics.concentration_correlation(X, np.zeros((40, 2)), 5))
    assert np.isnan(metrics.stress(np.ones((40, 3)), Y))
    duplicates = np.repeat(X[:8], 5, axis=0)
    assert np.isnan(metrics.concentration_correlation(duplicates, Y, 4))  # every radius is zero
    assert metrics.evaluate(np.ones((40, 3)), Y)["trustworthiness"] <= 1.0


def test_no_score_holds_a_matrix_of_all_pairs():
    n = 6000
    rng = np.random.default_rng(0)
    X, Y, labels = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.integers(3, size=n)
    metrics.evaluate(X[:100], Y[:100], labels[:100])  # imports and compilation
    tracemalloc.start()
    metrics.evaluate(X, Y, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * 8 * n * n


@in_one_test(
    ("call", "message"),
    [
        (
            lambda X, Y: metrics.trustworthiness(X, Y, 150),
            "n_neighbors must .*150; got 150",
        ),
        (lambda X, Y: metrics.trustworthiness(X, Y, 0), "n_neighbors must .*got 0"),
        (lambda X, Y: metrics.concentration_correlation(X, Y, 300), "n_neighbors must .*got 300"),
        (lambda X, Y: metrics.continuity(X, Y[:-1]), "X and Y must .*got 300 and 299"),
        (lambda X, Y: metrics.stress(X, Y, max_samples=0), "max_samples must .*got 0"),
        (lambda X, Y: metrics.silhouette(Y, [0, 1]), r"labels must have shape \(300,\)"),
        (lambda X, Y: metrics.stress(X, np.full((300, 2), np.nan)), "Y must be finite; got NaN"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(*pair())


@in_one_test("seed", range(8))
def test_ranks_among_a_row(seed):
    """Compare with counting: spread and concentrated values, ties, repeats, one value only, inf, and nan."""
    from drsne.backends.numba.kernels.metrics import below

    rng = np.random.RandomState(seed)
    D = [
        lambda: rng.rand(7, 60),
        lambda: rng.rand(7, 60) ** 30,
        lambda: rng.randint(0, 9, (7, 60)).astype(float),
        lambda: 1.0 + 1e-15 * rng.randint(0, 9, (7, 60)),
        lambda: np.full((7, 60), 2.0),
        lambda: np.where(rng.rand(7, 60) < 0.5, 1e-300, 1e300) * rng.rand(7, 60),
        lambda: np.where(rng.rand(7, 60) < 0.5, np.inf, rng.rand(7, 60)),
        lambda: np.hstack([rng.rand(7, 50), np.full((7, 10), np.nan)]),
    ][seed]()
    listed = rng.randint(0, 50, (7, 12))
    values = np.take_along_axis(D, listed, axis=1)
    counts, tied = np.empty(listed.shape, np.intp), np.empty(len(D), bool)
    below(D, listed, np.argsort(values, axis=1), counts, tied)
    smaller = (D[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (D[:, None, :] == values[:, :, None]).sum(axis=2)
    np.testing.assert_array_equal(counts, smaller)
    np.testing.assert_array_equal(tied, (equal > 1).any(axis=1))
