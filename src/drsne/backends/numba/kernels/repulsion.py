"""The partition sum and the repulsive forces over all pairs of a map (docs/theory.md, eqs. 6 and 11).

With ``w_ij = 1 / (base + |y_i - y_j|^2)``, where ``base`` is 1 plus the smoothing of distances, row i of the forces is
``F_i = sum_j w_ij^2 (y_i - y_j)``, and the block's slot in ``partition`` holds the block's contribution to the sum of
``w_ij`` over i != j. The ``coordinates`` (d, n) have single or double precision, and the sums over tiles are added in
double precision. The point itself is skipped rather than subtracted afterwards: in single precision, its contribution
of 1 would swamp those of the far pairs in a large map. ``one`` and ``base`` have the type of the coordinates, because
literals would raise the precision of the arithmetic.

The adaptive kernel (eq. 49) is ``w_ij = 1 / (base + u_i u_j |y_i - y_j|^2)`` with the inverse scales
``u_i = 1 / rho_i``, and row i of its forces is ``F_i = sum_j u_i u_j w_ij^2 (y_i - y_j)``. For the fixed kernel,
``inverse`` is None. numba then leaves out the branches of the other kernel.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TILE = 512


@kernel
def repulsion_1d(coordinates, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the forces and the partition sums in one dimension."""
    n = coordinates.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi = coordinates[0, i]
        fx = 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                x = coordinates[0, start : start + m]
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
def repulsion_2d(coordinates, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the forces and the partition sums in two dimensions."""
    n = coordinates.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi, yi = coordinates[0, i], coordinates[1, i]
        fx, fy = 0.0, 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                x = coordinates[0, start : start + m]
                y = coordinates[1, start : start + m]
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
def half_2d(coordinates, inverse, one, base, forces, back, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`repulsion_2d`, but visit each pair only once.

    A row visits the points after it. The forces on these points are added to ``back[block]`` (2, n), which the caller
    adds to ``forces``. The rows of a block are taken from both ends, so that all blocks have about the same number of
    pairs. ``lo`` and ``hi`` count the rows of the first half, ``(n + 1) // 2``.
    """
    n = coordinates.shape[1]
    zero = one - one
    total = 0.0
    back[block] = zero
    for row in range(lo, hi):
        for side in range(2):
            i = n - 1 - row if side else row
            if not side or i > row:  # the middle row is visited once
                xi, yi = coordinates[0, i], coordinates[1, i]
                ui = zero if inverse is None else inverse[i]
                fx, fy = 0.0, 0.0
                for start in range(i + 1, n, _TILE):
                    m = min(_TILE, n - start)
                    x = coordinates[0, start : start + m]
                    y = coordinates[1, start : start + m]
                    u = y if inverse is None else inverse[start : start + m]
                    bx = back[block, 0, start : start + m]
                    by = back[block, 1, start : start + m]
                    s, sx, sy = zero, zero, zero
                    for t in range(m):
                        dx = xi - x[t]
                        dy = yi - y[t]
                        if inverse is None:
                            w = one / (base + dx * dx + dy * dy)
                            v = w * w
                        else:
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
def repulsion_3d(coordinates, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the forces and the partition sums in three dimensions."""
    n = coordinates.shape[1]
    zero = one - one
    total = 0.0
    for i in range(lo, hi):
        xi, yi, zi = coordinates[0, i], coordinates[1, i], coordinates[2, i]
        fx, fy, fz = 0.0, 0.0, 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                x = coordinates[0, start : start + m]
                y = coordinates[1, start : start + m]
                z = coordinates[2, start : start + m]
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
def repulsion_any(coordinates, inverse, one, base, forces, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the forces and the partition sums for any number of dimensions."""
    d, n = coordinates.shape
    zero = one - one
    total = 0.0
    w = np.empty(_TILE, coordinates.dtype)
    for i in range(lo, hi):
        forces[i] = 0.0
        for first, last in ((0, i), (i + 1, n)):
            for start in range(first, last, _TILE):
                m = min(_TILE, last - start)
                w[:m] = base if inverse is None else zero
                for c in range(d):
                    x = coordinates[c, start : start + m]
                    for t in range(m):
                        dx = coordinates[c, i] - x[t]
                        w[t] += dx * dx
                u = w if inverse is None else inverse[start : start + m]
                s = zero
                for t in range(m):
                    if inverse is None:
                        v = one / w[t]
                        w[t] = v * v
                    else:
                        h = inverse[i] * u[t]
                        v = one / (base + h * w[t])
                        w[t] = v * v * h
                    s += v
                total += s
                for c in range(d):
                    x = coordinates[c, start : start + m]
                    sx = zero
                    for t in range(m):
                        sx += w[t] * (coordinates[c, i] - x[t])
                    forces[i, c] += sx
    partition[block] = total
