"""Products of a data matrix with a few vectors, the same for every number of threads."""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel


@kernel
def gram_times(X, V, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """``out[block] = sum over rows of x_i (x_i . V)``: the block's share of X^T X V."""
    d, q = V.shape
    u = np.empty(q)
    out[block] = 0.0
    for i in range(lo, hi):
        u[:] = 0.0
        for f in range(d):
            for c in range(q):
                u[c] += X[i, f] * V[f, c]
        for f in range(d):
            for c in range(q):
                out[block, f, c] += X[i, f] * u[c]


@kernel
def times(X, V, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """``out_i = x_i . V``."""
    d, q = V.shape
    for i in range(lo, hi):
        for c in range(q):
            out[i, c] = 0.0
        for f in range(d):
            for c in range(q):
                out[i, c] += X[i, f] * V[f, c]
