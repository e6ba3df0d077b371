"""Optimisation of a map: phases, optimisers, callbacks, stopping.

Rates, clipping and Adam's eps act on the gradient of **n times** the loss. Nothing here knows what the loss is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne import _checks

Array = NDArray[np.float64]
Callback = Callable[[int, Array, dict[str, float]], Any]

_MANY = 8192  # points from which on a step is compiled
_CLIP_MARGIN = 1e-6  # of the bound, added to the norm when clipping


@dataclass(frozen=True, kw_only=True)
class Momentum:
    """Gradient descent with momentum and, as in t-SNE, a gain per coordinate.

    Parameters
    ----------
    rate : float
        Step per unit of the gradient of n times the loss.
    momentum : float, default=0.8
        Share of the last step that goes on.
    gains : bool, default=True
        Let each coordinate's rate grow (+0.2) while its sign persists and shrink (x 0.8) when it flips.
    min_gain : float, default=0.01
        Smallest gain.
    grow_from_rest : bool, default=False
        Whether the gain of a coordinate at rest grows, as in the first step of van der Maaten's programs (gain 1.2),
        or shrinks, as in scikit-learn's (0.8).
    """

    rate: float
    momentum: float = 0.8
    gains: bool = True
    min_gain: float = 0.01
    grow_from_rest: bool = False

    def __post_init__(self) -> None:
        _checks.number("rate", self.rate, above=0)
        _check_share("momentum", self.momentum)
        _checks.flag("gains", self.gains)
        _checks.number("min_gain", self.min_gain, above=0)
        _checks.flag("grow_from_rest", self.grow_from_rest)


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma and Ba, 2015).

    Parameters
    ----------
    rate : float
        Largest typical step, in units of the map.
    betas : tuple of float, default=(0.9, 0.999)
        Memory of the mean and of the mean square of the gradient.
    eps : float, default=1e-8
        Added to the root mean square; on the scale of the gradient of n times the loss, and far below it.
    """

    rate: float
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        _checks.number("rate", self.rate, above=0)
        if not isinstance(self.betas, tuple) or len(self.betas) != 2:
            raise ValueError(f"betas must be a tuple of two numbers; got {self.betas!r}.")
        for beta in self.betas:
            _check_share("betas", beta)
        _checks.number("eps", self.eps, above=0)


