"""The loss of one more row in a map that stays fixed (docs/theory.md, section 12)."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne.terms.profile import Profile

Array = NDArray[np.float64]
UNBOUNDED = 1e300  # larger than any logarithm


class Law(NamedTuple):
    """A clipped linear function of the log radius of a row, ``clip(slope log r + intercept, low, high) + shift``.

    With a smoothing s, v becomes ``log(exp(v) + s)`` before it is clipped.
    """

    slope: float = 0.0
    intercept: float = 0.0
    low: float = -UNBOUNDED
    high: float = UNBOUNDED
    shift: float = 0.0
    smoothing: float = 0.0

    @classmethod
    def of_profile(cls, found: Profile, exponent: float, smoothing: float) -> Law:
        """Return the log relative concentration of a row among the rows of a profile."""
        top = int(found.relative.argmax())
        intercept = float(np.log(found.relative[top]) + exponent * np.log(found.radius[top]))
        return cls(-exponent, intercept, smoothing=smoothing)

    def within(self, log: Array, target: Array) -> Law:
        """Return the law of the targets of new rows, which stay in the range of those of the training rows.

        ``target`` is ``log`` after it was winsorised and normalised again.
        """
        middle = int(np.argsort(log)[len(log) // 2])
        shift = float(target[middle] - log[middle])
        return self._replace(low=float(target.min()) - shift, high=float(target.max()) - shift, shift=shift)

    def times(self, factor: float) -> Law:
        """Return ``factor`` times the function, for a factor that is not negative."""
        slope, intercept, low, high, shift, smoothing = self
        return Law(factor * slope, factor * intercept, factor * low, factor * high, factor * shift, smoothing)

    def at(self, log_radii: Array) -> Array:
        """Return the values of the function."""
        values = self.slope * log_radii + self.intercept
        if self.smoothing:
            values = np.log(np.exp(values) + self.smoothing)
        return np.asarray(np.clip(values, self.low, self.high) + self.shift)


class MapTerm(NamedTuple):
    """The density term over one kind of neighbours, with the concentration of the map."""

    share: float = 0.0  # factor on the density weight
    added: float = 0.0  # length that is added to each radius
    log_mean: float = 0.0  # log of the mean concentration


class RadiusTerm(NamedTuple):
    """The density term of den-SNE, with the log radii of the map."""

    share: float = 0.0
    mean: float = 0.0
    spread: float = 0.0  # standard deviation, with its shift
    correlation: float = 0.0


class RowTerm(Protocol):
    """The share of a further term in the loss of a new row, which is half of n times the term.

    While a row moves, its share is a pull to an anchor, ``stiffness / 2`` times the squared distance from it. The
    anchor is found again in every round of a descent, so any term with a gradient and a positive curvature can be
    written in this way: the anchor is the place minus the gradient divided by the curvature.
    """

    def pull(self, rows: Any, some: NDArray[np.intp], Y: Array) -> tuple[Array, Array, Array]:
        """Return the shares (m,), anchors (m, d) and stiffness (m,) of the rows ``some`` at the places ``Y`` (m, d).

        ``rows`` is a :class:`drsne.placement.place.NewRows`.
        """
        ...


class Density(NamedTuple):
    """The density terms of the loss of a new row. Terms with the share 0 are not used."""

    weight: float = 0.0  # lambda
    of_data: MapTerm = MapTerm()
    of_map: MapTerm = MapTerm()
    of_radii: RadiusTerm = RadiusTerm()
    exponent: float = 1.0
    squared_distance: float = 0.0  # constant that is added to squared distances
    profile: float = 0.0  # constant that is added to relative concentrations
    others: tuple[RowTerm, ...] = ()  # further terms
