"""Concentration over the neighbours in the map: the search, the gradient, what the estimator makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import FEW
from covering import each_value, for_each, in_one_test
from problems import DOUBLE, neighbors_of, numerical_gradient, relative_error, small_problem, some_map, with_

from drsne import DRSNE, Objective, metrics
from drsne.backends.numba.cells import nearest_in_map
from drsne.backends.numba.threads import Workers

WAYS = [(way,) for way in FEW]
EMBEDDING = with_(DOUBLE, input_weight=0.0, embedding_weight=1.0)


def by_hand(Y, k):
    D = np.linalg.norm(Y[:, None] - Y[None], axis=2)
    np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k]


def lengths(Y, near):
    return np.linalg.norm(Y[:, None] - Y[near], axis=2)


@for_each("few", WAYS, {"d": [1, 2, 3, 4], "k": [1, 30, 399], "dtype": [np.float32, np.float64]}, indirect=["few"])
def test_neighbours_in_a_map(few, d, k, dtype):
    rng = np.random.default_rng(0)
    Y = np.vstack([rng.normal(5 * g, 10.0 ** (g - 2), (100, d)) for g in range(4)]).astype(dtype)  # scales over decades
    near = nearest_in_map(Y, k, Workers())
    assert near.shape == (400, k)
    assert not (near == np.arange(400)[:, None]).any()
    assert all(len(set(row)) == k for row in near.tolist())
    Y = Y.astype(np.float64)
    np.testing.assert_allclose(lengths(Y, near), by_hand(Y, k), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("few")
@in_one_test("d", [2, 5])
def test_neighbours_where_points_coincide(d):
    rng = np.random.default_rng(0)
    collapsed = np.zeros((3000, d))
    heaps = np.repeat(rng.normal(size=(20, d)), 40, axis=0)
    for Y, k in ((collapsed, 30), (heaps, 30), (heaps, 60)):
        near = nearest_in_map(Y, k, Workers())
        assert not (near == np.arange(len(Y))[:, None]).any()
        assert all(len(set(row)) == k for row in near.tolist())
        if Y is heaps:
            np.testing.assert_allclose(lengths(Y, near), by_hand(Y, k), atol=1e-12)


def test_neighbours_do_not_depend_on_threads():
    Y = np.random.default_rng(0).normal(size=(5000, 2))
    with Workers(1) as one, Workers(4) as four:
        np.testing.assert_array_equal(nearest_in_map(Y, 30, one), nearest_in_map(Y, 30, four))


@for_each(
    "few",
    WAYS,
    {"d": [1, 2, 3, 4], "weights": [(0.0, 1.0), (0.7, 1.6)], "normalizer": ["attached", "detached"]},
    indirect=["few"],
)
def test_gradient_with_neighbours_held_fixed(few, d, weights, normalizer):
    """Neighbours found at one map stay for the next iterations: loss and gradient there are over those."""
    objective = with_(DOUBLE, input_weight=weights[0], embedding_weight=weights[1], embedding_exponent=1.5)
    problem = small_problem(with_(objective, normalizer=normalizer))
    old, Y = some_map(d=d, seed=5), some_map(d=d)
    state = problem.start()
    problem.evaluate(old, state=state, iteration=0)

    def at(Y, density=1.0):
        return problem.evaluate(Y, density=density, losses=True, state=state, iteration=1)

    gradient = (at(Y).gradient - at(Y, 0.0).gradient) / (problem.loss.terms[0].weight * len(Y))
    found = nearest_in_map(old, 7, Workers())
    readings = [(weights[1], found)]
    if weights[0]:
        readings.append((weights[0], neighbors_of(problem)))

    def loss(Y, mean=None):
        total = 0.0
        for i, (weight, near) in enumerate(readings):
            c = lengths(Y, near).mean(axis=1) ** -1.5
            total += (
                weight
                * ((problem.loss.terms[0].target - np.log(c / (c.mean() if mean is None else mean[i]))) ** 2).mean()
            )
        return total

    held = [(lengths(Y, near).mean(axis=1) ** -1.5).mean() for _, near in readings]
    numerical = numerical_gradient(lambda Z: loss(Z, None if normalizer == "attached" else held), Y)
    assert at(Y).losses["concentration"] == pytest.approx(loss(Y), rel=1e-12)
    assert relative_error(gradient, numerical) < 1e-7


def test_neighbours_are_updated_every_ten_iterations():
    """In a map that changes in each iteration, the neighbours are those of the map itself in one of ten (section 8)."""
    problem = small_problem(EMBEDDING)
    state, current = problem.start(), []
    for iteration in range(32):
        Y = some_map(seed=iteration)
        fresh = problem.evaluate(Y, losses=True).losses["concentration"]
        value = problem.evaluate(Y, losses=True, state=state, iteration=iteration).losses["concentration"]
        current.append(value == pytest.approx(fresh, rel=1e-12))
    assert np.flatnonzero(current).tolist() == [0, 10, 20, 30]


def test_no_force_scales_turns_or_moves_the_map():
    problem, Y = small_problem(EMBEDDING), some_map()
    G = (problem.evaluate(Y).gradient - problem.evaluate(Y, density=0.0).gradient) / len(Y)
    size = np.linalg.norm(G)
    assert np.abs(G.sum(axis=0)).max() < 1e-12 * size * len(Y)
    assert abs((G * Y).sum()) < 1e-10 * size * np.linalg.norm(Y)
    assert abs((G[:, 0] * Y[:, 1] - G[:, 1] * Y[:, 0]).sum()) < 1e-10 * size * np.linalg.norm(Y)


def test_the_two_readings_add_up():
    Y = some_map()
    parts = [small_problem(with_(DOUBLE, input_weight=a, embedding_weight=b)) for a, b in ((2, 0), (0, 3), (2, 3))]
    bare = parts[0].evaluate(Y, density=0.0).gradient
    one, two, both = (problem.evaluate(Y, losses=True) for problem in parts)
    np.testing.assert_allclose(both.gradient - bare, one.gradient + two.gradient - 2 * bare, rtol=1e-8, atol=1e-9)
    assert both.losses["concentration"] == pytest.approx(
        one.losses["concentration"] + two.losses["concentration"], rel=1e-12
    )


def test_many_points(monkeypatch):
    """In another order in memory, with sums renewed in turn, the reading is the same."""
    from drsne.terms import problem as shared

    settings = with_(EMBEDDING, input_weight=0.5)
    plain = small_problem(settings, n=120, k=12)
    expected = plain.evaluate(some_map(n=120), losses=True)
    monkeypatch.setattr(shared, "LARGE_MAP", 100)
    problem = small_problem(with_(settings, sampled_neighbors=5), n=120, k=12)
    state = problem.start()
    for iteration in range(4):
        at = problem.evaluate(some_map(n=120), losses=True, state=state, iteration=iteration)
        assert relative_error(at.gradient, expected.gradient) < 1e-10
        assert at.losses["concentration"] == pytest.approx(expected.losses["concentration"], rel=1e-10)


def test_what_each_reading_keeps(digits):
    """The neighbours in the data raise the concentration correlation, those in the map the density rank correlation."""
    X = digits[:700]
    options = {"perplexity": 15.0, "density_neighbors": 15, "max_iter": 500, "random_state": 0, "density_weight": 10.0}
    weights = {"input": (1.0, 0.0), "embedding": (0.0, 1.0), "both": (1.0, 0.25)}
    objectives = {
        mode: Objective(input_weight=a, embedding_weight=b, input_exponent=1.0) for mode, (a, b) in weights.items()
    }
    maps = {mode: DRSNE(objective=objective, **options).fit(X) for mode, objective in objectives.items()}
    scores = {mode: metrics.evaluate(X, model.embedding_) for mode, model in maps.items()}
    cc = {mode: score["concentration_correlation"] for mode, score in scores.items()}
    rho = {mode: score["density_rank_correlation"] for mode, score in scores.items()}
    assert cc["input"] > cc["embedding"] + 0.05
    assert rho["embedding"] > rho["input"] + 0.05
    assert rho["both"] > rho["input"]
    assert cc["both"] > cc["embedding"]


def test_modes_are_what_they_say():
    """Weights of the two readings, and whether the exponent of the data follows from the data."""
    expected = {"input": (1.0, 0.0, 0.5), "embedding": (0.0, 1.0, None), "both": (1.0, 0.7, None)}
    for mode, (inside, outside, exponent) in expected.items():
        found = DRSNE(neighborhoods=mode, density_exponent=0.5, kernel="fixed")._objective(1.0)
        assert (found.input_weight, found.embedding_weight) == (inside, outside)
        assert (found.input_exponent, found.embedding_exponent) == (exponent, 0.5)
        adaptive = DRSNE(neighborhoods=mode, density_exponent=0.5, kernel="adaptive")._objective(1.0)
        assert (adaptive.input_exponent, adaptive.embedding_exponent) == (None, 0.5)


@in_one_test("kernel", ["auto", "fixed"])
def test_weights_above_70_have_the_density_term_of_the_paper(kernel):
    model = DRSNE(density_exponent=0.5, kernel=kernel)
    usual, paper = model._objective(70.0), model._objective(71.0)
    assert usual == model._objective(1.0)
    assert (usual.input_weight, usual.embedding_weight, usual.input_exponent) == (1.0, 0.7, None)
    assert (usual.target_quantile, usual.scale_exponent) == (0.01, None)
    assert (paper.input_weight, paper.embedding_weight, paper.input_exponent) == (1.0, 0.0, 0.5)
    assert (paper.target_quantile, paper.scale_exponent) == (0.0, "auto")
    assert usual.kernel == paper.kernel == kernel
    for mode in ("input", "embedding"):
        other = DRSNE(neighborhoods=mode, kernel=kernel)
        assert other._objective(70.0) == other._objective(71.0)


@in_one_test("mode", ["input", "embedding", "both"])
def test_the_concentration_of_the_data_has_one_unit(blobs, mode):
    """It is the log of r^-1 over its mean for every mode, though two of them are held against its square."""
    from drsne.neighbors.search import knn

    c = 1 / knn(blobs, 8)[1].mean(axis=1)
    model = DRSNE(neighborhoods=mode, perplexity=10.0, density_neighbors=8, max_iter=20).fit(blobs)
    np.testing.assert_allclose(model.input_concentration_, np.log(c / c.mean()), atol=0.02)  # smoothing of radii


@in_one_test("mode", ["embedding", "both"])
def test_losses_that_are_looked_at_change_no_map(blobs, mode):
    """Before the density term joins, the neighbours in the map are only measured."""
    from dataclasses import replace

    from drsne.optimize.defaults import default_schedule

    numbers = {"n_iter_exaggeration": 20, "early_exaggeration": 12.0, "learning_rate": "auto"}
    schedule = default_schedule(len(blobs), max_iter=66, density=True, **numbers)
    options = {"neighborhoods": mode, "perplexity": 10.0, "density_neighbors": 8, "random_state": 0}
    maps = [
        DRSNE(schedule=replace(schedule, record_every=every), **options).fit_transform(blobs) for every in (7, 10, 50)
    ]
    maps.append(DRSNE(schedule=schedule, callbacks=lambda *_: None, **options).fit_transform(blobs))
    for Y in maps[1:]:
        np.testing.assert_array_equal(Y, maps[0])


@each_value({"few": FEW, "scale": [1e160, 1e300], "mode": ["embedding", "both"]}, indirect=["few"])
def test_maps_too_wide_to_square(few, blobs, mode, scale):
    init = scale * np.random.default_rng(0).normal(size=(len(blobs), 2))
    near = nearest_in_map(init, 5, Workers())
    np.testing.assert_array_equal(near, nearest_in_map(init / scale, 5, Workers()))
    options = {"perplexity": 10.0, "density_neighbors": 8, "max_iter": 30, "random_state": 0}
    with pytest.raises(FloatingPointError, match="no longer finite"):
        DRSNE(neighborhoods=mode, init=init, **options).fit(blobs)


def test_single_precision_maps_too_wide_to_square():
    Y = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    np.testing.assert_array_equal(nearest_in_map(Y * np.float32(1e25), 5, Workers()), nearest_in_map(Y, 5, Workers()))


@pytest.mark.usefixtures("few")
def test_a_map_that_is_not_finite_has_some_neighbours():
    Y = np.full((20, 2), np.nan)
    near = nearest_in_map(Y, 3, Workers())
    assert near.shape == (20, 3)
    assert not (near == np.arange(20)[:, None]).any()


def test_contrast_widens_what_is_wide():
    """In the map the radii of the modes with contrast follow a power of the data's, which is kept."""
    from drsne.neighbors.search import knn

    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(9.0 * g, s, (80, 8)) for g, s in enumerate((0.7, 1.0, 1.4))])
    wide = np.log(knn(X, 8)[1].mean(axis=1))
    options = {"perplexity": 10.0, "density_neighbors": 8, "random_state": 0, "density_weight": 100.0, "max_iter": 600}
    slopes = {}
    for mode, power in (("input", 1.0), ("embedding", 2.0)):
        model = DRSNE(neighborhoods=mode, kernel="fixed", **options).fit(X)
        assert model.contrast_ == pytest.approx(power, abs=0.02)
        slopes[mode] = np.polyfit(wide, np.log(knn(model.embedding_, 8)[1].mean(axis=1)), 1)[0]
    assert 0.7 < slopes["input"] < 1.3
    assert 1.6 < slopes["embedding"] < 2.3


@in_one_test(
    ("options", "message"),
    [
        ({"input_weight": 0.0}, "input_weight and embedding_weight must not both be 0"),
        ({"embedding_weight": -1.0}, "embedding_weight must be a finite number of at least 0; got -1.0"),
    ],
)
def test_weights_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Objective(**options)


def test_an_objective_covers_the_reading(blobs):
    with pytest.raises(ValueError, match=r"neighborhoods must .*default.*objective"):
        DRSNE(neighborhoods="input", objective=Objective()).fit(blobs)
