"""The schedule of an optimisation: phases of iterations, and how rates, exaggeration and weights change in them.

Rates, clipping and Adam's eps act on the gradient of **n times** the loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from drsne import checks
from drsne.optimization.optimizers import Adam, Momentum


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
        checks.integer("n_iter", self.n_iter, at_least=0)
        if not isinstance(self.optimizer, (Momentum, Adam)):
            raise TypeError(f"optimizer must be a drsne.Momentum or a drsne.Adam; got {self.optimizer!r}.")
        checks.choice("decay", self.decay, ("constant", "linear", "cosine"))
        checks.number("exaggeration", self.exaggeration, above=0)
        checks.integer("ramp", self.ramp, at_least=0)
        if self.exaggeration_from is not None:
            checks.number("exaggeration_from", self.exaggeration_from, above=0)
        checks.integer("release", self.release, at_least=0)
        checks.number("scale", self.scale, at_least=0)
        checks.integer("scale_ramp", self.scale_ramp, at_least=0)
        checks.flag("density", self.density)
        checks.flag("carry", self.carry)
        checks.choice("pairs", self.pairs, ("objective", "all"))
        for name in ("clip", "max_step"):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), above=0)

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
        checks.flag("center", self.center)
        checks.flag("local_steps", self.local_steps)
        checks.integer("record_every", self.record_every, at_least=1)
        for before, phase in zip(self.phases, self.phases[1:], strict=False):
            if phase.carry and type(before.optimizer) is not type(phase.optimizer):
                raise ValueError("carry=True needs the optimiser of the phase before; use the same kind in both.")

    @property
    def n_iter(self) -> int:
        """Iterations of all phases."""
        return sum(phase.n_iter for phase in self.phases)
