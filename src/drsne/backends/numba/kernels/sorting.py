"""Passes of a stable radix sort of nonnegative integers."""

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
