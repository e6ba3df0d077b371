"""The protocol of a device: every operation that fits, new rows and scores leave to a backend.

The methods of all backends are described here. They take arrays and small named tuples, and validate nothing.
:class:`Kind` is known without importing the backend. :class:`Backend` has the loops of a fit. A :class:`DeviceBackend`,
whose arrays are tensors, can also find the neighbours and make the affinities. :class:`Placer` has the loops over new
rows, and :class:`Comparisons` compares points for the scores. :mod:`drsne.backends.choice` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Kind(NamedTuple):
    """What a backend supports, and the engines that are fastest with it."""

    name: str
    numpy_arrays: bool = True  # whether its arrays are those of NumPy, on which compiled loops can run
    tree_dimensions: int = 0  # largest number of dimensions of a map for which it has a tree
    large: Mapping[int, str] = {}  # the engine of large maps by their number of dimensions; "exact" for others
    # Largest number of points for which sums over all pairs are used instead, by the number of dimensions of the map,
    # for the fixed and for the adaptive kernel.
    crossover: tuple[Mapping[int, int], Mapping[int, int]] = ({}, {})
    slow_from: float = float("inf")  # number of points above which sums over all pairs take unreasonably long
    weighted_engines: bool = False  # whether points with masses have engines of the same names as others


class PairList(NamedTuple):
    """Pairs (i, j) of points with their values, as the rows of a CSR matrix."""

    indptr: Any  # (n + 1,); arrays or tensors
    columns: Any  # (nnz,), int32
    values: Any  # (nnz,)


class NeighborList(NamedTuple):
    """Neighbours of every point, and the points that list it as a neighbour."""

    neighbors: Any  # (n, m), int32; arrays or tensors
    offsets: Any  # (n + 1,), int64
    listed_by: Any  # (n * m,), int32; entries offsets[i] to offsets[i + 1] are the points that list point i


class Order(Protocol):
    """An order of the points in memory."""

    def reordered(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the points, (n,) or (n, d), converted from the order of the data to this order."""

    def restored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the points, converted from this order to the order of the data."""

    def pair_list(self, pairs: PairList) -> PairList:
        """Return pairs with rows in this order and points numbered accordingly."""

    def neighbor_table(self, neighbors: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a table (n, k) of neighbours with rows in this order and points numbered accordingly."""


