"""Radii of the points of a map, measured over neighbours, and the resulting forces (docs/theory.md, eqs. 15 and 21).

Lengths are ``l_ij = sqrt(|y_i - y_j|^2 + floor)``, and ``neighbors`` has the shape ``(n, k)``. ``floor``, ``one`` and
``least`` have the type of the map. Points that coincide have no direction and exert no force: their difference is zero,
and ``least``, the smallest positive number, only keeps the quotient finite.

Loops that sum many rows write nothing else. A loop that also writes to an array has two compiled versions, and which of
them runs, and so the order of the sum, depends on where the arrays are in memory.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel

_TILE = 64


@kernel
def radii_2d(Y, neighbors, floor, one, least, out, own, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``out_i = sum_j l_ij`` over the neighbours j, and its derivative ``own_i = sum_j (y_i - y_j) / l_ij``."""
    k = neighbors.shape[1]
    zero = one - one
    x, y = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    for i in range(lo, hi):
        xi, yi = Y[i, 0], Y[i, 1]
        total, px, py = 0.0, 0.0, 0.0
        for start in range(0, k, _TILE):
            m = min(_TILE, k - start)
            for t in range(m):
                j = np.uint32(neighbors[i, start + t])
                x[t], y[t] = Y[j, 0], Y[j, 1]
            length, sx, sy = zero, zero, zero
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                s = dx * dx + dy * dy + floor
                inverse = one / np.sqrt(max(s, least))
                length += s * inverse
                sx += dx * inverse
                sy += dy * inverse
            total += length
            px += sx
            py += sy
        out[i] = total
        own[i, 0] = px
        own[i, 1] = py


@kernel
def radii_any(Y, neighbors, floor, one, least, out, own, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`radii_2d` for any number of dimensions."""
    d = Y.shape[1]
    for i in range(lo, hi):
        total = 0.0
        for c in range(d):
            own[i, c] = 0.0
        for m in range(neighbors.shape[1]):
            j = neighbors[i, m]
            s = floor
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            inverse = one / np.sqrt(max(s, least))
            total += s * inverse
            for c in range(d):
                own[i, c] += inverse * (Y[i, c] - Y[j, c])
        out[i] = total


@kernel
def pull_back_2d(Y, offsets, listed_by, slope, floor, one, least, back, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``back_i = sum_l slope_l (y_i - y_l) / l_il`` over the points l that list i as a neighbour."""
    zero = one - one
    x, y, g = np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype), np.empty(_TILE, Y.dtype)
    for i in range(lo, hi):
        xi, yi = Y[i, 0], Y[i, 1]
        px, py = 0.0, 0.0
        last = offsets[i + 1]
        for start in range(offsets[i], last, _TILE):
            m = min(_TILE, last - start)
            for t in range(m):
                j = np.uint32(listed_by[start + t])
                x[t], y[t], g[t] = Y[j, 0], Y[j, 1], slope[j]
            sx, sy = zero, zero
            for t in range(m):
                dx = xi - x[t]
                dy = yi - y[t]
                s = dx * dx + dy * dy + floor
                inverse = g[t] / np.sqrt(max(s, least))
                sx += dx * inverse
                sy += dy * inverse
            px += sx
            py += sy
        back[i, 0] = px
        back[i, 1] = py


@kernel
def pull_back_any(Y, offsets, listed_by, slope, floor, one, least, back, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums of :func:`pull_back_2d` for any number of dimensions."""
    d = Y.shape[1]
    for i in range(lo, hi):
        for c in range(d):
            back[i, c] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            j = listed_by[e]
            s = floor
            for c in range(d):
                s += (Y[i, c] - Y[j, c]) * (Y[i, c] - Y[j, c])
            inverse = slope[j] / np.sqrt(max(s, least))
            for c in range(d):
                back[i, c] += inverse * (Y[i, c] - Y[j, c])


@kernel
def add_forces(slope, own, back, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Add ``slope_i own_i + back_i`` to ``forces_i``, with ``own`` and ``back`` (shares, n, d) summed over shares."""
    for i in range(lo, hi):
        for c in range(forces.shape[1]):
            pull, rest = 0.0, 0.0
            for p in range(own.shape[0]):
                pull += own[p, i, c]
                rest += back[p, i, c]
            forces[i, c] += slope[i] * pull + rest


@kernel
def smallest(radii, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the smallest of some radii."""
    least = radii[lo]
    for i in range(lo, hi):
        least = min(least, radii[i])
    out[block] = least


@kernel
def concentrate(radii, added, least, exponent, log, concentration, sums, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``c_i = (r_i / least)^-exponent`` and its logarithm for ``r_i = radii_i + added``, and the sums of c."""
    for i in range(lo, hi):
        c = max(least / max(radii[i] + added, least), 1e-300)  # a radius may be infinite
        log[i] = exponent * np.log(c)
        concentration[i] = c if exponent == 1.0 else np.exp(log[i])
    total = 0.0  # in a loop without writing, which is compiled in one version
    for i in range(lo, hi):
        total += concentration[i]
    sums[block, 0] = total


@kernel
def compare(target, log_mean, log, sums, block, lo, hi):  # type: ignore[no-untyped-def]
    """Replace logarithms by the difference of the two profiles; write the sums of the differences and their squares."""
    for i in range(lo, hi):
        log[i] = target[i] - (log[i] - log_mean)
    total, squares = 0.0, 0.0
    for i in range(lo, hi):
        total += log[i]
        squares += log[i] * log[i]
    sums[block, 0], sums[block, 1] = total, squares


@kernel
def slopes(radii, added, difference, concentration, shift, factor, out, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the derivative of the mean squared difference by each radius."""
    for i in range(lo, hi):
        out[i] = factor * (difference[i] - shift * concentration[i]) / max(radii[i] + added, 1e-300)
