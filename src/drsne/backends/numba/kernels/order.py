"""Orders of points and entries: a Z-order curve, a radix sort, reordered arrays, and the transpose of a sparse matrix.

In a reordered array, row r belongs to point ``rows[r]``. Points that are close together on the curve are close together
in the map. Every block of a sort or a transpose knows where its entries go.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

DIGIT = 10  # number of bits of a digit of the radix sort
_MASK = (1 << DIGIT) - 1


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


@kernel
def codes(Y, low, scale, bits, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the position of each point, with ``bits`` bits per coordinate and ``scale`` cells per unit from ``low``."""
    d = Y.shape[1]
    largest = (1 << bits) - 1
    for i in range(lo, hi):
        code = 0
        for c in range(d):
            cell = min(int((Y[i, c] - low[c]) * scale), largest)
            for b in range(bits):
                code |= ((cell >> b) & 1) << (b * d + c)
        out[i] = code


@kernel
def count_digits(keys, shift, counts, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write how often each digit occurs in a block of the keys."""
    for digit in range(_MASK + 1):
        counts[block, digit] = 0
    for r in range(lo, hi):
        counts[block, (keys[r] >> shift) & _MASK] += 1


@kernel
def sort_by_digit(keys, items, shift, starts, sorted_keys, sorted_items, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the keys and their items in the order of a digit; ``starts`` (blocks, digits) is overwritten."""
    for r in range(lo, hi):
        digit = (keys[r] >> shift) & _MASK
        at = starts[block, digit]
        sorted_keys[at] = keys[r]
        sorted_items[at] = items[r]
        starts[block, digit] = at + 1


@kernel
def count_columns(starts, columns, counts, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write how many entries of every column a block of rows has."""
    for j in range(counts.shape[1]):
        counts[block, j] = 0
    for e in range(starts[lo], starts[hi]):
        counts[block, columns[e]] += 1


@kernel
def first_places(counts, offsets):  # type: ignore[no-untyped-def]
    """Replace the counts by the places of the first entries, and write where the rows of the transpose begin."""
    place = 0
    for j in range(counts.shape[1]):
        offsets[j] = place
        for block in range(counts.shape[0]):
            entries = counts[block, j]
            counts[block, j] = place
            place += entries
    offsets[counts.shape[1]] = place


@kernel
def transpose(starts, columns, values, places, names, moved, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the entries of a block of rows where they belong; ``values`` may be empty. ``places`` is overwritten."""
    for i in range(lo, hi):
        for e in range(starts[i], starts[i + 1]):
            at = places[block, columns[e]]
            names[at] = i
            if len(values) > 0:
                moved[at] = values[e]
            places[block, columns[e]] = at + 1
