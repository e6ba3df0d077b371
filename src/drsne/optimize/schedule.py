"""The schedule of an optimisation: phases of iterations, and how rates, exaggeration and weights change in them.

Rates, clipping and Adam's eps act on the gradient of **n times** the loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from drsne import checks
from drsne.optimize.optimizers import Adam, Momentum


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A sequence of iterations with one optimiser.

    Parameters
    ----------
    n_iter : int
        Number of iterations.
    optimizer : Momentum or Adam
        The optimiser that makes the steps.
    decay : {"constant", "linear", "cosine"}, default="constant"
        How the learning rate changes during the phase: it is constant, or falls to zero linearly or as a cosine.
    exaggeration : float, default=1.0
        Factor on the attractive forces. The affinities do not change.
    density : bool, default=False
        Whether the density term is used.
    ramp : int, default=0
        Number of iterations during which the weight of the density term rises linearly to lambda.
    pairs : {"objective", "all"}, default="objective"
        Pairs of the KL term: those of the objective, or all pairs with an affinity.
    clip : float, default=None
        Maximum norm of the full gradient, taken over all points. A larger gradient is scaled down to this norm. If
        None, the gradient is not clipped.
    max_step : float, default=None
        Largest length of the step of a point, in units of the map. If None, steps are not bounded.
    carry : bool, default=False
        Whether to continue with the optimiser state of the previous phase.
    exaggeration_from : float, default=None
        Exaggeration at the start of the phase, if the exaggeration is released gradually.
    release : int, default=0
        Number of iterations during which the exaggeration falls geometrically from ``exaggeration_from`` to
        ``exaggeration``. The learning rate rises in the same proportion.
    scale : float, default=1.0
        Power to which the scales of an adaptive kernel are raised. With 0, the kernel is fixed.
    scale_ramp : int, default=0
        Number of iterations during which the power of the scales rises linearly from 0 to ``scale``.
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
            raise TypeError(
                f"optimizer must be a drsne.Momentum or a drsne.Adam; got {self.optimizer!r}. Pass, for example, "
                "drsne.Adam(rate=1.0)."
            )
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
        """Return the factor on the learning rate at iteration ``t`` of the phase."""
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
        """Return the factor on lambda at iteration ``t`` of the phase."""
        return float(self.density) * (min(1.0, (t + 1) / self.ramp) if self.ramp else 1.0)

    def scale_factor(self, t: int) -> float:
        """Return the power of the kernel's scales at iteration ``t`` of the phase."""
        return self.scale * (min(1.0, (t + 1) / self.scale_ramp) if self.scale_ramp else 1.0)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The phases of an optimisation.

    Parameters
    ----------
    phases : tuple of Phase
        The phases, in the order in which they are run.
    center : bool, default=True
        Whether to keep the mean of the map at the origin.
    record_every : int, default=10
        Number of iterations between two entries of the history.
    local_steps : bool, default=True
        Whether steps and their bounds are in units of the scale of each point if the kernel is adaptive. A region that
        is drawn twice as large then moves twice as far (docs/theory.md, section 11).

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
            raise TypeError(f"phases must be a tuple of drsne.Phase; got {self.phases!r}. Pass a tuple, not a list.")
        checks.flag("center", self.center)
        checks.flag("local_steps", self.local_steps)
        checks.integer("record_every", self.record_every, at_least=1)
        for before, phase in zip(self.phases, self.phases[1:], strict=False):
            if phase.carry and type(before.optimizer) is not type(phase.optimizer):
                raise ValueError(
                    "carry=True needs the same kind of optimiser as in the previous phase, "
                    f"{type(before.optimizer).__name__}; got {type(phase.optimizer).__name__}. Use the same kind in "
                    "both, or pass carry=False."
                )

    @property
    def n_iter(self) -> int:
        """Number of iterations of all phases."""
        return sum(phase.n_iter for phase in self.phases)
