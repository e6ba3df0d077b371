"""The two searches: exact whatever the data, approximate with a recall and the same answer every time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from covering import in_one_test

from drsne.backends.numba.kernels import descent as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors import descent, exact, inverted_file, search
from drsne.neighbors.exact import is_little
from drsne.neighbors.search import knn, nearest


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


def test_approximate_is_the_same_every_time_and_for_every_n_jobs():
    X = clustered(2000)
    answers = {knn(X, 15, method="approximate", n_jobs=n_jobs).indices.tobytes() for n_jobs in (1, 1, 2, 4)}
    assert len(answers) == 1


def test_a_row_that_meets_too_few_others_is_searched_in_full(monkeypatch):
    """The lists nearest to a far island hold fewer than k rows: its rows must still get k true neighbours."""
    monkeypatch.setattr(inverted_file, "_GOOD_RECALL", 0.0)
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


@in_one_test(
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


@in_one_test("case", ["outlier", "tight and far", "duplicates"])
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


@in_one_test(("method", "row"), [("exact", 0.0), ("approximate", 0.0), ("approximate", 3.0)])
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


def noise(n=3000, d=20):
    return np.random.default_rng(0).normal(size=(n, d))


def refined(X, k, n_jobs=1, probes=2):
    with Workers(n_jobs) as workers:
        return inverted_file.approximate(X, k, workers, probes=probes)


@pytest.fixture
def no_exact_search(monkeypatch):
    """Fail if more rows than the checked ones are searched exactly."""

    def few(X, k, rows, workers):
        assert len(rows) <= 200
        return exact.exact(X, k, rows, workers)

    monkeypatch.setattr(inverted_file, "exact", few)


@pytest.fixture(autouse=True)
def refinement_of_few_rows(monkeypatch):
    """Refine the neighbours of few rows, too, for which an exact search would take less time."""
    monkeypatch.setattr(descent, "_ROUNDS", 0)


@pytest.mark.usefixtures("no_exact_search")
@pytest.mark.parametrize("d", [20, 100])
def test_noise_is_refined_instead_of_searched_exactly(d, monkeypatch):
    X = noise(d=d)
    truth = knn(X, 30, method="exact")
    found = refined(X, 30)
    assert recall(found.indices, truth.indices) > 0.95
    i, j = 17, found.indices[17, 3]
    assert found.distances[17, 3] == pytest.approx(np.linalg.norm(X[i] - X[j]), rel=1e-12)
    assert (np.diff(found.distances, axis=1) >= 0).all()
    assert not (found.indices == np.arange(len(X))[:, None]).any()
    monkeypatch.setattr(inverted_file, "_GOOD_RECALL", 0.0)
    monkeypatch.setattr(inverted_file, "_LEAST_RECALL", 0.0)
    assert recall(refined(X, 30).indices, truth.indices) < 0.8  # the lists alone find few neighbours


def test_refinement_is_the_same_for_every_number_of_threads(monkeypatch):
    monkeypatch.setattr(descent, "_GRAIN", 128)  # several blocks
    X = noise(2000)
    answers = {refined(X, 15, n_jobs).indices.tobytes() for n_jobs in (1, 1, 2, 3)}
    assert len(answers) == 1


@pytest.mark.usefixtures("no_exact_search")
def test_refinement_with_small_buffers(monkeypatch):
    """The pairs of a round do not fit into the buffers, which are emptied several times."""
    X = noise(2000)
    monkeypatch.setattr(descent, "_STEP", 500)
    monkeypatch.setattr(descent, "_GRAIN", 100)
    monkeypatch.setattr(descent, "_ROOM", 1)  # as many pairs as one group can have
    monkeypatch.setattr(inverted_file, "_STEP", 300)
    assert recall(refined(X, 30).indices, knn(X, 30, method="exact").indices) > 0.95


@pytest.mark.parametrize("case", ["duplicates", "ties", "outlier", "tight and far"])
def test_refinement_holds_on_hard_data(case, monkeypatch):
    monkeypatch.setattr(inverted_file, "_GOOD_RECALL", 2.0)  # always refined
    X = clustered(2000, 8)
    if case == "duplicates":
        X = np.repeat(X[:100], 20, axis=0)
    elif case == "ties":
        X = np.random.default_rng(0).integers(0, 4, (2000, 6)).astype(float)
    elif case == "outlier":
        X[0] += 1e6
    else:
        X = np.repeat(1e3 * np.random.default_rng(0).normal(size=(20, 8)), 100, axis=0) + 1e-2 * X
    found, truth = refined(X, 25, probes=8), knn(X, 25, method="exact")
    assert np.isclose(found.distances, truth.distances, rtol=1e-6, atol=1e-12).mean() > 0.95
    assert all(len(set(row)) == 25 for row in found.indices.tolist())
    assert not (found.indices == np.arange(len(X))[:, None]).any()


def test_refinement_with_nearly_all_rows_as_neighbours(monkeypatch):
    monkeypatch.setattr(inverted_file, "_GOOD_RECALL", 2.0)
    X = noise(60, 5)
    np.testing.assert_array_equal(refined(X, 58).indices, knn(X, 58, method="exact").indices)


def test_reverse_neighbours_are_sampled_if_there_are_many():
    near = np.zeros((500, 3), np.int32)
    near[:, 1:] = (np.arange(500)[:, None] + [1, 2]) % 500
    fresh, start = np.ones((500, 3), bool), np.empty(501, np.int64)
    kernels.count_reverse(near, 10, start)
    assert start[1] == 10
    assert start[-1] == 10 + 499 * 2  # the others are listed by their two predecessors
    back, back_fresh = np.full(start[-1], -1, np.int32), np.zeros(start[-1], bool)
    kernels.reverse(near, fresh, 0, 10, start, back, back_fresh)
    assert back_fresh.all()
    for j in range(500):
        listed = back[start[j] : start[j + 1]]
        assert all(j in near[i] for i in listed)
    assert back[:10].max() > 250  # a sample of all rows, not the first ones
    kernels.reverse(near, np.zeros_like(fresh), 1, 10, start, back, back_fresh)
    assert back_fresh[:10].all()  # another sample, most of which was not compared before
    assert not back_fresh[10:].any()


def test_lists_that_find_enough_are_not_refined(monkeypatch):
    """The lists look poor, so more neighbours than needed are searched for, but they are good."""
    monkeypatch.setattr(inverted_file, "enough_probes", lambda lists, checked: (lists.probed.shape[1], False))
    monkeypatch.setattr(descent, "refined", lambda *a: pytest.fail("the recall is good"))
    X = np.random.default_rng(0).normal(size=(3000, 3))
    found, exact = knn(X, 10, method="approximate"), knn(X, 10, method="exact")
    assert found.indices.shape == found.distances.shape == (3000, 10)
    assert (found.indices == exact.indices).mean() > 0.96


def test_few_rows_are_not_refined(monkeypatch):
    monkeypatch.undo()
    assert descent.pays(100_000, 90)
    assert not descent.pays(50_000, 90)
    monkeypatch.setattr(descent, "refined", lambda *a: pytest.fail("an exact search takes less time"))
    with pytest.warns(UserWarning, match="searched exactly"):
        refined(noise(d=40), 30, probes=1)


def test_a_poor_approximation_is_noticed_and_mended(monkeypatch):
    monkeypatch.setattr(descent, "MOST_ROUNDS", 0)  # the refinement does not help
    X = noise(d=40)
    with pytest.warns(UserWarning, match=r"approximate search found only \d+% of the neighbours"):
        found = refined(X, 30, probes=1)
    np.testing.assert_array_equal(found.indices, knn(X, 30, method="exact").indices)


@in_one_test(("n_jobs", "ties"), [(1, True), (2, True), (2, False)])
def test_little_data_without_compiled_code(n_jobs, ties):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (600, 3)).astype(float) if ties else rng.normal(size=(600, 7))
    with Workers(n_jobs) as workers:
        assert is_little(X)
        found = nearest(X, 20, metric="euclidean", workers=workers, method="uncompiled")
    truth = knn(X, 20, method="exact")
    np.testing.assert_allclose(found.distances, truth.distances, rtol=1e-14)
    if not ties:
        np.testing.assert_array_equal(found.indices, truth.indices)
    distances = np.linalg.norm(X[:, None] - X[found.indices], axis=2)
    np.testing.assert_allclose(distances, found.distances, rtol=1e-14)
    assert all(len({i, *row}) == 21 for i, row in enumerate(found.indices))
    same = np.diff(found.distances, axis=1) == 0
    assert (np.diff(found.indices, axis=1)[same] > 0).all()  # ties are sorted by index


def test_data_that_are_left_to_the_compiled_search():
    assert not is_little(np.ones((3000, 100)))  # too much work
    assert not is_little(sp.csr_matrix(np.ones((20, 3))))
    assert not is_little(np.full((20, 3), 1e200))  # squares would overflow
    assert not is_little(np.zeros((20, 3)))
