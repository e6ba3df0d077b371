"""What loops over new rows while they are placed in a fixed map: the protocol, and what it takes.

How rows start, how often they are moved and which of them are novel is written once, in :mod:`drsne.placement.place`.
Arrays that are passed to and from a placer are those of NumPy, except for those that it returned itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Rows(NamedTuple):
    """What the losses of new rows depend on, besides their places. Arrays or tensors."""

    near: Any  # neighbours that have an affinity, (m, k), int32
    affinities: Any  # (m, k)
    scales: Any  # (m,)
    listed: Any  # density neighbours in the data, (m, k'), int32
    targets: Any  # (m,)
    weights: Any  # density weights, (m,)
    apart: Any  # weights with which rows are kept apart from the map, (m,)
    skipped: Any  # the point of the map that is left out, or -1, (m,), int32
    anchors: Any  # places to which further terms pull the rows, (m, d), or (m, 0) without such terms
    stiffness: Any  # strengths of these pulls, (m,)


class Shared(NamedTuple):
    """What the losses of all rows depend on."""

    field: Any  # of Placer.field
    # The stretch, the smoothing of affinities, the factor on the repulsion, the log radius of rows that are kept apart,
    # the weight from which these start outside of the map, their distance from its centre, and the centre.
    constants: tuple[Any, ...]
    # Share, added length and log mean of the density terms of the data and of the map; share, mean, spread and
    # correlation of den-SNE's term; exponent, constant added to squared distances, and smoothing of the profile.
    terms: tuple[Any, ...]


class Limits(NamedTuple):
    """The constants of a descent and of the choice of a start."""

    armijo: float  # smallest decrease of the loss, relative to the decrease along the gradient
    halvings: int  # largest number of times that a step is halved
    small: float  # length of the last step, in units of the scale of the row
    longest: float  # length of the longest step in the same units
    candidates: int  # number of nearest neighbours whose places are compared as starts
    curved: float  # smallest curvature along a step that changes the Hessian
    coinciding: float  # relative distance below which all neighbours of a row coincide with it
    least: float  # smallest radius


class Placer(Protocol):
    """The loops over new rows on a device."""

    name: str  # of the backend and its device; what is derived from a map is kept under this name
    workers: Any  # threads for what is computed on the processor

    @property
    def dense_search(self) -> Any:
        """A function that returns a search among dense rows by Euclidean distances, or None for the usual search."""
        ...

    def rows_at_once(self, n_features: int) -> int:
        """Return the number of rows that are placed together."""
        ...

    def field(self, places: Array, scales: Array, masses: Array, stretch: float) -> tuple[Any, float]:
        """Return the repulsion of a map in the form that the other methods take, and the partition sum of the map.

        ``stretch`` is the square root of 1 + distance smoothing.
        """
        ...

    def received(self, rows: Rows) -> Rows:
        """Return rows as arrays of this placer."""
        ...

    def chosen(self, rows: Rows, some: NDArray[Any]) -> Rows:
        """Return some of the received rows."""
        ...

    def pulled(self, rows: Rows, anchors: Array, stiffness: Array) -> Rows:
        """Return received rows with other pulls of further terms."""
        ...

    def begin(self, rows: Rows, shared: Shared, d: int) -> Array:
        """Return the places at which rows start, (m, d)."""
        ...

    def descend(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared, steps: int) -> NDArray[np.bool_]:
        """Move rows, in place, by at most so many steps, and return which have arrived at a minimum, (m,).

        ``in_map`` are the density neighbours in the map, (m, k).
        """
        ...

    def values(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared) -> Array:
        """Return the losses of rows at these places, (m,)."""
        ...

    def index(self, places: Array) -> Any:
        """Return the points of a map in the form in which ``nearest`` searches them."""
        ...

    def nearest(self, index: Any, Y: Array, k: int) -> tuple[Array, NDArray[Any]]:
        """Return the distances and numbers of the ``k`` points of a map that are nearest to the places, (m, k)."""
        ...
