"""The division of small cells of a map into leaves, and of wide leaves into parts, as Triton programs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def divide(places, corner, slots, out, extents, n, D: tl.constexpr, CELL: tl.constexpr, LEAF: tl.constexpr):
    """Write the points of a cell leaf by leaf, and the largest extent of every leaf.

    Halves, quarters and so on of the cell are sorted along their widest side, until they are leaves. ``places`` (n, D)
    are in single precision. Numbers from n on stand for the upper ``corner`` of the map.
    """
    begin = tl.program_id(0) * CELL
    at = tl.arange(0, CELL)
    local = at
    LEVELS: tl.constexpr = 16
    for level in tl.static_range(LEVELS):
        SIZE: tl.constexpr = CELL >> level
        if SIZE >= LEAF:
            point = tl.load(slots + begin + local)
            real = point < n
            key = tl.load(places + point * D, mask=real, other=0.0)
            key = tl.where(real, key, tl.load(corner))
            cells = tl.reshape(key, [CELL // SIZE, SIZE])
            widest = tl.max(cells, axis=1) - tl.min(cells, axis=1)
            for c in tl.static_range(1, D):
                value = tl.load(places + point * D + c, mask=real, other=0.0)
                value = tl.reshape(tl.where(real, value, tl.load(corner + c)), [CELL // SIZE, SIZE])
                extent = tl.max(value, axis=1) - tl.min(value, axis=1)
                cells = tl.where((extent > widest)[:, None], value, cells)
                widest = tl.maximum(extent, widest)
            if SIZE == LEAF:
                tl.store(out + begin + at, point)
                tl.store(extents + tl.program_id(0) * (CELL // LEAF) + tl.arange(0, CELL // LEAF), widest)
            else:
                # Floating-point numbers are ordered like integers, after the bits of negative ones are flipped. The
                # lower bits hold the place in the cell, so equal keys stay in their order.
                bits = (cells + 0.0).to(tl.int32, bitcast=True)
                bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
                packed = (bits.to(tl.int64) << 32) | tl.reshape(local, [CELL // SIZE, SIZE]).to(tl.int64)
                local = tl.reshape(tl.sort(packed, dim=1) & 0xFFFFFFFF, [CELL]).to(tl.int32)


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
