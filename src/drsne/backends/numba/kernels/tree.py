"""Barnes-Hut sums on a tree of cells, in one to three dimensions (docs/theory.md, eqs. 35 and 36).

Points are sorted along a Z-order curve, and a node is a range of points with its centre, second moments and extent.
Nodes are in depth-first order: node ``v + 1`` is the first one inside node ``v``, and ``after[v]`` is the next one
outside of it. Maps with fewer dimensions have zeros for the missing coordinates. The points of a leaf share one walk
through the tree, which finds the nodes and points that they sum over.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import kernel, pasted


@kernel
def build(code, levels, d, leaf, first, last, after, height):  # type: ignore[no-untyped-def]
    """Write the nodes of the tree over sorted codes in depth-first order, and return their number.

    ``height`` is the number of levels below the cell of a node. A cell with only one child is skipped. If the arrays
    are too short, -1 is returned.
    """
    n = code.shape[0]
    size = first.shape[0]
    stack_lo, stack_hi = np.empty(64 << d, np.int64), np.empty(64 << d, np.int64)
    stack_height = np.empty(64 << d, np.int64)
    stack_lo[0], stack_hi[0], stack_height[0] = 0, n, levels
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        lo, hi, h = stack_lo[depth], stack_hi[depth], stack_height[depth]
        # Descend to the smallest cell that contains both the first and the last point.
        while h > 0 and (code[lo] >> ((h - 1) * d)) == (code[hi - 1] >> ((h - 1) * d)):
            h -= 1
        if count == size:
            return -1
        first[count], last[count] = lo, hi
        if hi - lo <= leaf:
            h = 0
        height[count] = h
        count += 1
        if h == 0:
            continue
        shift = (h - 1) * d
        # The last child is put on the stack first.
        end = hi
        while end > lo:
            child = code[end - 1] >> shift
            a, b = lo, end - 1
            while a < b:
                middle = (a + b) // 2
                if (code[middle] >> shift) < child:
                    a = middle + 1
                else:
                    b = middle
            stack_lo[depth], stack_hi[depth], stack_height[depth] = a, end, h - 1
            depth += 1
            end = a
    # The next node outside of a node is the first one that begins after it.
    for v in range(count - 1, -1, -1):
        w = v + 1
        while w < count and first[w] < last[v]:
            w = after[w]
        after[v] = w
    return count


@kernel
def moments(coordinates, first, last, centre, spread, box, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the centres, second moments (xx, yy, zz, xy, xz, yz) and boxes (low, high) of nodes lo to hi."""
    for v in range(lo, hi):
        m = last[v] - first[v]
        for c in range(3):
            total = 0.0
            least, most = coordinates[c, first[v]], coordinates[c, first[v]]
            for i in range(first[v], last[v]):
                x = coordinates[c, i]
                total += x
                least, most = min(least, x), max(most, x)
            centre[c, v] = total / m
            box[c, v], box[3 + c, v] = least, most
        cx, cy, cz = centre[0, v], centre[1, v], centre[2, v]
        xx, yy, zz, xy, xz, yz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first[v], last[v]):
            x, y, z = coordinates[0, i] - cx, coordinates[1, i] - cy, coordinates[2, i] - cz
            xx += x * x
            yy += y * y
            zz += z * z
            xy += x * y
            xz += x * z
            yz += y * z
        spread[0, v], spread[1, v], spread[2, v] = xx, yy, zz
        spread[3, v], spread[4, v], spread[5, v] = xy, xz, yz


@pasted
def _visited(leaf, nodes, moments, opening, one, far, begin, end):  # type: ignore[no-untyped-def]
    """Write the nodes that are far from a leaf, and the ranges of the points of the others, and return both numbers.

    A node is far if its extent is at most ``theta`` times the square root of 1 + distance^2, so that the expansion
    converges (``opening`` is theta^2).
    """
    first, last, after, height = nodes
    centre, spread, box = moments
    zero = one - one
    low0, low1, low2 = box[0, leaf], box[1, leaf], box[2, leaf]
    high0, high1, high2 = box[3, leaf], box[4, leaf], box[5, leaf]
    n_far, n_near = 0, 0
    v = 0
    while v < first.shape[0]:
        dx = max(low0 - centre[0, v], centre[0, v] - high0, zero)
        dy = max(low1 - centre[1, v], centre[1, v] - high1, zero)
        dz = max(low2 - centre[2, v], centre[2, v] - high2, zero)
        extent = max(box[3, v] - box[0, v], box[4, v] - box[1, v], box[5, v] - box[2, v])
        if extent * extent <= opening * (one + dx * dx + dy * dy + dz * dz) and last[v] - first[v] > 1:
            for c in range(3):
                far[c, n_far] = centre[c, v]
            for c in range(6):
                far[3 + c, n_far] = spread[c, v]
            far[9, n_far] = last[v] - first[v]
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


@kernel
def forces(coordinates, order, nodes, leaves, moments, opening, one, out, potential, partition, block, lo, hi):  # type: ignore[no-untyped-def]
    """For the points of leaves lo to hi, write the sums over far nodes and over the points of the other nodes.

    A far node contributes through its centre and its second moments (eq. 36).
    """
    first, last, _, _ = nodes
    zero, two = one - one, one + one
    four = two + two
    twelve = four + four + four
    n_nodes = first.shape[0]
    # Arrays with one column for each far node of the leaf, and arrays of the ranges of points that are visited one by
    # one.
    far = np.empty((10, n_nodes), coordinates.dtype)
    begin, end = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    total = 0.0
    for at in range(lo, hi):
        leaf = leaves[at]
        n_far, n_near = _visited(leaf, nodes, moments, opening, one, far, begin, end)
        for i in range(first[leaf], last[leaf]):
            xi, yi, zi = coordinates[0, i], coordinates[1, i], coordinates[2, i]
            value, fx, fy, fz = zero, zero, zero, zero
            for t in range(n_far):
                x, y, z = xi - far[0, t], yi - far[1, t], zi - far[2, t]
                xx, yy, zz = far[3, t], far[4, t], far[5, t]
                xy, xz, yz = far[6, t], far[7, t], far[8, t]
                w = one / (one + x * x + y * y + z * z)
                trace = xx + yy + zz
                cx = xx * x + xy * y + xz * z
                cy = xy * x + yy * y + yz * z
                cz = xz * x + yz * y + zz * z
                q = cx * x + cy * y + cz * z
                v2 = w * w
                value += w * far[9, t] + v2 * (four * w * q - trace)
                g = v2 * (far[9, t] + w * (twelve * w * q - two * trace))
                h = -four * w * v2
                fx += g * x + h * cx
                fy += g * y + h * cy
                fz += g * z + h * cz
            for r in range(n_near):
                some = slice(begin[r], end[r])
                px, py, pz = coordinates[0, some], coordinates[1, some], coordinates[2, some]
                for t in range(end[r] - begin[r]):
                    x, y, z = xi - px[t], yi - py[t], zi - pz[t]
                    w = one / (one + x * x + y * y + z * z)
                    g = w * w
                    value += w
                    fx += g * x
                    fy += g * y
                    fz += g * z
            total += value - one  # without the point itself
            j = order[i]
            potential[j] = value - one
            out[j, 0] = fx
            if out.shape[1] > 1:
                out[j, 1] = fy
            if out.shape[1] > 2:
                out[j, 2] = fz
    partition[block] = total
