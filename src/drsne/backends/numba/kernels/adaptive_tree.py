"""Barnes-Hut sums of the adaptive kernel, in one to three dimensions (docs/theory.md, eqs. 52 to 55).

The kernel of a pair is ``g = a b / (a b + s)``, where ``a`` is the scale of the target, ``b`` that of the source and
``s`` the squared distance. A scale is therefore treated as one more coordinate of a point: a node has the means of the
positions and scales of its points, and their second moments. In two dimensions, the field of all nodes that are far
enough from a leaf is expanded to third order around the centre and the mean scale of the leaf, and each point of the
leaf evaluates this expansion. In one and three dimensions, each point sums over the nodes itself. The nodes are those
of :mod:`drsne.backends.numba.kernels.tree`.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import inlined, kernel, pasted

N_SUMMED = 20  # number of rows in the summary of a node (see moments)
EXTENT = 14  # the row of the largest extent
N_BOUNDS = 8  # number of rows in the bounds of a node (see moments)
_FAR = 15  # number of rows in a list of far nodes
_LARGEST = 128  # largest number of points over which the summary of a node that is not a leaf is summed


@kernel
def moments(coordinates, scale, first, last, height, summed, bounds, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the summaries of nodes lo to hi into the columns of ``summed`` (20, m), except those of large nodes.

    Rows 0-3 are the mean position and the mean scale b. Rows 4-13 are the sums of the products of deviations from these
    means: xx, yy, zz, xy, xz and yz in rows 4-9, xb, yb and zb in rows 10-12, and bb in row 13. Row 14 is the largest
    extent of the box, and row 15 the extent of the scales. Rows 16-18 are the largest distances from the mean along
    each axis. Row 19 is the number of points. ``bounds`` (8, m) has the smallest coordinates and scale, then the
    largest. Large nodes are left to :func:`combine`, because sums over their points would take longer.
    """
    for v in range(lo, hi):
        begin, end = first[v], last[v]
        m = end - begin
        if m > _LARGEST and height[v] > 0:
            continue
        widest = 0.0
        for c in range(3):
            total = 0.0
            least, most = coordinates[c, begin], coordinates[c, begin]
            for i in range(begin, end):
                x = coordinates[c, i]
                total += x
                least, most = min(least, x), max(most, x)
            mean = total / m
            summed[c, v] = mean
            summed[16 + c, v] = max(most - mean, mean - least)
            widest = max(widest, most - least)
            bounds[c, v], bounds[4 + c, v] = least, most
        total = 0.0
        least, most = scale[begin], scale[begin]
        for i in range(begin, end):
            total += scale[i]
            least, most = min(least, scale[i]), max(most, scale[i])
        bounds[3, v], bounds[7, v] = least, most
        summed[3, v] = total / m
        summed[14, v] = widest
        summed[15, v] = most - least
        summed[19, v] = m
        cx, cy, cz, cb = summed[0, v], summed[1, v], summed[2, v], summed[3, v]
        xx, yy, zz, xy, xz, yz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        xb, yb, zb, bb = 0.0, 0.0, 0.0, 0.0
        for i in range(begin, end):
            x, y, z, b = coordinates[0, i] - cx, coordinates[1, i] - cy, coordinates[2, i] - cz, scale[i] - cb
            xx += x * x
            yy += y * y
            zz += z * z
            xy += x * y
            xz += x * z
            yz += y * z
            xb += x * b
            yb += y * b
            zb += z * b
            bb += b * b
        summed[4, v], summed[5, v], summed[6, v] = xx, yy, zz
        summed[7, v], summed[8, v], summed[9, v] = xy, xz, yz
        summed[10, v], summed[11, v], summed[12, v], summed[13, v] = xb, yb, zb, bb


