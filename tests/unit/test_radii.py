"""den-SNE's term: gradients against numerical differentiation in double precision, and the invariances beside them."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_value, in_one_test
from densne_program import Program
from problems import numerical_gradient, relative_error, some_map

from drsne import engines
from drsne.affinities import DEFAULT_CALIBRATION, calibrated, symmetrize
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import nearest
from drsne.terms.kl import StoredPairs, stored
from drsne.terms.log_radii import LogRadii, input_log_radii, standardized
from drsne.terms.problem import Loss, Problem

DIMENSIONS = (1, 2, 3, 4)
SHIFTS = (0.0, 0.1, 2.0)


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) * np.exp(rng.normal(size=(n, 1)))


def problem(shift=0.1, weight=0.7, *, n=40, engine="exact", precision="double", n_jobs=1, X=None):
    workers = Workers(n_jobs)
    graph = nearest(data(n) if X is None else X, 15, metric="euclidean", workers=workers)
    rows, _ = calibrated(graph, 5.0, DEFAULT_CALIBRATION, workers)
    pairs = StoredPairs.of(stored(symmetrize(graph.indices, rows, workers), precision), 0.0)
    target = standardized(input_log_radii(graph, rows))
    return Problem(
        Loss({"objective": pairs}, (LogRadii(weight=weight, target=target, variance_shift=shift),)),
        precision=precision,
        engine=engines.build(engine, NumbaBackend(workers), precision=precision),
        backend=NumbaBackend(workers),
    )


def term(of):
    return of.loss.terms[0]


def rho(of):
    return lambda Y: of.evaluate(Y, losses=True).losses["correlation"]


def rho_gradient(of, Y):
    """The density term alone: n (L_KL - 2 lambda rho) less n L_KL."""
    both, kl = of.evaluate(Y).gradient, of.evaluate(Y, density=0.0).gradient
    return (both - kl) / (-2.0 * term(of).weight * len(Y))


@each_value({"d": DIMENSIONS, "shift": SHIFTS})
def test_gradient_of_the_correlation(d, shift):
    of, Y = problem(shift), some_map(d=d)
    assert relative_error(rho_gradient(of, Y), numerical_gradient(rho(of), Y)) < 1e-8


@in_one_test("d", DIMENSIONS)
def test_gradient_of_the_whole_objective(d):
    of, Y = problem(), some_map(d=d)

    def loss(Y):
        at = of.evaluate(Y, losses=True)
        return at.losses["kl"] - 2.0 * term(of).weight * at.losses["correlation"]

    assert relative_error(of.evaluate(Y).gradient / len(Y), numerical_gradient(loss, Y)) < 1e-8


@in_one_test("d", DIMENSIONS)
def test_forces_sum_to_zero(d):
    G = problem().evaluate(some_map(d=d), exaggeration=4.0).gradient
    assert np.abs(G.sum(axis=0)).max() < 1e-11 * np.abs(G).max() * len(G)


@in_one_test("d", DIMENSIONS)
def test_invariant_under_translation_and_rotation(d):
    of, Y = problem(), some_map(d=d)
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(d, d)))[0]
    at, moved = of.evaluate(Y, losses=True), of.evaluate(Y @ R + 3.0, losses=True)
    assert moved.losses["kl"] == pytest.approx(at.losses["kl"], rel=1e-10)
    assert moved.losses["correlation"] == pytest.approx(at.losses["correlation"], rel=1e-10)
    np.testing.assert_allclose(moved.gradient, at.gradient @ R, rtol=1e-7, atol=1e-9)


@in_one_test("factor", [1e-150, 1e-3, 1e150])
def test_the_units_of_the_data_shift_log_radii_and_no_more(factor):
    X = data()
    a, b = (problem(X=X * f) for f in (1.0, factor))
    np.testing.assert_allclose(term(a).target, term(b).target, atol=1e-9)


def test_correlation_and_radii_are_those_of_the_definition():
    of, Y = problem(), some_map()
    program = Program(data(), 0.7, 5.0)
    np.testing.assert_allclose(term(of).target, program.R, atol=1e-4)  # both reach the perplexity to 1e-4 only
    program.R = term(of).target
    _, r, *_ = program.radii(program.parts(Y)[1])
    np.testing.assert_allclose(of.of_points(Y)["correlation"], r, rtol=1e-12)
    assert rho(of)(Y) == pytest.approx(program.rho(Y), rel=1e-12)


def test_standardised_radii():
    of = problem()
    assert term(of).target.mean() == pytest.approx(0.0, abs=1e-14)
    assert (term(of).target ** 2).sum() == pytest.approx(39.0)


def test_relabelling_points_relabels_the_log_radii():
    X, order = data(), np.random.default_rng(5).permutation(40)
    np.testing.assert_allclose(
        term(problem(X=X[order])).target, term(problem(X=X)).target[order], rtol=1e-9, atol=1e-12
    )


def test_the_density_factor_scales_the_weight():
    of, Y = problem(), some_map()
    none, half, all_of_it = (of.evaluate(Y, density=f).gradient for f in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(half, 0.5 * (none + all_of_it), rtol=1e-12, atol=1e-12)
    assert relative_error(none, all_of_it) > 0.01


@each_value({"d": [1, 2, 3], "scale": [1e-4, 2.0, 200.0]})
def test_single_precision_is_near_double(d, scale):
    Y = some_map(n=300, d=d, scale=scale)
    single, double = (problem(n=300, precision=p) for p in ("single", "double"))
    assert relative_error(rho_gradient(single, Y), rho_gradient(double, Y)) < 1e-3
    assert rho(single)(Y) == pytest.approx(rho(double)(Y), abs=1e-5)


@pytest.mark.parametrize(("engine", "d"), [("fft", 1), ("fft", 2), ("tree", 2), ("tree", 3)])
def test_fast_engines_are_near_exact(engine, d):
    Y = some_map(n=600, d=d, scale=8.0)
    fast, exact = (problem(n=600, engine=name).evaluate(Y, losses=True) for name in (engine, "exact"))
    assert relative_error(fast.gradient, exact.gradient) < 2e-2
    assert fast.losses["kl"] == pytest.approx(exact.losses["kl"], rel=1e-3)
    assert fast.losses["correlation"] == pytest.approx(exact.losses["correlation"], rel=1e-12)


def test_many_points_in_another_order_of_memory(monkeypatch):
    from drsne.terms import problem as shared

    of, Y = problem(n=300), some_map(n=300)
    expected = of.evaluate(Y, losses=True, iteration=0)
    monkeypatch.setattr(shared, "LARGE_MAP", 100)
    state = of.start()
    of.reorder(Y, state)
    arranged = of.evaluate(Y, losses=True, state=state, iteration=0)
    np.testing.assert_allclose(arranged.gradient, expected.gradient, rtol=1e-9, atol=1e-11)
    assert arranged.losses["correlation"] == pytest.approx(expected.losses["correlation"], rel=1e-12)
    log = of.of_points(Y, state)["correlation"]
    monkeypatch.setattr(shared, "LARGE_MAP", 10**9)
    np.testing.assert_allclose(log, problem(n=300).of_points(Y)["correlation"], rtol=1e-12)


@in_one_test("precision", ["single", "double"])
def test_coincident_points_have_a_finite_gradient(precision):
    of = problem(precision=precision)
    one, two = (
        of.evaluate(np.repeat(places, 40 // len(places), axis=0), losses=True)
        for places in ([[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]])
    )
    assert np.isfinite([*one.losses.values(), *two.losses.values()]).all()
    np.testing.assert_array_equal(one.gradient, 0.0)
    np.testing.assert_allclose(two.gradient[:, 0], two.gradient[:, 1], rtol=1e-5)  # along the line through both places
    assert np.abs(two.gradient).max() > 0.0


def test_radii_that_do_not_differ_have_no_correlation():
    n = 8  # corners of a simplex
    graph = KnnGraph(
        np.array([[j for j in range(n) if j != i] for i in range(n)], np.int32), np.full((n, n - 1), np.sqrt(2.0))
    )
    rows = np.full((n, n - 1), 1 / (n - 1), np.float32)
    np.testing.assert_array_equal(standardized(input_log_radii(graph, rows)), 0.0)
    nowhere = KnnGraph(graph.indices, np.zeros((n, n - 1)))
    np.testing.assert_array_equal(input_log_radii(nowhere, rows), 0.0)


def test_a_point_upon_its_neighbours_is_not_infinitely_crowded():
    X = np.vstack([np.zeros((30, 5)), data(60)])
    workers = Workers(1)
    graph = nearest(X, 15, metric="euclidean", workers=workers)
    with pytest.warns(UserWarning, match="out of reach"):
        rows, _ = calibrated(graph, 5.0, DEFAULT_CALIBRATION, workers)
    log = input_log_radii(graph, rows)
    assert np.isfinite(log).all()
    median = np.median(log[log > log.min() + 1e-9])
    assert median - log.min() == pytest.approx(6 * np.log(10), abs=0.02)
