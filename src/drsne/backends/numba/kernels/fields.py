"""The repulsion of a fixed map at any place, from a tree of cells or from all points (docs/theory.md, section 12).

:func:`field` is compiled into the kernels of :mod:`.placement`. ``_compile`` therefore names this file.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import inlined, kernel


@kernel
def summaries(coordinates, scale, mass, first, last, summed, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the summaries of nodes lo to hi of a tree, as :func:`.adaptive_tree.moments` does, for points with masses.

    Means and second moments are weighted by the masses, and row 19 is the total mass. Rows 16-18 are not written.
    """
    mean, low, high = np.empty(4), np.empty(4), np.empty(4)
    for v in range(lo, hi):
        total = 0.0
        for c in range(4):
            mean[c], low[c], high[c] = 0.0, np.inf, -np.inf
        for i in range(first[v], last[v]):
            total += mass[i]
            for c in range(4):
                x = coordinates[c, i] if c < 3 else scale[i]
                mean[c] += mass[i] * x
                low[c], high[c] = min(low[c], x), max(high[c], x)
        for c in range(4):
            mean[c] /= total
            summed[c, v] = mean[c]
        summed[14, v] = max(high[0] - low[0], high[1] - low[1], high[2] - low[2])
        summed[15, v] = high[3] - low[3]
        summed[19, v] = total
        for c in range(4, 14):
            summed[c, v] = 0.0
        for i in range(first[v], last[v]):
            x, y, z = coordinates[0, i] - mean[0], coordinates[1, i] - mean[1], coordinates[2, i] - mean[2]
            b, m = scale[i] - mean[3], mass[i]
            summed[4, v] += m * x * x
            summed[5, v] += m * y * y
            summed[6, v] += m * z * z
            summed[7, v] += m * x * y
            summed[8, v] += m * x * z
            summed[9, v] += m * y * z
            summed[10, v] += m * x * b
            summed[11, v] += m * y * b
            summed[12, v] += m * z * b
            summed[13, v] += m * b * b


@inlined
def _direct_field(y, a, places, scales, masses, gradient):  # type: ignore[no-untyped-def]
    """Return ``U = sum_j m_j w(y, y_j)`` over all points of the map, and write its gradient."""
    n, d = places.shape
    value = 0.0
    for c in range(d):
        gradient[c] = 0.0
    for j in range(n):
        s = 0.0
        for c in range(d):
            s += (y[c] - places[j, c]) ** 2
        h = a * scales[j]
        m = 1.0 / (h + s)
        value += masses[j] * h * m
        for c in range(d):
            gradient[c] -= 2.0 * masses[j] * h * m * m * (y[c] - places[j, c])
    return value


@inlined
def _tree_field(y, a, coordinates, scale, mass, nodes, summed, constants, gradient):  # type: ignore[no-untyped-def]
    """Return the same sum over a tree of cells with second moments (eqs. 52 to 55)."""
    first, last, after, height = nodes
    opening, spreading = constants
    d = y.shape[0]
    xi = y[0]
    yi = y[1] if d > 1 else 0.0
    zi = y[2] if d > 2 else 0.0
    value, gx, gy, gz = 0.0, 0.0, 0.0, 0.0
    v = 0
    while v < first.shape[0]:
        x, y_, z, b = xi - summed[0, v], yi - summed[1, v], zi - summed[2, v], summed[3, v]
        s = x * x + y_ * y_ + z * z
        h = a * b
        spread = summed[15, v] / b
        if summed[14, v] * summed[14, v] + spreading * h * spread * spread <= opening * (h + s):
            n = summed[19, v]
            m = 1.0 / (h + s)
            w, r, am = h * m, s * m, a * m
            ws = -w * m
            wss = -2.0 * ws * m
            wsss = -3.0 * wss * m
            wbs = am * m * (w - r)
            wbss = 2.0 * am * m * m * (r - 2.0 * w)
            wbb = -2.0 * am * am * r
            wbbs = 2.0 * am * am * m * (2.0 * r - w)
            xx, yy, zz = summed[4, v], summed[5, v], summed[6, v]
            xy, xz, yz = summed[7, v], summed[8, v], summed[9, v]
            xb, yb, zb, bb = summed[10, v], summed[11, v], summed[12, v], summed[13, v]
            trace = xx + yy + zz
            px = xx * x + xy * y_ + xz * z
            py = xy * x + yy * y_ + yz * z
            pz = xz * x + yz * y_ + zz * z
            q = px * x + py * y_ + pz * z
            c = xb * x + yb * y_ + zb * z
            value += n * w + ws * trace + 2.0 * wss * q - 2.0 * wbs * c + 0.5 * wbb * bb
            g = n * ws + wss * trace + 2.0 * wsss * q - 2.0 * wbss * c + 0.5 * wbbs * bb
            gx += g * x + 2.0 * wss * px - wbs * xb
            gy += g * y_ + 2.0 * wss * py - wbs * yb
            gz += g * z + 2.0 * wss * pz - wbs * zb
            v = after[v]
        elif height[v] == 0:
            for j in range(first[v], last[v]):
                x, y_, z = xi - coordinates[0, j], yi - coordinates[1, j], zi - coordinates[2, j]
                h = a * scale[j]
                m = 1.0 / (h + x * x + y_ * y_ + z * z)
                w = mass[j] * h * m
                value += w
                gx -= w * m * x
                gy -= w * m * y_
                gz -= w * m * z
            v = after[v]
        else:
            v += 1
    gradient[0] = 2.0 * gx
    if d > 1:
        gradient[1] = 2.0 * gy
    if d > 2:
        gradient[2] = 2.0 * gz
    return value


@inlined
def field(y, a, fixed, tree, stretch, skipped, scaled, gradient):  # type: ignore[no-untyped-def]
    """Return the sum over the map without the point ``skipped``, and write its gradient.

    ``stretch`` is the square root of 1 + distance smoothing. If no point is skipped, ``skipped`` is -1.
    """
    _, shrunk, scales, masses = fixed
    coordinates, scale, mass, nodes, summed, constants = tree
    d = y.shape[0]
    for c in range(d):
        scaled[c] = y[c] / stretch
    if d > 3:
        value = _direct_field(scaled, a, shrunk, scales, masses, gradient)
    else:
        value = _tree_field(scaled, a, coordinates, scale, mass, nodes, summed, constants, gradient)
    if skipped >= 0:
        s = 0.0
        for c in range(d):
            s += (scaled[c] - shrunk[skipped, c]) ** 2
        h = a * scales[skipped]
        m = 1.0 / (h + s)
        value -= masses[skipped] * h * m
        for c in range(d):
            gradient[c] += 2.0 * masses[skipped] * h * m * m * (scaled[c] - shrunk[skipped, c])
    base = stretch * stretch
    for c in range(d):
        gradient[c] /= base * stretch
    return value / base