@kernel
def combine(first, last, after, height, summed, bounds):  # type: ignore[no-untyped-def]
    """Write the summaries and bounds of large nodes from those of the nodes inside them."""
    mean = np.empty(4)
    for v in range(first.shape[0] - 1, -1, -1):
        n = last[v] - first[v]
        if n <= _LARGEST or height[v] == 0:
            continue
        for c in range(4):
            mean[c] = 0.0
            bounds[c, v], bounds[4 + c, v] = bounds[c, v + 1], bounds[4 + c, v + 1]
        u = v + 1
        while u < after[v]:
            for c in range(4):
                mean[c] += summed[19, u] * np.float64(summed[c, u]) / n
                bounds[c, v] = min(bounds[c, v], bounds[c, u])
                bounds[4 + c, v] = max(bounds[4 + c, v], bounds[4 + c, u])
            u = after[u]
        widest = 0.0
        for c in range(3):
            least, most = bounds[c, v], bounds[4 + c, v]
            summed[16 + c, v] = max(most - mean[c], mean[c] - least)
            widest = max(widest, most - least)
        for c in range(4):
            summed[c, v] = mean[c]
        summed[14, v] = widest
        summed[15, v] = bounds[7, v] - bounds[3, v]
        summed[19, v] = n
        xx, yy, zz, xy, xz, yz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        xb, yb, zb, bb = 0.0, 0.0, 0.0, 0.0
        u = v + 1
        while u < after[v]:
            m = np.float64(summed[19, u])
            x, y, z, b = summed[0, u] - mean[0], summed[1, u] - mean[1], summed[2, u] - mean[2], summed[3, u] - mean[3]
            xx += summed[4, u] + m * x * x
            yy += summed[5, u] + m * y * y
            zz += summed[6, u] + m * z * z
            xy += summed[7, u] + m * x * y
            xz += summed[8, u] + m * x * z
            yz += summed[9, u] + m * y * z
            xb += summed[10, u] + m * x * b
            yb += summed[11, u] + m * y * b
            zb += summed[12, u] + m * z * b
            bb += summed[13, u] + m * b * b
            u = after[u]
        summed[4, v], summed[5, v], summed[6, v] = xx, yy, zz
        summed[7, v], summed[8, v], summed[9, v] = xy, xz, yz
        summed[10, v], summed[11, v], summed[12, v], summed[13, v] = xb, yb, zb, bb


@pasted
def _visited_2d(leaf, coordinates, scale, nodes, summed, opening, spreading, far, near):  # type: ignore[no-untyped-def]
    """Write the nodes that are far enough from a leaf and the points of the others, and return both numbers.

    A node is far enough if ``(e + e')^2 + spreading a b ((Db/b)^2 + (Da/a)^2)`` is at most ``opening`` times ``a b +
    distance^2``, where e and e' are the extents of the node and the leaf, and Da and Db the extents of their scales
    (eq. 55).
    """
    first, last, after, height = nodes
    cx, cy, a = summed[0, leaf], summed[1, leaf], summed[3, leaf]
    own_extent = summed[14, leaf]
    own_spread = summed[15, leaf] * summed[15, leaf] / (a * a)
    n_far, n_near = 0, 0
    v = 0
    while v < first.shape[0]:
        dx, dy, b = cx - summed[0, v], cy - summed[1, v], summed[3, v]
        h = a * b
        extent = summed[14, v] + own_extent
        spread = summed[15, v] * summed[15, v] / (b * b) + own_spread
        if extent * extent + spreading * h * spread <= opening * (h + dx * dx + dy * dy):
            far[0, n_far], far[1, n_far], far[2, n_far] = dx, dy, b
            far[3, n_far], far[4, n_far], far[5, n_far] = summed[4, v], summed[5, v], summed[7, v]
            far[6, n_far], far[7, n_far], far[8, n_far] = summed[10, v], summed[11, v], summed[13, v]
            far[9, n_far] = summed[19, v]
            n_far += 1
            v = after[v]
        elif height[v] == 0:
            for j in range(first[v], last[v]):
                near[0, n_near], near[1, n_near], near[2, n_near] = coordinates[0, j], coordinates[1, j], scale[j]
                n_near += 1
            v = after[v]
        else:
            v += 1
    return n_far, n_near


