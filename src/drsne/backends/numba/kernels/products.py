"""Products of a data matrix with a few vectors. They do not depend on the number of threads."""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel


@kernel
def gram_times(X, V, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the block's part of ``X^T X V``, which is the sum of ``x_i (x_i . V)`` over the rows of the block."""
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
    """Write ``out_i = x_i . V``."""
    d, q = V.shape
    for i in range(lo, hi):
        for c in range(q):
            out[i, c] = 0.0
        for f in range(d):
            for c in range(q):
                out[i, c] += X[i, f] * V[f, c]


@kernel
def scores(X, mean, components, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``out_i = components (x_i - mean)``. A row does not depend on the other rows."""
    for i in range(lo, hi):
        for c in range(components.shape[0]):
            s = 0.0
            for f in range(X.shape[1]):
                s += (X[i, f] - mean[f]) * components[c, f]
            out[i, c] = s


@kernel
def sparse_scores(indptr, columns, values, mean, components, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the result of :func:`scores` for CSR rows with sorted columns."""
    for c in range(components.shape[0]):
        of_mean = 0.0
        for f in range(mean.shape[0]):
            of_mean += mean[f] * components[c, f]
        for i in range(lo, hi):
            s = 0.0
            for t in range(indptr[i], indptr[i + 1]):
                s += values[t] * components[c, columns[t]]
            out[i, c] = s - of_mean
