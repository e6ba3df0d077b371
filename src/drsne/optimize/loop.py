"""The loop of an optimisation: evaluate, step, record, call back, stop. It does not depend on the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Order
from drsne.backends.arrays import host, namespace
from drsne.logs import LOGGER, timed
from drsne.optimize import defaults
from drsne.optimize.schedule import OptimizerState, Phase, Schedule

Array = NDArray[np.float64]
Callback = Callable[[int, Array, dict[str, float]], Any]
Progress = Callable[[int, dict[str, float]], None]

_CLIP_MARGIN = 1e-6  # fraction of the bound that is added to the norm when the gradient is clipped


class Outcome(NamedTuple):
    """The result of an optimisation, complete or stopped early."""

    embedding: Array
    losses: dict[str, float]  # the KL divergence and the other terms, by their names
    n_iter: int
    history: dict[str, Array]
    stopped_by: str | None  # None, "callback", "interrupt" or "overflow"


def minimize(
    problem: Any,
    Y: Array | None = None,
    schedule: Schedule | None = None,
    *,
    state: Any = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
) -> Outcome:
    """Run a schedule and return the last map.

    Parameters
    ----------
    problem : Problem
        The problem to minimise: a :class:`drsne.terms.problem.Problem`, or another object with its ``backend``,
        ``names``, ``reordered_every``, ``start``, ``evaluate`` and ``reorder``.
    Y : ndarray of shape (n, d)
        The map to start from.
    schedule : Schedule
        The phases to run.
    state : State, default=None
        State of the problem. If None, ``problem.start()`` is used. The state is updated and can be passed to another
        run.
    callbacks : sequence of callables
        Called after each iteration as ``callback(iteration, embedding, losses)``, with a copy of the map. If a callback
        returns a true value, the optimisation stops.
    progress : callable, default=None
        Called as ``progress(iteration, losses)`` whenever the losses are known.

    Returns
    -------
    Outcome
        The last map. If the run is interrupted from the keyboard, or if the gradient is no longer finite, this is the
        last finite map.
    """
    Y = problem.initial if Y is None else Y
    schedule = defaults.of_problem(problem) if schedule is None else schedule
    run = _Run(problem, Y, schedule, state, callbacks, progress)
    with (
        problem.backend.session(),
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
    ):  # a value that is not finite ends the run
        try:
            run.all_phases()
        except KeyboardInterrupt:
            run.stopped_by = "interrupt"
        return run.outcome()


class _Run:
    """One optimisation. ``self.Y`` is a complete map at any time, even if an iteration is interrupted."""

    def __init__(
        self,
        problem: Any,
        Y: Array,
        schedule: Schedule,
        state: Any,
        callbacks: Sequence[Callback],
        progress: Progress | None,
    ) -> None:
        self.problem, self.schedule = problem, schedule
        # The map in some order of the points, as an array of the backend, and this order.
        self._placed: tuple[Array, Order | None] = (problem.backend.received(Y), None)
        self.callbacks, self.progress = callbacks, progress
        self.iteration = 0
        self.stopped_by: str | None = None
        self._state = problem.start() if state is None else state
        self._rows: list[tuple[float, ...]] = []  # the history: the iteration, the losses and the norm of the gradient
        self._last: tuple[int, Any] | None = None

    @property
    def Y(self) -> Array:
        """The map, in the order of the data."""
        Y, order = self._placed
        return Y if order is None else order.restored(Y)

    def _kept(self) -> Array:
        """Return the map, even if interrupts arrive while it is restored."""
        while True:
            try:
                return host(self.Y)
            except KeyboardInterrupt:
                self.stopped_by = "interrupt"

    def _arrange(self, memory: OptimizerState) -> None:
        """Reorder the map and the values of the optimiser, if this is due."""
        every = self.problem.reordered_every
        if every is None or self.iteration % every:
            return
        Y, (_, before) = self.Y, self._placed
        order = self.problem.reorder(Y, self._state)
        for name in ("first", "second"):
            values = getattr(memory, name)
            setattr(memory, name, order.reordered(values if before is None else before.restored(values)))
        self._placed = order.reordered(Y), order

    def all_phases(self) -> None:
        """Run all phases, unless something stops them."""
        memory: OptimizerState | None = None
        for phase in self.schedule.phases:
            if memory is None or not phase.carry:
                memory = OptimizerState.start(phase.optimizer, self.Y)
            kind = "with the density term" if phase.density else "of t-SNE"
            with timed("%d iterations %s, %s", phase.n_iter, kind, type(phase.optimizer).__name__):
                for t in range(phase.n_iter):
                    if not self._iterate(phase, t, memory):
                        return
        self._report(self._final())

    def outcome(self) -> Outcome:
        """Return the last map with its losses."""
        Y = self._kept()
        try:
            last = self._final()
        except KeyboardInterrupt:  # the map is kept; its losses stay unknown
            self.stopped_by = "interrupt"
            losses = dict.fromkeys(self.problem.names, math.nan)
            return Outcome(Y, losses, self.iteration, self._history(), self.stopped_by)
        self._record(last.losses, _norm(last.gradient) / len(last.gradient))
        LOGGER.debug("Losses: %s", ", ".join(f"{name} {value:.4f}" for name, value in last.losses.items()))
        return Outcome(Y, last.losses, self.iteration, self._history(), self.stopped_by)

    def _iterate(self, phase: Phase, t: int, memory: OptimizerState) -> bool:
        """Run iteration ``t`` of a phase, and return False if the run ends before the step of this iteration."""
        self._arrange(memory)
        Y, order = self._placed
        at = self.problem.evaluate(
            Y,
            state=self._state,
            iteration=self.iteration,
            exaggeration=phase.exaggeration_at(t),
            density=phase.density_factor(t),
            arrangement=phase.arrangement_factor(t),
            pairs=phase.pairs,
            losses=bool(self.callbacks) or self.iteration % self.schedule.record_every == 0,
            scale=phase.scale_factor(t),
            ordered=order is not None,
        )
        norm = _norm(at.gradient)
        if not math.isfinite(norm):
            self.stopped_by = "overflow"
            return False
        if self.iteration > 0 and self._report(at):
            return False
        if self.iteration % self.schedule.record_every == 0:
            self._record(at.losses, norm / len(Y))
        moved = self._moved(phase, t, memory, at, norm, Y)
        if moved is None:
            self.stopped_by = "overflow"
            return False
        self._placed, self.iteration = (moved, order), self.iteration + 1
        return True

    def _moved(self, phase: Phase, t: int, memory: OptimizerState, at: Any, norm: float, Y: Array) -> Array | None:
        """Return the map after a step within the bounds of the phase, or None if it is not finite."""
        gradient, backend = at.gradient, self.problem.backend
        if phase.clip is not None:
            share = phase.clip / (norm + _CLIP_MARGIN * phase.clip)
            gradient = gradient * share if share < 1.0 else gradient
        if at.damping is not None:
            gradient = gradient / at.damping[:, None]
        units = at.scales if self.schedule.local_steps else None
        step = memory.step(phase.optimizer, gradient, phase.rate_factor(t), backend, units)
        moved: Array | None = backend.moved(Y, step, units=units, longest=phase.max_step, center=self.schedule.center)
        return moved

    def _record(self, losses: dict[str, float], norm: float) -> None:
        if not self._rows or self._rows[-1][0] != self.iteration:
            self._rows.append((self.iteration, *(losses[name] for name in self.problem.names), norm))

    def _history(self) -> dict[str, Array]:
        """Return the history as columns."""
        names = ("iteration", *self.problem.names, "gradient_norm")
        table = np.array(self._rows, dtype=np.float64).reshape(-1, len(names))
        columns = dict(zip(names, table.T.copy(), strict=True))
        return {**columns, "iteration": columns["iteration"].astype(np.int64)}

    def _report(self, at: Any) -> bool:
        """If the losses are known, call the callbacks and update the progress display.

        Return whether a callback stopped the run.
        """
        if at.losses is None:
            return False
        if self.progress is not None:
            self.progress(self.iteration, at.losses)
        for callback in self.callbacks:  # call all of them, even if one has already stopped the run
            if callback(self.iteration, np.array(host(self.Y)), dict(at.losses)):
                self.stopped_by = "callback"
        return self.stopped_by is not None

    def _final(self) -> Any:
        """Return the evaluation of the objective at the last map, without exaggeration and ramps."""
        if self._last is None or self._last[0] != self.iteration:
            at = self.problem.evaluate(
                self.Y,
                state=self._state,
                iteration=None,
                exaggeration=1.0,
                density=1.0,
                arrangement=1.0,
                pairs="objective",
                losses=True,
                scale=1.0,
                ordered=False,
            )
            self._last = (self.iteration, at)
        return self._last[1]


def _norm(gradient: Any) -> float:
    return float(namespace(gradient).linalg.norm(gradient))
