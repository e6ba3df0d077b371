"""The division of small cells of a map into leaves, and of wide leaves into parts, as Triton programs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _widest(places, corner, point, n, D: tl.constexpr, CELLS: tl.constexpr, SIZE: tl.constexpr):
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
def _lower_half(along, CELLS: tl.constexpr, SIZE: tl.constexpr):
    """Return which points of each of CELLS cells of SIZE points are in its lower half."""
    # Floating-point numbers are ordered like integers, after the bits of negative ones are flipped. The lower bits of a
    # key hold the place of the point, so no keys are equal.
    bits = (along + 0.0).to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = (bits.to(tl.int64) << 12) | tl.arange(0, SIZE)[None, :].to(tl.int64)
    low, high = tl.min(key, axis=1), tl.max(key, axis=1)
    while tl.max(high - low, axis=0) > 0:
        middle = low + ((high - low) >> 1)
        enough = tl.sum((key <= middle[:, None]).to(tl.int32), axis=1) >= SIZE // 2
        high = tl.where(enough, middle, high)
        low = tl.where(enough, low, middle + 1)
    return (key <= low[:, None]).to(tl.int32)


@triton.jit
def _halved(places, corner, out, point, n, D: tl.constexpr, CELLS: tl.constexpr, SIZE: tl.constexpr):
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
def divide(places, corner, slots, out, extents, n, D: tl.constexpr, LEAVES: tl.constexpr, LEAF: tl.constexpr):
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
def cut(places, slots, wide, sizes, D: tl.constexpr, CUTS: tl.constexpr, LEAF: tl.constexpr):
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
