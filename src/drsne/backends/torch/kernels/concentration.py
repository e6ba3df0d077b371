"""Sums over the neighbours of each point as Triton programs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _places(y, j, there):
    """Return the two coordinates of the points ``j``, which are read together because the points are far apart."""
    return tl.split(tl.load(y + 2 * j[:, :, None] + tl.arange(0, 2)[None, None, :], mask=there[:, :, None], other=0.0))


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["lengths", "directions"])
def lengths_2d(y, neighbors, floor: tl.float64, lengths, directions, n, m, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Write the sum of the distances from ROWS points to their m neighbours, and the gradients of these sums."""
    real = y.dtype.element_ty
    floor = tl.full((), floor, real)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = i < n
    xi = tl.load(y + 2 * i, mask=ok, other=0.0)
    yi = tl.load(y + 2 * i + 1, mask=ok, other=0.0)
    total = tl.zeros([ROWS, BLOCK], real)
    gx = tl.zeros([ROWS, BLOCK], real)
    gy = tl.zeros([ROWS, BLOCK], real)
    for t in range(0, m, BLOCK):
        c = t + tl.arange(0, BLOCK)
        there = ok[:, None] & (c < m)[None, :]
        j = tl.load(neighbors + i[:, None].to(tl.int64) * m + c[None, :], mask=there, other=0)
        xj, yj = _places(y, j, there)
        ex, ey = xi[:, None] - xj, yi[:, None] - yj
        length = tl.sqrt(ex * ex + ey * ey + floor)
        per = tl.where(there & (length > 0.0), 1.0 / length, 0.0)
        total += tl.where(there, length, 0.0)
        gx += per * ex
        gy += per * ey
    tl.store(lengths + i, tl.sum(total, axis=1).to(tl.float64), mask=ok)
    tl.store(directions + 2 * i, tl.sum(gx, axis=1), mask=ok)
    tl.store(directions + 2 * i + 1, tl.sum(gy, axis=1), mask=ok)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["forces"])
def pull_back_2d(y, offsets, listed_by, slope, floor: tl.float64, forces, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Write the forces on ROWS points that come from the lengths of the points that list them."""
    real = y.dtype.element_ty
    floor = tl.full((), floor, real)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = i < n
    start = tl.load(offsets + i, mask=ok, other=0)
    end = tl.load(offsets + i + 1, mask=ok, other=0)
    xi = tl.load(y + 2 * i, mask=ok, other=0.0)
    yi = tl.load(y + 2 * i + 1, mask=ok, other=0.0)
    gx = tl.zeros([ROWS, BLOCK], real)
    gy = tl.zeros([ROWS, BLOCK], real)
    for t in range(0, tl.max(end - start), BLOCK):
        at = start[:, None] + t + tl.arange(0, BLOCK)[None, :]
        there = at < end[:, None]
        j = tl.load(listed_by + at, mask=there, other=0)
        xj, yj = _places(y, j, there)
        ex, ey = xi[:, None] - xj, yi[:, None] - yj
        length = tl.sqrt(ex * ex + ey * ey + floor)
        per = tl.where(there & (length > 0.0), tl.load(slope + j, mask=there, other=0.0) / length, 0.0)
        gx += per * ex
        gy += per * ey
    tl.store(forces + 2 * i, tl.sum(gx, axis=1), mask=ok)
    tl.store(forces + 2 * i + 1, tl.sum(gy, axis=1), mask=ok)
