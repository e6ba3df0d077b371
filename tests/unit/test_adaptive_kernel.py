"""The adaptive kernel: gradients against numerical differentiation, and the invariances beside it."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_pair, each_value, in_one_test
from problems import (
    DOUBLE,
    affinities_of,
    neighbors_of,
    numerical_gradient,
    pairs_of,
    relative_error,
    small_problem,
    some_log_scales,
    some_map,
    with_,
)

from drsne import DRSNE, Objective
from drsne.preparation import problem_of

DIMENSIONS = (1, 2, 3, 4)
BOTH = with_(DOUBLE, input_weight=1.0, embedding_weight=0.7)


def adaptive_problem(objective=DOUBLE, *, log_scales=None, **options):
    return small_problem(objective, log_scales=some_log_scales() if log_scales is None else log_scales, **options)


def kl(problem, **options):
    return lambda Y: problem.evaluate(Y, density=0.0, losses=True, **options).losses["kl"]


def kl_gradient(problem, Y, **options):
    return problem.evaluate(Y, density=0.0, **options).gradient / len(Y)


def kernel_of(Y, log_scale, smoothing=0.0):
    D = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    W = 1 / (1 + D * np.exp(-log_scale[:, None] - log_scale[None]) + smoothing)
    np.fill_diagonal(W, 0.0)
    return W


@each_pair(
    {
        "d": DIMENSIONS,
        "support": ["symmetric", "directed"],
        "delta, smoothing": [(0.0, 0.0), (1e-3, 0.0), (0.0, 0.1), (1e-3, 1e-2)],
    }
)
def test_neighbor_term(support, delta, smoothing, d):
    # delta is far larger than the paper's 1e-8, so that its share of the gradient shows
    objective = with_(DOUBLE, support=support, affinity_smoothing=delta, distance_smoothing=smoothing)
    problem, Y = adaptive_problem(objective), some_map(d=d)
    assert relative_error(kl_gradient(problem, Y), numerical_gradient(kl(problem), Y)) < 1e-8


@each_pair({"delta": [0.0, 1e-3], "smoothing": [0.0, 0.1], "support": ["symmetric", "directed"]})
def test_value_written_out(support, smoothing, delta):
    """KL = sum p log((p + delta) / (q + delta)), q = w / Z with w = 1 / (1 + d^2 / (rho_i rho_j) + smoothing)."""
    objective = with_(DOUBLE, support=support, affinity_smoothing=delta, distance_smoothing=smoothing)
    problem, Y = adaptive_problem(objective), some_map()
    W = kernel_of(Y, some_log_scales(), smoothing)
    P = affinities_of(problem).toarray()
    if support == "directed":
        P = affinities_of(small_problem()).toarray()
        chosen = np.zeros_like(P, dtype=bool)
        np.put_along_axis(chosen, neighbors_of(problem), True, axis=1)
        P = np.where(chosen, P, 0.0)
    stored = P > 0
    direct = (P[stored] * np.log((P[stored] + delta) / (W[stored] / W.sum() + delta))).sum()
    assert kl(problem)(Y) == pytest.approx(direct, rel=1e-10)


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_exaggeration_multiplies_the_attraction_alone(power):
    problem, Y, factor = adaptive_problem(), some_map(), 12.0
    A, mass = pairs_of(problem)

    def exaggerated(Y):
        W = kernel_of(Y, power * some_log_scales())
        np.fill_diagonal(W, 1.0)
        return factor * -(A.toarray() * np.log(W)).sum() + mass * np.log(W.sum() - len(Y))

    numerical = numerical_gradient(exaggerated, Y)
    assert relative_error(kl_gradient(problem, Y, exaggeration=factor, scale=power), numerical) < 1e-8


@each_value({"d": DIMENSIONS, "kept": [None, 3]})
def test_full_objective_with_both_readings(d, kept):
    few = None if kept is None else np.where(np.arange(40) % 3 == 0, kept, 7).astype(np.int32)
    problem, Y = adaptive_problem(with_(BOTH, affinity_smoothing=1e-4), kept=few), some_map(d=d)

    def loss(Y):
        at = problem.evaluate(Y, losses=True)
        return at.losses["kl"] + problem.loss.terms[0].weight * at.losses["concentration"]

    # a step so small that no point changes its neighbours in the map
    numerical = numerical_gradient(loss, Y, step=1e-6)
    assert relative_error(problem.evaluate(Y).gradient / len(Y), numerical) < 1e-6


@each_value({"d": DIMENSIONS, "support": ["symmetric", "directed"]})
def test_forces_sum_to_zero(support, d):
    problem = adaptive_problem(with_(BOTH, support=support, affinity_smoothing=1e-6))
    G = problem.evaluate(some_map(d=d), exaggeration=4.0).gradient
    assert np.abs(G.sum(axis=0)).max() < 1e-11 * np.abs(G).max() * len(G)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_invariant_under_translation_and_rotation(d):
    problem, Y = adaptive_problem(BOTH), some_map(d=d)
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(d, d)))[0]
    at, moved = (problem.evaluate(M, losses=True) for M in (Y, Y @ R + 3.0))
    assert moved.losses["kl"] == pytest.approx(at.losses["kl"], rel=1e-10)
    assert moved.losses["concentration"] == pytest.approx(at.losses["concentration"], rel=1e-10)
    np.testing.assert_allclose(moved.gradient, at.gradient @ R, rtol=1e-7, atol=1e-9)


def test_relabelling_points_relabels_the_gradient_and_the_scales():
    order = np.random.default_rng(5).permutation(40)
    problem, other, Y = adaptive_problem(), adaptive_problem(), some_map()
    place = np.argsort(order)
    relabelled = problem_of(
        problem.loss.terms[0].objective,
        P=affinities_of(problem)[order][:, order].tocsr(),
        neighbors=place[neighbors_of(problem)[order]].astype(np.int32),
        target=problem.loss.terms[0].target[order],
        weight=problem.loss.terms[0].weight,
        engine=other.engine,
        backend=other.backend,
        log_scales=some_log_scales()[order],
    )
    at, there = problem.evaluate(Y), relabelled.evaluate(Y[order])
    np.testing.assert_allclose(there.gradient, at.gradient[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(there.scales, at.scales[order])


@each_value({"d": DIMENSIONS, "c": [0.5, 4.0, 3.7]})
def test_one_scale_for_all_is_the_fixed_kernel_on_a_map_of_another_size(c, d):
    problem, fixed, Y = adaptive_problem(log_scales=np.full(40, np.log(c))), small_problem(), some_map(d=d)
    at, expected = problem.evaluate(Y, density=0.0, losses=True), fixed.evaluate(Y / c, density=0.0, losses=True)
    assert at.losses["kl"] == pytest.approx(expected.losses["kl"], rel=1e-12)
    np.testing.assert_allclose(at.gradient, expected.gradient / c, rtol=1e-9, atol=1e-12)


@each_value({"d": DIMENSIONS, "precision": ["single", "double"]})
def test_the_fixed_kernel_is_that_of_a_fixed_problem_bitwise(precision, d):
    objective, Y = with_(BOTH, precision=precision, affinity_smoothing=1e-6), some_map(d=d)
    at = adaptive_problem(objective).evaluate(Y, losses=True, scale=None)
    expected = small_problem(objective).evaluate(Y, losses=True)
    np.testing.assert_array_equal(at.gradient, expected.gradient)
    assert (at.losses["kl"], at.losses["concentration"], at.scales) == (
        expected.losses["kl"],
        expected.losses["concentration"],
        None,
    )


@pytest.mark.parametrize("d", DIMENSIONS)
def test_power_zero_is_the_fixed_kernel(d):
    problem, Y = adaptive_problem(), some_map(d=d)
    at, expected = problem.evaluate(Y, losses=True, scale=0.0), problem.evaluate(Y, losses=True, scale=None)
    assert relative_error(at.gradient, expected.gradient) < 1e-12
    assert at.losses["kl"] == pytest.approx(expected.losses["kl"], rel=1e-12)
    assert (at.losses["concentration"], at.scales) == (expected.losses["concentration"], None)


def test_the_order_in_memory_changes_nothing(monkeypatch):
    from drsne.terms import problem as shared

    log_scale, Y = some_log_scales(120), some_map(n=120)
    kept = np.where(np.arange(120) % 4 == 0, 4, 7).astype(np.int32)
    problem, plain = (adaptive_problem(BOTH, n=120, log_scales=log_scale, kept=kept) for _ in range(2))
    monkeypatch.setattr(shared, "LARGE_MAP", 100)
    state = problem.start()
    problem.reorder(Y, state)
    at, expected = problem.evaluate(Y, losses=True, state=state, iteration=0), plain.evaluate(Y, losses=True)
    assert state.loss.order is not None
    assert relative_error(at.gradient, expected.gradient) < 1e-11
    assert at.losses["kl"] == pytest.approx(expected.losses["kl"], rel=1e-12)
    assert at.losses["concentration"] == pytest.approx(expected.losses["concentration"], rel=1e-12)
    np.testing.assert_array_equal(at.scales, expected.scales)
    other = some_map(n=120, seed=5)
    problem.reorder(other, state)  # nothing of the first order is left
    at, expected = problem.evaluate(other, state=state, iteration=50), plain.evaluate(other)
    assert relative_error(at.gradient, expected.gradient) < 1e-11
    np.testing.assert_array_equal(at.scales, expected.scales)


def test_coincident_points_have_a_finite_gradient():
    problem, Y = adaptive_problem(log_scales=some_log_scales(spread=8.0)), np.zeros((40, 2))
    Y[20:] = 1.0
    at = problem.evaluate(Y, losses=True)
    np.testing.assert_allclose(at.gradient[:, 0], at.gradient[:, 1], rtol=1e-9)  # along the line through both places
    np.testing.assert_allclose(at.gradient.sum(axis=0), 0.0, atol=1e-9 * np.abs(at.gradient).max())
    assert np.abs(at.gradient).max() > 0.0
    assert np.isfinite(list(at.losses.values())).all()


@pytest.mark.parametrize("factor", [2.0, 3.7, 1e-8, 1e12])
def test_units_of_the_data_do_not_matter(factor, blobs):
    options = {"kernel": "adaptive", "density_weight": 1.0, "neighborhoods": "both", "density_neighbors": 10}
    options |= {"perplexity": 10.0, "max_iter": 300, "random_state": 0}
    here, there = (DRSNE(**options).fit(X) for X in (blobs, factor * blobs))
    if factor == 2.0:
        np.testing.assert_array_equal(there.embedding_, here.embedding_)
        np.testing.assert_array_equal(there.scales_, here.scales_)
    else:
        np.testing.assert_allclose(there.embedding_, here.embedding_, rtol=0, atol=1e-6 * np.ptp(here.embedding_))
        np.testing.assert_allclose(there.scales_, here.scales_, rtol=1e-6)


def test_scales_of_a_fit(blobs):
    """Wider groups have larger scales; the fixed kernel has one scale."""
    options = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 100, "random_state": 0}
    scales = DRSNE(kernel="adaptive", density_weight=1.0, **options).fit(blobs).scales_
    medians = np.median(scales.reshape(3, 40), axis=1)
    assert (np.diff(medians) > 0).all()
    for fixed in ({"kernel": "fixed", "density_weight": 1.0}, {"kernel": "auto", "density_weight": 0.0}):
        assert (DRSNE(**fixed, **options).fit(blobs).scales_ == 1.0).all()


def test_auto_is_adaptive_where_the_density_term_takes_part(blobs):
    options = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 60, "random_state": 0}

    def fitted(kernel, weight):
        return DRSNE(kernel=kernel, density_weight=weight, **options).fit(blobs).embedding_

    np.testing.assert_array_equal(fitted("auto", 1.0), fitted("adaptive", 1.0))
    np.testing.assert_array_equal(fitted("auto", 0.0), fitted("fixed", 0.0))
    assert not np.array_equal(fitted("adaptive", 0.0), fitted("fixed", 0.0))
    assert [Objective(kernel=kernel).adapts(0.0) for kernel in ("auto", "adaptive", "fixed")] == [False, True, False]


@in_one_test(
    ("make", "kind", "message"),
    [
        (lambda X: DRSNE(kernel="wide").fit(X), ValueError, "kernel must be one of"),
        (lambda X: DRSNE(kernel="fixed", objective=Objective()).fit(X), ValueError, "kernel must be left"),
        (lambda X: Objective(kernel="wide"), ValueError, "kernel must be one of"),
        (lambda X: Objective(target_quantile=0.5), ValueError, "target_quantile must be below 0.5"),
        (lambda X: Objective(target_quantile=-0.1), ValueError, "target_quantile must be"),
        (lambda X: Objective(scale_exponent="log"), ValueError, "scale_exponent must be"),
        (lambda X: Objective(scale_exponent=-1), ValueError, "scale_exponent must be a finite number of at least 0"),
        (lambda X: Objective(small_groups=1), TypeError, "small_groups must be True or False"),
    ],
)
def test_wrong_settings_are_refused(make, kind, message, blobs):
    with pytest.raises(kind, match=message):
        make(blobs)


def test_the_automatic_kernel_adapts_gradually():
    """From plain t-SNE at 0 to the full scales at 0.1; the other kernels do not depend on the weight."""
    automatic = Objective()
    assert [automatic.adaptation(weight) for weight in (0.0, 0.05, 0.1, 7.0)] == [0.0, 0.5, 1.0, 1.0]
    assert {Objective(kernel="adaptive").adaptation(weight) for weight in (0.0, 0.05, 7.0)} == {1.0}
    assert {Objective(kernel="fixed").adaptation(weight) for weight in (0.0, 0.05, 7.0)} == {0.0}


def test_scales_at_small_weights_are_a_power_of_the_full_ones():
    X = np.random.default_rng(0).normal(size=(150, 4)) * np.repeat([0.2, 1.0], 75)[:, None]
    few = {"max_iter": 30, "perplexity": 10, "density_neighbors": 10, "random_state": 0}
    part, full = (DRSNE(density_weight=weight, **few).fit(X).scales_ for weight in (0.03, 1.0))
    assert np.ptp(np.log(full)) > 1.0
    np.testing.assert_allclose(part, full**0.3, rtol=1e-6)
