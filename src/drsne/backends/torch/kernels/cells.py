"""The division of a map into cells as Triton programs: large cells, small cells into leaves, and wide leaves."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr


@triton.jit
def _ordered(values):
    """Return integers that have the order of numbers in single precision: the bits of negative ones are flipped."""
    bits = (values + 0.0).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)


@triton.jit
def _widest(places, corner, point, n, D: constexpr, CELLS: constexpr, SIZE: constexpr):
    """Return the coordinates of points along the widest side of their cell, (CELLS, SIZE), and its extent."""
    real = point < n
    found = tl.reshape(
        tl.where(real, tl.load(places + point * D, mask=real, other=0.0), tl.load(corner)), [CELLS, SIZE]
    )
    widest = tl.max(found, axis=1) - tl.min(found, axis=1)
    for c in tl.static_range(1, D):
        value = tl.load(places + point * D + c, mask=real, other=0.0)
        value = tl.reshape(tl.where(real, value, tl.load(corner + c)), [CELLS, SIZE])
        extent = tl.max(value, axis=1) - tl.min(value, axis=1)
        found = tl.where((extent > widest)[:, None], value, found)
        widest = tl.maximum(extent, widest)
    return found, widest


@triton.jit
def _lower_half(along, CELLS: constexpr, SIZE: constexpr):
    """Return which points of each of CELLS cells of SIZE points are in its lower half."""
    # The lower bits of a key hold the place of the point, so no keys are equal.
    key = (_ordered(along) << 12) | tl.arange(0, SIZE)[None, :].to(tl.int64)
    low, high = tl.min(key, axis=1), tl.max(key, axis=1)
    while tl.max(high - low, axis=0) > 0:
        middle = low + ((high - low) >> 1)
        enough = tl.sum((key <= middle[:, None]).to(tl.int32), axis=1) >= SIZE // 2
        high = tl.where(enough, middle, high)
        low = tl.where(enough, low, middle + 1)
    return (key <= low[:, None]).to(tl.int32)


@triton.jit
def _halved(places, corner, out, point, n, D: constexpr, CELLS: constexpr, SIZE: constexpr):
    """Return the points with the lower half of each of CELLS cells of SIZE points in front of its upper half."""
    along, _ = _widest(places, corner, point, n, D, CELLS, SIZE)
    lower = _lower_half(along, CELLS, SIZE)
    rank = tl.where(lower > 0, tl.cumsum(lower, axis=1), SIZE // 2 + tl.cumsum(1 - lower, axis=1)) - 1
    to = tl.arange(0, CELLS)[:, None] * SIZE + rank
    tl.debug_barrier()  # all points are read before they are written to other places
    tl.store(out + tl.reshape(to, [CELLS * SIZE]), point)
    tl.debug_barrier()
    return tl.load(out + tl.arange(0, CELLS * SIZE))


@triton.jit(do_not_specialize=["n"])
def divide(places, corner, slots, out, extents, n, D: constexpr, LEAVES: constexpr, LEAF: constexpr):
    """Write the points of a cell of LEAVES leaves leaf by leaf, and the largest extent of every leaf.

    The cell, its halves, quarters and so on are divided at the medians of their widest sides, until they are leaves.
    ``places`` (n, D) are in single precision. Numbers from n on stand for the upper ``corner`` of the map.
    """
    begin = tl.program_id(0) * LEAVES * LEAF
    at = tl.arange(0, LEAVES * LEAF)
    point = tl.load(slots + begin + at)
    if LEAVES == 1:
        tl.store(out + begin + at, point)
    for level in tl.static_range(8):
        if (LEAVES >> level) > 1:
            point = _halved(places, corner, out + begin, point, n, D, 1 << level, (LEAVES >> level) * LEAF)
    _, widest = _widest(places, corner, point, n, D, LEAVES, LEAF)
    tl.store(extents + tl.program_id(0) * LEAVES + tl.arange(0, LEAVES), widest)


@triton.jit
def _largest_gap(v, part, which):
    """Return the largest gap between neighbouring points of a part along an axis, and the value below it."""
    same = (part[:, None] == which) & (part[None, :] == which)
    above = tl.where(same & (v[None, :] > v[:, None]), v[None, :], float("inf"))
    after = tl.min(above, axis=1)
    gap = tl.where(after < float("inf"), after - v, -1.0)
    largest = tl.max(gap, axis=0)
    return largest, tl.min(tl.where(gap == largest, v, float("inf")), axis=0)


@triton.jit
def cut(places, slots, wide, sizes, D: constexpr, CUTS: constexpr, LEAF: constexpr):
    """Reorder the points of a wide leaf part by part, and write the sizes of its parts.

    Every part is cut in two at the largest gap along any axis, CUTS times.
    """
    row = tl.program_id(0)
    lane = tl.arange(0, LEAF)
    at = slots + tl.load(wide + row) * LEAF + lane
    point = tl.load(at)
    part = tl.zeros([LEAF], tl.int32)
    for turn in tl.static_range(CUTS):
        new = 2 * part
        for which in tl.static_range(1 << turn):
            gap = -1.0
            upper = tl.zeros([LEAF], tl.int32)
            for c in tl.static_range(D):
                v = tl.load(places + point * D + c)
                found, below = _largest_gap(v, part, which)
                better = found > gap
                upper = tl.where(better, (v > below).to(tl.int32), upper)
                gap = tl.where(better, found, gap)
            new += tl.where(part == which, upper, 0)
        part = new
    before = (part[None, :] < part[:, None]) | ((part[None, :] == part[:, None]) & (lane[None, :] < lane[:, None]))
    to = tl.sum(before.to(tl.int32), axis=1)
    tl.debug_barrier()
    tl.store(slots + tl.load(wide + row) * LEAF + to, point)
    for which in tl.static_range(1 << CUTS):
        tl.store(sizes + row * (1 << CUTS) + which, tl.sum((part == which).to(tl.int32), axis=0))


@triton.jit
def _keys(values, axis, whole, size, BLOCK: constexpr):
    """Return the coordinates of a block of points along the widest side of their cell as integers in the same order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cell = tl.program_id(0) * BLOCK // size
    along = tl.load(values + tl.load(axis + cell).to(tl.int64) * whole + at)
    return (_ordered(along) + 2147483648) * 2, cell


