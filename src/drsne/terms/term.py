"""What a term of the loss is. The loss of a map is the KL divergence plus a sum of terms (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, Order, PairList
from drsne.backends.arrays import host

Array = NDArray[np.float64]


class Moment(NamedTuple):
    """A map at which terms are evaluated. Arrays are those of the backend, in the current order of the points."""

    Y: Array  # (n, d)
    typed: NDArray[Any]  # the map in the type of pairwise computations
    pairs: PairList  # the pairs of the KL term
    backend: Backend
    total: float  # number of points, or their total mass
    masses: Array | None = None  # (n,), or None if all are 1
    order: Order | None = None  # the current order of the points, or None for that of the data
    iteration: int | None = None  # None if all sums must be up to date
    density: float = 1.0  # factor of the schedule on the density term
    arrangement: float = 1.0  # factor of the schedule on the arrangement term
    losses: bool = False  # whether the values of the terms are needed

    def restored(self, values: Array) -> Array:
        """Return values of the points in the order of the data, as a NumPy array."""
        return host(values if self.order is None else self.order.restored(values))


@dataclass(frozen=True, kw_only=True)
class Term:
    """A term of the loss, which is added to the KL divergence with a weight.

    A term is a frozen dataclass. Its arrays are NumPy arrays in the order of the data when it is made; :meth:`on` and
    :meth:`reordered` return it with arrays of a device and in another order of the points. Values that change during an
    optimisation are in its memory, which :meth:`start` makes.

    Parameters
    ----------
    weight : float, default=1.0
        Factor on the term.
    """

    name: ClassVar[str]  # in the losses and in the history
    per_point: ClassVar[tuple[str, ...]] = ()  # the attributes that have one row for each point
    weight: float = 1.0

    def on(self, backend: Backend) -> Self:
        """Return the term with arrays of a backend."""
        return self._converted(backend.received)

    def reordered(self, order: Order) -> Self:
        """Return the term with the points in another order."""
        return self._converted(order.reordered)

    def _converted(self, function: Callable[[Any], Any]) -> Self:
        arrays = {name: getattr(self, name) for name in self.per_point}
        return replace(self, **{name: function(array) for name, array in arrays.items() if array is not None})

    def start(self) -> Any:
        """Return the memory of an optimisation that has not begun."""
        return None

    def factor(self, at: Moment) -> float:
        """Return the factor on the weight at a moment of the schedule."""
        return at.density

    def add_gradient(self, gradient: Array, weight: float, memory: Any, at: Moment) -> float | None:
        """Add ``at.total * weight`` times the gradient of the term to ``gradient``.

        Return the value of the term if ``at.losses`` is true. With a ``weight`` of 0, only the value is computed, and
        the ``memory`` must not change.
        """
        raise NotImplementedError

    def damping(self, scales: Array | None) -> Array | None:
        """Return factors (n,) by which the steps of points are divided, or None.

        A strong term needs them so that steps do not overshoot. ``scales`` are those of the kernel, or None.
        """
        return None

    def of_points(self, memory: Any, at: Moment) -> Array | None:
        """Return the quantity of every point of the map that the term compares with the data, (n,), or None."""
        return None

    def of_new_row(self, memory: Any, at: Moment) -> Density | RowTerm | None:
        """Return the share of the term in the loss of a new row in this map, or None if it has none."""
        return None


class RowTerm(Protocol):
    """The share of a term in the loss of a new row (docs/theory.md, section 12), which is half of n times the term.

    While a row moves, its share is a pull to an anchor, ``stiffness / 2`` times the squared distance from it. The
    anchor is found again in every round of a descent, so any term with a gradient and a positive curvature can be
    written in this way: the anchor is the place minus the gradient divided by the curvature.
    """

    def pull(self, rows: Any, some: NDArray[np.intp], Y: Array) -> tuple[Array, Array, Array]:
        """Return the shares (m,), anchors (m, d) and stiffness (m,) of the rows ``some`` at the places ``Y`` (m, d).

        ``rows`` is a :class:`drsne.placement.rows.NewRows`.
        """


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


class Density(NamedTuple):
    """The density terms of the loss of a new row, which placers compute. Terms with the share 0 are not used."""

    weight: float = 0.0  # lambda
    of_data: MapTerm = MapTerm()
    of_map: MapTerm = MapTerm()
    of_radii: RadiusTerm = RadiusTerm()
    exponent: float = 1.0
    squared_distance: float = 0.0  # constant that is added to squared distances
    profile: float = 0.0  # constant that is added to relative concentrations
    others: tuple[RowTerm, ...] = ()  # further terms
