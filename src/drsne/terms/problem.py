"""The loss of a map on some data: a KL divergence and further terms.

Gradients are those of **n times** the loss. The gradient at a point then does not depend on n, and neither do learning
rates, clipping and Adam's eps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, Order
from drsne.backends.arrays import cast, host, namespace
from drsne.engines import Engine
from drsne.precision import pair_type
from drsne.terms.kl import StoredPairs, kl_term
from drsne.terms.term import Density, Moment, Term

Array = NDArray[np.float64]
LARGE_MAP = 8192  # smallest number of points for which maps are reordered and neighbours are summed in shares
_REORDERED_EVERY = 50  # number of iterations between two reorderings


class Evaluation(NamedTuple):
    """The gradient of n times the loss, the losses if they were requested, and the scales of the kernel."""

    gradient: Array  # (n, d)
    losses: dict[str, float] | None  # the KL divergence and the other terms, by their names
    scales: Array | None = None  # (n,), or None for the fixed kernel
    damping: Array | None = None  # factors by which steps are divided, so that a strong term does not overshoot, (n,)


class Loss(NamedTuple):
    """What a loss is summed over, in some order of the points."""

    pairs: dict[str, StoredPairs]  # "objective", and "all" if the objective does not use all pairs
    terms: tuple[Term, ...] = ()
    log_scales: Array | None = None  # log rho_i of the adaptive kernel
    order: Order | None = None

    def pairs_of(self, name: str) -> StoredPairs:
        """Return the pairs called ``name``, or the pairs of the objective if no pairs have this name."""
        return self.pairs.get(name, self.pairs["objective"])

    def on(self, backend: Backend) -> Loss:
        """Return the loss with arrays of a backend."""
        return self._converted(lambda part: part.on(backend), backend.received)

    def reordered(self, order: Order) -> Loss:
        """Return the loss with the points in a different order."""
        return self._converted(lambda part: part.reordered(order), order.reordered)._replace(order=order)

    def _converted(self, part: Callable[[Any], Any], values: Callable[[Array], Array]) -> Loss:
        pairs = {name: part(stored) for name, stored in self.pairs.items()}
        log_scales = None if self.log_scales is None else values(self.log_scales)
        return Loss(pairs, tuple(part(term) for term in self.terms), log_scales, self.order)


class Scales(NamedTuple):
    """The scales of the adaptive kernel, raised to a power, in the current order of the points."""

    power: float
    values: Array
    inverse: NDArray[Any]  # in the type of pairwise computations


@dataclass
class State:
    """The values that an optimisation carries to the next iteration, besides the map and the optimiser's state."""

    loss: Loss  # in the current order of the points
    memories: tuple[Any, ...]  # one memory for each of the terms
    engine: Any  # the state of the engine, with the errors of its last checks
    scales: Scales | None = None  # the last scales of the kernel

    def scales_at(self, power: float, dtype: Any, *, ones: bool = False) -> Scales | None:
        """Return the scales of the kernel, raised to a power, or None for the fixed kernel.

        With ``ones``, scales of 1 are returned for a power of 0.
        """
        log_scales = self.loss.log_scales
        if log_scales is None or (not power and not ones):
            return None
        if self.scales is None or self.scales.power != power or self.scales.inverse.dtype != dtype:
            values = namespace(log_scales).exp(power * log_scales)
            self.scales = Scales(power, values, cast(1.0 / values, dtype))
        return self.scales

    def in_order(self, values: Array) -> Array:
        """Return values of the points, converted from the order of the data to the current order."""
        return values if self.loss.order is None else self.loss.order.reordered(values)

    def restored(self, values: Array) -> Array:
        """Return values of the points, converted from the current order to the order of the data."""
        return values if self.loss.order is None else self.loss.order.restored(values)