@triton.jit
def bounds(values, out, whole, D: constexpr, BLOCK: constexpr):
    """Write the smallest and the largest coordinates of a block of points."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = out + tl.program_id(0) * D * 2
    for c in tl.static_range(D):
        value = tl.load(values + c * whole + at)
        tl.store(to + 2 * c, tl.min(value, axis=0))
        tl.store(to + 2 * c + 1, tl.max(value, axis=0))


@triton.jit(do_not_specialize=["shift"])
def histogram(values, axis, known, bins, whole, size, shift, BLOCK: constexpr, BINS: constexpr):
    """Write how often each value of some bits occurs in a block, among the points whose higher bits are ``known``."""
    key, cell = _keys(values, axis, whole, size, BLOCK)
    rest = key >> shift
    counted = (rest // BINS) == tl.load(known + cell)
    number = tl.arange(0, BINS)
    found = tl.histogram(tl.where(counted, rest % BINS, 0).to(tl.int32), BINS)
    others = BLOCK - tl.sum(counted.to(tl.int32), axis=0)
    tl.store(bins + tl.program_id(0) * BINS + number, found - tl.where(number == 0, others, 0))


@triton.jit
def count(values, axis, median, counts, whole, size, BLOCK: constexpr):
    """Write how many points of a block are below the median of their cell, and how many are at it."""
    key, cell = _keys(values, axis, whole, size, BLOCK)
    middle = tl.load(median + cell)
    tl.store(counts + 2 * tl.program_id(0), tl.sum((key < middle).to(tl.int32), axis=0))
    tl.store(counts + 2 * tl.program_id(0) + 1, tl.sum((key == middle).to(tl.int32), axis=0))


@triton.jit
def part(values, slots, axis, median, taken, begin, new_values, new_slots, whole, size, D: constexpr, BLOCK: constexpr):
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
