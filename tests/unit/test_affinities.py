from __future__ import annotations

import warnings

import numpy as np
import pytest
from covering import each_value, in_one_test

from drsne import Calibration
from drsne.affinities import _calibrate_few, affinities, conditional_affinities
from drsne.backends.numba.threads import Workers
from drsne.neighbors.search import knn


def rows(X, perplexity, k=None):
    graph = knn(X, k or min(len(X) - 1, int(3 * perplexity + 0.5)))
    with Workers() as workers:
        return graph, *conditional_affinities(graph.distances, perplexity, Calibration(), workers)


def entropy_perplexity(P):
    return np.exp(-(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1))


DATA = {
    "normal": lambda rng: rng.normal(size=(300, 10)),
    "two scales": lambda rng: np.vstack([rng.normal(size=(150, 3)), 1e-3 * rng.normal(size=(150, 3)) + 5]),
    "outlier": lambda rng: np.vstack([rng.normal(size=(299, 3)), [[1e6, 0, 0]]]),
    "islands": lambda rng: np.vstack([rng.normal(size=(150, 3)), rng.normal(size=(150, 3)) + 1e5]),
    "tiny": lambda rng: 1e-30 * rng.normal(size=(300, 4)),
    "huge": lambda rng: 1e30 * rng.normal(size=(300, 4)),
    "heavy tails": lambda rng: rng.standard_cauchy(size=(300, 4)),
    "pairs of duplicates": lambda rng: np.repeat(rng.normal(size=(150, 4)), 2, axis=0),
}


@each_value({"name": DATA, "perplexity": [2.5, 5.0, 30.0, 80.0]})
def test_rows_sum_to_one_and_have_the_perplexity(name, perplexity):
    X = DATA[name](np.random.default_rng(0))
    graph, P, precisions, reached = rows(X, perplexity)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(entropy_perplexity(P), perplexity, atol=1e-4)
    np.testing.assert_allclose(reached, perplexity, atol=1e-4)
    assert np.isfinite(precisions).all()
    # the precisions, in the data's own units, give these rows back
    scale = graph.distances[:, -1:]
    D = ((graph.distances - graph.distances[:, :1]) / scale) * ((graph.distances + graph.distances[:, :1]) / scale)
    again = np.exp(-precisions[:, None] * scale * scale * D)
    np.testing.assert_allclose(again / again.sum(axis=1, keepdims=True), P, rtol=1e-3, atol=1e-9)


def test_perplexity_at_most_the_neighbours():
    X = np.random.default_rng(0).normal(size=(10, 2))
    _, P, _, reached = rows(X, 9.0, k=9)
    np.testing.assert_allclose(P, 1 / 9)
    np.testing.assert_allclose(reached, 9.0)


def test_fewer_neighbours_than_the_perplexity():
    with Workers() as workers, pytest.warns(UserWarning, match="or fewer than"):
        affinities(knn(np.random.default_rng(0).normal(size=(50, 3)), 3), 5.0, Calibration(neighbors=3), workers)


def test_too_many_duplicates_have_the_nearest_reachable_perplexity():
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((21, 3)), rng.normal(size=(100, 3)) + 10])
    graph = knn(X, 30)
    with Workers() as workers:
        with pytest.warns(UserWarning, match=r"perplexity=10 is out of reach for 21 of 121 points") as caught:
            P = affinities(graph, 10.0, Calibration(), workers).matrix()
        conditional, _, reached = conditional_affinities(graph.distances, 10.0, Calibration(), workers)
    assert len(caught) == 1
    np.testing.assert_allclose(reached[:21], 20.0)
    np.testing.assert_allclose(conditional[:21, :20], 1 / 20)
    np.testing.assert_allclose(conditional.sum(axis=1), 1.0)
    np.testing.assert_allclose(reached[21:], 10.0, atol=1e-4)
    assert P.sum() == pytest.approx(1.0, abs=1e-12)


def rows_with_ties(rng, ties, k, scale, noise=0.0):
    """Rows of ascending distances whose first ``ties`` are equal (but for rounding where there is ``noise``)."""
    first = scale * rng.uniform(0.1, 1.0, (20, 1))
    rest = first * (1.0 + np.sort(rng.exponential(size=(20, k - ties)), axis=1) + 1e-3)
    return np.sort(np.hstack([np.repeat(first, ties, axis=1), rest]) * (1.0 + noise * rng.randint(-1, 2, (20, k))))


