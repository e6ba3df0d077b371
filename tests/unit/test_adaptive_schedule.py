"""Schedules of the adaptive kernel: release of the exaggeration, powers of the scales, steps in local units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from covering import each_value, in_one_test
from problems import DOUBLE, Toy, small_problem, some_map, with_

from drsne import Adam, Momentum, Phase, Schedule
from drsne.optimize.defaults import ADAPTIVE_SHARE, MAX_STEP, default_schedule, path_schedules
from drsne.optimize.loop import minimize

ADAM = Adam(rate=1.0)
SETTINGS = {"n_iter_exaggeration": 250, "early_exaggeration": 12.0, "learning_rate": "auto"}


def default(**changes):
    return default_schedule(5000, **{"max_iter": 1000, "density": True, "share": 0.3, **SETTINGS, **changes})


def test_release_is_geometric_and_the_rate_rises_in_proportion():
    phase = Phase(n_iter=20, optimizer=ADAM, exaggeration=1.0, exaggeration_from=16.0, release=8)
    assert phase.exaggeration_at(0) == 16.0
    assert phase.exaggeration_at(4) == pytest.approx(4.0)
    assert [phase.exaggeration_at(t) for t in (8, 19)] == [1.0, 1.0]
    factors = [phase.rate_factor(t) for t in range(20)]
    assert factors == pytest.approx([1.0 / phase.exaggeration_at(t) for t in range(20)])
    assert (np.diff(factors) >= 0).all()


def test_release_and_decay_multiply():
    both = Phase(n_iter=10, optimizer=ADAM, decay="linear", exaggeration_from=4.0, release=5)
    assert both.rate_factor(0) == pytest.approx(0.25)
    assert both.rate_factor(5) == pytest.approx(0.5)


def test_without_a_release_a_phase_is_as_before():
    phase = Phase(n_iter=10, optimizer=ADAM, exaggeration=12.0)
    assert {phase.exaggeration_at(t) for t in range(10)} == {12.0}
    assert {phase.rate_factor(t) for t in range(10)} == {1.0}
    at_once = Phase(n_iter=10, optimizer=ADAM, exaggeration_from=12.0)
    assert {at_once.exaggeration_at(t) for t in range(10)} == {1.0}


def test_power_of_the_scales():
    assert [Phase(n_iter=10, optimizer=ADAM).scale_factor(t) for t in (0, 9)] == [1.0, 1.0]
    ramp = Phase(n_iter=10, optimizer=ADAM, scale=0.8, scale_ramp=4)
    assert [ramp.scale_factor(t) for t in (0, 1, 3, 9)] == pytest.approx([0.2, 0.4, 0.8, 0.8])
    assert Phase(n_iter=10, optimizer=ADAM, scale=0.0).scale_factor(5) == 0.0


@in_one_test(
    ("options", "kind", "message"),
    [
        ({"release": -1}, ValueError, "release must be an integer of at least 0"),
        ({"exaggeration_from": 0.0}, ValueError, "exaggeration_from must be a finite number above 0"),
        ({"scale": -1.0}, ValueError, "scale must be a finite number of at least 0"),
        ({"scale_ramp": 1.5}, ValueError, "scale_ramp must be an integer"),
    ],
)
def test_wrong_settings_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        Phase(n_iter=1, optimizer=ADAM, **options)
    with pytest.raises(TypeError, match="local_steps must be True or False"):
        Schedule(phases=(), local_steps=1)


def test_phases_of_the_adaptive_default():
    """The fixed kernel while fully exaggerated; then release and growing scales in the phase of t-SNE; then density."""
    early, plain, last = default(adaptive=True, share=ADAPTIVE_SHARE, max_iter=700).phases
    assert [early.n_iter, plain.n_iter, last.n_iter] == [75, 525, 100]
    assert (early.exaggeration, early.exaggeration_from) == (12.0, None)
    assert (plain.exaggeration, plain.exaggeration_from, plain.release) == (1.0, 12.0, 175)
    assert (early.density, plain.density, last.density) == (False, False, True)
    assert isinstance(early.optimizer, Momentum)
    assert isinstance(plain.optimizer, Momentum)
    assert isinstance(last.optimizer, Adam)
    assert last.decay == "cosine"
    assert (early.max_step, plain.max_step) == (MAX_STEP, MAX_STEP)
    assert [phase.scale_factor(0) for phase in (early, plain, last)] == [0.0, 1 / 125, 1.0]
    assert plain.scale_factor(124) == plain.scale_factor(524) == 1.0
    assert plain.exaggeration_at(0) == early.exaggeration
    # the rate rises from that of the exaggerated phase to that of the plain one
    assert plain.optimizer.rate * plain.rate_factor(0) == pytest.approx(early.optimizer.rate)
    assert plain.rate_factor(plain.release) == 1.0


def test_the_fixed_default_has_no_release():
    assert all(phase.exaggeration_from is None for phase in default().phases)
    assert [phase.n_iter for phase in default().phases] == [250, 450, 300]


@in_one_test("total", [1, 2, 3, 10])
def test_few_iterations(total):
    assert default(max_iter=total, adaptive=True).n_iter == total


def test_schedules_of_a_path():
    fixed, adaptive = (path_schedules(5000, max_iter=1000, adaptive=flag, **SETTINGS) for flag in (False, True))
    assert fixed.first is None
    assert adaptive.first == default(adaptive=True, share=ADAPTIVE_SHARE)
    assert fixed.plain == adaptive.plain == default(density=False)
    assert fixed.step.n_iter == 100
    assert adaptive.step.n_iter == 143
    automatic = path_schedules(5000, max_iter="auto", adaptive=True, **SETTINGS)
    assert automatic.step == fixed.step
    assert automatic.plain == fixed.plain
    assert automatic.first == default(adaptive=True, share=ADAPTIVE_SHARE, max_iter=700)
    assert fixed.n_iter(0, 0) == adaptive.n_iter(0, 0) == 1000
    assert fixed.n_iter(0, 3) == 1000 + 3 * fixed.step.n_iter
    assert adaptive.n_iter(1, 2) == 2000 + 2 * adaptive.step.n_iter
    assert adaptive.n_iter(2, 1, 3) == 3000 + adaptive.step.n_iter + 3 * adaptive.last.n_iter
    assert adaptive.last.n_iter == 3 * adaptive.step.n_iter


class At(NamedTuple):
    gradient: np.ndarray
    losses: dict
    scales: np.ndarray | None = None
    damping: None = None


@each_value({"optimizer": [Momentum(rate=0.3), Adam(rate=0.5, eps=1e-300)], "c": [0.25, 8.0], "max_step": [None, 0.1]})
def test_a_map_of_one_scale_moves_as_the_fixed_one_bitwise(optimizer, c, max_step):
    """Scales of a power of two: the same map, that many times as large."""
    log_scale, Y = np.full(40, np.log2(c) * np.log(2.0)), some_map()
    objective = with_(DOUBLE, precision="double")

    class Exactly(Toy):
        """exp(log c) may differ from c in the last bit; the problem of the adaptive kernel at exactly c."""

        def __init__(self):
            self.problem = small_problem(objective)

        def evaluate(self, Y, **options):
            at = self.problem.evaluate(Y / c, **options)
            return At(at.gradient / c, at.losses, np.full(len(Y), c))

    schedule = Schedule(
        phases=(Phase(n_iter=30, optimizer=optimizer, density=True, exaggeration=2.0, max_step=max_step),)
    )
    fixed = minimize(small_problem(objective), Y, schedule)
    adaptive = minimize(Exactly(), c * Y, schedule)
    np.testing.assert_array_equal(adaptive.embedding, c * fixed.embedding)
    assert adaptive.losses["kl"] == fixed.losses["kl"]
    # and the kernel itself, to rounding
    near = minimize(small_problem(objective, log_scales=log_scale), c * Y, schedule)
    np.testing.assert_allclose(near.embedding, c * fixed.embedding, rtol=1e-6, atol=1e-6 * c)


def test_steps_and_their_bound_are_in_units_of_each_point():
    class Slope(Toy):
        def evaluate(self, Y, **options):
            return At(np.ones_like(Y), {"kl": 0.0, "concentration": 0.0}, np.array([0.5, 1.0, 4.0]))

    plain = Momentum(rate=1.0, momentum=0.0, gains=False)

    def moved(**options):
        phase = {"n_iter": 1, "optimizer": plain, "max_step": options.pop("max_step", None)}
        schedule = Schedule(phases=(Phase(**phase),), center=False, **options)
        return -minimize(Slope(), np.zeros((3, 1)), schedule).embedding[:, 0]

    np.testing.assert_array_equal(moved(), [0.25, 1.0, 16.0])  # rho^2 times the gradient
    np.testing.assert_array_equal(moved(local_steps=False), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(moved(max_step=0.5), [0.25, 0.5, 2.0])  # at most half a scale


def test_the_problem_receives_exaggeration_and_power():
    calls = []

    class Watched(Toy):
        def evaluate(self, Y, **options):
            calls.append((options["exaggeration"], options["scale"]))
            return At(np.zeros_like(Y), {"kl": 0.0, "concentration": 0.0})

    phase = Phase(n_iter=4, optimizer=ADAM, exaggeration_from=16.0, release=4, scale_ramp=2)
    minimize(Watched(), np.ones((3, 2)), Schedule(phases=(phase,)))
    np.testing.assert_allclose(calls, [(16.0, 0.5), (8.0, 1.0), (4.0, 1.0), (2.0, 1.0), (1.0, 1.0)])
