"""Arrays reordered so that row r of the result belongs to point ``rows[r]``."""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel


@kernel
def gather(values, rows, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``out[r] = values[rows[r]]`` for arrays of shape (n, d)."""
    for r in range(lo, hi):
        for c in range(values.shape[1]):
            out[r, c] = values[rows[r], c]


@kernel
def scatter(values, rows, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``out[rows[r]] = values[r]`` for arrays of shape (n, d)."""
    for r in range(lo, hi):
        for c in range(values.shape[1]):
            out[rows[r], c] = values[r, c]


@kernel
def csr_rows(indptr, columns, data, rows, position, starts, new_columns, new_data, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the rows of a CSR matrix in the new order, with renumbered columns; row r begins at ``starts[r]``."""
    for r in range(lo, hi):
        at = starts[r]
        for e in range(indptr[rows[r]], indptr[rows[r] + 1]):
            new_columns[at] = position[columns[e]]
            new_data[at] = data[e]
            at += 1


@kernel
def table(neighbors, rows, position, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the rows of a table (n, k) of points in the new order, with renumbered points."""
    for r in range(lo, hi):
        for m in range(neighbors.shape[1]):
            out[r, m] = position[neighbors[rows[r], m]]


@kernel
def columns(values, rows, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``out[c, r] = values[rows[r], c]`` for values of shape (n, d), and zeros for missing coordinates."""
    d = values.shape[1]
    for c in range(3):
        for r in range(lo, hi):
            out[c, r] = values[rows[r], c] if c < d else 0.0


@kernel
def bounds(values, low, high, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the smallest and the largest value of every column of some rows."""
    for c in range(values.shape[1]):
        least, most = values[lo, c], values[lo, c]
        for i in range(lo, hi):
            least, most = min(least, values[i, c]), max(most, values[i, c])
        low[block, c], high[block, c] = least, most


@kernel
def raised(values, scales, height, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write points (n, 2) with ``height`` times the logarithm of their scale as the third coordinate."""
    for i in range(lo, hi):
        out[i, 0], out[i, 1] = values[i, 0], values[i, 1]
        out[i, 2] = height * np.log(scales[i])