def _check_share(name: str, value: float) -> None:
    if _checks.number(name, value, at_least=0) >= 1:
        raise ValueError(f"{name} must be below 1; got {value!r}.")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of iterations under one optimiser.

    Parameters
    ----------
    n_iter : int
        Iterations.
    optimizer : Momentum or Adam
        How steps are made.
    decay : {"constant", "linear", "cosine"}, default="constant"
        How the rate falls to zero over the phase, if it does.
    exaggeration : float, default=1.0
        Factor on the attraction alone; the affinities never change.
    density : bool, default=False
        Whether the density term takes part.
    ramp : int, default=0
        Iterations over which its weight rises linearly to lambda.
    pairs : {"objective", "all"}, default="objective"
        Pairs of the KL term: the objective's, or all with affinity.
    clip : float, default=None
        Bound on the norm of the whole gradient.
    max_step : float, default=None
        Bound on each point's step, in units of the map.
    carry : bool, default=False
        Go on with the optimiser state of the phase before.
    exaggeration_from : float, default=None
        The exaggeration at the start of the phase, if it is released gradually.
    release : int, default=0
        Iterations over which the exaggeration falls geometrically from ``exaggeration_from`` to ``exaggeration``; the
        rate rises in the same proportion.
    scale : float, default=1.0
        How far an adaptive kernel adapts: its scales are raised to this power, and 0 is the fixed kernel.
    scale_ramp : int, default=0
        Iterations over which that power rises linearly from 0 to ``scale``.
    """

    n_iter: int
    optimizer: Momentum | Adam
    decay: str = "constant"
    exaggeration: float = 1.0
    density: bool = False
    ramp: int = 0
    pairs: str = "objective"
    clip: float | None = None
    max_step: float | None = None
    carry: bool = False
    exaggeration_from: float | None = None
    release: int = 0
    scale: float = 1.0
    scale_ramp: int = 0

    def __post_init__(self) -> None:
        _checks.integer("n_iter", self.n_iter, at_least=0)
        if not isinstance(self.optimizer, (Momentum, Adam)):
            raise TypeError(f"optimizer must be a drsne.Momentum or a drsne.Adam; got {self.optimizer!r}.")
        _checks.choice("decay", self.decay, ("constant", "linear", "cosine"))
        _checks.number("exaggeration", self.exaggeration, above=0)
        _checks.integer("ramp", self.ramp, at_least=0)
        if self.exaggeration_from is not None:
            _checks.number("exaggeration_from", self.exaggeration_from, above=0)
        _checks.integer("release", self.release, at_least=0)
        _checks.number("scale", self.scale, at_least=0)
        _checks.integer("scale_ramp", self.scale_ramp, at_least=0)
        _checks.flag("density", self.density)
        _checks.flag("carry", self.carry)
        _checks.choice("pairs", self.pairs, ("objective", "all"))
        for name in ("clip", "max_step"):
            if getattr(self, name) is not None:
                _checks.number(name, getattr(self, name), above=0)

    def rate_factor(self, t: int) -> float:
        """Share of the rate at iteration ``t`` of the phase."""
        share = 1.0 if self.exaggeration_from is None else self.exaggeration / self.exaggeration_at(t)
        if self.decay == "cosine":
            return share * 0.5 * (1.0 + math.cos(math.pi * t / self.n_iter))
        return share * (1.0 - t / self.n_iter if self.decay == "linear" else 1.0)

    def exaggeration_at(self, t: int) -> float:
        """Return the exaggeration at iteration ``t`` of the phase."""
        if self.exaggeration_from is None or t >= self.release:
            return self.exaggeration
        done = t / self.release
        return float(self.exaggeration_from ** (1.0 - done) * self.exaggeration**done)

    def density_factor(self, t: int) -> float:
        """Share of lambda at iteration ``t`` of the phase."""
        return float(self.density) * (min(1.0, (t + 1) / self.ramp) if self.ramp else 1.0)

    def scale_factor(self, t: int) -> float:
        """Return the power of the kernel's scales at iteration ``t`` of the phase."""
        return self.scale * (min(1.0, (t + 1) / self.scale_ramp) if self.scale_ramp else 1.0)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Phases of an optimisation, one after the other.

    Parameters
    ----------
    phases : tuple of Phase
        In order.
    center : bool, default=True
        Keep the mean of the map at the origin.
    record_every : int, default=10
        Iterations between entries of the history.
    local_steps : bool, default=True
        Take steps, and bound them, in units of each point's scale where the kernel is adaptive: a region that is
        drawn twice as large then moves twice as far (docs/theory.md, section 11).

    Examples
    --------
    >>> from drsne import Adam, Phase, Schedule
    >>> Schedule(phases=(Phase(n_iter=100, optimizer=Adam(rate=1.0), density=True),)).n_iter
    100
    """

    phases: tuple[Phase, ...]
    center: bool = True
    record_every: int = 10
    local_steps: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.phases, tuple) or not all(isinstance(phase, Phase) for phase in self.phases):
            raise TypeError(f"phases must be a tuple of drsne.Phase; got {self.phases!r}.")
        _checks.flag("center", self.center)
        _checks.flag("local_steps", self.local_steps)
        _checks.integer("record_every", self.record_every, at_least=1)
        for before, phase in zip(self.phases, self.phases[1:], strict=False):
            if phase.carry and type(before.optimizer) is not type(phase.optimizer):
                raise ValueError("carry=True needs the optimiser of the phase before; use the same kind in both.")

    @property
    def n_iter(self) -> int:
        """Iterations of all phases."""
        return sum(phase.n_iter for phase in self.phases)


class Evaluates(Protocol):
    """What is minimised: see :class:`drsne.objective.Problem`."""

    def evaluate(
        self,
        Y: Array,
        *,
        exaggeration: float,
        density: float,
        pairs: str,
        losses: bool,
        iteration: int | None,
        scale: float,
    ) -> Any:
        """Gradient and losses at ``Y``; those of one ``iteration`` may be over a sample of the pairs."""
        ...


class Outcome(NamedTuple):
    """A finished (or stopped) optimisation."""

    embedding: Array
    kl: float
    density: float  # value of the density term
    n_iter: int
    history: dict[str, Array]
    stopped_by: str | None  # None, "callback", "interrupt" or "overflow"


@dataclass
class _State:
    """Memory of an optimiser."""

    first: Array  # last step (Momentum) or mean gradient (Adam)
    second: Array  # gains (Momentum) or mean square (Adam)
    steps: int = 0

    @classmethod
    def fresh(cls, optimizer: Momentum | Adam, Y: Array) -> _State:
        return cls(np.zeros_like(Y), np.ones_like(Y) if isinstance(optimizer, Momentum) else np.zeros_like(Y))

    def step(self, optimizer: Momentum | Adam, gradient: Array, factor: float) -> Array:
        """Displacement of the map for ``gradient`` at ``factor`` times the rate."""
        self.steps += 1
        if len(gradient) >= _MANY:
            return self._step_of_many(optimizer, gradient, factor)
        if isinstance(optimizer, Momentum):
            if optimizer.gains:
                if optimizer.grow_from_rest:
                    flipped = np.sign(self.first) == np.sign(gradient)
                else:
                    flipped = self.first * gradient >= 0.0  # the step pointed uphill
                self.second = np.where(flipped, self.second * 0.8, self.second + 0.2)
                np.maximum(self.second, optimizer.min_gain, out=self.second)
                gradient = self.second * gradient
            self.first *= optimizer.momentum
            self.first -= (factor * optimizer.rate) * gradient
            return self.first
        one, two = optimizer.betas
        self.first *= one
        self.first += (1.0 - one) * gradient
        square = gradient * gradient
        square *= 1.0 - two
        self.second *= two
        self.second += square
        root = np.sqrt(self.second, out=square)
        root *= 1.0 / math.sqrt(1.0 - two**self.steps)
        root += optimizer.eps
        step = np.divide(self.first, root, out=root)
        step *= -(factor * optimizer.rate) / (1.0 - one**self.steps)
        return step

    def _step_of_many(self, optimizer: Momentum | Adam, gradient: Array, factor: float) -> Array:
        """The same in one pass over memory."""
        from drsne.kernels import steps as kernels

        if isinstance(optimizer, Momentum):
            least = optimizer.min_gain if optimizer.gains else 0.0
            rate = factor * optimizer.rate
            rest = optimizer.grow_from_rest
            kernels.momentum(gradient, self.first, self.second, least, rest, optimizer.momentum, rate)
            return self.first
        one, two = optimizer.betas
        unbias, rate = 1.0 / math.sqrt(1.0 - two**self.steps), -(factor * optimizer.rate) / (1.0 - one**self.steps)
        step = np.empty_like(gradient)
        kernels.adam(gradient, self.first, self.second, one, two, unbias, optimizer.eps, rate, step)
        return step


@dataclass
class _History:
    """Losses along the way, as columns."""

    every: int
    term: str
    rows: list[tuple[int, float, float, float]] = field(default_factory=list)

    def due(self, iteration: int) -> bool:
        return iteration % self.every == 0

    def add(self, iteration: int, losses: dict[str, float], norm: float) -> None:
        if not self.rows or self.rows[-1][0] != iteration:
            self.rows.append((iteration, losses["kl"], losses[self.term], norm))

    def columns(self) -> dict[str, Array]:
        names = ("iteration", "kl", self.term, "gradient_norm")
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(names))
        out = dict(zip(names, table.T.copy(), strict=True))
        out["iteration"] = out["iteration"].astype(np.int64)
        return out


def minimize(
    problem: Evaluates,
    Y: Array,
    schedule: Schedule,
    *,
    callbacks: Sequence[Callback] = (),
    progress: Callable[[int, dict[str, float]], None] | None = None,
    term: str = "concentration",
) -> Outcome:
    """Run ``schedule`` from ``Y``.

    Callbacks are called as ``callback(iteration, embedding, losses)`` after each iteration, with a copy of
    the map; a true answer ends the run. An interrupt from the keyboard, or a gradient that is no longer
    finite, ends it too, with the last good map. ``term`` is what evaluations, losses and history call the density term.
    """
    run = _Run(problem, Y, schedule, callbacks, progress, term)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite ends the run
        try:
            run.all_phases()
        except KeyboardInterrupt:
            run.stopped_by = "interrupt"
        return run.outcome()


class _Run:
    """State of one optimisation; ``self.Y`` is always a whole map."""

    def __init__(
        self,
        problem: Evaluates,
        Y: Array,
        schedule: Schedule,
        callbacks: Sequence[Callback],
        progress: Callable[[int, dict[str, float]], None] | None,
        term: str,
    ) -> None:
        self.problem, self.Y, self.schedule = problem, Y, schedule
        self.callbacks, self.progress, self._term = callbacks, progress, term
        self.iteration = 0
        self.stopped_by: str | None = None
        self._history = _History(schedule.record_every, term)
        self._last: tuple[int, Any] | None = None

    def all_phases(self) -> None:
        state: _State | None = None
        for phase in self.schedule.phases:
            if state is None or not phase.carry:
                state = _State.fresh(phase.optimizer, self.Y)
            for t in range(phase.n_iter):
                if not self._iterate(phase, t, state):
                    return
        self._report(self._final())

    def outcome(self) -> Outcome:
        try:
            last = self._final()
        except KeyboardInterrupt:  # a second one: the map is kept, its losses stay unknown
            self.stopped_by = "interrupt"
            return Outcome(self.Y, math.nan, math.nan, self.iteration, self._history.columns(), self.stopped_by)
        norm = float(np.linalg.norm(last.gradient)) / len(self.Y)
        losses = self._losses(last)
        self._history.add(self.iteration, losses, norm)
        density = losses[self._term]
        return Outcome(self.Y, last.kl, density, self.iteration, self._history.columns(), self.stopped_by)

    def _iterate(self, phase: Phase, t: int, state: _State) -> bool:
        """One step; False where the run ends before it."""
        wanted = bool(self.callbacks) or self._history.due(self.iteration)
        at = self.problem.evaluate(
            self.Y,
            exaggeration=phase.exaggeration_at(t),
            density=phase.density_factor(t),
            pairs=phase.pairs,
            losses=wanted,
            iteration=self.iteration,
            scale=phase.scale_factor(t),
        )
        norm = float(np.linalg.norm(at.gradient))
        if not math.isfinite(norm):
            self.stopped_by = "overflow"
            return False
        if self.iteration > 0 and self._report(at):
            return False
        if self._history.due(self.iteration):
            self._history.add(self.iteration, self._losses(at), norm / len(self.Y))
        gradient = at.gradient
        if phase.clip is not None:
            gradient = gradient * min(1.0, phase.clip / (norm + _CLIP_MARGIN * phase.clip))
        unit = None if at.scales is None or not self.schedule.local_steps else at.scales[:, None]
        step = state.step(phase.optimizer, gradient if unit is None else unit * gradient, phase.rate_factor(t))
        if phase.max_step is not None:
            length = np.sqrt(np.einsum("ij,ij->i", step, step))
            if not length.max() <= phase.max_step:
                step = step * np.minimum(1.0, phase.max_step / np.maximum(length, phase.max_step))[:, None]
        step = step if unit is None else unit * step
        moved = self.Y + step
        if self.schedule.center:
            for column in moved.T:  # one by one: numpy's mean over the first of two axes takes ten times as long
                column -= column.mean()
        if not np.isfinite(moved).all():
            self.stopped_by = "overflow"
            return False
        self.Y, self.iteration = moved, self.iteration + 1
        return True

    def _losses(self, at: Any) -> dict[str, float]:
        return {"kl": at.kl, self._term: getattr(at, self._term)}

    def _report(self, at: Any) -> bool:
        """Tell callbacks and progress about the current map; True where a callback ends the run."""
        if at.kl is None:
            return False
        losses = self._losses(at)
        if self.progress is not None:
            self.progress(self.iteration, losses)
        for callback in self.callbacks:  # all of them, even after one said stop
            if callback(self.iteration, self.Y.copy(), dict(losses)):
                self.stopped_by = "callback"
        return self.stopped_by is not None

    def _final(self) -> Any:
        """Losses of the plain objective at the last map."""
        if self._last is None or self._last[0] != self.iteration:
            at = self.problem.evaluate(
                self.Y, exaggeration=1.0, density=1.0, pairs="objective", losses=True, iteration=None, scale=1.0
            )
            self._last = (self.iteration, at)
        return self._last[1]
