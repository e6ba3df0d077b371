"""Ready neighbours: any order of columns, the row itself listed or not, duplicates, -1; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from covering import in_one_test
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from drsne import DRSNE
from drsne.backends.numba.threads import Workers
from drsne.neighbors.precomputed import checked_neighbors
from drsne.neighbors.search import knn

QUICK = {"perplexity": 8.0, "density_neighbors": 8, "max_iter": 40, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 0.3, (60, 4)), rng.normal(3, 1, (60, 4))])


@pytest.fixture(scope="module")
def graph(X):
    return knn(X, 24)


def tidy(neighbors, n):
    with Workers() as workers:
        return checked_neighbors(neighbors, n, workers)


def test_the_same_map_as_with_a_search(X, graph):
    searched, ready = DRSNE(**QUICK).fit(X), DRSNE(**QUICK, neighbors=graph).fit(X)
    np.testing.assert_array_equal(searched.embedding_, ready.embedding_)
    np.testing.assert_array_equal(searched.input_concentration_, ready.input_concentration_)


def test_order_self_duplicates_and_none_are_tidied(graph):
    n, k = graph.indices.shape
    rng = np.random.default_rng(1)
    own = np.arange(n)[:, None]
    # the row itself, each neighbour's first entry twice (once farther), and -1 with no distance
    indices = np.hstack([graph.indices, own, graph.indices[:, :1], np.full((n, 2), -1)])
    distances = np.hstack([graph.distances, 0 * own, graph.distances[:, :1] + 1, np.full((n, 2), np.nan)])
    shuffle = rng.permuted(np.tile(np.arange(k + 4), (n, 1)), axis=1)
    untidy = np.take_along_axis(indices, shuffle, 1), np.take_along_axis(distances, shuffle, 1)
    found = tidy(untidy, n)
    np.testing.assert_array_equal(found.indices, graph.indices)
    np.testing.assert_array_equal(found.distances, graph.distances)


def test_sparse_graph_of_scikit_learn(X):
    for include in (True, False):
        found = tidy(kneighbors_graph(X, 24, mode="distance", include_self=include), len(X))
        distances, _ = NearestNeighbors(n_neighbors=24).fit(X).kneighbors()
        k = 23 if include else 24
        np.testing.assert_allclose(found.distances[:, :k], distances[:, :k], rtol=1e-6)


def test_rows_with_fewer_neighbours_set_the_number(graph):
    indices = graph.indices.astype(np.int64).copy()
    indices[5, 10:] = -1
    assert tidy((indices, graph.distances), len(indices)).indices.shape[1] == 10


def test_too_few_for_the_perplexity_lowers_it_with_a_warning(X, graph):
    with pytest.warns(UserWarning, match=r"Lowered perplexity from 30 to .* and density_neighbors from 30 to 24"):
        DRSNE(neighbors=graph, max_iter=5).fit(X)


def bad(indices=None, distances=None, **change):
    def make(graph):
        i, d = graph.indices.astype(np.int64).copy(), graph.distances.copy()
        if indices is not None:
            i[3, 2] = indices
        if distances is not None:
            d[3, 2] = distances
        return change["whole"](i, d) if change else (i, d)

    return make


@in_one_test(
    ("make", "error", "message"),
    [
        (bad(indices=120), ValueError, "indices from 0 to n_samples - 1 = 119.*got 120"),
        (bad(indices=-2), ValueError, "-1.*got -2"),
        (bad(distances=-1.0), ValueError, "finite non-negative distances; got -1"),
        (bad(distances=np.nan), ValueError, "finite non-negative distances; got nan or inf"),
        (bad(distances=np.inf), ValueError, "finite non-negative distances; got nan or inf"),
        (bad(whole=lambda i, d: (i[:-1], d[:-1])), ValueError, r"two arrays of shape \(n_samples=120, m\)"),
        (bad(whole=lambda i, d: (i, d[:, :-1])), ValueError, r"got \(120, 24\) and \(120, 23\)"),
        (bad(whole=lambda i, d: (i.ravel(), d.ravel())), ValueError, "two arrays of shape"),
        (bad(whole=lambda i, d: (d, i)), ValueError, "integer indices and real distances"),
        (bad(whole=lambda i, d: (np.full_like(i, -1), d)), ValueError, "row 0 lists none"),
        (bad(whole=lambda i, d: i), TypeError, r"pair \(indices, distances\)"),
        (bad(whole=lambda i, d: kneighbors_graph(d, 3)[:50, :50]), ValueError, r"graph of shape .*=\(120, 120\)"),
    ],
)
def test_wrong_neighbours_are_refused(X, graph, make, error, message):
    with pytest.raises(error, match=message):
        DRSNE(**QUICK, neighbors=make(graph)).fit(X)


def test_not_beside_precomputed_distances(X, graph):
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    with pytest.raises(ValueError, match="neighbors must be None with metric='precomputed'"):
        DRSNE(**QUICK, metric="precomputed", neighbors=graph).fit(D)
