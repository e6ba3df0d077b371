"""The arrangement loss: one minus the correlation of the distances between regions in the data and in the map.

A region is a set of points that are near each other in the data. Its place in the map is the mean place of its points,
and the gradient moves all of them in the same direction (docs/theory.md, section 13).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend
from drsne.backends.arrays import namespace
from drsne.terms.term import Moment, Term

Array = NDArray[np.float64]
GUARD = 5.0  # spread of the distances in the map, in units of the map, below which the gradient no longer grows
CAP = 1.5  # number of standard deviations above the mean beyond which distances in the data do not count more
_EQUAL = 1e-9  # spread of distances, relative to the largest, below which they are equal
_COINCIDE = 1e-16  # added to squared distances, because regions at the same place have no direction


@dataclass(frozen=True, kw_only=True)
class Arrangement(Term):
    """``1 - corr(D_ab, d_ab)`` over all pairs of regions, whose weights are the products of the numbers of points."""

    name: ClassVar[str] = "arrangement"
    per_point: ClassVar[tuple[str, ...]] = ("regions", "shares")
    of_regions: ClassVar[tuple[str, ...]] = ("target", "pair_weights")
    regions: Any  # the region of every point, (n,)
    shares: Any  # the share of every point in the mass of its region, (n,)
    target: Any  # standardised distances between regions in the data, (regions, regions)
    pair_weights: Any  # with the sum 1 and a diagonal of 0, (regions, regions)
    guard: float = GUARD

    def on(self, backend: Backend) -> Self:
        """Return the term with arrays of a backend."""
        tables = {name: backend.received(getattr(self, name)) for name in self.of_regions}
        return replace(super().on(backend), **tables)

    def factor(self, at: Moment) -> float:
        """Return the factor of the schedule on the term."""
        return at.arrangement

    def start(self) -> Grouping:
        """Return the points of every region, in the current order."""
        return Grouping.of(self.regions, len(self.target))

    def add_gradient(self, gradient: Array, weight: float, memory: Any, at: Moment) -> float | None:
        """Add the gradient of the term, and return its value."""
        places = memory.sums(at.Y * self.shares[:, None])
        lengths, away = self._distances(places)
        weighted = self.pair_weights * away
        variance, agreement = (weighted * away).sum(), (weighted * self.target).sum()
        if weight:
            # The guard keeps the spread of the distances away from 0. Without it, the gradient would be very large
            # while the map is small.
            spread = variance + self.guard**2
            slope = (weighted * (agreement / spread) - self.pair_weights * self.target) / lengths
            # Each pair of regions is in the tables twice.
            slope *= (2.0 * at.total * weight) / namespace(places).sqrt(spread)
            forces = slope.sum(axis=1)[:, None] * places - slope @ places
            gradient += self.shares[:, None] * forces[self.regions]
        return 1.0 - float(agreement) / max(float(variance) ** 0.5, _EQUAL) if at.losses else None

    def _distances(self, places: Array) -> tuple[Array, Array]:
        """Return the distances between regions at these places, and their differences from the mean."""
        squares: Any = _COINCIDE
        for column in places.T:
            difference = column[:, None] - column
            squares = squares + difference * difference
        lengths = namespace(places).sqrt(squares)
        return lengths, lengths - (self.pair_weights * lengths).sum()


@dataclass
class Grouping:
    """The points of every region."""

    regions: Any
    count: int
    order: Any = None  # the points, region by region, on a device
    sizes: Any = None

    @classmethod
    def of(cls, regions: Any, count: int) -> Grouping:
        """Return the points of every region in some order of the points."""
        if isinstance(regions, np.ndarray):
            return cls(regions, count)
        xp = namespace(regions)
        return cls(regions, count, xp.argsort(regions, stable=True), xp.bincount(regions, minlength=count))

    def sums(self, values: Array) -> Array:
        """Return the sums of the values (n, d) over the points of every region, in an order that never changes."""
        if self.order is None:
            columns = [np.bincount(self.regions, column, self.count) for column in values.T]
            return np.stack(columns, axis=1)
        ordered = values[self.order]
        sums: Array = namespace(values).segment_reduce(ordered, "sum", lengths=self.sizes, axis=0)
        return sums


def standardized(distances: Array, masses: Array, cap: float = CAP) -> tuple[Array | None, Array]:
    """Return standardised distances between regions with these masses, and the weights of the pairs.

    Distances more than ``cap`` standard deviations above the mean are lowered to this value, because otherwise a few
    remote regions would determine the correlation. If all distances are equal, the first result is None.
    """
    pair_weights = masses[:, None] * masses[None, :]
    np.fill_diagonal(pair_weights, 0.0)
    largest = float(np.abs(distances).max(initial=0.0))
    if not largest > 0.0 or not pair_weights.any():
        return None, pair_weights
    pair_weights /= pair_weights.sum()
    target = distances / largest  # squares of the distances could overflow
    for limit in (cap, np.inf):
        away = target - (pair_weights * target).sum()
        spread = float(np.sqrt((pair_weights * away * away).sum()))
        if not spread > _EQUAL:
            return None, pair_weights
        target = np.minimum(away / spread, limit)
    np.fill_diagonal(target, 0.0)
    return target, pair_weights
