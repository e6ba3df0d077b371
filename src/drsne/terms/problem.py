"""The loss of a map on some data: a KL divergence and further terms.

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
from drsne.precision import pair_type
from drsne.terms.kl import StoredPairs, kl_term
from drsne.terms.new_row import Density
from drsne.terms.term import Moment, Term

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
        return Loss(
            {name: stored.on(backend) for name, stored in self.pairs.items()},
            tuple(term.on(backend) for term in self.terms),
            None if self.log_scales is None else backend.received(self.log_scales),
            self.order,
        )

    def reordered(self, order: Order) -> Loss:
        """Return the loss with the points in a different order."""
        return Loss(
            {name: stored.reordered(order) for name, stored in self.pairs.items()},
            tuple(term.reordered(order) for term in self.terms),
            None if self.log_scales is None else order.reordered(self.log_scales),
            order,
        )

    def memories(self) -> tuple[Any, ...]:
        """Return what the terms remember at the start of an optimisation."""
        return tuple(term.start() for term in self.terms)


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

    loss: Loss  # in the current order of the points
    memories: tuple[Any, ...]  # one memory for each of the terms
    engine: Any  # the state of the engine, with the errors of its last checks
    scales: Scales | None = None  # the last scales of the kernel

    def scales_at(self, power: float, *, ones: bool = False) -> Scales | None:
        """Return the scales of the kernel, raised to a power, or None for the fixed kernel.

        With ``ones``, scales of 1 are returned for a power of 0.
        """
        log_scales = self.loss.log_scales
        if log_scales is None or (not power and not ones):
            return None
        if self.scales is None or self.scales.power != power:
            self.scales = Scales(power, namespace(log_scales).exp(power * log_scales))
        return self.scales

    def in_order(self, values: Array) -> Array:
        """Return values of the points, converted from the order of the data to the current order."""
        return values if self.loss.order is None else self.loss.order.reordered(values)

    def restored(self, values: Array) -> Array:
        """Return values of the points, converted from the current order to the order of the data."""
        return values if self.loss.order is None else self.loss.order.restored(values)


class Smoothings(NamedTuple):
    """The small constants of the KL term."""

    affinity: float = 0.0  # delta in log(q + delta)
    distance: float = 0.0  # constant that is added to the squared distance


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
        loss: Loss,
        *,
        precision: str,
        engine: Engine,
        backend: Backend,
        smoothings: Smoothings = Smoothings(),  # noqa: B008
        adaptation: float = 1.0,
        masses: Array | None = None,
    ) -> None:
        self.loss, self.precision, self.masses = loss, precision, masses
        self.n_samples = len(loss.pairs["objective"].pairs.indptr) - 1
        self.total = float(self.n_samples if masses is None else masses.sum())
        self.engine, self.backend = engine, backend
        self._masses = None if masses is None else backend.received(masses)
        self._smoothings, self._adaptation = smoothings, adaptation
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
        return State(loss, loss.memories(), self.engine.start())

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
        at = self._moment(Y, state, iteration=iteration, density=density, losses=losses)
        power = 0.0 if scale is None else scale * self._adaptation
        # For few points, scales of 1 replace the fixed kernel, whose functions then need not be compiled.
        kernel = state.scales_at(power, ones=scale is not None and len(Y) < LARGE_MAP and Y.shape[1] == 2)
        scales = None if kernel is None else kernel.ordered
        gradient, kl = kl_term(
            at.typed,
            state.loss.pairs_of(pairs),
            self.engine.repulsion(Y, self._smoothings.distance, scales, state.engine),
            self.backend,
            exaggeration=exaggeration,
            affinity_smoothing=self._smoothings.affinity,
            distance_smoothing=self._smoothings.distance,
            inverse_scales=None if kernel is None else kernel.inverse(at.typed.dtype),
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
        if not power:
            scales = None
        damping = None
        for term in state.loss.terms:
            own = term.damping(scales)
            damping = own if damping is None else damping if own is None else damping * own
        found: list[Any] = [gradient, scales, damping]
        if not ordered:
            found = [None if each is None else state.restored(each) for each in found]
            if outside:
                found = [None if each is None else host(each) for each in found]
        return Evaluation(found[0], values if losses else None, found[1], found[2])

    def weighted(self, weight: float, *, power: float = 1.0) -> Weighted:
        """Return the problem at ``weight`` times the weight of its density term, with a power of its scales."""
        return Weighted(self, weight, power=power)

    def of_points(self, Y: Array, state: State | None = None) -> dict[str, Array]:
        """Return what the terms compare with the data for every point of a map, by the names of the terms."""
        state = self.start() if state is None else state
        at = self._moment(state.in_order(self.backend.received(Y)), state)
        found = {
            term.name: term.of_points(memory, at) for term, memory in zip(state.loss.terms, state.memories, strict=True)
        }
        return {name: at.restored(values) for name, values in found.items() if values is not None}

    def of_new_row(self, Y: Array, state: State | None = None, *, density: float = 1.0) -> Density:
        """Return the density terms in the loss of a new row in the map ``Y``."""
        state = self.start() if state is None else state
        at = self._moment(state.in_order(self.backend.received(Y)), state, density=density)
        shares = [term.of_new_row(memory, at) for term, memory in zip(state.loss.terms, state.memories, strict=True)]
        main = next((share for share in shares if isinstance(share, Density)), Density())
        others = [share for share in shares if share is not None and not isinstance(share, Density)]
        return main._replace(others=tuple(others))

    def _moment(
        self, Y: Array, state: State, *, iteration: int | None = None, density: float = 1.0, losses: bool = False
    ) -> Moment:
        pairs = state.loss.pairs["objective"].pairs
        total, order = self.total, state.loss.order
        typed = self.typed(Y)
        return Moment(Y, typed, pairs, self.backend, total, self._masses, order, iteration, density, losses)

    def typed(self, Y: Array) -> NDArray[Any]:
        """Return a map converted to the dtype used for its pairwise computations."""
        typed: NDArray[Any] = cast(Y, pair_type(Y, self.precision))
        return typed

    @property
    def reordered_every(self) -> int | None:
        """The number of iterations after which :meth:`reorder` pays, or None if the map is small or has masses."""
        n = self.n_samples
        return _REORDERED_EVERY if n >= LARGE_MAP and self.masses is None and self.backend.reorders(n) else None

    def reorder(self, Y: Array, state: State) -> Order:
        """Reorder the terms so that points that are near in the map are near in memory, and return the order.

        ``Y`` is in the order of the data.
        """
        # The old order is freed before the new one is made.
        loss = self._on_backend()
        state.loss, state.memories, state.scales = loss, loss.memories(), None
        state.loss = loss.reordered(self.backend.order(Y))
        state.memories = state.loss.memories()
        assert state.loss.order is not None
        return state.loss.order


class Weighted:
    """A problem with a density weight of one, evaluated at another weight and another power of the kernel's scales."""

    def __init__(self, problem: Any, weight: float, *, power: float = 1.0) -> None:
        self._problem, self._weight, self._power = problem, weight, power
        self.backend, self.start = problem.backend, problem.start
        self.reordered_every, self.reorder = problem.reordered_every, problem.reorder
        self.names = problem.names

    def evaluate(self, Y: Array, *, density: float, scale: float | None, **options: Any) -> Any:
        """Evaluate the problem at the other weight. A power of 0 stands for the fixed kernel."""
        power = self._power * scale if self._power and scale is not None else None
        return self._problem.evaluate(Y, density=self._weight * density, scale=power, **options)
