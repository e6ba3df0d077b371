"""All pairs of a map: the partition sum and the repulsive forces (docs/theory.md, eqs. 6 and 11).

With ``w_ij = 1 / (base + |y_i - y_j|^2)`` (``base`` is 1 plus the smoothing of distances), row i gets
``F_i = sum_j w_ij^2 (y_i - y_j)``, and the block's slot of ``partition`` gets its ``sum_ij w_ij``, i != j.
Coordinates come as ``(d, n)`` lanes of float32 or float64; tiles of lanes are summed in float64. The point itself is
left out, not subtracted: beside its 1 the far pairs of a wide map would vanish in single precision.
``one`` and ``base`` carry the lanes' type: a plain literal would widen the arithmetic. The adaptive kernel
(eq. 49) takes the inverse scales ``u_i = 1 / rho_i`` of the points as well.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TILE = 512


@kernel
def repulsion_1d(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi = lanes[0, i]
        fx = 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                x = lanes[0, start : start + m]
                s, sx = zero, zero
                for t in range(m):
                    dx = xi - x[t]
                    w = one / (base + dx * dx)
                    v = w * w
                    s += w
                    sx += v * dx
                total += s
                fx += sx
        forces[i, 0] = fx
    partition[block] = total


@kernel
def repulsion_2d(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi, yi = lanes[0, i], lanes[1, i]
        fx, fy = 0.0, 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                x = lanes[0, start : start + m]
                y = lanes[1, start : start + m]
                s, sx, sy = zero, zero, zero
                for t in range(m):
                    dx = xi - x[t]
                    dy = yi - y[t]
                    w = one / (base + dx * dx + dy * dy)
                    v = w * w
                    s += w
                    sx += v * dx
                    sy += v * dy
                total += s
                fx += sx
                fy += sy
        forces[i, 0] = fx
        forces[i, 1] = fy
    partition[block] = total


@kernel
def half_2d(lanes, one, base, forces, back, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """:func:`repulsion_2d` with each pair looked at once.

    A row meets the points after it; what they feel is gathered in ``back[block]``, (2, n), to be added to ``forces``.
    The rows of a block come from both ends, so that blocks have equally many pairs: ``lo`` and ``hi`` are of the first
    half, ``(n + 1) // 2`` rows.
    """
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    back[block] = zero
    for row in range(lo, hi):
        for side in range(2):
            i = n - 1 - row if side else row
            if not side or i > row:  # the middle row once
                xi, yi = lanes[0, i], lanes[1, i]
                fx, fy = 0.0, 0.0
                for start in range(i + 1, n, _TILE):
                    m = min(_TILE, n - start)
                    x = lanes[0, start : start + m]
                    y = lanes[1, start : start + m]
                    bx = back[block, 0, start : start + m]
                    by = back[block, 1, start : start + m]
                    s, sx, sy = zero, zero, zero
                    for t in range(m):
                        dx = xi - x[t]
                        dy = yi - y[t]
                        w = one / (base + dx * dx + dy * dy)
                        v = w * w
                        px = v * dx
                        py = v * dy
                        s += w
                        sx += px
                        sy += py
                        bx[t] -= px
                        by[t] -= py
                    total += s
                    fx += sx
                    fy += sy
                forces[i, 0] = fx
                forces[i, 1] = fy
    partition[block] = 2.0 * total


@kernel
def repulsion_3d(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi, yi, zi = lanes[0, i], lanes[1, i], lanes[2, i]
        fx, fy, fz = 0.0, 0.0, 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                x = lanes[0, start : start + m]
                y = lanes[1, start : start + m]
                z = lanes[2, start : start + m]
                s, sx, sy, sz = zero, zero, zero, zero
                for t in range(m):
                    dx = xi - x[t]
                    dy = yi - y[t]
                    dz = zi - z[t]
                    w = one / (base + dx * dx + dy * dy + dz * dz)
                    v = w * w
                    s += w
                    sx += v * dx
                    sy += v * dy
                    sz += v * dz
                total += s
                fx += sx
                fy += sy
                fz += sz
        forces[i, 0] = fx
        forces[i, 1] = fy
        forces[i, 2] = fz
    partition[block] = total


@kernel
def repulsion_any(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    d, n = lanes.shape
    zero = one - one
    total = 0.0
    w = np.empty(_TILE, lanes.dtype)
    for i in range(lo, hi):
        forces[i] = 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                w[:m] = base
                for c in range(d):
                    x = lanes[c, start : start + m]
                    for t in range(m):
                        dx = lanes[c, i] - x[t]
                        w[t] += dx * dx
                s = zero
                for t in range(m):
                    w[t] = one / w[t]
                    s += w[t]
                total += s
                for c in range(d):
                    x = lanes[c, start : start + m]
                    sx = zero
                    for t in range(m):
                        sx += w[t] * w[t] * (lanes[c, i] - x[t])
                    forces[i, c] += sx
    partition[block] = total


@kernel
def adaptive_half_2d(lanes, inverse, one, base, forces, back, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """:func:`half_2d` with the adaptive kernel ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)``, ``u = inverse`` (n,).

    Row i gets ``F_i = sum_j u_i u_j w_ij^2 (y_i - y_j)``.
    """
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    back[block] = zero
    for row in range(lo, hi):
        for side in range(2):
            i = n - 1 - row if side else row
            if not side or i > row:  # the middle row once
                xi, yi, ui = lanes[0, i], lanes[1, i], inverse[i]
                fx, fy = 0.0, 0.0
                for start in range(i + 1, n, _TILE):
                    m = min(_TILE, n - start)
                    x = lanes[0, start : start + m]
                    y = lanes[1, start : start + m]
                    u = inverse[start : start + m]
                    bx = back[block, 0, start : start + m]
                    by = back[block, 1, start : start + m]
                    s, sx, sy = zero, zero, zero
                    for t in range(m):
                        dx = xi - x[t]
                        dy = yi - y[t]
                        h = ui * u[t]
                        w = one / (base + h * (dx * dx + dy * dy))
                        v = w * w * h
                        px = v * dx
                        py = v * dy
                        s += w
                        sx += px
                        sy += py
                        bx[t] -= px
                        by[t] -= py
                    total += s
                    fx += sx
                    fy += sy
                forces[i, 0] = fx
                forces[i, 1] = fy
    partition[block] = 2.0 * total


@kernel
def adaptive_any(lanes, inverse, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """The same sums for any number of dimensions, with every pair looked at from both of its ends."""
    d, n = lanes.shape
    zero = one - one
    total = 0.0
    w = np.empty(_TILE, lanes.dtype)
    for i in range(lo, hi):
        forces[i] = 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                w[:m] = zero
                for c in range(d):
                    x = lanes[c, start : start + m]
                    for t in range(m):
                        dx = lanes[c, i] - x[t]
                        w[t] += dx * dx
                u = inverse[start : start + m]
                s = zero
                for t in range(m):
                    h = inverse[i] * u[t]
                    v = one / (base + h * w[t])
                    s += v
                    w[t] = v * v * h
                total += s
                for c in range(d):
                    x = lanes[c, start : start + m]
                    sx = zero
                    for t in range(m):
                        sx += w[t] * (lanes[c, i] - x[t])
                    forces[i, c] += sx
    partition[block] = total
