"""Passes of a stable radix sort of nonnegative integers, and the points that list each point as a neighbour."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel

DIGIT = 10  # number of bits of a digit
_MASK = (1 << DIGIT) - 1


@kernel
def count(keys, shift, counts, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write how often each digit occurs in a block of the keys."""
    for digit in range(_MASK + 1):
        counts[block, digit] = 0
    for r in range(lo, hi):
        counts[block, (keys[r] >> shift) & _MASK] += 1


@kernel
def place(keys, items, shift, starts, sorted_keys, sorted_items, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the keys and their items in the order of a digit; ``starts`` (blocks, digits) is overwritten."""
    for r in range(lo, hi):
        digit = (keys[r] >> shift) & _MASK
        at = starts[block, digit]
        sorted_keys[at] = keys[r]
        sorted_items[at] = items[r]
        starts[block, digit] = at + 1


@kernel
def list_back(points, entries, k, offsets, listed_by, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the rows of a table (n, k) that list each point, from its sorted ``points`` and their places in the table.

    Point i is listed by ``listed_by[offsets[i] : offsets[i + 1]]``.
    """
    for r in range(lo, hi):
        listed_by[r] = entries[r] // k
        before = points[r - 1] if r > 0 else -1
        for i in range(before + 1, points[r] + 1):
            offsets[i] = r
    if hi == len(points):
        for i in range(points[hi - 1] + 1, len(offsets)):
            offsets[i] = hi