class Backend(Protocol):
    """The loops over pairs and points. Where ``kind.tree_dimensions`` is positive, ``tree`` is a :class:`Tree`.

    Maps ``Y`` (n, d) have the dtype used for their pairwise computations, single or double precision. Sums over many
    pairs have double precision. The kernel of a pair is ``w_ij = 1 / (base + |y_i - y_j|^2)``. The adaptive kernel has
    the inverse scales ``u`` and is ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)``. Arrays are those of NumPy, or tensors
    on the device of the backend.
    """

    kind: Kind

    def received(self, values: Any) -> Any:
        """Return a NumPy array as an array of this backend."""

    def session(self) -> AbstractContextManager[Any]:
        """Return a context in which loops run with all threads. Contexts may be nested."""

    def searches(self, X: Any, metric: Any) -> bool:
        """Return whether the backend searches for the neighbours of these data itself, by ``nearest``."""

    def forget(self) -> None:
        """Free what was kept of the data for the preparation of a fit."""

    def reorders(self, n: int) -> bool:
        """Return whether it pays to keep the points of a map with n points in an order that follows the map."""

    def attraction(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> tuple[Array, float | None]:
        """Return ``sum_j a_ij u_i u_j w_ij (y_i - y_j)`` for every point, (n, d), and the damped sum of the ``a_ij``.

        If ``delta`` is positive, every ``a_ij`` is damped to ``a_ij w_ij / (w_ij + delta)``. If it is 0, the second
        value is None.
        """

    def energy(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> float:
        """Return ``-sum_ij a_ij log(w_ij + delta)``."""

    def repulsion(self, Y: Array, *, smoothing: float, scales: Array | None, precision: str) -> tuple[float, Array]:
        """Return ``sum_ij w_ij`` and ``sum_j u_i u_j w_ij^2 (y_i - y_j)`` over all pairs.

        Here ``base`` is ``1 + smoothing``.
        """

    def sampled_repulsion(
        self, Y: Array, points: NDArray[Any], *, scales: Array | None, precision: str
    ) -> tuple[float, Array]:
        """Return ``sum_ij w_ij`` over some ``points`` i and all points j, and the forces on these points as NumPy.

        Here ``base`` is 1.
        """

    def neighbor_list(self, neighbors: NDArray[np.int32]) -> NeighborList:
        """Return a table (n, m) of neighbours together with the points that list each point."""

    def lengths(
        self, Y: NDArray[Any], neighbors: NDArray[np.int32], floor: float, lengths: Array, directions: NDArray[Any]
    ) -> None:
        """Write ``sum_j l_ij`` and ``sum_j (y_i - y_j) / l_ij`` over the neighbours of every point.

        Lengths are ``l_ij = sqrt(|y_i - y_j|^2 + floor)``. Points that coincide have no direction.
        """

    def pull_back(self, Y: NDArray[Any], near: NeighborList, slope: Array, floor: float, forces: NDArray[Any]) -> None:
        """Write ``sum_l slope_l (y_i - y_l) / l_il`` over the points l that list point i."""

    def add_forces(self, slope: Array, directions: NDArray[Any], back: NDArray[Any], forces: Array) -> None:
        """Add ``slope_i directions_i + back_i`` to ``forces``; both terms (shares, n, d) are summed over shares."""

    def profile_slope(
        self, radii: Array, target: Array, *, exponent: float, added: float, attached: bool
    ) -> tuple[float, Array]:
        """Return the mean squared difference of two profiles, and its derivative by each radius.

        The radii are ``r = radii + added``, and their profile is ``log(c / mean(c))`` with ``c = r^-exponent``. If
        ``attached`` is False, the derivative treats the mean as a constant.
        """

    def kernel_sums(self, Y: NDArray[Any], pairs: PairList) -> tuple[Array, Array]:
        """Return ``sum_j w_ij`` and ``sum_j w_ij |y_i - y_j|^2`` over the pairs of every point, with ``base = 1``."""

    def add_kernel_forces(self, Y: NDArray[Any], pairs: PairList, pull: NDArray[Any], forces: Array) -> None:
        """Add ``sum_j w_ij^2 (pull_i + pull_j) (y_i - y_j)`` over the pairs of every point, with ``base = 1``."""

    def nearest_in_map(self, Y: NDArray[Any], k: int) -> NDArray[np.int32]:
        """Return the ``k`` nearest neighbours of every point of a map, (n, k), nearest first."""

    def momentum_step(
        self,
        gradient: Array,
        step: Array,
        gains: Array,
        *,
        rate: float,
        momentum: float,
        min_gain: float | None,
        grow_from_rest: bool,
        units: Array | None = None,
    ) -> Array:
        """Update ``step`` and ``gains`` in place and return the step. If ``min_gain`` is None, there are no gains.

        The gradient is multiplied by the ``units`` of the points, if there are any.
        """

    def adam_step(
        self,
        gradient: Array,
        mean: Array,
        square: Array,
        *,
        rate: float,
        betas: tuple[float, float],
        eps: float,
        n_steps: int,
        units: Array | None = None,
    ) -> Array:
        """Update ``mean`` and ``square`` in place for step number ``n_steps``, and return the step."""

    def combined(self, attraction: Array, repulsion: Array, a: float, b: float, factor: float) -> Array:
        """Return ``factor * (a * attraction - b * repulsion)``; both may be overwritten."""

    def moved(self, Y: Array, step: Array, *, units: Array | None, longest: float | None, center: bool) -> Array | None:
        """Return the map after a step, or None if it is not finite.

        Steps are limited to the length ``longest``, then multiplied by the ``units`` of the points. If ``center`` is
        True, the mean of the map becomes 0.
        """

    def order(self, Y: Array) -> Order:
        """Return an order in which points that are near in the map are near in memory."""


class Tree(Protocol):
    """Sums over a tree of cells, for :mod:`drsne.engines.tree`."""

    LARGE: int  # smallest number of points of a map whose cells are used again
    MOST_USES: int  # largest number of evaluations with the same cells
    GROWN: float  # largest growth of the leaves until then
    MOST_AGE: int  # number of times that only small cells are made again

    def centred(self, Y: Array) -> Array:
        """Return a map whose centre is near the origin."""

    def structure(self, Y: Array, scales: Array | None) -> Any:
        """Return a division of the points of a map into cells. Its ``order`` has the points cell by cell."""

    def divided_again(self, Y: Array, scales: Array | None, last: Any) -> Any:
        """Return a structure with the large cells of an old one and new small cells, if ``MOST_AGE`` is not 0."""

    def cells(self, Y: Array, scales: Array | None, at: Any, precision: str, memory: dict[str, Any]) -> Any:
        """Return the summaries of the cells. ``memory`` keeps what the next evaluation can use again."""

    def sums(self, found: Any, d: int, theta: float) -> Any:
        """Return the partition sum, the forces, the potential ``sum_j w_ij`` and the order of the points.

        ``theta`` is the opening angle.
        """


class DeviceBackend(Backend, Protocol):
    """A backend with tensors on a device, which also prepares fits and compares points there."""

    device: Any
    comparisons: Comparisons

    def compared(self, X: Any, metric: Any) -> Any:
        """Return data or a map as points that ``comparisons`` takes."""

    def nearest(self, X: Any, k: int, *, cosine: bool) -> tuple[Any, Any, float | None]:
        """Return the numbers and distances of the ``k`` neighbours of every row, and the recall of the search."""

    def components(self, X: Any, count: int) -> Array:
        """Return the scores of the leading principal components of a NumPy array, (n, count)."""

    def calibrated(self, distances: Any, perplexity: float) -> tuple[Any, Any, Any, Any]:
        """Return the rows ``p_{j|i}``, precisions, perplexities, and the rows that must be calibrated otherwise."""

    def symmetrized(self, indices: Any, conditional: Any) -> PairList:
        """Return ``(C + C^T) / (2 n)`` as pairs, where ``C[i, indices[i]] = conditional[i]``."""

    def weighted_repulsion(
        self, Y: Any, points: Any, masses: Any, *, smoothing: float, scales: Any | None, precision: str
    ) -> tuple[Any, Any]:
        """Return ``sum_j m_j w_ij`` and the forces of these masses on some ``points`` i, over all points j."""


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
    """The loops over new rows that are placed in a fixed map.

    How rows start, how often they are moved and which of them are novel is written once, in
    :mod:`drsne.placement.place`. Arrays that are passed to and from a placer are those of NumPy, except for those that
    it returned itself.
    """

    name: str  # of the backend and its device; what is derived from a map is kept under this name
    workers: Any  # threads for what is computed on the processor

    @property
    def dense_search(self) -> Callable[[Array], Any] | None:
        """A function that returns a search among dense rows by Euclidean distances, or None for the usual search."""

    def rows_at_once(self, n_features: int) -> int:
        """Return the number of rows that are placed together."""

    def field(self, places: Array, scales: Array, masses: Array, stretch: float) -> tuple[Any, float]:
        """Return the repulsion of a map in the form that the other methods take, and the partition sum of the map.

        ``stretch`` is the square root of 1 + distance smoothing.
        """

    def received(self, rows: Rows) -> Rows:
        """Return rows as arrays of this placer."""

    def chosen(self, rows: Rows, some: NDArray[Any]) -> Rows:
        """Return some of the received rows."""

    def pulled(self, rows: Rows, anchors: Array, stiffness: Array) -> Rows:
        """Return received rows with other pulls of further terms."""

    def begin(self, rows: Rows, shared: Shared, d: int) -> Array:
        """Return the places at which rows start, (m, d)."""

    def descend(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared, steps: int) -> NDArray[np.bool_]:
        """Move rows, in place, by at most so many steps, and return which have arrived at a minimum, (m,).

        ``in_map`` are the density neighbours in the map, (m, k).
        """

    def values(self, Y: Array, rows: Rows, in_map: NDArray[np.int32], shared: Shared) -> Array:
        """Return the losses of rows at these places, (m,)."""

    def index(self, places: Array) -> Any:
        """Return the points of a map in the form in which ``nearest`` searches them."""

    def nearest(self, index: Any, Y: Array, k: int) -> tuple[Array, NDArray[Any]]:
        """Return the distances and numbers of the ``k`` points of a map that are nearest to the places, (m, k)."""


class Comparisons(Protocol):
    """Comparisons of points with all others, for the scores of maps.

    Points are arrays or tensors. All other arguments and results are NumPy arrays, unless they have an entry for each
    pair. Without ``rows``, all rows are compared.
    """

    def block_bytes(self, A: Any) -> int:
        """Return the largest number of bytes for a block of distances."""

    def distances(self, A: Any, metric: Any = "euclidean") -> Callable[[Any], Any]:
        """Return a function that computes the distances from the given rows to all rows of ``A``."""

    def nearest(self, X: Any, k: int, *, metric: Any, workers: Any, rows: Any) -> tuple[Any, Any]:
        """Return the numbers and distances of the k nearest neighbours of ``rows``, without the rows themselves."""

    def ranks(self, D: Any, rows: Any, neighbors: NDArray[Any]) -> NDArray[np.intp]:
        """Return the ranks of neighbours of ``rows`` among all points but the row itself, counted from 1.

        ``D`` are the distances from the rows to all points. It may be overwritten.
        """

    def surroundings(self, Y: Any, k: int) -> tuple[Any, Any]:
        """Return the distances of all points of a map to their k nearest neighbours, and these neighbours."""

    def edges(self, lengths: Any, neighbors: Any) -> tuple[NDArray[Any], NDArray[Any], Array, NDArray[np.intp]]:
        """Return both ends and the lengths of edges to neighbours (n, k), and the order of ascending lengths.

        Edges that join no two trees when all are visited in this order may be left out.
        """

    def gaps(self, Y: Any, places: Array) -> Array:
        """Return the distances of places (m, d) to the nearest point of a map."""
