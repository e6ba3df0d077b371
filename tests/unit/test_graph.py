from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value, in_one_test
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from drsne.neighbors.graph import available
from drsne.neighbors.search import knn


def brute(X, k, metric="euclidean"):
    """Neighbours from distances summed feature by feature, ties by index."""
    from scipy.spatial.distance import cdist

    D = cdist(X, X, metric)
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, axis=1)


@each_value({"shape": [(50, 3), (300, 1), (40, 100), (700, 20)], "n_jobs": [1, 2]})
def test_equals_brute_force(shape, n_jobs):
    X = np.random.default_rng(0).normal(size=shape)
    graph = knn(X, 12, n_jobs=n_jobs)
    indices, distances = brute(X, 12)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_allclose(graph.distances, distances, rtol=1e-12)
    assert graph.indices.dtype == np.int32


def test_ties_go_by_index():
    X = np.random.default_rng(0).integers(0, 3, size=(200, 2)).astype(float)  # nine places, many duplicates
    graph = knn(X, 30)
    indices, distances = brute(X, 30)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_array_equal(graph.distances, distances)


def test_far_outlier_and_far_islands_lose_no_neighbour():
    rng = np.random.default_rng(0)
    for far in (1e6, 1e9):
        X = rng.normal(size=(300, 8))
        X[0] += far
        np.testing.assert_array_equal(knn(X, 20).indices[1:], brute(X, 20)[0][1:])
    X = rng.normal(size=(300, 8))
    X[150:] += 1e5
    np.testing.assert_array_equal(knn(X, 20).indices, brute(X, 20)[0])


@in_one_test("scale", [2.0**-900, 2.0**-100, 2.0**100, 2.0**900])
def test_scale_leaves_the_neighbours(scale):
    X = np.random.default_rng(0).normal(size=(100, 4))
    here, there = knn(X, 10), knn(scale * X, 10)
    np.testing.assert_array_equal(here.indices, there.indices)
    np.testing.assert_array_equal(here.distances * scale, there.distances)


@in_one_test("metric", ["manhattan", "cosine", "chebyshev", "sqeuclidean", "correlation"])
def test_other_metrics(metric):
    X = np.random.default_rng(0).normal(size=(80, 5))
    graph = knn(X, 6, metric=metric)
    indices, distances = brute(X, 6, {"manhattan": "cityblock"}.get(metric, metric))
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_allclose(graph.distances, distances, rtol=1e-7, atol=1e-12)


