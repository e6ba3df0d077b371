"""Sums over the stored pairs of a map as Triton programs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def attraction_2d(
    places,
    indptr,
    columns,
    values,
    base: tl.float64,
    forces,
    n,
    ADAPTIVE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write ``sum_j a_ij u_i u_j w_ij (y_i - y_j)`` for ROWS points.

    ``places`` has the two coordinates of each point and, if the kernel is ADAPTIVE, its inverse scale u and a number
    that is not used. They are read together, because the points j are spread over the memory.
    """
    WIDTH: tl.constexpr = 4 if ADAPTIVE else 2
    real = places.dtype.element_ty
    base = tl.full((), base, real)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = i < n
    start = tl.load(indptr + i, mask=ok, other=0)
    end = tl.load(indptr + i + 1, mask=ok, other=0)
    xi = tl.load(places + WIDTH * i, mask=ok, other=0.0)
    yi = tl.load(places + WIDTH * i + 1, mask=ok, other=0.0)
    gx = tl.zeros([ROWS, BLOCK], real)
    gy = tl.zeros([ROWS, BLOCK], real)
    if ADAPTIVE:
        ui = tl.load(places + WIDTH * i + 2, mask=ok, other=0.0)
    longest = tl.max(end - start)
    for t in range(0, longest, BLOCK):
        at = start[:, None] + t + tl.arange(0, BLOCK)[None, :]
        there = at < end[:, None]
        j = tl.load(columns + at, mask=there, other=0)
        a = tl.load(values + at, mask=there, other=0.0).to(real)
        of_j = places + WIDTH * j[:, :, None] + tl.arange(0, WIDTH)[None, None, :]
        of_j = tl.load(of_j, mask=there[:, :, None], other=0.0)
        if ADAPTIVE:
            x_and_u, y_and_none = tl.split(tl.reshape(of_j, (ROWS, BLOCK, 2, 2)))
            xj, uj = tl.split(x_and_u)
            yj, _ = tl.split(y_and_none)
        else:
            xj, yj = tl.split(of_j)
        ex, ey = xi[:, None] - xj, yi[:, None] - yj
        s = ex * ex + ey * ey
        if ADAPTIVE:
            c = ui[:, None] * uj
            f = a * c / (base + c * s)
        else:
            f = a / (base + s)
        gx += f * ex
        gy += f * ey
    tl.store(forces + 2 * i, tl.sum(gx, axis=1), mask=ok)
    tl.store(forces + 2 * i + 1, tl.sum(gy, axis=1), mask=ok)
