"""The nearest neighbours of every point in a map. The search is designed for few dimensions and many calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends import FEW
from drsne.backends.numba.cells import cells
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers

_LARGEST_TREE = 3  # largest number of dimensions that a tree supports
_GRAIN = 8  # number of leaves per block
_WIDEST = 1e15  # largest coordinate for which squared distances cannot overflow in single precision


def nearest_in_map(Y: NDArray[Any], k: int, workers: Workers) -> NDArray[np.int32]:
    """Return the ``k`` nearest neighbours of every point of ``Y``, nearest first, without the point itself.

    Points at the same distance are in no particular order. The initial search radius is taken from the adjacent points
    on the Z-order curve. In a map that is not finite, arbitrary points are returned.
    """
    widest = float(np.abs(Y).max())
    if not np.isfinite(widest):
        return ((np.arange(len(Y))[:, None] + np.arange(1, k + 1)) % len(Y)).astype(np.int32)
    if widest > _WIDEST:
        Y = Y / Y.dtype.type(widest)
    if Y.shape[1] > _LARGEST_TREE or len(Y) < FEW:
        return _by_scipy(Y, k, workers)
    (order, nodes, leaves), coordinates, (_, _, box) = cells(Y, Y.dtype.type, workers)
    out = np.empty((len(Y), k), np.int32)
    workers.run(kernels.nearest_in_cells, len(leaves), coordinates, order, *nodes, box, leaves, out, grain=_GRAIN)
    return out


def _by_scipy(Y: NDArray[Any], k: int, workers: Workers) -> NDArray[np.int32]:
    from scipy.spatial import cKDTree

    tree = cKDTree(Y)
    nearest = np.empty((len(Y), k + 1), np.intp)

    def search(block: int, lo: int, hi: int) -> None:
        nearest[lo:hi] = tree.query(Y[lo:hi], k + 1)[1]

    # The tree's own threads are not used: after an interrupt they would go on writing to memory that is released.
    workers.run(search, len(Y))
    own = nearest == np.arange(len(Y))[:, None]
    own[~own.any(axis=1), -1] = True  # a point with many duplicates may not be among its own neighbours
    return np.ascontiguousarray(nearest[~own].reshape(len(Y), k), dtype=np.int32)
