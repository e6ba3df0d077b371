from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from covering import in_one_test
from problems import Toy

from drsne import Adam, Momentum, Phase, Schedule
from drsne.backends.numpy import NumpyBackend, NumpyOrder
from drsne.optimize.loop import minimize
from drsne.optimize.schedule import OptimizerState


class At(NamedTuple):
    gradient: np.ndarray
    losses: dict
    scales: np.ndarray | None = None
    damping: None = None


class Bowl(Toy):
    """|Y - 1|^2 / 2 with a record of how it was called."""

    def __init__(self):
        self.calls = []

    def evaluate(self, Y, **options):
        self.calls.append(options)
        return At(Y - 1.0, {"kl": 0.5 * float(((Y - 1.0) ** 2).sum()), "concentration": 0.0})


def phase(n_iter=1, optimizer=Adam(rate=1.0), **options):  # noqa: B008
    return Phase(n_iter=n_iter, optimizer=optimizer, **options)


def run(*phases, Y=None, **options):
    bowl = Bowl()
    start = np.zeros((4, 2)) if Y is None else Y
    schedule = Schedule(phases=phases, **{"center": False, **options})
    return minimize(bowl, start, schedule), bowl


@pytest.mark.parametrize(
    "options", [{"gains": False}, {"gains": True}, {"grow_from_rest": True}], ids=lambda options: next(iter(options))
)
def test_momentum_and_gains_follow_their_recurrence(options):
    """Gains grow downhill and shrink on a turn; the first step, and any from a gradient of 0, counts as either."""
    outcome, _ = run(Phase(n_iter=5, optimizer=Momentum(rate=0.1, momentum=0.5, **options)))
    y, step, gain = 0.0, 0.0, 1.0
    for _ in range(5):
        g = y - 1.0
        grows = np.sign(g) != np.sign(step) if options.get("grow_from_rest") else step * g < 0
        if options.get("gains", True):
            gain = max(gain + 0.2 if grows else gain * 0.8, 0.01)
        step = 0.5 * step - 0.1 * gain * g
        y += step
    np.testing.assert_allclose(outcome.embedding, y)


def test_the_density_term_is_named():
    class Problem(Toy):
        names = ("kl", "correlation")

        def evaluate(self, Y, **options):
            return At(Y, {"kl": 1.0, "correlation": 0.25})

    seen = []
    schedule = Schedule(phases=(Phase(n_iter=2, optimizer=Adam(rate=0.1)),))
    watch = [lambda t, Y, losses: seen.append(losses)]
    outcome = minimize(Problem(), np.ones((3, 2)), schedule, callbacks=watch)
    assert seen == [{"kl": 1.0, "correlation": 0.25}] * 2
    assert outcome.losses["correlation"] == 0.25
    assert outcome.history["correlation"].tolist() == [0.25, 0.25]


def test_adam_follows_its_recurrence_and_carries_its_state():
    adam = Adam(rate=0.1, betas=(0.8, 0.9), eps=1e-3)

    def by_hand(restart):
        y, m, v, t = 0.0, 0.0, 0.0, 0
        for at in range(6):
            if restart and at == 3:
                m, v, t = 0.0, 0.0, 0
            g, t = y - 1.0, t + 1
            m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
            y -= 0.1 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
        return y

    for carry in (True, False):
        outcome, _ = run(phase(3, adam), phase(3, adam, carry=carry))
        np.testing.assert_allclose(outcome.embedding, by_hand(restart=not carry))


def test_clip_bounds_the_whole_gradient_and_max_step_each_point():
    plain = Momentum(rate=1.0, momentum=0.0, gains=False)
    clipped, _ = run(phase(1, plain, clip=0.5))
    assert np.linalg.norm(clipped.embedding) == pytest.approx(0.5, rel=1e-5)
    unclipped, _ = run(phase(1, plain, clip=100.0))
    np.testing.assert_allclose(unclipped.embedding, 1.0)
    short, _ = run(phase(1, plain, max_step=0.25))
    np.testing.assert_allclose(np.linalg.norm(short.embedding, axis=1), 0.25)


def test_decay_and_ramp():
    ramped = phase(10, decay="cosine", density=True, ramp=4)
    assert [ramped.rate_factor(t) for t in (0, 5)] == pytest.approx([1.0, 0.5])
    assert ramped.rate_factor(9) < 0.03
    assert [ramped.density_factor(t) for t in (0, 1, 3, 9)] == [0.25, 0.5, 1.0, 1.0]
    assert phase(10, decay="linear").rate_factor(5) == 0.5
    assert phase(10).rate_factor(9) == 1.0
    assert phase(10).density_factor(5) == 0.0


