"""The concentration loss: the mean squared difference of two profiles (docs/theory.md, eqs. 15 to 26).

Radii in the map are measured over the neighbours in the data, over those in the map, or over both. What is summed is in
:class:`Neighborhoods`, which never changes. The sums that an optimisation keeps from one iteration to the next are in
:class:`Memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, NeighborList, Order
from drsne.backends.arrays import along_rows, empty, host
from drsne.terms.masses import slot_columns
from drsne.terms.objective import Objective
from drsne.terms.problem import LARGE_MAP
from drsne.terms.profile import Profile, added_length, loss_and_slope, profile, repeated
from drsne.terms.term import Density, MapTerm, Moment, Term

Array = NDArray[np.float64]
REFRESHED_EVERY = 10  # number of iterations between two searches for the neighbours in a map


class NeighborTable:
    """Neighbours of every point, nearest first, (n, k), divided into shares that can be summed one at a time.

    A share has at most ``sample`` neighbours, or all of them if ``sample`` is None. With m shares, a share holds every
    m-th neighbour, so its mean distance is near that of all neighbours.
    """

    def __init__(self, neighbors: NDArray[np.int32], backend: Backend, sample: int | None = None) -> None:
        self.neighbors, self.k = neighbors, neighbors.shape[1]
        self.n_shares = 1 if sample is None else -(-self.k // sample)
        self.backend = backend
        self._listed: dict[int, NeighborList] = {}

    @cached_property
    def shares(self) -> list[NDArray[np.int32]]:
        """The shares. They are made on first use, because many tables are replaced before their first sum."""
        return [_contiguous(self.neighbors[:, share :: self.n_shares]) for share in range(self.n_shares)]

    def listed(self, share: int) -> NeighborList:
        """Return a share with the points that list each point, which only forces need."""
        if share not in self._listed:
            self._listed[share] = self.backend.neighbor_list(self.shares[share])
        return self._listed[share]

    def radii(self, Y: NDArray[Any], floor: float) -> Array:
        """Return the mean distance of every point of ``Y`` to all of its neighbours."""
        lengths, directions = empty((self.n_shares, len(Y)), Y, np.float64), empty(Y.shape, Y)
        for share, out in zip(self.shares, lengths, strict=True):
            self.backend.lengths(Y, share, floor, out, directions)
        radii: Array = lengths.sum(axis=0) / self.k
        return radii


def _contiguous(table: Any) -> Any:
    return np.ascontiguousarray(table) if isinstance(table, np.ndarray) else table.contiguous()


class RollingSums:
    """Sums over all neighbours. Each iteration updates one share, and the other shares are a few iterations old.

    The sum over a random share would be noisy, and Adam follows the noise. On MNIST (70,000 points, k = 30, weight 10),
    using a random third of the neighbours lowered the trustworthiness by .02. Shares that are updated in turn had no
    measurable effect.
    """

    def __init__(self, table: NeighborTable) -> None:
        self.table = table
        self._lengths: Array = np.empty((0, 0))
        self._directions: NDArray[Any] = np.empty((0, 0, 0))
        self._back: NDArray[Any] = np.empty((0, 0, 0))
        self._last: int | None = None
        self._updated: Sequence[int] = ()

    def radii(self, Y: NDArray[Any], floor: float, iteration: int | None) -> Array:
        """Return the mean distances at ``Y``. All shares are updated unless ``iteration`` follows the previous one."""
        table, (n, d) = self.table, Y.shape
        if self._directions.shape != (table.n_shares, n, d) or self._directions.dtype != Y.dtype:
            self._lengths = empty((table.n_shares, n), Y, np.float64)
            self._directions, self._back = (empty((table.n_shares, n, d), Y) for _ in range(2))
            self._last = None
        follows = iteration is not None and self._last is not None and iteration == self._last + 1
        self._updated = [iteration % table.n_shares] if follows and iteration is not None else range(table.n_shares)
        self._last = iteration
        for share in self._updated:
            table.backend.lengths(Y, table.shares[share], floor, self._lengths[share], self._directions[share])
        mean: Array = self._lengths.sum(axis=0) / table.k
        return mean

    def add_forces(self, Y: NDArray[Any], slope: Array, floor: float, forces: Array) -> None:
        """Add ``sum_l slope_l dr_l/dy_i`` to the force on every point."""
        backend, per_length = self.table.backend, slope / self.table.k
        for share in self._updated:
            backend.pull_back(Y, self.table.listed(share), per_length, floor, self._back[share])
        backend.add_forces(per_length, self._directions, self._back, forces)


@dataclass
class Memory:
    """The sums that a density term keeps from one iteration to the next."""

    sums: RollingSums | None = None
    found_at: int | None = None  # the iteration in which the neighbours in the map were found


@dataclass(frozen=True)
class Neighborhoods:
    """The neighbours over which radii are measured: those in the data, or the nearest ones in the map.

    Neighbours in the map are searched for again every few iterations.
    """

    weight: float  # factor on the density weight
    sample: int | None  # largest number of neighbours in a share
    k: int
    neighbors: NDArray[np.int32] | None = None  # the neighbours in the data, (n, k), or None for those in the map
    kept: NDArray[np.int32] | None = None  # how many of the neighbours in the map count, (n,)
    masses: Array | None = None  # masses of the points, (n,), or None if all are 1

    def converted(self, table: Callable[[Any], Any], values: Callable[[Any], Any]) -> Neighborhoods:
        """Return the same after converting the table of neighbours and the values of the points."""
        neighbors = None if self.neighbors is None else table(self.neighbors)
        kept, masses = (None if each is None else values(each) for each in (self.kept, self.masses))
        return replace(self, neighbors=neighbors, kept=kept, masses=masses)

    def sums(self, Y: NDArray[Any], memory: Memory, iteration: int | None, backend: Backend) -> RollingSums:
        """Return the sums over the neighbours. Without an ``iteration``, neighbours in the map are searched again."""
        if self.neighbors is not None:
            if memory.sums is None:
                memory.sums = RollingSums(NeighborTable(self.neighbors, backend, self.sample))
            return memory.sums
        last = memory.found_at
        stale = last is None or iteration is None or not 0 <= iteration - last < REFRESHED_EVERY
        if memory.sums is None or stale:
            memory.sums, memory.found_at = RollingSums(self.table(Y, memory, backend)), iteration
        return memory.sums

    def table(self, Y: NDArray[Any], memory: Memory, backend: Backend) -> NeighborTable:
        """Return the neighbours of this map. Those that are searched for are not stored in ``memory``."""
        if self.neighbors is not None:
            return self.sums(Y, memory, None, backend).table
        near = backend.nearest_in_map(Y, min(self.k, len(Y) - 1))
        if self.masses is not None:
            near = along_rows(near, slot_columns(near, self.masses, self.k))
        return NeighborTable(repeated(near, self.kept), backend, self.sample)


@dataclass(frozen=True, kw_only=True)
class Concentration(Term):
    """The concentration loss over the neighbours in the data, those in the map, or both. Its weight is lambda."""

    name: ClassVar[str] = "concentration"
    objective: Objective  # its settings
    target: Array  # the profile log c~_i that the map should have, (n,)
    neighborhoods: tuple[Neighborhoods, ...]  # the neighbours over which the radii of the map are measured

    @classmethod
    def of(
        cls,
        objective: Objective,
        weight: float,
        target: Array,
        neighbors: NDArray[np.int32],
        kept: NDArray[np.int32] | None = None,
        masses: Array | None = None,
    ) -> Concentration:
        """Return the term for data with these density ``neighbors`` (n, k).

        ``kept`` (n,) says how many of the k neighbours of each point, in the data and in the map, count towards its
        concentration; None stands for all. With ``masses``, a neighbour of mass m is listed up to m times.
        """
        k = neighbors.shape[1]
        sample = objective.sample_of(k, len(target))
        listed: list[Neighborhoods] = []
        if objective.input_weight:
            near = _contiguous(repeated(neighbors, kept))
            listed.append(Neighborhoods(objective.input_weight, sample, k, neighbors=near))
        if objective.embedding_weight:
            listed.append(Neighborhoods(objective.embedding_weight, sample, k, kept=kept, masses=masses))
        return cls(weight=weight, objective=objective, target=target, neighborhoods=tuple(listed))

    def on(self, backend: Backend) -> Self:
        """Return the term with arrays of a backend."""
        near = tuple(each.converted(backend.received, backend.received) for each in self.neighborhoods)
        return replace(self, target=backend.received(self.target), neighborhoods=near)

    def reordered(self, order: Order) -> Self:
        """Return the term with the points in another order."""
        near = tuple(each.converted(order.neighbor_table, order.reordered) for each in self.neighborhoods)
        return replace(self, target=order.reordered(self.target), neighborhoods=near)

    def start(self) -> tuple[Memory, ...]:
        """Return the sums of an optimisation that has not begun."""
        return tuple(Memory() for _ in self.neighborhoods)

    def add_gradient(self, gradient: Array, weight: float, memory: Any, at: Moment) -> float | None:
        """Add the gradient over each kind of neighbours, and return the loss if it is needed."""
        total = 0.0
        for neighborhoods, own in zip(self.neighborhoods, memory, strict=True):
            loss = self._add_gradient_of(neighborhoods, own, gradient, weight, at)
            total += neighborhoods.weight * loss if at.losses else 0.0
        return total if at.losses else None

    def _add_gradient_of(
        self, neighborhoods: Neighborhoods, memory: Memory, gradient: Array, weight: float, at: Moment
    ) -> float:
        """Add the gradient of the loss over one kind of neighbours to ``gradient``, and return the loss."""
        if not weight:  # the memory is left unchanged, so that computing losses does not affect later iterations
            return self._loss(self._profile(neighborhoods.table(at.typed, memory, at.backend), at), at)[0]
        floor = self.objective.embedding_smoothing.squared_distance
        sums = neighborhoods.sums(at.typed, memory, at.iteration, at.backend)
        loss, slope = self._loss_of(sums.radii(at.typed, floor, at.iteration), at)
        sums.add_forces(at.typed, (at.total * weight * neighborhoods.weight) * slope, floor, gradient)
        if at.losses and sums.table.n_shares > 1 and at.iteration is not None:  # the sums over some shares are old
            loss, _ = self._loss(self._profile(sums.table, at), at)
        return loss

    def of_points(self, memory: Any, at: Moment) -> Array:
        """Return the profile log c~_i of the map.

        It is measured over the neighbours in the data, or over the neighbours in the map if only those are used.
        """
        return self._profile(self.neighborhoods[0].table(at.typed, memory[0], at.backend), at).log

    def of_new_row(self, memory: Any, at: Moment) -> Density:
        """Return the density terms of a new row, with the concentrations of the map."""
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        masses = None if at.masses is None else host(at.masses)
        found: dict[str, Any] = {"squared_distance": smoothing.squared_distance, "profile": smoothing.profile}
        for neighborhoods, own in zip(self.neighborhoods, memory, strict=True):
            radii = host(neighborhoods.table(at.typed, own, at.backend).radii(at.typed, smoothing.squared_distance))
            log_mean = profile(radii, exponent, smoothing, masses).log_mean(exponent)
            kind = "of_map" if neighborhoods.neighbors is None else "of_data"
            found[kind] = MapTerm(neighborhoods.weight, added_length(radii, smoothing, masses), log_mean)
        return Density(self.weight * self.factor(at), exponent=exponent, **found)

    def _profile(self, table: NeighborTable, at: Moment) -> Profile:
        smoothing = self.objective.embedding_smoothing
        radii = table.radii(at.typed, smoothing.squared_distance)
        return profile(radii, self.objective.embedding_exponent, smoothing, at.masses)

    def _loss_of(self, radii: Array, at: Moment) -> tuple[float, Array]:
        """Return the loss and its slope at these radii. For many points and the usual smoothing, it is compiled."""
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        compiled = len(radii) >= LARGE_MAP and at.masses is None
        added = added_length(radii, smoothing) if compiled else 0.0
        if not added or smoothing.mean or smoothing.profile:
            return self._loss(profile(radii, exponent, smoothing, at.masses), at)
        attached = self.objective.normalizer == "attached"
        return at.backend.profile_slope(radii, self.target, exponent=exponent, added=added, attached=attached)

    def _loss(self, low: Profile, at: Moment) -> tuple[float, Array]:
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        attached = self.objective.normalizer == "attached"
        return loss_and_slope(self.target, low, exponent, smoothing, attached=attached, masses=at.masses)
