"""The sum of a matrix of neighbours and its transpose as a symmetric CSR matrix (docs/theory.md, eq. 5)."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel


@kernel
def merge(starts, columns, values, offsets, names, moved, indptr, into, data, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the rows of ``(C + C^T) / (2 n)`` without zeros, from the sorted rows of both matrices.

    If ``into`` is empty, the entries are only counted, and ``indptr[i + 1]`` is the length of row i.
    """
    scale = 0.5 / (starts.shape[0] - 1)
    counting = into.shape[0] == 0
    for i in range(lo, hi):
        a, a_end, b, b_end = starts[i], starts[i + 1], offsets[i], offsets[i + 1]
        e = 0 if counting else indptr[i]
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
                if not counting:
                    into[e] = j
                    data[e] = v * scale
                e += 1
        if counting:
            indptr[i + 1] = e
