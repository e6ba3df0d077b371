"""All pairs of a map: the partition sum and the repulsive forces (docs/theory.md, eqs. 6 and 11).

With ``w_ij = 1 / (base + |y_i - y_j|^2)`` (``base`` is 1 plus the smoothing of distances), row i gets
``F_i = sum_j w_ij^2 (y_i - y_j)``, and the block's slot of ``partition`` gets its ``sum_ij w_ij``, i != j.
Coordinates come as ``(d, n)`` lanes of float32 or float64; tiles of lanes are summed in float64.
``one`` and ``base`` carry the lanes' type: a plain literal would widen the arithmetic.
"""

from __future__ import annotations

import numpy as np

from drsne.kernels._compile import kernel

_TILE = 512


@kernel
def repulsion_1d(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi = lanes[0, i]
        row, fx = 0.0, 0.0
        for start in range(0, n, _TILE):
            m = min(_TILE, n - start)
            x = lanes[0, start : start + m]
            s, sx = zero, zero
            for t in range(m):
                dx = xi - x[t]
                w = one / (base + dx * dx)
                v = w * w
                s += w
                sx += v * dx
            row += s
            fx += sx
        forces[i, 0] = fx
        total += row - one / base
    partition[block] = total


@kernel
def repulsion_2d(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi, yi = lanes[0, i], lanes[1, i]
        row, fx, fy = 0.0, 0.0, 0.0
        for start in range(0, n, _TILE):
            m = min(_TILE, n - start)
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
            row += s
            fx += sx
            fy += sy
        forces[i, 0] = fx
        forces[i, 1] = fy
        total += row - one / base
    partition[block] = total


@kernel
def repulsion_3d(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    n = lanes.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi, yi, zi = lanes[0, i], lanes[1, i], lanes[2, i]
        row, fx, fy, fz = 0.0, 0.0, 0.0, 0.0
        for start in range(0, n, _TILE):
            m = min(_TILE, n - start)
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
            row += s
            fx += sx
            fy += sy
            fz += sz
        forces[i, 0] = fx
        forces[i, 1] = fy
        forces[i, 2] = fz
        total += row - one / base
    partition[block] = total


@kernel
def repulsion_any(lanes, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    d, n = lanes.shape
    total = 0.0
    w = np.empty(_TILE, lanes.dtype)
    for i in range(lo, hi):
        row = 0.0
        for c in range(d):
            forces[i, c] = 0.0
        for start in range(0, n, _TILE):
            m = min(_TILE, n - start)
            for t in range(m):
                w[t] = base
            for c in range(d):
                xi = lanes[c, i]
                x = lanes[c, start : start + m]
                for t in range(m):
                    dx = xi - x[t]
                    w[t] += dx * dx
            s = one - one
            for t in range(m):
                w[t] = one / w[t]
                s += w[t]
            row += s
            for c in range(d):
                xi = lanes[c, i]
                x = lanes[c, start : start + m]
                sx = one - one
                for t in range(m):
                    sx += w[t] * w[t] * (xi - x[t])
                forces[i, c] += sx
        total += row - one / base
    partition[block] = total
