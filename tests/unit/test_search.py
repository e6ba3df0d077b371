"""The two searches: exact whatever the data, approximate with a recall and the same answer every time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from drsne.backends.numba.threads import Workers
from drsne.neighbors import exact, inverted_file, search
from drsne.neighbors.search import knn


@pytest.fixture(autouse=True)
def _small_data_are_searched_like_large_ones(monkeypatch):
    monkeypatch.setattr(exact, "_FEW", 0)


def clustered(n=4000, d=20, seed=0):
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.normal(size=(40, d))
    return centres[rng.integers(40, size=n)] + rng.normal(size=(n, d)) * rng.uniform(0.2, 2.0, (n, 1))


def recall(found, truth):
    return np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True)]) / truth.shape[1]


def test_approximate_recall_and_exact_distances():
    X = clustered()
    found, truth = knn(X, 30, method="approximate"), knn(X, 30, method="exact")
    assert recall(found.indices, truth.indices) > 0.97
    i, j = 17, found.indices[17, 3]
    assert found.distances[17, 3] == pytest.approx(np.linalg.norm(X[i] - X[j]), rel=1e-12)
    assert (np.diff(found.distances, axis=1) >= 0).all()
    assert not (found.indices == np.arange(len(X))[:, None]).any()


@pytest.mark.parametrize("kind", ["ordinary", "ties", "duplicates", "tiny"])
@pytest.mark.parametrize("k", [1, 12, 99])
def test_small_data_are_searched_without_compiled_code_for_the_same_answer(kind, k, monkeypatch):
    rng = np.random.default_rng(0)
    X = {
        "ordinary": rng.normal(size=(100, 5)) + 100.0,
        "ties": rng.integers(0, 3, (100, 3)).astype(float),
        "duplicates": np.repeat(rng.normal(size=(20, 3)), 5, axis=0),
        "tiny": rng.normal(size=(100, 4)) * 1e-200,
    }[kind]
    other = knn(X, k)
    monkeypatch.setattr(exact, "_FEW", 2**20)
    monkeypatch.setattr(exact, "_scanned", None)
    few = knn(X, k)
    np.testing.assert_array_equal(few.indices, other.indices)
    np.testing.assert_allclose(few.distances, other.distances, rtol=1e-14)


def test_approximate_is_the_same_every_time_and_for_every_n_jobs():
    X = clustered(2000)
    answers = {knn(X, 15, method="approximate", n_jobs=n_jobs).indices.tobytes() for n_jobs in (1, 1, 2, 4)}
    assert len(answers) == 1


def test_a_row_that_meets_too_few_others_is_searched_in_full(monkeypatch):
    """The lists nearest to a far island hold fewer than k rows: its rows must still get k true neighbours."""
    monkeypatch.setattr(inverted_file, "_LEAST_RECALL", 0.0)
    X = clustered(1500, 5)
    X[:4] += 1e4
    with Workers() as workers:
        found = inverted_file.approximate(X, 60, workers, probes=1)
    truth = knn(X, 60, method="exact")
    np.testing.assert_array_equal(found.indices[:4], truth.indices[:4])


def test_single_precision_is_left_where_it_cannot_tell(monkeypatch):
    """Tight clusters far from each other: products in single precision lose every difference inside them."""
    rng = np.random.default_rng(0)
    X = np.repeat(1e5 * rng.normal(size=(20, 6)), 50, axis=0) + 1e-2 * rng.normal(size=(1000, 6))
    seen = []
    scanned = exact._scanned

    def watching(points, centred, *rest):
        seen.append(centred.dtype)
        return scanned(points, centred, *rest)

    monkeypatch.setattr(exact, "_scanned", watching)
    found = knn(X, 10)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(D, np.inf)
    np.testing.assert_array_equal(found.indices, np.argsort(D, axis=1, kind="stable")[:, :10])
    assert seen[0] == np.float32
    assert seen[-1] == np.float64


def test_auto_is_exact_for_few_rows_and_approximate_for_many(monkeypatch):
    X = clustered(600)
    monkeypatch.setattr(search, "approximate", lambda *a, **k: pytest.fail("600 rows are few"))
    knn(X, 5)
    monkeypatch.undo()
    monkeypatch.setattr(search, "APPROXIMATE_FROM", 500)
    monkeypatch.setattr(search, "approximate", lambda *a, **k: pytest.fail("this one was to be taken"))
    with pytest.raises(pytest.fail.Exception):
        knn(X, 5)
    knn(X, 5, method="exact")


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (sp.csr_matrix(np.eye(9)), {"method": "approximate"}, "needs dense data"),
        (np.eye(9), {"method": "approximate", "metric": "manhattan"}, "needs a Euclidean or cosine metric"),
        (np.eye(9), {"method": "fast"}, "method must be one of"),
    ],
)
def test_where_approximate_does_not_serve(X, options, message):
    with pytest.raises(ValueError, match=message):
        knn(X, 2, **options)


def test_metrics_never_use_the_approximate_search(monkeypatch):
    from drsne.metrics import evaluate

    monkeypatch.setattr(search, "APPROXIMATE_FROM", 100)
    monkeypatch.setattr(search, "approximate", lambda *a, **k: pytest.fail("a score must be exact"))
    X = clustered(300, 6)
    assert evaluate(X, X[:, :2])["trustworthiness"] <= 1.0


@pytest.mark.parametrize("case", ["outlier", "tight and far", "duplicates"])
def test_approximate_holds_on_hard_data(case):
    X = clustered(3000, 8)
    if case == "outlier":
        X[0] += 1e6
    elif case == "tight and far":
        X = np.repeat(1e3 * np.random.default_rng(0).normal(size=(30, 8)), 100, axis=0) + 1e-2 * X
    else:
        X = np.repeat(X[:300], 10, axis=0)
    found, truth = knn(X, 20, method="approximate"), knn(X, 20, method="exact")
    # equal distances, whichever of equally near points they are
    assert np.isclose(found.distances, truth.distances, rtol=1e-6, atol=1e-12).mean() > 0.95


@pytest.mark.parametrize("method", ["exact", "approximate"])
@pytest.mark.parametrize("row", [0.0, 3.0])
def test_many_equal_rows(method, row):
    X = clustered(3000, 8)
    X[::2] = row
    found = knn(X, 20, method=method)
    for at in range(0, 3000, 7):
        d = np.linalg.norm(X - X[at], axis=1)
        d[at] = np.inf
        if method == "exact" or at % 2 == 0:
            np.testing.assert_allclose(found.distances[at], np.sort(d)[:20], atol=1e-9)
        assert len(set(found.indices[at].tolist())) == 20


def test_a_poor_approximation_is_noticed_and_mended():
    X = np.random.default_rng(0).normal(size=(3000, 40))
    with Workers() as workers, pytest.warns(UserWarning, match=r"approximate search found only \d+% of the neighbours"):
        found = inverted_file.approximate(X, 30, workers, probes=1)
    np.testing.assert_array_equal(found.indices, knn(X, 30, method="exact").indices)
