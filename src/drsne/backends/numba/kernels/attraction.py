"""Attractive forces and energy of the stored pairs of a map (docs/theory.md, eqs. 8, 11 and 13).

``A`` is the symmetric CSR matrix with entries ``(p_ij + p_ji) / 2``, and ``w_ij = 1 / (base + |y_i - y_j|^2)``.
``base`` has the type of the map, because a literal would raise the precision of the arithmetic. The adaptive kernel
(eq. 49) has ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)`` with the inverse scales ``u``. Points are fetched by unsigned
indices, because numba tests signed ones for negative values, and the kernel then takes up to 1.7 times as long.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TILE = 64


@kernel
def attraction_2d(Y, indptr, columns, A, base, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``forces_i = sum_j A_ij w_ij (y_i - y_j)``."""
    zero = base - base
    x, y = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    for i in range(lo, hi):
        xi, yi = Y[i, 0], Y[i, 1]
        fx, fy = 0.0, 0.0
        last = indptr[i + 1]
        for start in range(indptr[i], last, _TILE):
            m = min(_TILE, last - start)
            # The points are fetched first, so that the loop over the sums is vectorised.
            for t in range(m):
                j = np.uint32(columns[start + t])
                x[t], y[t] = Y[j, 0], Y[j, 1]
            a = A[start : start + m]
            sx, sy = zero, zero
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                g = a[t] / (base + dx * dx + dy * dy)
                sx += g * dx
                sy += g * dy
            fx += sx
            fy += sy
        forces[i, 0] = fx
        forces[i, 1] = fy


@kernel
def attraction_any(Y, indptr, columns, A, base, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`attraction_2d` for any number of dimensions."""
    d = Y.shape[1]
    for i in range(lo, hi):
        for c in range(d):
            forces[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            g = A[e] / s
            for c in range(d):
                forces[i, c] += g * (Y[i, c] - Y[j, c])


@kernel
def smoothed_attraction(Y, indptr, columns, A, base, delta, forces, mass, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the forces for log(q + smoothing). Each A_ij is damped by q_ij / (q_ij + smoothing).

    ``delta`` is the smoothing times the partition sum, so q / (q + smoothing) = w / (w + delta). ``mass[block]`` is the
    sum of the damped A_ij, which is a factor on the repulsion.
    """
    d = Y.shape[1]
    total = 0.0
    for i in range(lo, hi):
        for c in range(d):
            forces[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            w = 1.0 / s
            a = A[e] * w / (w + delta)
            total += a
            for c in range(d):
                forces[i, c] += a * w * (Y[i, c] - Y[j, c])
    mass[block] = total


@kernel
def smoothed_attraction_2d(Y, indptr, columns, A, base, delta, forces, mass, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`smoothed_attraction` in two dimensions, with w / (w + delta) = 1 / (1 + delta / w)."""
    x, y = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    total = 0.0
    for i in range(lo, hi):
        xi, yi = Y[i, 0], Y[i, 1]
        fx, fy = 0.0, 0.0
        last = indptr[i + 1]
        for start in range(indptr[i], last, _TILE):
            m = min(_TILE, last - start)
            for t in range(m):
                j = np.uint32(columns[start + t])
                x[t], y[t] = Y[j, 0], Y[j, 1]
            a = A[start : start + m]
            sx, sy, damped = 0.0, 0.0, 0.0
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                s = base + dx * dx + dy * dy
                u = a[t] / (1.0 + delta * s)
                g = u / s
                damped += u
                sx += g * dx
                sy += g * dy
            fx += sx
            fy += sy
            total += damped
        forces[i, 0] = fx
        forces[i, 1] = fy
    mass[block] = total


@kernel
def energy(Y, indptr, columns, A, base, delta, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``-sum_ij A_ij log(w_ij + delta)`` over the rows of the block."""
    d = Y.shape[1]
    total = 0.0
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            total += A[e] * np.log(s / (1.0 + delta * s))
    out[block] = total


@kernel
def adaptive_attraction_2d(Y, inverse, indptr, columns, A, base, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``forces_i = sum_j A_ij u_i u_j w_ij (y_i - y_j)`` with ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)``."""
    zero = base - base
    x, y, u = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    for i in range(lo, hi):
        xi, yi, ui = Y[i, 0], Y[i, 1], inverse[i]
        fx, fy = 0.0, 0.0
        last = indptr[i + 1]
        for start in range(indptr[i], last, _TILE):
            m = min(_TILE, last - start)
            for t in range(m):
                j = np.uint32(columns[start + t])
                x[t], y[t], u[t] = Y[j, 0], Y[j, 1], inverse[j]
            a = A[start : start + m]
            sx, sy = zero, zero
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                h = ui * u[t]
                g = a[t] * h / (base + h * (dx * dx + dy * dy))
                sx += g * dx
                sy += g * dy
            fx += sx
            fy += sy
        forces[i, 0] = fx
        forces[i, 1] = fy


@kernel
def adaptive_attraction(Y, inverse, indptr, columns, A, base, delta, forces, mass, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the same sums in any number of dimensions, and for log(q + smoothing).

    The smoothing is that of :func:`smoothed_attraction`.
    """
    d = Y.shape[1]
    total = 0.0
    for i in range(lo, hi):
        for c in range(d):
            forces[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base - base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            h = inverse[i] * inverse[j]
            w = 1.0 / (base + h * s)
            a = A[e] * w / (w + delta)
            total += a
            for c in range(d):
                forces[i, c] += a * w * h * (Y[i, c] - Y[j, c])
    mass[block] = total


@kernel
def adaptive_energy(Y, inverse, indptr, columns, A, base, delta, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`energy` with the adaptive kernel."""
    d = Y.shape[1]
    total = 0.0
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base - base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            s = base + inverse[i] * inverse[j] * s
            total += A[e] * np.log(s / (1.0 + delta * s))
    out[block] = total
