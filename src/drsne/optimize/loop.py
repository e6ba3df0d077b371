"""The loop of an optimisation: evaluate, step, record, call back, stop. It does not depend on the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, Order
from drsne.backends.arrays import host, namespace
from drsne.logs import LOGGER, timed
from drsne.optimize import defaults
from drsne.optimize.optimizers import OptimizerState
from drsne.optimize.schedule import Phase, Schedule

Array = NDArray[np.float64]
Callback = Callable[[int, Array, dict[str, float]], Any]
Progress = Callable[[int, dict[str, float]], None]

_CLIP_MARGIN = 1e-6  # fraction of the bound that is added to the norm when the gradient is clipped


class Evaluates(Protocol):
    """A problem that can be minimised, such as :class:`drsne.terms.problem.Problem`."""

    backend: Backend

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the losses, beginning with "kl"."""
        ...

    @property
    def reordered_every(self) -> int | None:
        """The number of iterations after which the points are reordered, or None if they never are."""
        ...

    def reorder(self, Y: Array, state: Any) -> Order:
        """Put the state into an order of the points that suits the map, and return the order."""
        ...

    def start(self) -> Any:
        """Return the state that an optimisation carries from one iteration to the next."""
        ...

    def evaluate(
        self,
        Y: Array,
        *,
        state: Any,
        iteration: int | None,
        exaggeration: float,
        density: float,
        pairs: str,
        losses: bool,
        scale: float | None,
        ordered: bool,
    ) -> Any:
        """Return the gradient and the losses at ``Y``, which is in the order of the state if ``ordered`` is True."""
        ...


class Outcome(NamedTuple):
    """The result of an optimisation, complete or stopped early."""

    embedding: Array
    losses: dict[str, float]  # the KL divergence and the other terms, by their names
    n_iter: int
    history: dict[str, Array]
    stopped_by: str | None  # None, "callback", "interrupt" or "overflow"


@dataclass
class _History:
    """The losses of some iterations, which are returned as columns."""

    every: int
    names: tuple[str, ...]  # of the losses
    rows: list[tuple[float, ...]] = field(default_factory=list)

    def due(self, iteration: int) -> bool:
        return iteration % self.every == 0

    def add(self, iteration: int, losses: dict[str, float], norm: float) -> None:
        if not self.rows or self.rows[-1][0] != iteration:
            self.rows.append((iteration, *(losses[name] for name in self.names), norm))

    def columns(self) -> dict[str, Array]:
        names = ("iteration", *self.names, "gradient_norm")
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(names))
        out = dict(zip(names, table.T.copy(), strict=True))
        out["iteration"] = out["iteration"].astype(np.int64)
        return out


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
    problem : Evaluates
        The problem to minimise.
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
        problem: Evaluates,
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
        self._history = _History(schedule.record_every, problem.names)
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
            if not self._run_phase(phase, memory):
                return
        self._report(self._final())

    def _run_phase(self, phase: Phase, memory: OptimizerState) -> bool:
        """Run a phase, and return whether all of its iterations were run."""
        kind = "with the density term" if phase.density else "of t-SNE"
        with timed("%d iterations %s, %s", phase.n_iter, kind, type(phase.optimizer).__name__):
            return all(self._iterate(phase, t, memory) for t in range(phase.n_iter))

    def outcome(self) -> Outcome:
        """Return the last map with its losses."""
        Y = self._kept()
        try:
            last = self._final()
        except KeyboardInterrupt:  # the map is kept; its losses stay unknown
            self.stopped_by = "interrupt"
            losses = dict.fromkeys(self.problem.names, math.nan)
            return Outcome(Y, losses, self.iteration, self._history.columns(), self.stopped_by)
        norm = _norm(last.gradient) / len(last.gradient)
        self._history.add(self.iteration, last.losses, norm)
        LOGGER.debug("Losses: %s", ", ".join(f"{name} {value:.4f}" for name, value in last.losses.items()))
        return Outcome(Y, last.losses, self.iteration, self._history.columns(), self.stopped_by)

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
            pairs=phase.pairs,
            losses=bool(self.callbacks) or self._history.due(self.iteration),
            scale=phase.scale_factor(t),
            ordered=order is not None,
        )
        norm = _norm(at.gradient)
        if not math.isfinite(norm):
            self.stopped_by = "overflow"
            return False
        if self.iteration > 0 and self._report(at):
            return False
        if self._history.due(self.iteration):
            self._history.add(self.iteration, at.losses, norm / len(Y))
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
        return backend.moved(Y, step, units=units, longest=phase.max_step, center=self.schedule.center)

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
                pairs="objective",
                losses=True,
                scale=1.0,
                ordered=False,
            )
            self._last = (self.iteration, at)
        return self._last[1]


def _norm(gradient: Any) -> float:
    return float(namespace(gradient).linalg.norm(gradient))
