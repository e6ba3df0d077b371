"""Sorting, transposing, and the order of the points in memory along a Z-order curve of the map.

Sums over neighbours read points at random places in memory. In the order of the curve, most neighbours are near each
other in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends import PairList
from drsne.backends.numba.kernels import order as kernels
from drsne.backends.numba.threads import Workers, n_blocks

LIGHT = 4096  # smallest number of points in a block if there is little work for each point
_COMPILED_FROM = 8192  # smallest number of keys for which the compiled sort is faster than NumPy
_SORTED_TOGETHER, _SORTED_BLOCKS = 8192, 32  # smallest number of keys in a block, and largest number of blocks
_ROW_BLOCKS = 16  # largest number of blocks of rows of a matrix that is transposed
BITS = {1: 60, 2: 30, 3: 20}  # number of bits of a code per coordinate, by the number of coordinates


class Curve(NamedTuple):
    """The points along a curve."""

    order: NDArray[np.int32]  # the points in the order of the curve
    codes: NDArray[np.int64]  # positions of these points on the curve, ascending


def along_curve(Y: NDArray[np.float64], workers: Workers) -> Curve:
    """Return the points of a map along a Z-order curve of its first three coordinates; ties are sorted by index."""
    Y = Y[:, :3]
    n, d = Y.shape
    low, high = bounds(Y, workers)
    extent = float((high - low).max())
    code = np.empty(n, np.int64)
    workers.run(kernels.codes, n, Y, low, 2.0 ** BITS[d] / extent if extent > 2.0**-900 else 0.0, BITS[d], code)
    return Curve(*stable_order(code, d * BITS[d], workers))


def bounds(Y: NDArray[Any], workers: Workers) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the smallest and the largest value of every column."""
    blocks = n_blocks(len(Y), LIGHT)
    low, high = (np.empty((blocks, Y.shape[1]), Y.dtype) for _ in range(2))
    workers.run(kernels.bounds, len(Y), Y, low, high, grain=LIGHT)
    return low.min(axis=0), high.max(axis=0)


def near_origin(Y: NDArray[np.float64], workers: Workers) -> NDArray[np.float64]:
    """Return a map, shifted if its centre is further from the origin than the map is wide."""
    low, high = bounds(Y, workers)
    center = 0.5 * (low + high)
    return Y - center if np.abs(center).max() > (high - low).max() else Y


class Ordering:
    """An order of the points: row r is point ``rows[r]``."""

    def __init__(self, rows: NDArray[np.int32], workers: Workers) -> None:
        self._rows, self._workers = rows, workers
        self._position = np.empty_like(rows)
        self._position[rows] = np.arange(len(rows), dtype=np.int32)

    def reordered(self, values: NDArray[Any]) -> NDArray[Any]:
        out = np.empty_like(values)
        self._workers.run(kernels.gather, len(out), _as_table(values), self._rows, _as_table(out), grain=LIGHT)
        return out

    def restored(self, values: NDArray[Any]) -> NDArray[Any]:
        out = np.empty_like(values)
        self._workers.run(kernels.scatter, len(out), _as_table(values), self._rows, _as_table(out), grain=LIGHT)
        return out

    def pair_list(self, pairs: PairList) -> PairList:
        indptr, columns, values = pairs
        starts = np.zeros_like(indptr)
        np.cumsum(np.diff(indptr)[self._rows], out=starts[1:])
        out = np.empty_like(columns), np.empty_like(values)
        order = (self._rows, self._position, starts)
        self._workers.run(kernels.csr_rows, len(self._rows), indptr, columns, values, *order, *out)
        return PairList(starts, *out)

    def neighbor_table(self, neighbors: NDArray[np.int32]) -> NDArray[np.int32]:
        out = np.empty(neighbors.shape, np.int32)
        self._workers.run(kernels.table, len(out), neighbors, self._rows, self._position, out)
        return out


def _as_table(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.ndim == 2 else values[:, None]


def stable_order(keys: NDArray[Any], bits: int, workers: Workers) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the order that sorts nonnegative integers of at most ``bits`` bits, and the sorted integers.

    Equal integers keep their order.
    """
    n = len(keys)
    if n < _COMPILED_FROM:
        order = np.argsort(keys, kind="stable").astype(np.int32)
        return order, keys[order]
    grain = max(_SORTED_TOGETHER, n // _SORTED_BLOCKS)
    counts = np.empty((n_blocks(n, grain), 1 << kernels.DIGIT), np.int64)
    items = np.arange(n, dtype=np.int32)
    written, free = ((np.empty_like(keys), np.empty_like(items)) for _ in range(2))
    for shift in range(0, bits, kernels.DIGIT):
        workers.run(kernels.count_digits, n, keys, shift, counts, grain=grain)
        ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T  # of the keys of every block with every digit
        workers.run(
            kernels.sort_by_digit, n, keys, items, shift, np.ascontiguousarray(ends - counts), *written, grain=grain
        )
        (keys, items), written, free = written, free, written
    return items, keys


def transposed(
    starts: NDArray[np.int64], columns: NDArray[np.int32], values: NDArray[Any], workers: Workers
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Return the transpose of a square CSR matrix, with sorted rows. ``values`` may be empty.

    Transposing twice therefore sorts the rows.
    """
    n = len(starts) - 1
    grain = max(LIGHT, n // _ROW_BLOCKS)
    places = np.empty((n_blocks(n, grain), n), np.int64)
    offsets, names, moved = np.empty(n + 1, np.int64), np.empty(len(columns), np.int32), np.empty_like(values)
    workers.run(kernels.count_columns, n, starts, columns, places, grain=grain)
    kernels.first_places(places, offsets)
    workers.run(kernels.transpose, n, starts, columns, values, places, names, moved, grain=grain)
    return offsets, names, moved


def listed_back(neighbors: NDArray[np.int32], workers: Workers) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the points that list each point as a neighbour, in ascending order, as CSR offsets and points."""
    n, k = neighbors.shape
    starts = np.arange(0, n * k + 1, k, dtype=np.int64)
    offsets, points, _ = transposed(starts, neighbors.ravel(), np.empty(0, np.float32), workers)
    return offsets, points
