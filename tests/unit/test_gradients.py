"""Every gradient against numerical differentiation in double precision, and the invariances beside it."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_pair, each_value
from problems import (
    DOUBLE,
    affinities_of,
    neighbors_of,
    numerical_gradient,
    pairs_of,
    radii_of,
    relative_error,
    small_problem,
    some_map,
    with_,
)

from drsne import Smoothing
from drsne.preparation import problem_of

DIMENSIONS = (1, 2, 3, 4)


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


@each_pair({"d": DIMENSIONS, "support": ["symmetric", "directed"], "delta": [0.0, 1e-3]})
def test_neighbor_term(support, delta, d):
    # delta is far larger than the paper's 1e-8, so that its share of the gradient shows
    problem = small_problem(with_(DOUBLE, support=support, affinity_smoothing=delta, distance_smoothing=10 * delta))
    Y = some_map(d=d)
    assert relative_error(kl_gradient(problem, Y), numerical_gradient(kl(problem), Y)) < 1e-8


@pytest.mark.parametrize("pairs", ["objective", "all"])
def test_all_pairs_of_a_directed_objective(pairs):
    problem = small_problem(with_(DOUBLE, support="directed", affinity_smoothing=1e-3))
    Y = some_map()
    numerical = numerical_gradient(kl(problem, pairs=pairs), Y)
    assert relative_error(kl_gradient(problem, Y, pairs=pairs), numerical) < 1e-8


@pytest.mark.parametrize("support", ["symmetric", "directed"])
def test_exaggeration_multiplies_the_attraction_alone(support):
    problem = small_problem(with_(DOUBLE, support=support))
    Y, rho = some_map(), 12.0
    A, mass = pairs_of(problem)

    def exaggerated(Y):
        D = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
        W = 1 / (1 + D)
        Z = W.sum() - len(Y)
        return rho * -(A.toarray() * np.log(W)).sum() + mass * np.log(Z)

    numerical = numerical_gradient(exaggerated, Y)
    assert relative_error(kl_gradient(problem, Y, exaggeration=rho), numerical) < 1e-8
    assert relative_error(rho * kl_gradient(problem, Y), numerical) > 0.1


@each_value({"d": DIMENSIONS, "alpha": [0.5, 1.0, 2.0]})
def test_concentration_with_attached_mean(alpha, d):
    problem = small_problem(with_(DOUBLE, input_exponent=alpha, embedding_exponent=alpha))
    Y = some_map(d=d)
    numerical = numerical_gradient(concentration(problem), Y)
    assert relative_error(concentration_gradient(problem, Y), numerical) < 1e-7


@each_value({"d": DIMENSIONS, "alpha": [0.5, 1.0, 2.0]})
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


@each_value({"d": DIMENSIONS, "support": ["symmetric", "directed"]})
def test_full_objective(support, d):
    problem = small_problem(with_(DOUBLE, support=support, affinity_smoothing=1e-4, input_exponent=2.0))
    Y = some_map(d=d)

    def loss(Y):
        at = problem.evaluate(Y, losses=True)
        return at.losses["kl"] + problem.loss.terms[0].weight * at.losses["concentration"]

    assert relative_error(problem.evaluate(Y).gradient / len(Y), numerical_gradient(loss, Y)) < 1e-8


def test_density_factor_scales_the_weight():
    problem, Y = small_problem(), some_map()
    none, half, all_of_it = (problem.evaluate(Y, density=f).gradient for f in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(half, 0.5 * (none + all_of_it), rtol=1e-12, atol=1e-12)


def rotation(d, seed=3):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@pytest.mark.parametrize("d", DIMENSIONS)
def test_both_terms_are_invariant_under_translation_and_rotation(d):
    problem, Y, R = small_problem(), some_map(d=d), rotation(d)
    at = problem.evaluate(Y, losses=True)
    moved = problem.evaluate(Y @ R + 3.0, losses=True)
    assert moved.losses["kl"] == pytest.approx(at.losses["kl"], rel=1e-10)
    assert moved.losses["concentration"] == pytest.approx(at.losses["concentration"], rel=1e-10)
    np.testing.assert_allclose(moved.gradient, at.gradient @ R, rtol=1e-7, atol=1e-9)


def test_relabelling_points_relabels_the_gradient():
    n, order = 40, np.random.default_rng(5).permutation(40)
    problem, Y = small_problem(n=n), some_map(n=n)
    place = np.argsort(order)
    other = small_problem(n=n)
    P = affinities_of(problem)[order][:, order].tocsr()
    relabelled = problem_of(
        problem.loss.terms[0].objective,
        P=P,
        neighbors=place[neighbors_of(problem)[order]].astype(np.int32),
        target=problem.loss.terms[0].target[order],
        weight=problem.loss.terms[0].weight,
        engine=other.engine,
        backend=other.backend,
    )
    np.testing.assert_allclose(
        relabelled.evaluate(Y[order]).gradient, problem.evaluate(Y).gradient[order], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-6, 0.1, 7.0, 1e6])
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


@pytest.mark.parametrize("d", DIMENSIONS)
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


@each_value({"d": DIMENSIONS, "support": ["symmetric", "directed"]})
def test_forces_sum_to_zero(support, d):
    problem = small_problem(with_(DOUBLE, support=support, affinity_smoothing=1e-6))
    G = problem.evaluate(some_map(d=d), exaggeration=4.0).gradient
    assert np.abs(G.sum(axis=0)).max() < 1e-11 * np.abs(G).max() * len(G)


def test_coincident_points_have_a_finite_gradient():
    problem = small_problem()
    Y = np.zeros((40, 2))
    Y[20:] = 1.0
    at = problem.evaluate(Y, losses=True)
    np.testing.assert_allclose(at.gradient[:, 0], at.gradient[:, 1], rtol=1e-9)  # along the line through both places
    np.testing.assert_allclose(at.gradient.sum(axis=0), 0.0, atol=1e-9 * np.abs(at.gradient).max())
    assert np.abs(at.gradient).max() > 0.0
    assert np.isfinite(list(at.losses.values())).all()


def test_kl_splits_into_attraction_and_log_partition():
    """Eq. 8: KL = sum p log p + sum p log(1 + d^2) + S log Z."""
    problem, Y = small_problem(), some_map()
    P, D = affinities_of(problem).toarray(), ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    Q = 1 / (1 + D)
    np.fill_diagonal(Q, 0.0)
    Z = Q.sum()
    stored = P > 0
    direct = (P[stored] * np.log(P[stored] / (Q[stored] / Z))).sum()
    split = (P[stored] * np.log(P[stored])).sum() + (P * np.log1p(D)).sum() + P.sum() * np.log(Z)
    assert kl(problem)(Y) == pytest.approx(direct, rel=1e-12)
    assert split == pytest.approx(direct, rel=1e-12)


def test_symmetric_support_is_tsne():
    """With P symmetric and S = 1 the gradient is t-SNE's: 4 sum_j (p_ij - q_ij) w_ij (y_i - y_j)."""
    problem, Y = small_problem(), some_map()
    P, delta = affinities_of(problem).toarray(), Y[:, None] - Y[None]
    W = 1 / (1 + (delta**2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    expected = 4 * (((P - W / W.sum()) * W)[..., None] * delta).sum(axis=1)
    assert P.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(kl_gradient(problem, Y), expected, rtol=1e-9, atol=1e-14)
