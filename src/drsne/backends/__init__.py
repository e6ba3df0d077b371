"""Backends: the loops over pairs and points that an optimisation needs.

The objectives, the schedule and the loop of an optimisation are written once. Everything that loops over points is left
to a :class:`Backend`: sums over pairs, sums over neighbours, the neighbours in a map, steps of the optimisers, and the
order of the points in memory. A backend works on arrays and small named tuples, and validates nothing. Formulas for
whole arrays are written once for NumPy and PyTorch (:mod:`drsne.backends.arrays`).

Fits use ``drsne.backends.numba``, or ``drsne.backends.torch`` on a GPU. ``drsne.backends.numpy`` has the same methods
in a few lines of NumPy each and sums over all pairs. It is the readable reference for the tests.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


# Number of points below which NumPy and SciPy do what is computed once, or once in several iterations. Compiled code
# would take less time, but a first fit would wait for its compilation.
FEW = 4096


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
        ...

    def restored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the points, converted from this order to the order of the data."""
        ...

    def pair_list(self, pairs: PairList) -> PairList:
        """Return pairs with rows in this order and points numbered accordingly."""
        ...

    def neighbor_table(self, neighbors: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a table (n, k) of neighbours with rows in this order and points numbered accordingly."""
        ...


class Backend(Protocol):
    """The loops over pairs and points.

    Maps ``Y`` (n, d) have the dtype used for their pairwise computations, single or double precision. Sums over many
    pairs have double precision. The kernel of a pair is ``w_ij = 1 / (base + |y_i - y_j|^2)``. The adaptive kernel has
    the inverse scales ``u`` and is ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)``. Arrays are those of NumPy, or tensors
    on the device of the backend.
    """

    name: str

    def received(self, values: Any) -> Any:
        """Return a NumPy array as an array of this backend."""
        ...

    def session(self) -> AbstractContextManager[Any]:
        """Return a context in which loops run with all threads. Contexts may be nested."""
        ...

    def searches(self, X: Any, metric: Any) -> bool:
        """Return whether the backend searches for the neighbours of these data itself, by ``nearest``."""
        ...

    def forget(self) -> None:
        """Free what was kept of the data for the preparation of a fit."""
        ...

    def reorders(self, n: int) -> bool:
        """Return whether it pays to keep the points of a map with n points in an order that follows the map."""
        ...

    def attraction(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> tuple[Array, float | None]:
        """Return ``sum_j a_ij u_i u_j w_ij (y_i - y_j)`` for every point, (n, d), and the damped sum of the ``a_ij``.

        If ``delta`` is positive, every ``a_ij`` is damped to ``a_ij w_ij / (w_ij + delta)``. If it is 0, the second
        value is None.
        """
        ...

    def energy(
        self, Y: NDArray[Any], pairs: PairList, base: float, delta: float, inverse_scales: NDArray[Any] | None
    ) -> float:
        """Return ``-sum_ij a_ij log(w_ij + delta)``."""
        ...

    def repulsion(self, Y: Array, *, smoothing: float, scales: Array | None, precision: str) -> tuple[float, Array]:
        """Return ``sum_ij w_ij`` and ``sum_j u_i u_j w_ij^2 (y_i - y_j)`` over all pairs.

        Here ``base`` is ``1 + smoothing``.
        """
        ...

    def sampled_repulsion(
        self, Y: Array, points: NDArray[Any], *, scales: Array | None, precision: str
    ) -> tuple[float, Array]:
        """Return ``sum_ij w_ij`` over some ``points`` i and all points j, and the forces on these points as NumPy.

        Here ``base`` is 1.
        """
        ...

    def neighbor_list(self, neighbors: NDArray[np.int32]) -> NeighborList:
        """Return a table (n, m) of neighbours together with the points that list each point."""
        ...

    def lengths(
        self, Y: NDArray[Any], neighbors: NDArray[np.int32], floor: float, lengths: Array, directions: NDArray[Any]
    ) -> None:
        """Write ``sum_j l_ij`` and ``sum_j (y_i - y_j) / l_ij`` over the neighbours of every point.

        Lengths are ``l_ij = sqrt(|y_i - y_j|^2 + floor)``. Points that coincide have no direction.
        """
        ...

    def pull_back(self, Y: NDArray[Any], near: NeighborList, slope: Array, floor: float, forces: NDArray[Any]) -> None:
        """Write ``sum_l slope_l (y_i - y_l) / l_il`` over the points l that list point i."""
        ...

    def add_forces(self, slope: Array, directions: NDArray[Any], back: NDArray[Any], forces: Array) -> None:
        """Add ``slope_i directions_i + back_i`` to ``forces``; both terms (shares, n, d) are summed over shares."""
        ...

    def profile_slope(
        self, radii: Array, target: Array, *, exponent: float, added: float, attached: bool
    ) -> tuple[float, Array]:
        """Return the mean squared difference of two profiles, and its derivative by each radius.

        The radii are ``r = radii + added``, and their profile is ``log(c / mean(c))`` with ``c = r^-exponent``. If
        ``attached`` is False, the derivative treats the mean as a constant.
        """
        ...

    def kernel_sums(self, Y: NDArray[Any], pairs: PairList) -> tuple[Array, Array]:
        """Return ``sum_j w_ij`` and ``sum_j w_ij |y_i - y_j|^2`` over the pairs of every point, with ``base = 1``."""
        ...

    def add_kernel_forces(self, Y: NDArray[Any], pairs: PairList, pull: NDArray[Any], forces: Array) -> None:
        """Add ``sum_j w_ij^2 (pull_i + pull_j) (y_i - y_j)`` over the pairs of every point, with ``base = 1``."""
        ...

    def nearest_in_map(self, Y: NDArray[Any], k: int) -> NDArray[np.int32]:
        """Return the ``k`` nearest neighbours of every point of a map, (n, k), nearest first."""
        ...

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
        ...

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
        ...

    def combined(self, attraction: Array, repulsion: Array, a: float, b: float, factor: float) -> Array:
        """Return ``factor * (a * attraction - b * repulsion)``; both may be overwritten."""
        ...

    def moved(self, Y: Array, step: Array, *, units: Array | None, longest: float | None, center: bool) -> Array | None:
        """Return the map after a step, or None if it is not finite.

        Steps are limited to the length ``longest``, then multiplied by the ``units`` of the points. If ``center`` is
        True, the mean of the map becomes 0.
        """
        ...

    def order(self, Y: Array) -> Order:
        """Return an order in which points that are near in the map are near in memory."""
        ...