@pasted
def _expansion_2d(far, n_far, a, one):  # type: ignore[no-untyped-def]
    """Return the coefficients of the field of far nodes around the centre of a leaf with the mean scale ``a``.

    They are named by the powers of x, y and the scale a.
    """
    zero, two = one - one, one + one
    three = two + one
    four, half, third, sixth = two + two, one / two, one / three, one / (three + three)
    f = fx = fy = fa = fxx = fxy = fyy = fxa = fya = faa = zero
    fxxx = fxxy = fxyy = fyyy = fxxa = fxya = fyya = fxaa = fyaa = faaa = zero
    for t in range(n_far):
        x, y, b = far[0, t], far[1, t], far[2, t]
        xx, yy, xy = far[3, t], far[4, t], far[5, t]
        xb, yb, bb, n = far[6, t], far[7, t], far[8, t], far[9, t]
        s, h = x * x + y * y, a * b
        m = one / (h + s)
        w, r = h * m, s * m  # the kernel, and one minus the kernel
        # Derivatives with respect to the squared distance s and the scales a and b.
        ws = -w * m
        wss = -two * ws * m
        wsss = -three * wss * m
        bm, am = b * m, a * m
        was = bm * m * (w - r)
        wbs = am * m * (w - r)
        wass = two * bm * m * m * (r - two * w)
        wbss = two * am * m * m * (r - two * w)
        wa = bm * r
        waa = -two * bm * wa
        waaa = -three * bm * waa
        waas = two * bm * bm * m * (two * r - w)
        wbbs = two * am * am * m * (two * r - w)
        wbb = -two * am * am * r
        wabs = m * m * (four * r * w - r * r - w * w)
        wabb = two * am * m * r * (w - two * r)
        # Second moments of the node.
        trace = xx + yy
        px, py = xx * x + xy * y, xy * x + yy * y
        q = px * x + py * y
        c = xb * x + yb * y
        f += n * w + ws * trace + two * wss * q - two * wbs * c + half * wbb * bb
        g = n * ws + wss * trace + two * wsss * q - two * wbss * c + half * wbbs * bb
        fx += two * (g * x + two * wss * px - wbs * xb)
        fy += two * (g * y + two * wss * py - wbs * yb)
        fa += n * wa + was * trace + two * wass * q - two * wabs * c + half * wabb * bb
        # Higher orders of the expansion in the positions and scales of the points of the leaf.
        fxx += n * (ws + two * wss * x * x)
        fyy += n * (ws + two * wss * y * y)
        fxy += n * four * wss * x * y
        fxa += n * two * was * x
        fya += n * two * was * y
        faa += n * half * waa
        g = two * n * wss
        k = four * third * n * wsss
        fxxx += x * (g + k * x * x)
        fyyy += y * (g + k * y * y)
        fxxy += y * (g + three * k * x * x)
        fxyy += x * (g + three * k * y * y)
        fxxa += n * (was + two * wass * x * x)
        fyya += n * (was + two * wass * y * y)
        fxya += n * four * wass * x * y
        fxaa += n * waas * x
        fyaa += n * waas * y
        faaa += n * sixth * waaa
    return (f, fx, fy, fa), (fxx, fxy, fyy, fxa, fya, faa), (fxxx, fxxy, fxyy, fyyy, fxxa, fxya, fyya, fxaa, fyaa, faaa)


