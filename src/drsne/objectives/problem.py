"""The base class of the objectives of DR-SNE and den-SNE, with a KL term and a density term.

Gradients are those of **n times** the loss. The gradient at a point then does not depend on n, and neither do learning
rates, clipping and Adam's eps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, Order
from drsne.backends.arrays import cast, host, namespace
from drsne.engines import Engine
from drsne.objectives.kl import StoredPairs, kl_term
from drsne.objectives.neighborhoods import Memory, Neighborhoods
from drsne.precision import pair_type

Array = NDArray[np.float64]
LARGE_MAP = 8192  # smallest number of points for which maps are reordered and neighbours are summed in shares
_OVERSHOOT = 10.0  # product of the largest rate and the curvature of a pull at which steps would overshoot
_REORDERED_EVERY = 50  # number of iterations between two reorderings


class Evaluation(NamedTuple):
    """The gradient of n times the loss, the losses if they were requested, and the scales of the kernel."""

    gradient: Array  # (n, d)
    kl: float | None
    density: float | None  # the density term: the concentration loss of DR-SNE or the correlation of den-SNE
    scales: Array | None = None  # (n,), or None for the fixed kernel
    pull: float | None = None  # the pull towards given places
    damping: Array | None = None  # factors by which steps are divided, so that a strong pull does not overshoot, (n,)


class Pull(NamedTuple):
    """A quadratic pull of points towards given places, ``(1/n) sum_i strength_i |y_i - place_i|^2``."""

    places: Array  # (n, d)
    strength: Array  # (n,), 0 for points that are not pulled

    def reordered(self, order: Order) -> Pull:
        """Return the pull with the points in a different order."""
        return Pull(order.reordered(self.places), order.reordered(self.strength))

    def damping(self, scales: Array | None) -> Array:
        """Return factors by which the steps of points must be divided, in the units of the scales of the kernel."""
        return 1.0 + _OVERSHOOT * self.strength * (1.0 if scales is None else scales**2)

    def on(self, backend: Backend) -> Pull:
        """Return the pull with arrays of a backend."""
        return Pull(backend.received(self.places), backend.received(self.strength))

    def add_gradient(self, Y: Array, gradient: Array) -> float:
        """Add the gradient of n times the pull to ``gradient``, and return the pull."""
        away = Y - self.places
        strength = self.strength[:, None] * away
        gradient += 2.0 * strength
        return float((strength * away).sum()) / len(Y)


class Terms(NamedTuple):
    """The arrays over which a loss is summed, in some order of the points."""

    pairs: dict[str, StoredPairs]  # "objective", and "all" if the objective does not use all pairs
    target: Array  # (n,), the values that the density term compares the map with
    neighborhoods: tuple[Neighborhoods, ...] = ()
    log_scales: Array | None = None  # log rho_i of the adaptive kernel
    order: Order | None = None
    pull: Pull | None = None

    def pairs_of(self, name: str) -> StoredPairs:
        """Return the pairs called ``name``, or the pairs of the objective if no pairs have this name."""
        return self.pairs.get(name, self.pairs["objective"])

    def on(self, backend: Backend) -> Terms:
        """Return the terms with arrays of a backend."""
        return Terms(
            {name: stored.on(backend) for name, stored in self.pairs.items()},
            backend.received(self.target),
            tuple(each.on(backend) for each in self.neighborhoods),
            None if self.log_scales is None else backend.received(self.log_scales),
            self.order,
            None if self.pull is None else self.pull.on(backend),
        )

    def reordered(self, order: Order) -> Terms:
        """Return the terms with the points in a different order."""
        return Terms(
            {name: stored.reordered(order) for name, stored in self.pairs.items()},
            order.reordered(self.target),
            tuple(each.reordered(order) for each in self.neighborhoods),
            None if self.log_scales is None else order.reordered(self.log_scales),
            order,
            None if self.pull is None else self.pull.reordered(order),
        )


@dataclass
class Scales:
    """The scales of the adaptive kernel, raised to a power."""

    power: float
    ordered: Array  # in the current order of the points
    _inverse: NDArray[Any] | None = None

    def inverse(self, dtype: Any) -> NDArray[Any]:
        """Return the inverse scales in the current order of the points."""
        if self._inverse is None or self._inverse.dtype != dtype:
            self._inverse = cast(1.0 / self.ordered, dtype)
        return self._inverse


@dataclass
class State:
    """The values that an optimisation carries to the next iteration, besides the map and the optimiser's state."""

    terms: Terms  # in the current order of the points
    memories: tuple[Memory, ...]  # one memory for each of the neighborhoods
    engine: Any  # the state of the engine, with the errors of its last checks
    scales: Scales | None = None  # the last scales of the kernel

    def scales_at(self, power: float, *, ones: bool = False) -> Scales | None:
        """Return the scales of the kernel, raised to a power, or None for the fixed kernel.

        With ``ones``, scales of 1 are returned for a power of 0.
        """
        log_scales = self.terms.log_scales
        if log_scales is None or (not power and not ones):
            return None
        if self.scales is None or self.scales.power != power:
            self.scales = Scales(power, namespace(log_scales).exp(power * log_scales))
        return self.scales

    def in_order(self, values: Array) -> Array:
        """Return values of the points, converted from the order of the data to the current order."""
        return values if self.terms.order is None else self.terms.order.reordered(values)

    def restored(self, values: Array) -> Array:
        """Return values of the points, converted from the current order to the order of the data."""
        return values if self.terms.order is None else self.terms.order.restored(values)


