"""Sums over the stored pairs of a map: attraction and energy, and the radii of den-SNE (docs/theory.md).

``A`` is the symmetric CSR matrix with entries ``(p_ij + p_ji) / 2``, and ``w_ij = 1 / (base + |y_i - y_j|^2)`` (eqs. 8,
11 and 13). ``base``, ``one`` and ``pull`` have the type of the map, because literals would raise the precision of the
arithmetic. Points are fetched by unsigned indices, because numba tests signed ones for negative values, and the kernel
then takes up to 1.7 times as long.

The adaptive kernel (eq. 49) has ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)`` with the inverse scales ``u``. For the
fixed kernel, ``inverse`` is None. numba then leaves out the branches of the other kernel.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TILE = 64


@kernel
def attraction(Y, inverse, indptr, columns, A, base, delta, forces, mass, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``forces_i = sum_j A_ij u_i u_j w_ij (y_i - y_j)``, or the forces for log(q + smoothing).

    In these, each A_ij is damped by q_ij / (q_ij + smoothing) = w / (w + delta), where ``delta`` is the smoothing times
    the partition sum, or None. ``mass[block]`` is the sum of the damped A_ij, which is a factor on the repulsion.
    """
    d = Y.shape[1]
    total = 0.0
    for i in range(lo, hi):
        for c in range(d):
            forces[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base if inverse is None else base - base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            if delta is None:
                g = A[e] / s
            elif inverse is None:
                w = 1.0 / s
                a = A[e] * w / (w + delta)
                total += a
                g = a * w
            else:
                h = inverse[i] * inverse[j]
                w = 1.0 / (base + h * s)
                a = A[e] * w / (w + delta)
                total += a
                g = a * w * h
            for c in range(d):
                forces[i, c] += g * (Y[i, c] - Y[j, c])
    mass[block] = total


@kernel
def attraction_2d(Y, inverse, indptr, columns, A, base, delta, forces, mass, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`attraction` in two dimensions, except the smoothed sums of the adaptive kernel.

    In the smoothed sums, w / (w + delta) is computed as 1 / (1 + delta / w).
    """
    zero = base - base
    rest = zero if delta is None else 0.0
    x, y, u = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    total = 0.0
    for i in range(lo, hi):
        xi, yi, ui = Y[i, 0], Y[i, 1], zero if inverse is None else inverse[i]
        fx, fy = 0.0, 0.0
        last = indptr[i + 1]
        for start in range(indptr[i], last, _TILE):
            m = min(_TILE, last - start)
            # The points are fetched first, so that the loop over the sums is vectorised.
            for t in range(m):
                j = np.uint32(columns[start + t])
                x[t], y[t] = Y[j, 0], Y[j, 1]
                if inverse is not None:
                    u[t] = inverse[j]
            a = A[start : start + m]
            sx, sy, damped = rest, rest, rest
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                if inverse is not None:
                    h = ui * u[t]
                    g = a[t] * h / (base + h * (dx * dx + dy * dy))
                elif delta is None:
                    g = a[t] / (base + dx * dx + dy * dy)
                else:
                    s = base + dx * dx + dy * dy
                    p = a[t] / (1.0 + delta * s)
                    g = p / s
                    damped += p
                sx += g * dx
                sy += g * dy
            fx += sx
            fy += sy
            if delta is not None:
                total += damped
        forces[i, 0] = fx
        forces[i, 1] = fy
    mass[block] = total


@kernel
def energy(Y, inverse, indptr, columns, A, base, delta, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``-sum_ij A_ij log(w_ij + delta)`` over the rows of the block."""
    d = Y.shape[1]
    total = 0.0
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = base if inverse is None else base - base
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            if inverse is not None:
                s = base + inverse[i] * inverse[j] * s
            total += A[e] * np.log(s / (1.0 + delta * s))
    out[block] = total


@kernel
def kernel_sums_2d(Y, indptr, columns, one, near, far, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``near_i = sum_j w_ij`` and ``far_i = sum_j w_ij |y_i - y_j|^2`` with ``base`` = 1 (eq. 44)."""
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
def kernel_sums(Y, indptr, columns, one, near, far, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`kernel_sums_2d` for any number of dimensions."""
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
def kernel_forces_2d(Y, indptr, columns, one, pull, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Add ``sum_j w_ij^2 (pull_i + pull_j) (y_i - y_j)`` to ``forces_i`` (eq. 48)."""
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
def kernel_forces(Y, indptr, columns, one, pull, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Add the forces of :func:`kernel_forces_2d` for any number of dimensions."""
    for i in range(lo, hi):
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            s = one
            for c in range(Y.shape[1]):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            f = (pull[i] + pull[j]) / (s * s)
            for c in range(Y.shape[1]):
                forces[i, c] += f * (Y[i, c] - Y[j, c])