@kernel
def forces_2d(coordinates, scale, order, nodes, leaves, summed, constants, out, potential, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the sums for the points of leaves lo to hi in two dimensions."""
    first, last, _, _ = nodes
    opening, spreading, one = constants
    two = one + one
    three, half = two + one, one / two
    far = np.empty((_FAR, first.shape[0]), coordinates.dtype)
    near = np.empty((3, scale.shape[0]), coordinates.dtype)
    total = 0.0
    for at in range(lo, hi):
        leaf = leaves[at]
        cx, cy, a = summed[0, leaf], summed[1, leaf], summed[3, leaf]
        n_far, n_near = _visited_2d(leaf, coordinates, scale, nodes, summed, opening, spreading, far, near)
        (f, fx, fy, fa), second, third = _expansion_2d(far, n_far, a, one)
        fxx, fxy, fyy, fxa, fya, faa = second
        fxxx, fxxy, fxyy, fyyy, fxxa, fxya, fyya, fxaa, fyaa, faaa = third
        for i in range(first[leaf], last[leaf]):
            xi, yi, ai = coordinates[0, i], coordinates[1, i], scale[i]
            x, y, z = xi - cx, yi - cy, ai - a
            value = (
                f
                + x * (fx + x * (fxx + x * fxxx + y * fxxy + z * fxxa) + z * (fxa + z * fxaa))
                + y * (fy + y * (fyy + y * fyyy + x * fxyy + z * fyya) + x * (fxy + z * fxya) + z * (fya + z * fyaa))
                + z * (fa + z * (faa + z * faaa))
            )
            gx = fx + two * x * (fxx + y * fxxy + z * fxxa) + three * x * x * fxxx
            gx += y * (fxy + y * fxyy + z * fxya) + z * (fxa + z * fxaa)
            gy = fy + two * y * (fyy + x * fxyy + z * fyya) + three * y * y * fyyy
            gy += x * (fxy + x * fxxy + z * fxya) + z * (fya + z * fyaa)
            gx *= -half
            gy *= -half
            for t in range(n_near):
                x, y = xi - near[0, t], yi - near[1, t]
                h = ai * near[2, t]
                m = one / (h + x * x + y * y)
                w = h * m
                value += w
                gx += w * m * x
                gy += w * m * y
            total += value - one  # without the point itself
            j = order[i]
            potential[j] = value - one
            out[j, 0] = gx
            out[j, 1] = gy
    partition[block] = total


@pasted
def _visited_any(leaf, scale, nodes, summed, constants, far, begin, end):  # type: ignore[no-untyped-def]
    """Write the nodes that are far enough from every point of a leaf, and the ranges of the points of the others.

    The extent of the node matters most at the smallest scale of the leaf, and the extent of the scales of the node
    matters most at the largest.
    """
    first, last, after, height = nodes
    opening, spreading, one = constants
    zero = one - one
    least, most = scale[first[leaf]], scale[first[leaf]]
    for i in range(first[leaf], last[leaf]):
        least, most = min(least, scale[i]), max(most, scale[i])
    n_far, n_near = 0, 0
    v = 0
    while v < first.shape[0]:
        distance = zero
        for c in range(3):
            gap = max(abs(summed[c, leaf] - summed[c, v]) - summed[16 + c, leaf], zero)
            distance += gap * gap
        extent, spread = summed[14, v] * summed[14, v], summed[15, v] / summed[3, v]
        h = most * summed[3, v]
        # This term is computed separately, because products of two such terms can overflow in single precision.
        share = spreading * spread * spread * (h / (h + distance))
        if extent <= (opening - share) * (least * summed[3, v] + distance):
            for c in range(14):
                far[c, n_far] = summed[c, v]
            far[14, n_far] = summed[19, v]
            n_far += 1
            v = after[v]
        elif height[v] == 0:
            if n_near > 0 and end[n_near - 1] == first[v]:
                end[n_near - 1] = last[v]
            else:
                begin[n_near], end[n_near] = first[v], last[v]
                n_near += 1
            v = after[v]
        else:
            v += 1
    return n_far, n_near


@inlined
def _write(out, x, y, z):  # type: ignore[no-untyped-def]
    """Write as many coordinates as the map has."""
    out[0] = x
    if out.shape[0] > 1:
        out[1] = y
    if out.shape[0] > 2:
        out[2] = z


@kernel
def forces_any(coordinates, scale, order, nodes, leaves, summed, constants, out, potential, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the same sums in one and three dimensions, where each point sums over the far nodes of its leaf itself."""
    first, last, _, _ = nodes
    one = constants[2]
    zero, two = one - one, one + one
    three, half = two + one, one / two
    far = np.empty((_FAR, first.shape[0]), coordinates.dtype)
    begin, end = np.empty(first.shape[0], np.int64), np.empty(first.shape[0], np.int64)
    total = 0.0
    for at in range(lo, hi):
        leaf = leaves[at]
        n_far, n_near = _visited_any(leaf, scale, nodes, summed, constants, far, begin, end)
        for i in range(first[leaf], last[leaf]):
            xi, yi, zi, a = coordinates[0, i], coordinates[1, i], coordinates[2, i], scale[i]
            value, gx, gy, gz = zero, zero, zero, zero
            for t in range(n_far):
                x, y, z, b = xi - far[0, t], yi - far[1, t], zi - far[2, t], far[3, t]
                xx, yy, zz = far[4, t], far[5, t], far[6, t]
                xy, xz, yz = far[7, t], far[8, t], far[9, t]
                xb, yb, zb, bb = far[10, t], far[11, t], far[12, t], far[13, t]
                n = far[14, t]
                s, h = x * x + y * y + z * z, a * b
                m = one / (h + s)
                w, r, am = h * m, s * m, a * m
                ws = -w * m
                wss = -two * ws * m
                wsss = -three * wss * m
                wbs = am * m * (w - r)
                wbss = two * am * m * m * (r - two * w)
                wbb = -two * am * am * r
                wbbs = two * am * am * m * (two * r - w)
                trace = xx + yy + zz
                px = xx * x + xy * y + xz * z
                py = xy * x + yy * y + yz * z
                pz = xz * x + yz * y + zz * z
                q = px * x + py * y + pz * z
                c = xb * x + yb * y + zb * z
                value += n * w + ws * trace + two * wss * q - two * wbs * c + half * wbb * bb
                g = n * ws + wss * trace + two * wsss * q - two * wbss * c + half * wbbs * bb
                k = two * wss
                gx -= g * x + k * px - wbs * xb
                gy -= g * y + k * py - wbs * yb
                gz -= g * z + k * pz - wbs * zb
            for p in range(n_near):
                some = slice(begin[p], end[p])
                nx, ny, nz, na = coordinates[0, some], coordinates[1, some], coordinates[2, some], scale[some]
                for t in range(end[p] - begin[p]):
                    x, y, z = xi - nx[t], yi - ny[t], zi - nz[t]
                    h = a * na[t]
                    m = one / (h + x * x + y * y + z * z)
                    w = h * m
                    value += w
                    gx += w * m * x
                    gy += w * m * y
                    gz += w * m * z
            total += value - one
            j = order[i]
            potential[j] = value - one
            _write(out[j], gx, gy, gz)
    partition[block] = total
