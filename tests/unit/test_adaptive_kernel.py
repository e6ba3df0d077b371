"""The adaptive kernel and its scales; its gradients are in ``test_gradients``."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_value, in_one_test
from problems import DOUBLE, relative_error, small_problem, some_log_scales, some_map, with_

from drsne import DRSNE, Objective, Schedule

DIMENSIONS = (1, 2, 3, 4)
BOTH = with_(DOUBLE, input_weight=1.0, embedding_weight=0.7)


def adaptive_problem(objective=DOUBLE, *, log_scales=None, **options):
    return small_problem(objective, log_scales=some_log_scales() if log_scales is None else log_scales, **options)


@in_one_test(("c", "d"), [(0.5, 1), (4.0, 2), (3.7, 3), (3.7, 4)])
def test_one_scale_for_all_is_the_fixed_kernel_on_a_map_of_another_size(c, d):
    problem, fixed, Y = adaptive_problem(log_scales=np.full(40, np.log(c))), small_problem(), some_map(d=d)
    at, expected = problem.evaluate(Y, density=0.0, losses=True), fixed.evaluate(Y / c, density=0.0, losses=True)
    assert at.losses["kl"] == pytest.approx(expected.losses["kl"], rel=1e-12)
    np.testing.assert_allclose(at.gradient, expected.gradient / c, rtol=1e-9, atol=1e-12)


@in_one_test(("precision", "d"), [("single", 1), ("double", 2), ("single", 2), ("double", 3), ("single", 4)])
def test_the_fixed_kernel_is_that_of_a_fixed_problem_bitwise(precision, d):
    objective, Y = with_(BOTH, precision=precision, affinity_smoothing=1e-6), some_map(d=d)
    at = adaptive_problem(objective).evaluate(Y, losses=True, scale=None)
    expected = small_problem(objective).evaluate(Y, losses=True)
    np.testing.assert_array_equal(at.gradient, expected.gradient)
    assert (at.losses, at.scales) == (expected.losses, None)


@in_one_test("d", DIMENSIONS)
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


@each_value(
    {
        "factor": [2.0, 1e-30, 1e-9, 1e9, 1e30],
        "options": [{}, {"density_weight": 5.0, "neighborhoods": "both"}, {"density_weight": 0.0}],
    }
)
def test_units_of_the_data_do_not_matter(blobs, factor, options):
    options = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 300, "random_state": 0, **options}
    here, there = (DRSNE(**options).fit(X) for X in (blobs, factor * blobs))
    error = 0 if factor == 2.0 else 1e-6
    assert np.isfinite(here.embedding_).all()
    np.testing.assert_allclose(there.embedding_, here.embedding_, rtol=0, atol=error * np.ptp(here.embedding_))
    np.testing.assert_allclose(there.scales_, here.scales_, rtol=error)


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
    # From plain t-SNE at 0 to the full scales at 0.1; the other kernels do not depend on the weight.
    weights = (0.0, 0.05, 0.1, 7.0)
    assert [Objective().adaptation(weight) for weight in weights] == [0.0, 0.5, 1.0, 1.0]
    assert {Objective(kernel="adaptive").adaptation(weight) for weight in weights} == {1.0}
    assert {Objective(kernel="fixed").adaptation(weight) for weight in weights} == {0.0}


@in_one_test(
    ("make", "kind", "message"),
    [
        (lambda X: DRSNE(kernel="wide").fit(X), ValueError, "kernel must be one of"),
        (lambda X: DRSNE(kernel="fixed", objective=Objective()).fit(X), ValueError, "kernel must be left"),
        (lambda X: Objective(kernel="wide"), ValueError, "kernel must be one of"),
        (lambda X: Objective(support="both"), ValueError, "support must be one of 'directed', 'symmetric'; got 'both'"),
        (lambda X: Objective(embedding_exponent=-1.0), ValueError, "embedding_exponent must be a finite number above"),
        (lambda X: Objective(affinity_smoothing=-1.0), ValueError, "affinity_smoothing must be"),
        (lambda X: Schedule(phases=(), record_every=0), ValueError, "record_every must be an integer of at least 1"),
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


def test_scales_at_small_weights_are_a_power_of_the_full_ones():
    X = np.random.default_rng(0).normal(size=(150, 4)) * np.repeat([0.2, 1.0], 75)[:, None]
    few = {"max_iter": 30, "perplexity": 10, "density_neighbors": 10, "random_state": 0}
    part, full = (DRSNE(density_weight=weight, **few).fit(X).scales_ for weight in (0.03, 1.0))
    assert np.ptp(np.log(full)) > 1.0
    np.testing.assert_allclose(part, full**0.3, rtol=1e-6)
