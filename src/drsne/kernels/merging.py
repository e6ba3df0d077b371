"""Rows of neighbours and their transpose, merged into a symmetric CSR matrix (docs/theory.md, eq. 5)."""

from __future__ import annotations

import numpy as np

from drsne.kernels._compile import kernel


@kernel
def list_back(indices, C, offsets, listed_by, values):  # type: ignore[no-untyped-def]
    """The transpose of rows ``C`` at ``indices``: who lists j, in ascending order, from ``offsets[j]`` on."""
    n, k = indices.shape
    offsets[:] = 0
    for i in range(n):
        for m in range(k):
            offsets[indices[i, m] + 1] += 1
    for i in range(n):
        offsets[i + 1] += offsets[i]
    for i in range(n):
        for m in range(k):
            j = indices[i, m]
            listed_by[offsets[j]] = i
            values[offsets[j]] = C[i, m]
            offsets[j] += 1
    for i in range(n, 0, -1):
        offsets[i] = offsets[i - 1]
    offsets[0] = 0


@kernel
def _next(a, own, order, b, last, listed_by):  # type: ignore[no-untyped-def]
    """The next column of the merged row, from its own entries (from a on) and the transpose's (from b on)."""
    if a < order.shape[0] and (b == last or own[order[a]] <= listed_by[b]):
        return own[order[a]]
    return listed_by[b]


@kernel
def count(indices, C, offsets, listed_by, values, lengths, block, lo, hi):  # type: ignore[no-untyped-def]
    """``lengths[i + 1]``, the entries of row i of ``(C + C^T) / (2 n)`` that are not zero."""
    n, k = indices.shape
    scale = 0.5 / n
    for i in range(lo, hi):
        own = indices[i]
        order = np.argsort(own)
        a, b, last = 0, offsets[i], offsets[i + 1]
        length = 0
        while a < k or b < last:
            j = _next(a, own, order, b, last, listed_by)
            v = 0.0
            if a < k and own[order[a]] == j:
                v += C[i, order[a]]
                a += 1
            if b < last and listed_by[b] == j:
                v += values[b]
                b += 1
            if C.dtype.type(v * scale) > 0:
                length += 1
        lengths[i + 1] = length


@kernel
def merge(indices, C, offsets, listed_by, values, indptr, columns, data, block, lo, hi):  # type: ignore[no-untyped-def]
    """Columns and values of the rows that :func:`count` counted."""
    n, k = indices.shape
    scale = 0.5 / n
    for i in range(lo, hi):
        own = indices[i]
        order = np.argsort(own)
        a, b, last = 0, offsets[i], offsets[i + 1]
        e = indptr[i]
        while a < k or b < last:
            j = _next(a, own, order, b, last, listed_by)
            v = 0.0
            if a < k and own[order[a]] == j:
                v += C[i, order[a]]
                a += 1
            if b < last and listed_by[b] == j:
                v += values[b]
                b += 1
            if C.dtype.type(v * scale) > 0:
                columns[e] = j
                data[e] = v * scale
                e += 1
