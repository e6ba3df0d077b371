"""Scores that are computed by PyTorch, on the device of DRSNE_TEST_DEVICE (the CPU if it is not set)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value, in_one_test
from on_backends import DEVICE

from drsne import metrics
from drsne.backends import choice

torch = pytest.importorskip("torch")

from drsne.backends.torch import comparisons, map_neighbors, queries  # noqa: E402

SCORES = (
    metrics.trustworthiness,
    metrics.continuity,
    metrics.concentration_correlation,
    metrics.density_rank_correlation,
    metrics.fragmentation,
    metrics.stress,
)


def pair(n=400, d=6, d_map=2, seed=0):
    """Return groups of different densities, and a map in which some neighbours are torn apart."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(4, size=n)
    X = 6 * rng.normal(size=(4, d))[kind] + rng.normal(size=(n, d)) * np.array([0.2, 0.5, 1.0, 2.0])[kind, None]
    Y = X[:, :d_map] + 0.3 * rng.normal(size=(n, d_map))
    Y[::9] += 25.0
    return X, Y


def assert_the_same(X, Y, **options):
    expected = metrics.evaluate(X, Y, **options)
    found = metrics.evaluate(X, Y, device=DEVICE, **options)
    assert found == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True)
    assert all(isinstance(value, float) for value in found.values())
    return found


@each_value({"options": [{}, {"max_samples": 70, "random_state": 3}], "d_map": [1, 2, 3, 5]})
def test_scores_are_those_of_the_processor(d_map, options):
    X, Y = pair(d_map=d_map)
    scores = assert_the_same(X, Y, labels=X[:, 0] > 0, **options)
    before = X.copy(), Y.copy()
    Y.flags.writeable = False
    assert_the_same(X, Y, metric="l2", **options)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])
    assert_the_same(X.astype(np.float32), Y.tolist(), metric="minkowski", **options)
    assert scores["fragmentation"] > 0.05
    assert scores["trustworthiness"] < 0.999


@in_one_test(
    ("factor", "shift", "shift_of_map"),
    [
        (1e-290, 0.0, 0.0),
        (1e150, 0.0, 0.0),
        (1.0, 1e6, 0.0),
        (1.0, 0.0, 1e6),
        (1e3, 1e6, 1e6),
        (5e-324 * 2**60, 0.0, 0.0),
    ],
)
def test_scales_and_data_far_from_the_origin(factor, shift, shift_of_map):
    X, Y = pair()
    assert_the_same(factor * (X + shift), Y + shift_of_map)
    assert_the_same(X + shift, factor * (Y + shift_of_map), max_samples=70, random_state=0)


def test_cosine_distances():
    X, Y = pair()
    found = assert_the_same(X, Y, metric="cosine")
    assert_the_same(X, Y, metric="cosine", max_samples=70, random_state=0)
    for factor in (1e-300, 1e300):
        scores = metrics.evaluate(factor * X, Y, metric="cosine", device=DEVICE)
        assert scores == pytest.approx(found, abs=1e-9)


def test_data_that_need_double_precision():
    """Distances within the groups are lost in products of single precision, and partly in those of double precision."""
    X, Y = pair()
    X[::2, 0] += 1e5
    X[:5] += 1e11
    for score in (metrics.density_rank_correlation, metrics.concentration_correlation, metrics.fragmentation):
        assert score(X, Y, device=DEVICE) == pytest.approx(score(X, Y), abs=1e-9)


@in_one_test("score", SCORES)
def test_single_scores(score):
    X, Y = pair()
    for options in ({}, {"max_samples": 50, "random_state": 0}):
        found = score(X, Y, device=DEVICE, **options)
        assert found == pytest.approx(score(X, Y, **options), abs=1e-9)
        assert found == pytest.approx(metrics.evaluate(X, Y, device=DEVICE, **options)[score.__name__], abs=1e-12)
    assert metrics.stress(X, 3 * Y, scaled=True, device=DEVICE) == pytest.approx(
        metrics.stress(X, Y, scaled=True), abs=1e-9
    )


