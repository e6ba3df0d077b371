"""Programs of Triton that halve large cells of a map at their medians, which they find by counting."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _keys(values, axis, whole, size, BLOCK: tl.constexpr):
    """Return the coordinates of a block of points along the widest side of their cell as integers in the same order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cell = tl.program_id(0) * BLOCK // size
    along = tl.load(values + tl.load(axis + cell).to(tl.int64) * whole + at)
    bits = (along + 0.0).to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (bits.to(tl.int64) + 2147483648) * 2, cell


@triton.jit
def bounds(values, out, whole, D: tl.constexpr, BLOCK: tl.constexpr):
    """Write the smallest and the largest coordinates of a block of points."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = out + tl.program_id(0) * D * 2
    for c in tl.static_range(D):
        value = tl.load(values + c * whole + at)
        tl.store(to + 2 * c, tl.min(value, axis=0))
        tl.store(to + 2 * c + 1, tl.max(value, axis=0))


@triton.jit(do_not_specialize=["shift"])
def histogram(values, axis, known, bins, whole, size, shift, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Write how often each value of some bits occurs in a block, among the points whose higher bits are ``known``."""
    key, cell = _keys(values, axis, whole, size, BLOCK)
    rest = key >> shift
    counted = (rest // BINS) == tl.load(known + cell)
    number = tl.arange(0, BINS)
    found = tl.histogram(tl.where(counted, rest % BINS, 0).to(tl.int32), BINS)
    others = BLOCK - tl.sum(counted.to(tl.int32), axis=0)
    tl.store(bins + tl.program_id(0) * BINS + number, found - tl.where(number == 0, others, 0))


@triton.jit
def count(values, axis, median, counts, whole, size, BLOCK: tl.constexpr):
    """Write how many points of a block are below the median of their cell, and how many are at it."""
    key, cell = _keys(values, axis, whole, size, BLOCK)
    middle = tl.load(median + cell)
    tl.store(counts + 2 * tl.program_id(0), tl.sum((key < middle).to(tl.int32), axis=0))
    tl.store(counts + 2 * tl.program_id(0) + 1, tl.sum((key == middle).to(tl.int32), axis=0))


@triton.jit
def part(
    values, slots, axis, median, taken, begin, new_values, new_slots, whole, size, D: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the points of a block to the lower and the upper half of their cell.

    The first ``taken`` points at the median belong to the lower half, and ``begin`` points of blocks before this one.
    """
    block = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = block * BLOCK + lane
    key, cell = _keys(values, axis, whole, size, BLOCK)
    middle = tl.load(median + cell)
    equal = (key == middle).to(tl.int32)
    early = equal * (tl.cumsum(equal, 0) <= tl.load(taken + block)).to(tl.int32)
    lower = (key < middle).to(tl.int32) + early
    rank = tl.cumsum(lower, 0) - lower
    first = tl.load(begin + block)
    above = size // 2 + (block * BLOCK - cell * size) - first
    to = cell * size + tl.where(lower > 0, first + rank, above + lane - rank)
    tl.store(new_slots + to, tl.load(slots + at))
    for c in tl.static_range(D):
        tl.store(new_values + c * whole + to, tl.load(values + c * whole + at))
