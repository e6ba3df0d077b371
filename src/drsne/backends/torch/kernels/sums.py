"""Sums over pairs of points as Triton programs: neighbours, stored pairs, all pairs, and the field at new places."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr


@triton.jit(do_not_specialize=["n"])
def attraction_2d(
    places, indptr, columns, values, base: tl.float64, forces, n, ADAPTIVE: constexpr, ROWS: constexpr, BLOCK: constexpr
):
    """Write ``sum_j a_ij u_i u_j w_ij (y_i - y_j)`` for ROWS points.

    ``places`` has the two coordinates of each point and, if the kernel is ADAPTIVE, its inverse scale u and a number
    that is not used. They are read together, because the points j are spread over the memory.
    """
    WIDTH: constexpr = 4 if ADAPTIVE else 2
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


@triton.jit
def _places(y, j, there):
    """Return the two coordinates of the points ``j``, which are read together because the points are far apart."""
    return tl.split(tl.load(y + 2 * j[:, :, None] + tl.arange(0, 2)[None, None, :], mask=there[:, :, None], other=0.0))


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["lengths", "directions"])
def lengths_2d(y, neighbors, floor: tl.float64, lengths, directions, n, m, ROWS: constexpr, BLOCK: constexpr):
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
def pull_back_2d(y, offsets, listed_by, slope, floor: tl.float64, forces, n, ROWS: constexpr, BLOCK: constexpr):
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


@triton.jit(do_not_specialize=["n_points", "n"])
def repulsion_2d(
    y, u, points, base: tl.float64, sums, n_points, n, ADAPTIVE: constexpr, TARGETS: constexpr, SOURCES: constexpr
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


@triton.jit(do_not_specialize=["m"])  # otherwise the order of the sums could depend on the number of places
def field(y, a, x, b, mass, sums, m, n, part_size, D: constexpr, TARGETS: constexpr, SOURCES: constexpr):
    """Write ``sum_j m_j w(y, y_j)`` and ``sum_j m_j w^2 (y - y_j) / h`` for TARGETS places and a part of the points.

    ``y`` (m, D) and ``x`` (D, n) have double precision, and ``sums`` is (parts, 1 + D, m). All places and parts are
    summed in the same order, so a sum does not depend on the other places.
    """
    i = tl.program_id(0) * TARGETS + tl.arange(0, TARGETS)
    part = tl.program_id(1)
    ok = i < m
    y0 = tl.load(y + i * D, mask=ok, other=0.0)
    if D > 1:
        y1 = tl.load(y + i * D + 1, mask=ok, other=0.0)
    if D > 2:
        y2 = tl.load(y + i * D + 2, mask=ok, other=0.0)
    ai = tl.load(a + i, mask=ok, other=1.0)
    value = tl.zeros([TARGETS, SOURCES], tl.float64)
    g0 = tl.zeros([TARGETS, SOURCES], tl.float64)
    if D > 1:
        g1 = tl.zeros([TARGETS, SOURCES], tl.float64)
    if D > 2:
        g2 = tl.zeros([TARGETS, SOURCES], tl.float64)
    first = part * part_size
    for t in range(first, tl.minimum(first + part_size, n), SOURCES):
        j = t + tl.arange(0, SOURCES)
        there = j < n
        e0 = y0[:, None] - tl.load(x + j, mask=there, other=0.0)[None, :]
        s = e0 * e0
        if D > 1:
            e1 = y1[:, None] - tl.load(x + n + j, mask=there, other=0.0)[None, :]
            s += e1 * e1
        if D > 2:
            e2 = y2[:, None] - tl.load(x + 2 * n + j, mask=there, other=0.0)[None, :]
            s += e2 * e2
        h = ai[:, None] * tl.load(b + j, mask=there, other=1.0)[None, :]
        q = 1.0 / (h + s)
        w = tl.load(mass + j, mask=there, other=0.0)[None, :] * h * q
        value += w
        w *= q
        g0 += w * e0
        if D > 1:
            g1 += w * e1
        if D > 2:
            g2 += w * e2
    to = sums + part.to(tl.int64) * (1 + D) * m + i
    tl.store(to, tl.sum(value, axis=1), mask=ok)
    tl.store(to + m, tl.sum(g0, axis=1), mask=ok)
    if D > 1:
        tl.store(to + 2 * m, tl.sum(g1, axis=1), mask=ok)
    if D > 2:
        tl.store(to + 3 * m, tl.sum(g2, axis=1), mask=ok)