class Smoothings(NamedTuple):
    """The small constants of the KL term."""

    affinity: float = 0.0  # delta in log(q + delta)
    distance: float = 0.0  # constant that is added to the squared distance


class Problem:
    """A KL term and a density term on some data.

    Parameters
    ----------
    terms : Terms
        The arrays over which the loss is summed, in the order of the data.
    weight : float
        Factor on the density term.
    precision : {"single", "double"}
        Floating-point precision of the terms of each pair of points.
    engine : Engine
        The engine that evaluates the repulsion.
    backend : Backend
        The backend that evaluates all other sums.
    smoothings : Smoothings
        The small constants of the KL term.
    adaptation : float, default=1.0
        Power to which the scales of an adaptive kernel are raised.
    masses : ndarray of shape (n,), default=None
        Masses of the points. A point of mass m counts as m points at the same place. Losses are those of all these
        points, gradients are n times those of one of them, and n is the total mass. If None, all masses are 1.
    """

    def __init__(
        self,
        terms: Terms,
        *,
        weight: float,
        precision: str,
        engine: Engine,
        backend: Backend,
        smoothings: Smoothings = Smoothings(),  # noqa: B008
        adaptation: float = 1.0,
        masses: Array | None = None,
    ) -> None:
        self.terms, self.weight, self.precision = terms, weight, precision
        self.masses, self.total = masses, float(len(terms.target) if masses is None else masses.sum())
        self.engine, self.backend = engine, backend
        self._masses = None if masses is None else backend.received(masses)
        self._smoothings, self._adaptation = smoothings, adaptation
        self._received: Terms | None = None

    @property
    def target(self) -> Array:
        """The values that the density term compares the map with, (n,)."""
        return self.terms.target

    def hold(self, places: Array, strength: Array) -> None:
        """Pull points towards ``places`` (n, d) with this ``strength`` (n,)."""
        self.terms = self.terms._replace(pull=Pull(places, strength))
        self._received = None

    def start(self) -> State:
        """Return the state of an optimisation that has not begun."""
        terms = self._terms()
        return State(terms, _fresh(terms), self.engine.start())

    def _terms(self) -> Terms:
        """Return the terms in the order of the data, with arrays of the backend."""
        if self._received is None:
            self._received = self.terms.on(self.backend)
        return self._received

    def evaluate(
        self,
        Y: Array,
        *,
        state: State | None = None,
        iteration: int | None = None,
        exaggeration: float = 1.0,
        density: float = 1.0,
        pairs: str = "objective",
        losses: bool = False,
        scale: float | None = 1.0,
        ordered: bool = False,
    ) -> Evaluation:
        """Return the gradient of n times the loss at ``Y``, and the losses if they are requested.

        Parameters
        ----------
        Y : ndarray of shape (n, d)
            The map.
        state : State, default=None
            State of the optimisation, which is updated. If None, the map is evaluated without a state.
        iteration : int, default=None
            Number of the iteration. If it follows the previous one, a density term over many neighbours updates only a
            share of them, and the neighbours in the map may be a few iterations old. If None, all sums are up to date.
        exaggeration : float, default=1.0
            Factor on the attraction. The losses are always computed without exaggeration.
        density : float, default=1.0
            Factor on the weight of the density term.
        pairs : {"objective", "all"}, default="objective"
            Pairs of the KL term: those of the objective, or all pairs with an affinity, rescaled so that they sum to
            one.
        losses : bool, default=False
            Whether to compute the losses.
        scale : float or None, default=1.0
            Factor on the power to which the scales of an adaptive kernel are raised. With 0, all scales are 1. None
            stands for the fixed kernel, whose sums may differ from those in the last bits.
        ordered : bool, default=False
            Whether ``Y``, the gradient and the scales are in the order of the state instead of the order of the data.
        """
        state = self.start() if state is None else state
        outside = not ordered and isinstance(Y, np.ndarray)  # the results are then NumPy arrays too
        if not ordered:
            Y = state.in_order(self.backend.received(Y))
        typed = self.typed(Y)
        power = 0.0 if scale is None else scale * self._adaptation
        # For few points, scales of 1 replace the fixed kernel, whose functions then need not be compiled.
        kernel = state.scales_at(power, ones=scale is not None and len(Y) < LARGE_MAP and Y.shape[1] == 2)
        scales = None if kernel is None else kernel.ordered
        gradient, kl = kl_term(
            typed,
            state.terms.pairs_of(pairs),
            self.engine.repulsion(Y, self._smoothings.distance, scales, state.engine),
            self.backend,
            exaggeration=exaggeration,
            affinity_smoothing=self._smoothings.affinity,
            distance_smoothing=self._smoothings.distance,
            inverse_scales=None if kernel is None else kernel.inverse(typed.dtype),
            losses=losses,
            factor=self.total,
        )
        weight = self.weight * density
        value = None
        if weight or losses:
            value = self._density_term(typed, state, weight, gradient, losses, iteration)
        if self._masses is not None:
            gradient /= self._masses[:, None]
        if not power:
            scales = None
        pull, damping = None, None
        if state.terms.pull is not None:
            pull, damping = state.terms.pull.add_gradient(Y, gradient), state.terms.pull.damping(scales)
        if ordered:
            return Evaluation(gradient, kl, value, scales, pull, damping)
        restored: list[Any] = [
            None if each is None else host(state.restored(each)) if outside else state.restored(each)
            for each in (gradient, scales, damping)
        ]
        return Evaluation(restored[0], kl, value, restored[1], pull, restored[2])

    def typed(self, Y: Array) -> NDArray[Any]:
        """Return a map converted to the dtype used for its pairwise computations."""
        typed: NDArray[Any] = cast(Y, pair_type(Y, self.precision))
        return typed

    def _density_term(
        self, Y: NDArray[Any], state: State, weight: float, gradient: Array, losses: bool, iteration: int | None
    ) -> float | None:
        """Add the gradient of the term, times n and ``weight``, to ``gradient``.

        Return the value of the term if ``losses`` are requested, and None otherwise.
        """
        raise NotImplementedError

    @property
    def reordered_every(self) -> int | None:
        """The number of iterations after which :meth:`reorder` pays, or None if the map is small or has masses."""
        n = len(self.target)
        return _REORDERED_EVERY if n >= LARGE_MAP and self.masses is None and self.backend.reorders(n) else None

    def reorder(self, Y: Array, state: State) -> Order:
        """Reorder the terms so that points that are near in the map are near in memory, and return the order.

        ``Y`` is in the order of the data.
        """
        # The old order is freed before the new one is made.
        terms = self._terms()
        state.terms, state.memories, state.scales = terms, _fresh(terms), None
        state.terms = terms.reordered(self.backend.order(Y))
        state.memories = _fresh(state.terms)
        assert state.terms.order is not None
        return state.terms.order


def _fresh(terms: Terms) -> tuple[Memory, ...]:
    return tuple(Memory() for _ in terms.neighborhoods)
