"""Sorting of integers on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.kernels import sorting as kernels
from drsne.backends.numba.threads import Workers, n_blocks

_COMPILED_FROM = 8192  # smallest number of keys for which the compiled sort is faster than NumPy
_GRAIN, _BLOCKS = 8192, 32  # smallest number of keys in a block, and largest number of blocks


def stable_order(keys: NDArray[Any], bits: int, workers: Workers) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the order that sorts nonnegative integers of at most ``bits`` bits, and the sorted integers.

    Equal integers keep their order.
    """
    n = len(keys)
    if n < _COMPILED_FROM:
        order = np.argsort(keys, kind="stable").astype(np.int32)
        return order, keys[order]
    grain = max(_GRAIN, n // _BLOCKS)
    counts = np.empty((n_blocks(n, grain), 1 << kernels.DIGIT), np.int64)
    items = np.arange(n, dtype=np.int32)
    written, free = ((np.empty_like(keys), np.empty_like(items)) for _ in range(2))
    for shift in range(0, bits, kernels.DIGIT):
        workers.run(kernels.count, n, keys, shift, counts, grain=grain)
        ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T  # of the keys of every block with every digit
        workers.run(kernels.place, n, keys, items, shift, np.ascontiguousarray(ends - counts), *written, grain=grain)
        (keys, items), written, free = written, free, written
    return items, keys
