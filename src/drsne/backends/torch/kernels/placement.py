"""The repulsion of a map at new places as a Triton program."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["m"])  # otherwise the order of the sums could depend on the number of places
def field(y, a, x, b, mass, sums, m, n, part_size, D: tl.constexpr, TARGETS: tl.constexpr, SOURCES: tl.constexpr):
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