@in_one_test("metric", ["mahalanobis", "seuclidean"])
def test_metrics_with_a_scale_of_their_own(metric):
    """Both take their scales from all rows, and are Euclidean distances of data that are scaled by them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)) @ rng.normal(size=(5, 5)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0])
    if metric == "seuclidean":
        scaled = X / X.std(axis=0, ddof=1)
    else:
        values, vectors = np.linalg.eigh(np.cov(X.T))
        scaled = X @ vectors / np.sqrt(values)
    graph = knn(X, 7, metric=metric)
    indices, distances = brute(scaled, 7)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_allclose(graph.distances, distances, rtol=1e-8)


def test_callable_metric():
    X = np.random.default_rng(0).normal(size=(30, 5))
    graph = knn(X, 4, metric=lambda a, b: np.abs(a - b).sum())
    np.testing.assert_array_equal(graph.indices, knn(X, 4, metric="manhattan").indices)


def test_sparse_equals_dense():
    X = sp.random(150, 40, density=0.2, random_state=0, format="csr").tolil()
    X[3] = X[7]  # a duplicate: its distance is exactly zero
    X = X.tocsr()
    sparse, dense = knn(X, 9), knn(X.toarray(), 9)
    np.testing.assert_array_equal(sparse.indices, dense.indices)
    np.testing.assert_allclose(sparse.distances, dense.distances, rtol=1e-12)
    assert sparse.distances[3, 0] == 0.0


def test_precomputed_matrix_and_graph():
    X = np.random.default_rng(0).normal(size=(60, 4))
    expected = knn(X, 8)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    for given in (D, kneighbors_graph(X, 12, mode="distance"), sp.csr_matrix(D)):
        graph = knn(given, 8, metric="precomputed")
        np.testing.assert_array_equal(graph.indices, expected.indices)
        np.testing.assert_allclose(graph.distances, expected.distances, rtol=1e-9)
    with_self = NearestNeighbors(n_neighbors=12).fit(X).kneighbors_graph(X, mode="distance")
    assert available(with_self) == 11
    np.testing.assert_array_equal(knn(with_self, 8, metric="precomputed").indices, expected.indices)


@in_one_test(
    ("X", "options", "message"),
    [
        (np.zeros((4, 2)), {"k": 4}, "k must be smaller than n_samples=4; got 4"),
        (np.zeros((4, 2)), {"k": 0}, "k must be an integer of at least 1; got 0"),
        (np.zeros((4, 2)), {"k": 2, "metric": "precomputed"}, "X must be square with metric='precomputed'"),
        (np.eye(4) - 1.0, {"k": 2, "metric": "precomputed"}, "non-negative distances"),
        (sp.csr_matrix(np.zeros((4, 3))), {"k": 2, "metric": "precomputed"}, "X must be square"),
        (sp.csr_matrix(np.eye(4) - 1.0), {"k": 2, "metric": "precomputed"}, "non-negative distances"),
        (np.zeros((4, 2)), {"k": 2, "metric": "nearness"}, "metric must be one of .* or a callable; got 'nearness'"),
    ],
)
def test_wrong_input_is_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        knn(X, **options)


def test_unsorted_sparse_input_is_left_alone():
    X = sp.csr_matrix((np.array([3.0, 1.0, 2.0, 5.0]), np.array([2, 0, 1, 0]), np.array([0, 2, 3, 4])), shape=(3, 3))
    before = (X.data.copy(), X.indices.copy(), X.indptr.copy())
    knn(X, 1)
    for now, then in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_graph_that_lists_pairs_twice():
    X = np.random.default_rng(0).normal(size=(60, 4))
    G = kneighbors_graph(X, 12, mode="distance")
    twice = sp.csr_matrix((np.repeat(G.data, 2) / 2, np.repeat(G.indices, 2), G.indptr * 2), shape=G.shape)
    np.testing.assert_array_equal(knn(twice, 8, metric="precomputed").indices, knn(X, 8).indices)
    assert twice.nnz == 2 * G.nnz


@in_one_test("apart", [1e6, 1e8])
def test_sparse_search_is_exact_for_far_islands(apart):
    X = np.random.default_rng(0).normal(size=(200, 8))
    X[100:] += apart
    np.testing.assert_array_equal(knn(sp.csr_matrix(X), 20).indices, brute(X, 20)[0])


def test_cosine_of_zero_rows_is_scikit_learns():
    from sklearn.metrics import pairwise_distances

    X = np.random.default_rng(0).normal(size=(40, 3))
    X[5] = X[6] = 0.0
    D = pairwise_distances(X, metric="cosine")
    np.fill_diagonal(D, np.inf)
    np.testing.assert_allclose(knn(X, 6, metric="cosine").distances, np.sort(D, axis=1)[:, :6], atol=1e-12)


def test_ties_and_digits_survive_an_unrelated_far_point():
    grid = np.array([[a, b] for a in range(5) for b in range(5)] + [[1.0, 1.5]])
    np.testing.assert_array_equal(knn(grid, 6).indices, brute(grid, 6)[0])
    X = np.r_[np.random.default_rng(0).normal(size=59), 1e13][:, None]
    np.testing.assert_allclose(knn(X, 5).distances[:59], brute(X, 5)[1][:59], rtol=1e-12)


@in_one_test("metric", ["manhattan", "cosine", "euclidean"])
def test_sparse_metrics_on_untidy_rows_leave_them_alone(metric):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 6)) < 0.5, rng.normal(size=(60, 6)), 0.0) + np.eye(60, 6)
    X[X == 0] = 0.0
    row, column = np.nonzero(X)
    part = rng.random(len(row))
    data = np.r_[X[row, column] * part, X[row, column] * (1 - part)]
    order = np.lexsort((rng.random(2 * len(row)), np.r_[row, row]))  # each value in two parts, columns shuffled
    indptr = np.r_[0, np.cumsum(np.bincount(np.r_[row, row], minlength=60))]
    untidy = sp.csr_matrix((data[order], np.r_[column, column][order], indptr), shape=X.shape)
    before = [part.copy() for part in (untidy.data, untidy.indices, untidy.indptr)]
    graph, dense = knn(untidy, 8, metric=metric), knn(X, 8, metric=metric)
    np.testing.assert_allclose(graph.distances, dense.distances, rtol=1e-9, atol=1e-12)
    for now, then in zip((untidy.data, untidy.indices, untidy.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_cosine_of_a_tiny_row():
    X = np.abs(np.random.default_rng(0).normal(size=(6, 3)))
    expected = knn(X, 2, metric="cosine").distances
    X[0] *= 1e-200
    np.testing.assert_allclose(knn(X, 2, metric="cosine").distances, expected, rtol=1e-9)
    np.testing.assert_allclose(knn(sp.csr_matrix(X), 2, metric="cosine").distances, expected, rtol=1e-9)


def test_rounding_below_zero_and_on_the_diagonal_is_forgiven():
    X = np.random.default_rng(0).normal(size=(20, 4))
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    expected = knn(D, 4, metric="precomputed").indices
    for own in (1e-4, -1e-4):
        np.fill_diagonal(D, own * D.max())
        np.testing.assert_array_equal(knn(D, 4, metric="precomputed").indices, expected)
    D[0, 1] = D[1, 0] = -1e-17
    assert knn(D, 4, metric="precomputed").distances[0, 0] == 0.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("own", [-3.0, 0.1])
def test_a_diagonal_that_is_not_zero_is_refused(form, own):
    X = np.random.default_rng(0).normal(size=(20, 4))
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    D[7, 7] = own
    with pytest.raises(ValueError, match=rf"X must have zeros on its diagonal .*got {own:g} in row 7"):
        knn(form(D), 4, metric="precomputed")


def test_haversine_wants_two_columns():
    for X in (np.zeros((5, 3)), sp.csr_matrix(np.eye(5))):
        with pytest.raises(ValueError, match=r"two columns|sparse data"):
            knn(X, 2, metric="haversine")
