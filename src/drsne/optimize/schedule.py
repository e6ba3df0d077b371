"""The schedule of an optimisation: its optimisers, and how rates, exaggeration and weights change in its phases.

Rates, clipping and Adam's eps act on the gradient of **n times** the loss. Backends compute the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import Backend
from drsne.backends.arrays import namespace

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Momentum:
    """Gradient descent with momentum and, as in t-SNE, a gain for every coordinate.

    Parameters
    ----------
    rate : float
        Length of a step per unit of the gradient of n times the loss.
    momentum : float, default=0.8
        Fraction of the last step that is added to the next one.
    gains : bool, default=True
        Whether every coordinate has a gain, which is a factor on its rate. The gain grows by 0.2 while the gradient
        keeps its sign, and shrinks by a factor of 0.8 when the sign changes.
    min_gain : float, default=0.01
        Smallest gain.
    grow_from_rest : bool, default=False
        Whether the gain of a coordinate that has not moved grows. If True, it grows to 1.2 in the first step, as in van
        der Maaten's programs. If False, it shrinks to 0.8, as in scikit-learn.
    """

    rate: float
    momentum: float = 0.8
    gains: bool = True
    min_gain: float = 0.01
    grow_from_rest: bool = False

    def __post_init__(self) -> None:
        checks.number("rate", self.rate, above=0)
        _check_share("momentum", self.momentum)
        checks.flag("gains", self.gains)
        checks.number("min_gain", self.min_gain, above=0)
        checks.flag("grow_from_rest", self.grow_from_rest)


@dataclass(frozen=True, kw_only=True)
class Adam:
    """The optimiser Adam (Kingma and Ba, 2015).

    Parameters
    ----------
    rate : float
        Typical length of the largest steps, in units of the map.
    betas : tuple of float, default=(0.9, 0.999)
        Decay rates of the running mean and of the running mean square of the gradient.
    eps : float, default=1e-8
        Constant that is added to the root mean square of the gradient of n times the loss. It should be much smaller
        than the gradient.
    """

    rate: float
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        checks.number("rate", self.rate, above=0)
        if not isinstance(self.betas, tuple) or len(self.betas) != 2:
            raise ValueError(f"betas must be a tuple of two numbers; got {self.betas!r}. The default is (0.9, 0.999).")
        for beta in self.betas:
            _check_share("betas", beta)
        checks.number("eps", self.eps, above=0)


def _check_share(name: str, value: float) -> None:
    if checks.number(name, value, at_least=0) >= 1:
        raise ValueError(f"{name} must be below 1; got {value!r}. Lower it.")


@dataclass
class OptimizerState:
    """The values that an optimiser carries from one step to the next."""

    first: Array  # the last step (Momentum) or the mean gradient (Adam)
    second: Array  # the gains (Momentum) or the mean square of the gradient (Adam)
    n_steps: int = 0

    @classmethod
    def start(cls, optimizer: Momentum | Adam, Y: Array) -> OptimizerState:
        """Return the state before the first step."""
        xp = namespace(Y)
        return cls(xp.zeros_like(Y), xp.ones_like(Y) if isinstance(optimizer, Momentum) else xp.zeros_like(Y))

    def step(
        self, optimizer: Momentum | Adam, gradient: Array, factor: float, backend: Backend, units: Array | None = None
    ) -> Array:
        """Return the step for ``gradient`` at ``factor`` times the rate, in the ``units`` of the points."""
        self.n_steps += 1
        rate, state = factor * optimizer.rate, (self.first, self.second)
        if isinstance(optimizer, Momentum):
            return backend.momentum_step(
                gradient,
                *state,
                rate=rate,
                momentum=optimizer.momentum,
                min_gain=optimizer.min_gain if optimizer.gains else None,
                grow_from_rest=optimizer.grow_from_rest,
                units=units,
            )
        betas, eps = optimizer.betas, optimizer.eps
        return backend.adam_step(gradient, *state, rate=rate, betas=betas, eps=eps, n_steps=self.n_steps, units=units)


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
    arrangement : float, default=0.0
        Factor on the weight of the arrangement term.
    fade : int, default=0
        Number of iterations at the end of the phase during which this factor falls linearly to 0.
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
    arrangement: float = 0.0
    fade: int = 0
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
        checks.choice("pairs", self.pairs, ("objective", "all"))
        for name in ("ramp", "release", "scale_ramp", "fade"):
            checks.integer(name, getattr(self, name), at_least=0)
        for name in ("density", "carry"):
            checks.flag(name, getattr(self, name))
        for name in ("exaggeration", "exaggeration_from", "clip", "max_step"):
            if name == "exaggeration" or getattr(self, name) is not None:
                checks.number(name, getattr(self, name), above=0)
        for name in ("scale", "arrangement"):
            checks.number(name, getattr(self, name), at_least=0)

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

    def arrangement_factor(self, t: int) -> float:
        """Return the factor on the weight of the arrangement term at iteration ``t`` of the phase."""
        return self.arrangement * (min(1.0, (self.n_iter - t) / self.fade) if self.fade else 1.0)

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
