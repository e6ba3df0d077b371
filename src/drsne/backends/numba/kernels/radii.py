"""Radii of the points of a map, measured over stored pairs, and the resulting forces (docs/theory.md, eqs. 44 and 48).

The kernel is ``w_ij = 1 / (1 + |y_i - y_j|^2)``. ``one`` and ``pull`` have the type of the map.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TILE = 64


@kernel
def sums_2d(Y, indptr, columns, one, near, far, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``near_i = sum_j w_ij`` and ``far_i = sum_j w_ij |y_i - y_j|^2``."""
    zero = one - one
    x, y = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    for i in range(lo, hi):
        xi, yi = Y[i, 0], Y[i, 1]
        total, spread = 0.0, 0.0
        last = indptr[i + 1]
        for start in range(indptr[i], last, _TILE):
            m = min(_TILE, last - start)
            for t in range(m):
                j = columns[start + t]
                x[t], y[t] = Y[j, 0], Y[j, 1]
            sw, sd = zero, zero
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                s = dx * dx + dy * dy
                w = one / (one + s)
                sw += w
                sd += w * s  # m - S would lose all digits in a small map
            total += sw
            spread += sd
        near[i] = total
        far[i] = spread


@kernel
def sums_any(Y, indptr, columns, one, near, far, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`sums_2d` for any number of dimensions."""
    zero = one - one
    for i in range(lo, hi):
        total, spread = 0.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = zero
            for c in range(Y.shape[1]):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            w = one / (one + s)
            total += w
            spread += w * s
        near[i] = total
        far[i] = spread


@kernel
def forces_2d(Y, indptr, columns, one, pull, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Add ``sum_j w_ij^2 (pull_i + pull_j) (y_i - y_j)`` to ``forces_i``."""
    zero = one - one
    x, y, g = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    for i in range(lo, hi):
        xi, yi, gi = Y[i, 0], Y[i, 1], pull[i]
        fx, fy = 0.0, 0.0
        last = indptr[i + 1]
        for start in range(indptr[i], last, _TILE):
            m = min(_TILE, last - start)
            for t in range(m):
                j = columns[start + t]
                x[t], y[t], g[t] = Y[j, 0], Y[j, 1], pull[j]
            sx, sy = zero, zero
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                w = one / (one + dx * dx + dy * dy)
                f = w * w * (gi + g[t])
                sx += f * dx
                sy += f * dy
            fx += sx
            fy += sy
        forces[i, 0] += fx
        forces[i, 1] += fy


@kernel
def forces_any(Y, indptr, columns, one, pull, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Add the forces of :func:`forces_2d` for any number of dimensions."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = one
            for c in range(Y.shape[1]):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            f = (pull[i] + pull[j]) / (s * s)
            for c in range(Y.shape[1]):
                forces[i, c] += f * (Y[i, c] - Y[j, c])
