"""The transpose of a sparse matrix on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels import transposing as kernels
from drsne.backends.numba.threads import Workers, n_blocks

_GRAIN, _BLOCKS = 4096, 16  # smallest number of rows in a block, and largest number of blocks


def transposed(
    starts: NDArray[np.int64], columns: NDArray[np.int32], values: NDArray[Any], workers: Workers
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Return the transpose of a square CSR matrix, with sorted rows. ``values`` may be empty.

    Transposing twice therefore sorts the rows.
    """
    n = len(starts) - 1
    grain = max(_GRAIN, n // _BLOCKS)
    places = np.empty((n_blocks(n, grain), n), np.int64)
    offsets, names, moved = np.empty(n + 1, np.int64), np.empty(len(columns), np.int32), np.empty_like(values)
    workers.run(kernels.count, n, starts, columns, places, grain=grain)
    kernels.first_places(places, offsets)
    workers.run(kernels.place, n, starts, columns, values, places, names, moved, grain=grain)
    return offsets, names, moved


def listed_back(neighbors: NDArray[np.int32], workers: Workers) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the points that list each point as a neighbour, in ascending order, as CSR offsets and points."""
    n, k = neighbors.shape
    starts = np.arange(0, n * k + 1, k, dtype=np.int64)
    offsets, points, _ = transposed(starts, neighbors.ravel(), np.empty(0, np.float32), workers)
    return offsets, points