@each_value(
    {
        "scale": [1e-30, 1e-7, 0.3, 1.0, 7.0, 12345.678, 1e30],
        "ties": [1, 2, 14, 16, 31, 44, 45],
        "noise": [0.0, 2.0**-52],
    }
)
def test_equal_nearest_distances_keep_their_affinities(scale, ties, noise):
    """Whether exact ties survive an unstable comparison depends on the compiler; ties up to rounding never did."""
    rng, k, perplexity = np.random.RandomState(ties), 45, 15.0
    distances = rows_with_ties(rng, ties, k, scale, noise)
    with Workers() as workers:
        P, precisions, reached = conditional_affinities(distances, perplexity, Calibration(), workers)
    assert np.isfinite(P).all()
    assert np.isfinite(precisions).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(P[:, :ties], P[:, :1] * np.ones((1, ties)), rtol=1e-6)
    np.testing.assert_allclose(reached, max(ties, perplexity), rtol=1e-4)
    np.testing.assert_allclose(entropy_perplexity(P), reached, rtol=1e-4)
    if ties > perplexity:
        np.testing.assert_array_equal(P[:, ties:], 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_fits_of_equally_near_neighbours(seed):
    """Groups of points that are all equally far from one another (even seeds: up to rounding), as distances or data."""
    from drsne import DRSNE

    rng = np.random.RandomState(seed)
    size, inside, across = rng.randint(5, 26), *np.sort(rng.uniform(0.05, 3.0, 2))
    label = np.repeat(np.arange(4), size)
    D = np.where(label[:, None] == label, inside, across)
    np.fill_diagonal(D, 0.0)
    sides = rng.uniform(0.5, 2.0, 3)
    X = np.vstack([np.hstack([s * np.eye(size), np.full((size, 1), 5.0 * g)]) for g, s in enumerate(sides)])
    if seed % 2 == 0:
        noise = np.triu(rng.randint(-1, 2, D.shape), 1)
        D *= 1.0 + 2.0**-52 * (noise + noise.T)
        X = X @ np.linalg.qr(rng.normal(size=(size + 1, size + 1)))[0]
    for metric, data in (("precomputed", D), ("euclidean", X)):
        model = DRSNE(metric=metric, perplexity=8.0, density_neighbors=5, max_iter=2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # The perplexity is out of reach for larger groups, or lowered for few points.
            warnings.filterwarnings("ignore", "perplexity|Lowered", UserWarning)
            model.fit(data)
        assert model.affinities_.sum() == pytest.approx(1.0, abs=1e-6)
        if size > 9:  # more equally near neighbours than the perplexity: they share all affinity
            n = len(data)
            own = np.arange(n)[:, None] // size == np.arange(n) // size
            expected = np.where(own & ~np.eye(n, dtype=bool), 1.0 / (size - 1) / n, 0.0)
            np.testing.assert_allclose(model.affinities_.toarray(), expected, rtol=1e-5, atol=1e-9)
        assert np.isfinite(model.precisions_).all()
        assert np.isfinite(model.kl_divergence_)


def test_duplicates_beside_distances_too_small_to_square():
    distances = np.tile(np.r_[np.zeros(3), np.geomspace(1e-180, 1e-140, 40), 1.0, 2.0], (3, 1))
    with Workers() as workers:
        P, precisions, reached = conditional_affinities(distances, 15.0, Calibration(), workers)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert np.isfinite(reached).all()
    assert not np.isnan(precisions).any()


@in_one_test(("far", "perplexity"), [(1e20, 2.0), (1e80, 5.5), (1e144, 12.0), (1e200, 2.0), (1e290, 5.5)])
def test_outliers_beyond_all_measure_do_not_change_the_rest(far, perplexity):
    near = np.sort(np.random.RandomState(0).uniform(0.1, 2.0, (10, 20)), axis=1)
    distances = np.hstack([near, np.full((10, 3), far), np.full((10, 1), 1e5 * far)])
    with Workers() as workers:
        P, precisions, reached = conditional_affinities(distances, perplexity, Calibration(), workers)
        expected = conditional_affinities(near, perplexity, Calibration(), workers)
    np.testing.assert_allclose(P[:, :20], expected[0], rtol=1e-5, atol=1e-12)
    np.testing.assert_array_equal(P[:, 20:], 0.0)
    np.testing.assert_allclose(precisions, expected[1], rtol=1e-5)
    np.testing.assert_allclose(reached, perplexity, rtol=1e-4)


def test_affinities_that_are_not_finite_are_refused():
    """Without the shift, nothing keeps the rows of distant points from underflowing to 0 / 0."""
    graph = knn(1e6 * np.random.default_rng(0).normal(size=(30, 3)), 10)
    calibration = Calibration(shift=False, search="doubling", max_steps=1)
    with Workers() as workers, pytest.raises(FloatingPointError, match="finite"):
        affinities(graph, 5.0, calibration, workers)


def test_an_undefined_perplexity_is_warned_about(monkeypatch):
    from drsne import affinities as module

    graph = knn(np.random.default_rng(0).normal(size=(30, 3)), 10)
    conditional = np.full((30, 10), 0.1), np.ones(30), np.r_[np.nan, np.full(29, 5.0)]
    monkeypatch.setattr(module, "conditional_affinities", lambda *_: conditional)
    with Workers() as workers, pytest.warns(UserWarning, match="1 of 30 points"):
        affinities(graph, 5.0, Calibration(), workers)


def test_extreme_rows_still_reach_the_perplexity():
    distances = np.tile(np.r_[np.linspace(1, 2, 20) * 1e-25, np.linspace(1, 2, 70)], (3, 1))
    with Workers() as workers:
        reached = conditional_affinities(distances, 15.0, Calibration(), workers)[2]
    np.testing.assert_allclose(reached, 15.0, atol=1e-4)


def test_steps_of_the_search_do_not_take_turns_for_ever():
    """An ordinary row on which Newton steps from either side of the root undid each other."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(8.0 * g, 0.25 * 2.0**g, (5000, 10)) for g in range(2)]).astype(np.float32)
    distances = np.linalg.norm(X.astype(np.float64) - X[5281].astype(np.float64), axis=1)
    with Workers() as workers:
        reached = conditional_affinities(np.sort(distances)[None, 1:91], 30.0, Calibration(), workers)[2]
    np.testing.assert_allclose(reached, 30.0, atol=1e-4)


@each_value({"name": [*DATA, "groups of 40 duplicates", "very distant"], "perplexity": [1.0, 2.5, 30.0, 80.0, 300.0]})
def test_few_points_have_the_same_affinities_without_compilation(name, perplexity):
    rng = np.random.default_rng(0)
    more = {
        "groups of 40 duplicates": lambda rng: np.repeat(rng.normal(size=(8, 4)), 40, axis=0),
        "very distant": lambda rng: np.vstack([rng.normal(size=(60, 3)), 1e70 * rng.normal(size=(240, 3))]),
    }
    distances = knn({**DATA, **more}[name](rng), 90).distances
    with Workers() as workers:
        expected = conditional_affinities(distances, perplexity, Calibration(), workers)
        single = conditional_affinities(distances, perplexity, Calibration(), workers, np.float32)
    found = np.full(distances.shape, np.nan), *(np.full(len(distances), np.nan) for _ in range(2))
    left = _calibrate_few(distances, perplexity, *found)
    for mine, compiled in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.delete(mine, left, 0), np.delete(compiled, left, 0), rtol=1e-9, atol=1e-14)
        assert np.isnan(mine[left]).all()
    for mine, compiled in zip(single, expected, strict=True):
        np.testing.assert_allclose(mine, compiled, rtol=1e-6, atol=1e-9)
    if name in ("normal", "two scales", "tiny", "huge") and 1.0 < perplexity < 90.0:
        assert len(left) == 0
    if perplexity in (1.0, 300.0) or (name == "groups of 40 duplicates" and perplexity == 30.0):
        assert len(left) == len(distances)


@pytest.mark.usefixtures("few")
def test_symmetric_sorted_and_summing_to_one():
    X = np.random.default_rng(0).normal(size=(200, 5))
    with Workers() as workers, warnings.catch_warnings():
        warnings.simplefilter("error")
        P = affinities(knn(X, 30), 10.0, Calibration(), workers).matrix()
    assert P.format == "csr"
    assert P.sum() == pytest.approx(1.0, abs=1e-12)
    assert abs(P - P.T).max() < 1e-18
    assert P.diagonal().max() == 0.0
    assert P.has_sorted_indices


@pytest.mark.usefixtures("few")
def test_matches_scikit_learn_on_the_same_neighbours(digits):
    from sklearn.manifold._t_sne import _joint_probabilities_nn
    from sklearn.neighbors import kneighbors_graph

    X = digits[:300]
    theirs = _joint_probabilities_nn(kneighbors_graph(X, 90, mode="distance").power(2).tocsr(), 30.0, 0)
    with Workers() as workers:
        ours = affinities(knn(X, 90), 30.0, Calibration(), workers).matrix()
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=2e-3, atol=1e-8)


def test_calibration_counts_neighbours():
    assert Calibration().n_neighbors(30.0, 1000) == 90
    assert Calibration().n_neighbors(30.0, 50) == 49
    assert Calibration(neighbors="all").n_neighbors(30.0, 50) == 49
    assert Calibration(neighbors=40).n_neighbors(30.0, 1000) == 40


@in_one_test(
    ("change", "message"),
    [
        ({"neighbors": "some"}, "neighbors must be one of"),
        ({"neighbors": 0}, "neighbors must be an integer of at least 1"),
        ({"search": "newton"}, "search must be one of"),
        ({"search": "doubling"}, "shift=True needs"),
        ({"smoothing": float("nan"), "shift": False}, "smoothing must be a finite number"),
    ],
)
def test_wrong_calibration_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Calibration(**change)
