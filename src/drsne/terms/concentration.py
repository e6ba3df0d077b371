"""The concentration loss: the mean squared difference of two profiles (docs/theory.md, eqs. 15 to 26)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, Order
from drsne.backends.arrays import host
from drsne.terms.neighborhoods import (
    EmbeddingNeighborhoods,
    InputNeighborhoods,
    Memory,
    Neighborhoods,
    NeighborTable,
)
from drsne.terms.new_row import Density, Law, MapTerm
from drsne.terms.objective import Objective
from drsne.terms.problem import LARGE_MAP
from drsne.terms.profile import Profile, added_length, loss_and_slope, profile, repeated
from drsne.terms.term import Moment, Term

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Concentration(Term):
    """The concentration loss over the neighbours in the data, those in the map, or both.

    Parameters
    ----------
    weight : float, default=1.0
        lambda.
    objective : Objective
        Its settings.
    target : ndarray of shape (n,)
        The profile log c~_i that the map should have.
    neighborhoods : tuple
        The neighbours over which the radii of the map are measured.
    """

    name: ClassVar[str] = "concentration"
    objective: Objective
    target: Array
    neighborhoods: tuple[Neighborhoods, ...]

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
            near = repeated(neighbors, kept)
            near = np.ascontiguousarray(near) if isinstance(near, np.ndarray) else near.contiguous()
            listed.append(InputNeighborhoods(objective.input_weight, near, sample))
        if objective.embedding_weight:
            listed.append(EmbeddingNeighborhoods(objective.embedding_weight, k, sample, kept, masses))
        return cls(weight=weight, objective=objective, target=target, neighborhoods=tuple(listed))

    def on(self, backend: Backend) -> Self:
        """Return the term with arrays of a backend."""
        near = tuple(each.on(backend) for each in self.neighborhoods)
        return replace(self, target=backend.received(self.target), neighborhoods=near)

    def reordered(self, order: Order) -> Self:
        """Return the term with the points in another order."""
        near = tuple(each.reordered(order) for each in self.neighborhoods)
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

    def of_points(self, memory: Any, at: Moment) -> Array:
        """Return the profile log c~_i of the map.

        It is measured over the neighbours in the data, or over the neighbours in the map if only those are used.
        """
        return self._profile(self.neighborhoods[0].table(at.typed, memory[0], at.backend), at).log

    def of_new_row(self, memory: Any, at: Moment) -> Density:
        """Return the density terms of a new row, with the concentrations of the map."""
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        weight = self.weight * self.factor(at)
        found = Density(
            weight, exponent=exponent, squared_distance=smoothing.squared_distance, profile=smoothing.profile
        )
        masses = None if at.masses is None else host(at.masses)
        for neighborhoods, own in zip(self.neighborhoods, memory, strict=True):
            radii = host(neighborhoods.table(at.typed, own, at.backend).radii(at.typed, smoothing.squared_distance))
            log_mean = -Law.of_profile(profile(radii, exponent, smoothing, masses), exponent, 0.0).intercept
            term = MapTerm(neighborhoods.weight, added_length(radii, smoothing, masses), log_mean)
            in_data = isinstance(neighborhoods, InputNeighborhoods)
            found = found._replace(of_data=term) if in_data else found._replace(of_map=term)
        return found

    def _profile(self, table: NeighborTable, at: Moment) -> Profile:
        smoothing = self.objective.embedding_smoothing
        radii = table.radii(at.typed, smoothing.squared_distance)
        return profile(radii, self.objective.embedding_exponent, smoothing, at.masses)

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
