"""Optimisers: gradient descent with momentum and gains, and Adam. The backend computes their steps."""

from __future__ import annotations

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
        self,
        optimizer: Momentum | Adam,
        gradient: Array,
        factor: float,
        backend: Backend,
        units: Array | None = None,
    ) -> Array:
        """Return the step for ``gradient`` at ``factor`` times the rate, in the ``units`` of the points."""
        self.n_steps += 1
        rate = factor * optimizer.rate
        if isinstance(optimizer, Momentum):
            return backend.momentum_step(
                gradient,
                self.first,
                self.second,
                rate=rate,
                momentum=optimizer.momentum,
                min_gain=optimizer.min_gain if optimizer.gains else None,
                grow_from_rest=optimizer.grow_from_rest,
                units=units,
            )
        return backend.adam_step(
            gradient,
            self.first,
            self.second,
            rate=rate,
            betas=optimizer.betas,
            eps=optimizer.eps,
            n_steps=self.n_steps,
            units=units,
        )
