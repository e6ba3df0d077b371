"""Radii of the points of a map, measured over neighbours, and the resulting forces (docs/theory.md, eqs. 15 and 21).

The neighbours are either those in the data (:class:`InputNeighborhoods`) or those in the map
(:class:`EmbeddingNeighborhoods`). Objects of these classes describe what is summed and never change. The sums that an
optimisation keeps from one iteration to the next are in :class:`Memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends import Backend, NeighborList, Order
from drsne.backends.arrays import along_rows, empty
from drsne.terms.masses import slot_columns
from drsne.terms.profile import repeated

Array = NDArray[np.float64]
REFRESHED_EVERY = 10  # number of iterations between two searches for the neighbours in a map


class NeighborTable:
    """Neighbours of every point, divided into shares that can be summed one at a time.

    Parameters
    ----------
    neighbors : ndarray of shape (n, k)
        Neighbours of every point, nearest first.
    backend : Backend
        The backend that computes the sums.
    sample : int, default=None
        The largest number of neighbours in a share. With m shares, a share holds every m-th neighbour, so its mean
        distance is near that of all neighbours. If None, there is one share.
    """

    def __init__(self, neighbors: NDArray[np.int32], backend: Backend, sample: int | None = None) -> None:
        self.neighbors, self.k = neighbors, neighbors.shape[1]
        self.n_shares = 1 if sample is None else -(-self.k // sample)
        self._backend = backend
        self._listed: dict[int, NeighborList] = {}

    @cached_property
    def shares(self) -> list[NDArray[np.int32]]:
        """The shares. They are made on first use, because many tables are replaced before their first sum."""
        parts = [self.neighbors[:, share :: self.n_shares] for share in range(self.n_shares)]
        return [np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part.contiguous() for part in parts]

    def listed(self, share: int) -> NeighborList:
        """Return a share with the points that list each point, which only forces need."""
        if share not in self._listed:
            self._listed[share] = self._backend.neighbor_list(self.shares[share])
        return self._listed[share]

    def radii(self, Y: NDArray[Any], floor: float) -> Array:
        """Return the mean distance of every point of ``Y`` to all of its neighbours."""
        lengths, directions = empty((self.n_shares, len(Y)), Y, np.float64), empty(Y.shape, Y)
        for share, out in zip(self.shares, lengths, strict=True):
            self._backend.lengths(Y, share, floor, out, directions)
        radii: Array = lengths.sum(axis=0) / self.k
        return radii


class RollingSums:
    """Sums over all neighbours. Each iteration updates one share, and the other shares are a few iterations old.

    The sum over a random share would be noisy, and Adam follows the noise. On MNIST (70,000 points, k = 30, weight 10),
    using a random third of the neighbours lowered the trustworthiness by .02. Shares that are updated in turn had no
    measurable effect.
    """

    def __init__(self, table: NeighborTable, backend: Backend) -> None:
        self.table, self._backend = table, backend
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
            self._backend.lengths(Y, table.shares[share], floor, self._lengths[share], self._directions[share])
        mean: Array = self._lengths.sum(axis=0) / table.k
        return mean

    def add_forces(self, Y: NDArray[Any], slope: Array, floor: float, forces: Array) -> None:
        """Add ``sum_l slope_l dr_l/dy_i`` to the force on every point."""
        per_length = slope / self.table.k
        for share in self._updated:
            self._backend.pull_back(Y, self.table.listed(share), per_length, floor, self._back[share])
        self._backend.add_forces(per_length, self._directions, self._back, forces)


@dataclass
class Memory:
    """The sums that a density term keeps from one iteration to the next."""

    sums: RollingSums | None = None
    found_at: int | None = None  # the iteration in which the neighbours in the map were found


@dataclass(frozen=True)
class InputNeighborhoods:
    """The neighbours in the data, which are the same for every map."""

    weight: float  # factor on the density weight
    neighbors: NDArray[np.int32]  # (n, k)
    sample: int | None

    def sums(self, Y: NDArray[Any], memory: Memory, iteration: int | None, backend: Backend) -> RollingSums:
        """Return the sums over the neighbours."""
        if memory.sums is None:
            memory.sums = RollingSums(NeighborTable(self.neighbors, backend, self.sample), backend)
        return memory.sums

    def table(self, Y: NDArray[Any], memory: Memory, backend: Backend) -> NeighborTable:
        """Return the neighbours of this map."""
        return self.sums(Y, memory, None, backend).table

    def reordered(self, order: Order) -> InputNeighborhoods:
        """Return the neighbourhoods in another order of the points."""
        return InputNeighborhoods(self.weight, order.neighbor_table(self.neighbors), self.sample)

    def on(self, backend: Backend) -> InputNeighborhoods:
        """Return the neighbourhoods with arrays of a backend."""
        return InputNeighborhoods(self.weight, backend.received(self.neighbors), self.sample)


@dataclass(frozen=True)
class EmbeddingNeighborhoods:
    """The nearest neighbours of every point in the map, which are searched for again every few iterations."""

    weight: float  # factor on the density weight
    k: int
    sample: int | None
    kept: NDArray[np.int32] | None = None  # how many of the neighbours of each point count, (n,)
    masses: Array | None = None  # masses of the points, (n,), or None if all are 1

    def sums(self, Y: NDArray[Any], memory: Memory, iteration: int | None, backend: Backend) -> RollingSums:
        """Return the sums over the neighbours. Without an ``iteration``, the neighbours are found in this map."""
        last = memory.found_at
        stale = last is None or iteration is None or not 0 <= iteration - last < REFRESHED_EVERY
        if memory.sums is None or stale:
            memory.sums, memory.found_at = RollingSums(self.table(Y, memory, backend), backend), iteration
        return memory.sums

    def table(self, Y: NDArray[Any], memory: Memory, backend: Backend) -> NeighborTable:
        """Search for the neighbours in this map and return them; they are not stored in ``memory``."""
        near = backend.nearest_in_map(Y, min(self.k, len(Y) - 1))
        if self.masses is not None:
            near = along_rows(near, slot_columns(near, self.masses, self.k))
        return NeighborTable(repeated(near, self.kept), backend, self.sample)

    def reordered(self, order: Order) -> EmbeddingNeighborhoods:
        """Return the neighbourhoods in another order of the points."""
        kept, masses = (None if each is None else order.reordered(each) for each in (self.kept, self.masses))
        return EmbeddingNeighborhoods(self.weight, self.k, self.sample, kept, masses)

    def on(self, backend: Backend) -> EmbeddingNeighborhoods:
        """Return the neighbourhoods with arrays of a backend."""
        kept, masses = (None if each is None else backend.received(each) for each in (self.kept, self.masses))
        return EmbeddingNeighborhoods(self.weight, self.k, self.sample, kept, masses)


Neighborhoods = InputNeighborhoods | EmbeddingNeighborhoods