def test_phases_reach_the_problem():
    adam = Adam(rate=0.1)
    _, bowl = run(phase(2, adam, exaggeration=12.0, pairs="all"), phase(1, adam, density=True))
    seen = [(call["exaggeration"], call["density"], call["pairs"]) for call in bowl.calls]
    assert seen == [(12.0, 0.0, "all"), (12.0, 0.0, "all"), (1.0, 1.0, "objective"), (1.0, 1.0, "objective")]


def test_centre_and_history():
    Y = np.random.default_rng(0).normal(size=(6, 2)) + 4
    outcome, _ = run(Phase(n_iter=7, optimizer=Adam(rate=0.1)), Y=Y, center=True, record_every=3)
    np.testing.assert_allclose(outcome.embedding.mean(axis=0), 0.0, atol=1e-15)
    assert outcome.history["iteration"].tolist() == [0, 3, 6, 7]
    assert outcome.n_iter == 7
    assert outcome.stopped_by is None
    outcome, _ = run(Y=Y)  # without phases
    np.testing.assert_array_equal(outcome.embedding, Y)
    assert outcome.n_iter == 0


@in_one_test(
    ("make", "message"),
    [
        (lambda: Momentum(rate=0.0), "rate must be a finite number above 0; got 0.0"),
        (lambda: Momentum(rate=1.0, momentum=1.0), "momentum must be below 1"),
        (lambda: Momentum(rate=1.0, grow_from_rest=1), "grow_from_rest must be True or False; got 1"),
        (lambda: Adam(rate=1.0, betas=(0.9, 1.0)), "betas must be below 1"),
        (lambda: Adam(rate=1.0, betas=0.9), "betas must be a tuple"),
        (lambda: Adam(rate=1.0, eps=0.0), "eps must be a finite number above 0"),
        (lambda: phase(n_iter=-1), "n_iter must be an integer of at least 0"),
        (lambda: phase(optimizer="adam"), "optimizer must be a drsne.Momentum or a drsne.Adam"),
        (lambda: phase(decay="step"), "decay must be one of"),
        (lambda: phase(pairs="some"), "pairs must be one of"),
        (lambda: phase(clip=-1.0), "clip must be"),
        (lambda: phase(exaggeration=0.0), "exaggeration must be"),
        (lambda: phase(ramp=-1), "ramp must be"),
        (lambda: phase(carry=1), "carry must be"),
        (lambda: Schedule(phases=[1]), "phases must be a tuple of drsne.Phase"),
        (lambda: Schedule(phases=(phase(optimizer=Momentum(rate=1.0)), phase(carry=True))), "carry=True needs"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    "optimizer",
    [Momentum(rate=0.3), Momentum(rate=0.3, gains=False), Momentum(rate=0.3, grow_from_rest=True), Adam(rate=0.5)],
)
def test_steps_of_many_points_are_the_same(optimizer, monkeypatch):
    """Compiled in one pass, or with numpy."""
    from drsne.backends.numba import backend as compiled
    from drsne.backends.numba.threads import Workers

    rng = np.random.default_rng(0)
    Y, gradients = rng.normal(size=(50, 2)), rng.normal(size=(20, 50, 2))
    monkeypatch.setattr(compiled, "_COMPILED_FROM", 10)
    taken = []
    for backend in (NumpyBackend(), compiled.NumbaBackend(Workers(1))):
        state = OptimizerState.start(optimizer, Y)
        taken.append([state.step(optimizer, g.copy(), 0.7, backend).copy() for g in gradients])
    np.testing.assert_allclose(*taken, rtol=1e-12, atol=1e-15)


def test_the_order_of_the_points_changes_only_the_last_bits():
    """The map, the optimiser's values and the maps that callbacks see are those of the data's order."""

    class Arranged(Bowl):
        reordered_every = 3

        def __init__(self):
            super().__init__()
            self.goal = np.arange(8.0).reshape(4, 2)

        def reorder(self, Y, state):
            self.rows = np.roll(np.arange(4), len(self.calls) + 1)
            return NumpyOrder(self.rows)

        def evaluate(self, Y, *, ordered, **options):
            self.calls.append(options)
            gradient = Y - (self.goal[self.rows] if ordered else self.goal)
            return At(gradient, {"kl": 0.0, "concentration": 0.0})

    class Plain(Arranged):
        reordered_every = None

    schedule = Schedule(phases=(Phase(n_iter=10, optimizer=Adam(rate=0.5)),), center=False)
    seen = {}
    for problem in (Arranged(), Plain()):
        watched = []
        outcome = minimize(problem, np.zeros((4, 2)), schedule, callbacks=[lambda t, Y, losses: watched.append(Y)])  # noqa: B023
        seen[type(problem)] = [*watched, outcome.embedding]
    assert len({tuple(map(tuple, Y)) for Y in seen[Plain]}) == 10  # the last map is seen twice
    np.testing.assert_allclose(seen[Arranged], seen[Plain], rtol=1e-12)
