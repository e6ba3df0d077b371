"""Every gradient against numerical differentiation in double precision, and the invariances beside it."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_value, in_one_test
from problems import (
    DOUBLE,
    affinities_of,
    neighbors_of,
    numerical_gradient,
    pairs_of,
    radii_of,
    relative_error,
    small_problem,
    some_log_scales,
    some_map,
    with_,
)

from drsne import Smoothing
from drsne.preparation import problem_of

DIMENSIONS = (1, 2, 3, 4)
BOTH = with_(DOUBLE, input_weight=1.0, embedding_weight=0.7)


def problem_with(kernel, objective=DOUBLE, **options):
    """Return a small problem, with log scales for the adaptive kernel."""
    return small_problem(objective, **({"log_scales": some_log_scales()} if kernel == "adaptive" else {}), **options)


def kernel_of(Y, kernel, smoothing=0.0, power=1.0):
    log_scale = power * some_log_scales() if kernel == "adaptive" else np.zeros(len(Y))
    D = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    W = 1 / (1 + D * np.exp(-log_scale[:, None] - log_scale[None]) + smoothing)
    np.fill_diagonal(W, 0.0)
    return W


def kl(problem, **options):
    return lambda Y: problem.evaluate(Y, density=0.0, losses=True, **options).losses["kl"]


def concentration(problem):
    return lambda Y: problem.evaluate(Y, losses=True).losses["concentration"]


def kl_gradient(problem, Y, **options):
    return problem.evaluate(Y, density=0.0, **options).gradient / len(Y)


def concentration_gradient(problem, Y):
    """The density term alone: its share of the gradient of n times the loss, per unit weight."""
    with_term, without = problem.evaluate(Y).gradient, problem.evaluate(Y, density=0.0).gradient
    return (with_term - without) / (problem.loss.terms[0].weight * len(Y))


@each_value(
    {
        "kernel": ["fixed", "adaptive", "adaptive", "fixed"],
        "d": DIMENSIONS,
        "support": ["symmetric", "directed"],
        "delta, smoothing": [(0.0, 0.0), (1e-3, 0.0), (0.0, 0.1), (1e-3, 1e-2)],
    }
)
def test_neighbor_term(kernel, support, delta, smoothing, d):
    """The value is KL = sum p log((p + delta) / (q + delta)), q = w / Z, and the gradient is its derivative."""
    # delta is far larger than the paper's 1e-8, so that its share of the gradient shows
    objective = with_(DOUBLE, support=support, affinity_smoothing=delta, distance_smoothing=smoothing)
    problem, Y = problem_with(kernel, objective), some_map(d=d)
    assert relative_error(kl_gradient(problem, Y), numerical_gradient(kl(problem), Y)) < 1e-8
    W, P = kernel_of(Y, kernel, smoothing), affinities_of(problem).toarray()
    if support == "directed":
        P = affinities_of(small_problem()).toarray()
        chosen = np.zeros_like(P, dtype=bool)
        np.put_along_axis(chosen, neighbors_of(problem), True, axis=1)
        P = np.where(chosen, P, 0.0)
    stored = P > 0
    direct = (P[stored] * np.log((P[stored] + delta) / (W[stored] / W.sum() + delta))).sum()
    assert kl(problem)(Y) == pytest.approx(direct, rel=1e-10)


def test_all_pairs_of_a_directed_objective():
    problem, Y = small_problem(with_(DOUBLE, support="directed", affinity_smoothing=1e-3)), some_map()
    numerical = numerical_gradient(kl(problem, pairs="all"), Y)
    assert relative_error(kl_gradient(problem, Y, pairs="all"), numerical) < 1e-8


@each_value({"kernel, power": [("fixed", 1.0), ("adaptive", 0.3)], "support": ["directed", "symmetric"]})
def test_exaggeration_multiplies_the_attraction_alone(kernel, power, support):
    problem, Y, factor = problem_with(kernel, with_(DOUBLE, support=support)), some_map(), 12.0
    A, mass = pairs_of(problem)

    def exaggerated(Y):
        W = kernel_of(Y, kernel, power=power)
        np.fill_diagonal(W, 1.0)
        return factor * -(A.toarray() * np.log(W)).sum() + mass * np.log(W.sum() - len(Y))

    scale = {"scale": power} if kernel == "adaptive" else {}
    numerical = numerical_gradient(exaggerated, Y)
    assert relative_error(kl_gradient(problem, Y, exaggeration=factor, **scale), numerical) < 1e-8
    assert relative_error(factor * kl_gradient(problem, Y, **scale), numerical) > 0.1


@each_value({"d": DIMENSIONS, "alpha": [0.5, 1.0, 2.0]})
def test_concentration_with_attached_mean(alpha, d):
    problem = small_problem(with_(DOUBLE, input_exponent=alpha, embedding_exponent=alpha))
    Y = some_map(d=d)
    numerical = numerical_gradient(concentration(problem), Y)
    assert relative_error(concentration_gradient(problem, Y), numerical) < 1e-7


@each_value({"d": [1, 2, 3], "alpha": [2.0, 0.5, 1.0]})
def test_concentration_with_detached_mean(alpha, d):
    problem = small_problem(with_(DOUBLE, normalizer="detached", embedding_exponent=alpha))
    Y = some_map(d=d)
    near = neighbors_of(problem)

    def radii(Y):
        return np.linalg.norm(Y[:, None] - Y[near], axis=2).mean(axis=1)

    mean = (radii(Y) ** -alpha).mean()  # held fixed while Y moves

    def loss(Y):
        return ((problem.loss.terms[0].target - np.log(radii(Y) ** -alpha / mean)) ** 2).mean()

    assert relative_error(concentration_gradient(problem, Y), numerical_gradient(loss, Y)) < 1e-7
    assert concentration(problem)(Y) == pytest.approx(loss(Y), rel=1e-12)


@pytest.mark.parametrize("normalizer", ["attached", "detached"])
def test_every_smoothing_constant(normalizer):
    smoothing = Smoothing(relative=0.0, length=0.1, squared_distance=0.2, mean=0.05, profile=0.1)
    problem = small_problem(with_(DOUBLE, embedding_smoothing=smoothing, normalizer=normalizer, embedding_exponent=1.5))
    Y = some_map()
    near = neighbors_of(problem)

    def c(Y):
        return (np.sqrt(((Y[:, None] - Y[near]) ** 2).sum(axis=2) + 0.2).mean(axis=1) + 0.1) ** -1.5

    mean = c(Y).mean()

    def loss(Y):
        m = c(Y).mean() if normalizer == "attached" else mean
        return ((problem.loss.terms[0].target - np.log(c(Y) / (m + 0.05) + 0.1)) ** 2).mean()

    assert concentration(problem)(Y) == pytest.approx(loss(Y), rel=1e-12)
    assert relative_error(concentration_gradient(problem, Y), numerical_gradient(loss, Y)) < 1e-7


def test_relative_smoothing_is_a_length_held_fixed():
    Y = some_map()
    relative = small_problem(with_(DOUBLE, embedding_smoothing=Smoothing(relative=0.05)))
    median = np.median(radii_of(relative, Y))
    fixed = small_problem(with_(DOUBLE, embedding_smoothing=Smoothing(relative=0.0, length=0.05 * median)))
    np.testing.assert_allclose(
        concentration_gradient(relative, Y), concentration_gradient(fixed, Y), rtol=1e-9, atol=1e-14
    )
    assert relative_error(concentration_gradient(fixed, Y), numerical_gradient(concentration(fixed), Y)) < 1e-7


@each_value({"d": DIMENSIONS, "kernel": ["fixed", "adaptive"], "support": ["directed", "symmetric"]})
def test_full_objective(kernel, support, d):
    """Some points have fewer neighbours in the objective, and both neighbourhoods take part."""
    few = np.where(np.arange(40) % 3 == 0, 3, 7).astype(np.int32) if d > 2 else None
    objective = with_(BOTH, support=support, affinity_smoothing=1e-4, input_exponent=2.0)
    problem, Y = problem_with(kernel, objective, kept=few), some_map(d=d)

    def loss(Y):
        at = problem.evaluate(Y, losses=True)
        return at.losses["kl"] + problem.loss.terms[0].weight * at.losses["concentration"]

    # a step so small that no point changes its neighbours in the map
    numerical = numerical_gradient(loss, Y, step=1e-6)
    assert relative_error(problem.evaluate(Y).gradient / len(Y), numerical) < 1e-6


def test_density_factor_scales_the_weight():
    problem, Y = small_problem(), some_map()
    none, half, all_of_it = (problem.evaluate(Y, density=f).gradient for f in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(half, 0.5 * (none + all_of_it), rtol=1e-12, atol=1e-12)


@each_value({"d": DIMENSIONS, "kernel": ["fixed", "adaptive", "adaptive", "fixed"]})
def test_invariances_and_forces_that_sum_to_zero(kernel, d):
    problem, Y = problem_with(kernel, with_(BOTH, affinity_smoothing=1e-6)), some_map(d=d)
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(d, d)))[0]
    at, moved = (problem.evaluate(M, losses=True) for M in (Y, Y @ R + 3.0))
    assert moved.losses["kl"] == pytest.approx(at.losses["kl"], rel=1e-10)
    assert moved.losses["concentration"] == pytest.approx(at.losses["concentration"], rel=1e-10)
    np.testing.assert_allclose(moved.gradient, at.gradient @ R, rtol=1e-7, atol=1e-9)
    directed = problem_with(kernel, with_(BOTH, support="directed", affinity_smoothing=1e-6))
    for each in (problem, directed):
        G = each.evaluate(Y, exaggeration=4.0).gradient
        assert np.abs(G.sum(axis=0)).max() < 1e-11 * np.abs(G).max() * len(G)


@in_one_test("kernel", ["fixed", "adaptive"])
def test_relabelling_points_relabels_the_gradient_and_the_scales(kernel):
    order = np.random.default_rng(5).permutation(40)
    problem, other, Y = problem_with(kernel), problem_with(kernel), some_map()
    place, term = np.argsort(order), problem.loss.terms[0]
    relabelled = problem_of(
        term.objective,
        P=affinities_of(problem)[order][:, order].tocsr(),
        neighbors=place[neighbors_of(problem)[order]].astype(np.int32),
        target=term.target[order],
        weight=term.weight,
        engine=other.engine,
        backend=other.backend,
        **({"log_scales": some_log_scales()[order]} if kernel == "adaptive" else {}),
    )
    at, there = problem.evaluate(Y), relabelled.evaluate(Y[order])
    np.testing.assert_allclose(there.gradient, at.gradient[order], rtol=1e-9, atol=1e-12)
    if kernel == "adaptive":
        np.testing.assert_array_equal(there.scales, at.scales[order])


@in_one_test("scale", [1e-6, 0.1, 7.0, 1e6])
def test_attached_concentration_is_invariant_under_scaling(scale):
    problem, Y = small_problem(), some_map()
    assert concentration(problem)(scale * Y) == pytest.approx(concentration(problem)(Y), rel=1e-9)
    # the gradient of a scale-invariant function falls as 1 / scale
    _, slope = profile_slope(problem, Y)
    _, scaled = profile_slope(problem, scale * Y)
    np.testing.assert_allclose(scale * scaled, slope, rtol=1e-9)


def profile_slope(problem, Y):
    state = problem.start()
    term, at = state.loss.terms[0], problem._moment(Y, state)
    table = term.neighborhoods[0].table(Y, state.memories[0][0], problem.backend)
    return term._loss(term._profile(table, at), at)


@in_one_test("d", DIMENSIONS)
def test_radial_component_vanishes_attached_and_not_detached(d):
    Y = some_map(d=d)
    radial = {}
    for normalizer in ("attached", "detached"):
        problem = small_problem(with_(DOUBLE, normalizer=normalizer))
        G = concentration_gradient(problem, Y)
        radial[normalizer] = abs((G * Y).sum()) / (np.linalg.norm(G) * np.linalg.norm(Y))
    assert radial["attached"] < 1e-12
    assert radial["detached"] > 1e-3


def test_default_relative_smoothing_keeps_the_loss_scale_invariant():
    problem, Y = small_problem(with_(DOUBLE, embedding_smoothing=Smoothing())), some_map()
    assert concentration(problem)(1e5 * Y) == pytest.approx(concentration(problem)(Y), rel=1e-10)


@in_one_test("options", [{}, {"log_scales": some_log_scales(spread=8.0)}])
def test_coincident_points_have_a_finite_gradient(options):
    problem, Y = small_problem(**options), np.zeros((40, 2))
    Y[20:] = 1.0
    at = problem.evaluate(Y, losses=True)
    np.testing.assert_allclose(at.gradient[:, 0], at.gradient[:, 1], rtol=1e-9)  # along the line through both places
    np.testing.assert_allclose(at.gradient.sum(axis=0), 0.0, atol=1e-9 * np.abs(at.gradient).max())
    assert np.abs(at.gradient).max() > 0.0
    assert np.isfinite(list(at.losses.values())).all()


def test_symmetric_support_is_tsne():
    """With P symmetric and S = 1 the gradient is t-SNE's: 4 sum_j (p_ij - q_ij) w_ij (y_i - y_j)."""
    problem, Y = small_problem(), some_map()
    P, delta = affinities_of(problem).toarray(), Y[:, None] - Y[None]
    W = 1 / (1 + (delta**2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    expected = 4 * (((P - W / W.sum()) * W)[..., None] * delta).sum(axis=1)
    assert P.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(kl_gradient(problem, Y), expected, rtol=1e-9, atol=1e-14)
