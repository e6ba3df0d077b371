"""Sums over the stored pairs of a map as Triton programs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def attraction_2d(
    y, u, indptr, columns, values, base, forces, n, ADAPTIVE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Write ``sum_j a_ij u_i u_j w_ij (y_i - y_j)`` for ROWS points."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = i < n
    start = tl.load(indptr + i, mask=ok, other=0)
    end = tl.load(indptr + i + 1, mask=ok, other=0)
    xi = tl.load(y + 2 * i, mask=ok, other=0.0)
    yi = tl.load(y + 2 * i + 1, mask=ok, other=0.0)
    gx = tl.zeros([ROWS, BLOCK], tl.float32)
    gy = tl.zeros([ROWS, BLOCK], tl.float32)
    if ADAPTIVE:
        ui = tl.load(u + i, mask=ok, other=0.0)
    longest = tl.max(end - start)
    for t in range(0, longest, BLOCK):
        at = start[:, None] + t + tl.arange(0, BLOCK)[None, :]
        there = at < end[:, None]
        j = tl.load(columns + at, mask=there, other=0)
        a = tl.load(values + at, mask=there, other=0.0).to(tl.float32)
        ex = xi[:, None] - tl.load(y + 2 * j, mask=there, other=0.0)
        ey = yi[:, None] - tl.load(y + 2 * j + 1, mask=there, other=0.0)
        s = ex * ex + ey * ey
        if ADAPTIVE:
            c = ui[:, None] * tl.load(u + j, mask=there, other=0.0)
            f = a * c / (base + c * s)
        else:
            f = a / (base + s)
        gx += f * ex
        gy += f * ey
    tl.store(forces + 2 * i, tl.sum(gx, axis=1), mask=ok)
    tl.store(forces + 2 * i + 1, tl.sum(gy, axis=1), mask=ok)