class Problem:
    """The loss of a map on some data, as an optimisation evaluates it.

    Parameters
    ----------
    loss : Loss
        The pairs of the KL term and the other terms, in the order of the data.
    precision : {"single", "double"}
        Floating-point precision of the terms of each pair of points.
    engine : Engine
        The engine that evaluates the repulsion.
    backend : Backend
        The backend that evaluates all other sums.
    affinity_smoothing, distance_smoothing : float, default=0.0
        The small constants of the KL term (:class:`drsne.Objective`).
    adaptation : float, default=1.0
        Power to which the scales of an adaptive kernel are raised.
    masses : ndarray of shape (n,), default=None
        Masses of the points. A point of mass m counts as m points at the same place. Losses are those of all these
        points, gradients are n times those of one of them, and n is the total mass. If None, all masses are 1.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        precision: str,
        engine: Engine,
        backend: Backend,
        affinity_smoothing: float = 0.0,
        distance_smoothing: float = 0.0,
        adaptation: float = 1.0,
        masses: Array | None = None,
    ) -> None:
        self.loss, self.precision, self.masses = loss, precision, masses
        self.n_samples = len(loss.pairs["objective"].pairs.indptr) - 1
        self.total = float(self.n_samples if masses is None else masses.sum())
        self.engine, self.backend = engine, backend
        self._masses = None if masses is None else backend.received(masses)
        self._affinity_smoothing, self._distance_smoothing = affinity_smoothing, distance_smoothing
        self._adaptation = adaptation
        self._received: Loss | None = None
        self.initial: Any = None  # the initial map, (n, d)
        self.affinities: Any = None  # drsne.affinities.Affinities
        self.about: Any = None  # what is known of the data (drsne.preparation.About)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the losses: "kl" and those of the other terms."""
        return ("kl", *(term.name for term in self.loss.terms))

    def scales_at(self, power: float) -> Array:
        """Return the scales rho_i of the kernel, raised to a power. With the fixed kernel, all scales are 1."""
        log_scales = self.loss.log_scales
        return np.ones(self.n_samples) if log_scales is None else np.exp(power * log_scales)

    def add(self, term: Term) -> None:
        """Add a term to the loss."""
        self.loss = self.loss._replace(terms=(*self.loss.terms, term))
        self._received = None

    def start(self) -> State:
        """Return the state of an optimisation that has not begun."""
        loss = self._on_backend()
        return State(loss, tuple(term.start() for term in loss.terms), self.engine.start())

    def _on_backend(self) -> Loss:
        """Return the loss in the order of the data, with arrays of the backend."""
        if self._received is None:
            self._received = self.loss.on(self.backend)
        return self._received

    def evaluate(
        self,
        Y: Array,
        *,
        state: State | None = None,
        iteration: int | None = None,
        exaggeration: float = 1.0,
        density: float = 1.0,
        arrangement: float = 1.0,
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
            part of them, and the neighbours in the map may be a few iterations old. If None, all sums are up to date.
        exaggeration : float, default=1.0
            Factor on the attraction. The losses are always computed without exaggeration.
        density : float, default=1.0
            Factor on the weight of the density term.
        arrangement : float, default=1.0
            Factor on the weight of the arrangement term.
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
        at = self._moment(Y, state, iteration=iteration, density=density, arrangement=arrangement, losses=losses)
        power = 0.0 if scale is None else scale * self._adaptation
        # For few points, scales of 1 replace the fixed kernel, whose functions then need not be compiled.
        ones = scale is not None and len(Y) < LARGE_MAP and Y.shape[1] == 2
        kernel = state.scales_at(power, at.typed.dtype, ones=ones)
        scales = None if kernel is None else kernel.values
        gradient, kl = kl_term(
            at.typed,
            state.loss.pairs_of(pairs),
            self.engine.repulsion(Y, self._distance_smoothing, scales, state.engine),
            self.backend,
            exaggeration=exaggeration,
            affinity_smoothing=self._affinity_smoothing,
            distance_smoothing=self._distance_smoothing,
            inverse_scales=None if kernel is None else kernel.inverse,
            losses=losses,
            factor=self.total,
        )
        values: dict[str, Any] = {"kl": kl}
        for term, memory in zip(state.loss.terms, state.memories, strict=True):
            weight = term.weight * term.factor(at)
            if weight or losses:
                values[term.name] = term.add_gradient(gradient, weight, memory, at)
        if self._masses is not None:
            gradient /= self._masses[:, None]
        scales = scales if power else None
        factors = [own for term in state.loss.terms if (own := term.damping(scales)) is not None]

        def returned(array: Any) -> Any:
            if array is None or ordered:
                return array
            return host(state.restored(array)) if outside else state.restored(array)

        damping = returned(reduce(mul, factors) if factors else None)
        return Evaluation(returned(gradient), values if losses else None, returned(scales), damping)

    def weighted(self, weight: float, *, power: float = 1.0, arrangement: float = 1.0) -> Weighted:
        """Return the problem at other weights of its density and arrangement terms, with a power of its scales."""
        return Weighted(self, weight, power=power, arrangement=arrangement)

    def of_points(self, Y: Array, state: State | None = None) -> dict[str, Array]:
        """Return what the terms compare with the data for every point of a map, by the names of the terms."""
        state = self.start() if state is None else state
        at = self._moment(state.in_order(self.backend.received(Y)), state)
        parts = zip(state.loss.terms, state.memories, strict=True)
        found = {term.name: term.of_points(memory, at) for term, memory in parts}
        return {name: at.restored(values) for name, values in found.items() if values is not None}

    def of_new_row(self, Y: Array, state: State | None = None, *, density: float = 1.0) -> Density:
        """Return the density terms in the loss of a new row in the map ``Y``."""
        state = self.start() if state is None else state
        at = self._moment(state.in_order(self.backend.received(Y)), state, density=density)
        shares = [term.of_new_row(memory, at) for term, memory in zip(state.loss.terms, state.memories, strict=True)]
        main = next((share for share in shares if isinstance(share, Density)), Density())
        others = [share for share in shares if share is not None and not isinstance(share, Density)]
        return main._replace(others=tuple(others))

    def _moment(self, Y: Array, state: State, **when: Any) -> Moment:
        """Return the moment of a map that is in the order of the state."""
        pairs, typed = state.loss.pairs["objective"].pairs, cast(Y, pair_type(Y, self.precision))
        return Moment(Y, typed, pairs, self.backend, self.total, self._masses, state.loss.order, **when)

    @property
    def reordered_every(self) -> int | None:
        """The number of iterations after which :meth:`reorder` pays, or None if the map is small or has masses."""
        n = self.n_samples
        return _REORDERED_EVERY if n >= LARGE_MAP and self.masses is None and self.backend.reorders(n) else None

    def reorder(self, Y: Array, state: State) -> Order:
        """Reorder the terms so that points that are near in the map are near in memory, and return the order.

        ``Y`` is in the order of the data.
        """
        loss = self._on_backend()
        state.loss, state.memories, state.scales = loss, (), None  # the old order is freed before the new one is made
        state.loss = loss.reordered(self.backend.order(Y))
        state.memories = tuple(term.start() for term in state.loss.terms)
        assert state.loss.order is not None
        return state.loss.order


class Weighted:
    """A problem with a density weight of one, evaluated at another weight and another power of the kernel's scales."""

    def __init__(self, problem: Any, weight: float, *, power: float = 1.0, arrangement: float = 1.0) -> None:
        self._problem, self._weight, self._power, self._arrangement = problem, weight, power, arrangement
        self.backend, self.start = problem.backend, problem.start
        self.reordered_every, self.reorder = problem.reordered_every, problem.reorder
        self.names = problem.names

    def evaluate(
        self, Y: Array, *, density: float, scale: float | None, arrangement: float = 1.0, **options: Any
    ) -> Any:
        """Evaluate the problem at the other weight. A power of 0 stands for the fixed kernel."""
        power = self._power * scale if self._power and scale is not None else None
        weights = {"density": self._weight * density, "arrangement": self._arrangement * arrangement}
        return self._problem.evaluate(Y, **weights, scale=power, **options)