def by_hand(X, Y, k):
    """Return the trustworthiness if equal distances are sorted by the number of the row."""
    n = len(X)
    orders = []
    for A in (X, Y):
        D = ((A[:, None] - A[None]) ** 2).sum(axis=2)
        np.fill_diagonal(D, np.inf)
        orders.append(np.argsort(D, axis=1, kind="stable"))
    ranks = np.argsort(orders[0], axis=1) + 1
    excess = np.maximum(np.take_along_axis(ranks, orders[1][:, :k], axis=1) - k, 0)
    return 1.0 - 2.0 * excess.sum() / (n * k * (2 * n - 3 * k - 1))


def test_ties_go_to_the_smallest_number():
    rng = np.random.default_rng(0)
    X, Y = rng.integers(4, size=(300, 4)).astype(float), rng.integers(12, size=(300, 2)).astype(float)
    X[50:150] = X[50]  # more duplicates than the number of neighbours that are compared exactly
    for k in (3, 10):
        assert metrics.trustworthiness(X, Y, k, device=DEVICE) == pytest.approx(by_hand(X, Y, k), abs=1e-12)
        assert metrics.continuity(X, Y, k, device=DEVICE) == pytest.approx(by_hand(Y, X, k), abs=1e-12)


def test_duplicates():
    """The order of ties does not change these scores."""
    X, Y = (np.repeat(each, 3, axis=0) for each in pair(150))
    found, expected = (metrics.evaluate(X, Y, device=device) for device in (DEVICE, None))
    for name in set(expected) - {"trustworthiness", "continuity"}:
        assert found[name] == pytest.approx(expected[name], abs=1e-9)
    assert found == pytest.approx(expected, abs=1e-3)


def test_undefined_scores_are_nan():
    X, Y = pair(40)
    same = metrics.evaluate(np.ones((40, 3)), Y, device=DEVICE)
    assert np.isnan([same["concentration_correlation"], same["stress"]]).all()
    assert np.isnan(metrics.concentration_correlation(X, np.zeros((40, 2)), device=DEVICE))
    assert np.isfinite(list(assert_the_same(X[:5], Y[:5]).values())).all()


@pytest.mark.slow
def test_maps_that_are_divided_into_cells():
    X, Y = pair(8500)
    assert_the_same(X, Y + 1e6, max_samples=40, random_state=0)


def test_small_blocks_give_the_same_scores(monkeypatch):
    X, Y = pair()
    options = {"max_samples": 70, "random_state": 0, "device": DEVICE}
    expected = metrics.evaluate(X, Y, **options)
    monkeypatch.setattr(comparisons, "_BLOCK_BYTES", dict.fromkeys(("cpu", "cuda"), 3 * 8 * len(X)))
    for module, name in ((queries, "_PRODUCTS"), (queries, "_DIFFERENCES"), (map_neighbors, "_DISTANCES")):
        monkeypatch.setattr(module, name, dict.fromkeys(("cpu", "cuda"), 3 * len(X)))
    assert metrics.evaluate(X, Y, **options) == pytest.approx(expected, abs=1e-12)


@in_one_test(
    ("change", "options", "message"),
    [
        (lambda X: X, {"metric": "manhattan"}, r"metric must be .*'cosine'.*'manhattan'.*device=None"),
        (lambda X: X, {"metric": lambda a, b: 0.0}, r"metric must be .*function.*device=None"),
        (lambda X: X @ X.T, {"metric": "precomputed"}, r"metric must be .*'precomputed'.*device=None"),
        (sp.csr_matrix, {}, r"X must be dense .*device=None"),
        (lambda X: X * (np.arange(len(X)) > 1)[:, None], {"metric": "cosine"}, r"X must have no rows of zeros .*got 2"),
        (lambda X: np.vstack([1.2e308 * np.array([[1, -1, 1, 0, 0, 0]]), X[1:]]), {}, r"Distances must be finite"),
    ],
)
def test_data_that_a_device_does_not_support(change, options, message):
    X, Y = pair(60)
    for score in (*SCORES[1:4], metrics.evaluate):
        with pytest.raises(ValueError, match=message):
            score(change(X), Y, device=DEVICE, **options)


def test_wrong_and_missing_devices(monkeypatch):
    X, Y = pair(60)
    with pytest.raises(ValueError, match="device must be"):
        metrics.evaluate(X, Y, device="gpu")
    with pytest.raises(ValueError, match=r"device='cuda:99' is not there: .* Pass device=None"):
        metrics.evaluate(X, Y, device="cuda:99")
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'drsne\[torch\]'"):
        metrics.stress(X, Y, device="cpu")
