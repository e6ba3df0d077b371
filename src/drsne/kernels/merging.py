"""Rows of neighbours and their transpose, merged into a symmetric CSR matrix (docs/theory.md, eq. 5)."""

from __future__ import annotations

from drsne.kernels._compile import kernel


@kernel
def transpose(starts, columns, values, offsets, names, moved):  # type: ignore[no-untyped-def]
    """Row j of the transpose: who lists j, in ascending order, from ``offsets[j]`` on. Twice over, it sorts rows."""
    n = starts.shape[0] - 1
    offsets[:] = 0
    for e in range(columns.shape[0]):
        offsets[columns[e] + 1] += 1
    for i in range(n):
        offsets[i + 1] += offsets[i]
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            at = offsets[columns[e]]
            names[at] = i
            moved[at] = values[e]
            offsets[columns[e]] = at + 1
    for i in range(n, 0, -1):
        offsets[i] = offsets[i - 1]
    offsets[0] = 0


@kernel
def count(starts, columns, values, offsets, names, moved, lengths, block, lo, hi):  # type: ignore[no-untyped-def]
    """``lengths[i + 1]``, the entries of row i of ``(C + C^T) / (2 n)`` that are not zero, from sorted rows of both."""
    n = starts.shape[0] - 1
    scale = 0.5 / n
    for i in range(lo, hi):
        a, a_end, b, b_end = starts[i], starts[i + 1], offsets[i], offsets[i + 1]
        length = 0
        while a < a_end or b < b_end:
            v = 0.0
            left = b == b_end or (a < a_end and columns[a] <= names[b])
            right = a == a_end or (b < b_end and names[b] <= columns[a])
            if left:
                v += values[a]
                a += 1
            if right:
                v += moved[b]
                b += 1
            if values.dtype.type(v * scale) > 0:
                length += 1
        lengths[i + 1] = length


@kernel
def merge(starts, columns, values, offsets, names, moved, indptr, into, data, block, lo, hi):  # type: ignore[no-untyped-def]
    """Columns and values of the rows that :func:`count` counted."""
    n = starts.shape[0] - 1
    scale = 0.5 / n
    for i in range(lo, hi):
        a, a_end, b, b_end = starts[i], starts[i + 1], offsets[i], offsets[i + 1]
        e = indptr[i]
        while a < a_end or b < b_end:
            v = 0.0
            left = b == b_end or (a < a_end and columns[a] <= names[b])
            right = a == a_end or (b < b_end and names[b] <= columns[a])
            j = columns[a] if left else names[b]
            if left:
                v += values[a]
                a += 1
            if right:
                v += moved[b]
                b += 1
            if values.dtype.type(v * scale) > 0:
                into[e] = j
                data[e] = v * scale
                e += 1
