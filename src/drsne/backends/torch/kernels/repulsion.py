"""Sums over all pairs of a map as a Triton program."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_points", "n"])
def repulsion_2d(
    y,
    u,
    points,
    base: tl.float64,
    sums,
    n_points,
    n,
    ADAPTIVE: tl.constexpr,
    TARGETS: tl.constexpr,
    SOURCES: tl.constexpr,
):
    """Write the sum of the kernel and the forces of some points, over all n points."""
    real = y.dtype.element_ty
    base = tl.full((), base, real)
    at = tl.program_id(0) * TARGETS + tl.arange(0, TARGETS)
    ok = at < n_points
    i = tl.load(points + at, mask=ok, other=0)
    xi = tl.load(y + 2 * i, mask=ok, other=0.0)
    yi = tl.load(y + 2 * i + 1, mask=ok, other=0.0)
    if ADAPTIVE:
        ui = tl.load(u + i, mask=ok, other=1.0)
    value = tl.zeros([TARGETS, SOURCES], real)
    gx = tl.zeros([TARGETS, SOURCES], real)
    gy = tl.zeros([TARGETS, SOURCES], real)
    for t in range(0, n, SOURCES):
        j = t + tl.arange(0, SOURCES)
        there = j < n
        ex = xi[:, None] - tl.load(y + 2 * j, mask=there, other=0.0)[None, :]
        ey = yi[:, None] - tl.load(y + 2 * j + 1, mask=there, other=0.0)[None, :]
        s = ex * ex + ey * ey
        counted = there[None, :] & (i[:, None] != j[None, :])
        if ADAPTIVE:
            c = ui[:, None] * tl.load(u + j, mask=there, other=1.0)[None, :]
            w = tl.where(counted, 1.0 / (base + c * s), 0.0)
            f = c * w * w
        else:
            w = tl.where(counted, 1.0 / (base + s), 0.0)
            f = w * w
        value += w
        gx += f * ex
        gy += f * ey
    tl.store(sums + at, tl.sum(value, axis=1), mask=ok)
    tl.store(sums + n_points + at, tl.sum(gx, axis=1), mask=ok)
    tl.store(sums + 2 * n_points + at, tl.sum(gy, axis=1), mask=ok)
