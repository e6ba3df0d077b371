"""Each point's nearest neighbours in a map: a search made for few dimensions and many calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.cells import cells
from drsne.backends.numba.kernels import neighbors as kernels
from drsne.backends.numba.threads import Workers

_LARGEST_TREE = 3  # dimensions
_WIDEST = 1e15  # beyond which squared distances overflow single precision


def nearest_in_map(Y: NDArray[Any], k: int, workers: Workers) -> NDArray[np.int32]:
    """The ``k`` nearest neighbours of every point of ``Y``, nearest first, the point itself left out; ties are broken.

    The first bound on a point's reach is the k-th distance among the points beside it on the curve. A map that is not
    finite has no neighbours: anyone will do.
    """
    widest = float(np.abs(Y).max())
    if not np.isfinite(widest):
        return ((np.arange(len(Y))[:, None] + np.arange(1, k + 1)) % len(Y)).astype(np.int32)
    if widest > _WIDEST:
        Y = Y / Y.dtype.type(widest)
    if Y.shape[1] > _LARGEST_TREE:
        return _in_many_dimensions(Y, k, workers)
    order, lanes, nodes, (_, _, box) = cells(Y, Y.dtype.type, workers)
    out = np.empty((len(Y), k), np.int32)
    workers.run(kernels.nearest_in_cells, len(Y), lanes, order, *nodes, box, out)
    return out


def _in_many_dimensions(Y: NDArray[Any], k: int, workers: Workers) -> NDArray[np.int32]:
    from scipy.spatial import cKDTree

    found = cKDTree(Y).query(Y, k + 1, workers=workers.n_threads)[1]
    own = found == np.arange(len(Y))[:, None]
    own[~own.any(axis=1), -1] = True  # hidden by duplicates
    return np.ascontiguousarray(found[~own].reshape(len(Y), k), dtype=np.int32)
