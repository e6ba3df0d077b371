"""Sums over the cells of a map as Triton programs. The same in plain PyTorch is in ``drsne.backends.torch.tree``."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language import constexpr

from drsne.backends.torch.kernels import expansion

vars(expansion)["tl"] = tl  # the interpreter of Triton looks for it where functions are defined
_coefficients, _expanded = triton.jit(expansion.coefficients), triton.jit(expansion.expanded)

if triton.knobs.runtime.interpret or torch.version.hip is not None:

    @triton.jit
    def reciprocal(x):
        """Return 1 / x."""
        return 1.0 / x

else:

    @triton.jit
    def reciprocal(x):
        """Return 1 / x. In single precision, it is for normal numbers and has an error of one unit in the last place.

        A division takes eight instructions, because it also has to be right for very large and very small numbers.
        """
        if x.dtype == tl.float32:
            found = tl.inline_asm_elementwise(
                "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
            )
        else:
            found = 1.0 / x
        return found


@triton.jit
def _range(values, there):
    """Return the smallest and the largest of the values in each row that are there."""
    return tl.min(tl.where(there, values, 3.0e38), axis=1), tl.max(tl.where(there, values, -3.0e38), axis=1)


@triton.jit
def _store_node(
    summed, bounds, v, ok, cx, cy, cb, xx, yy, xy, xb, yb, bb, count, lx, hx, ly, hy, lb, hb, WIDTH: constexpr
):
    """Write the summaries and the bounds of nodes, and return their scales and extents."""
    filled = count > 0.0
    scale = tl.where(filled, cb, 1.0)
    extent = tl.where(filled, tl.maximum(hx - lx, hy - ly), 0.0)
    out = summed + v * WIDTH
    tl.store(out + 0, cx, mask=ok)
    tl.store(out + 1, cy, mask=ok)
    tl.store(out + 2, scale, mask=ok)
    tl.store(out + 3, xx, mask=ok)
    tl.store(out + 4, yy, mask=ok)
    tl.store(out + 5, xy, mask=ok)
    tl.store(out + 6, xb, mask=ok)
    tl.store(out + 7, yb, mask=ok)
    tl.store(out + 8, bb, mask=ok)
    tl.store(out + 9, count, mask=ok)
    tl.store(out + 10, extent, mask=ok)
    tl.store(out + 11, tl.where(filled, hb - lb, 0.0), mask=ok)
    to = bounds + v * 8
    tl.store(to + 0, lx, mask=ok)
    tl.store(to + 1, hx, mask=ok)
    tl.store(to + 2, ly, mask=ok)
    tl.store(to + 3, hy, mask=ok)
    tl.store(to + 4, lb, mask=ok)
    tl.store(to + 5, hb, mask=ok)
    return scale, extent


@triton.jit(do_not_specialize=["n", "n_all", "n_leaves", "n_above"])
def leaf_moments(
    places,
    scales,
    masses,
    order,
    first,
    count_of,
    points,
    summed,
    bounds,
    sizes,
    n,
    n_all,
    n_leaves,
    n_above,
    D: constexpr,
    SCALED: constexpr,
    WEIGHTED: constexpr,
    LEAF: constexpr,
    NODES: constexpr,
    WIDTH: constexpr,
):
    """Write the summaries of NODES leaves or parts of leaves, and x, y, scale and mass of their points leaf by leaf.

    Parts of leaves are numbered after ``n_above`` other nodes. ``places`` (n, D), ``scales`` and ``masses`` are in the
    order of the points of the map. ``sizes`` (2, n_all) are the extents and the scales of leaves and parts.
    """
    real = points.dtype.element_ty
    leaf = tl.program_id(0) * NODES + tl.arange(0, NODES)
    ok = leaf < n_all
    lane = tl.arange(0, LEAF)[None, :]
    at = tl.load(first + leaf, mask=ok, other=0)[:, None] + lane
    there = lane < tl.load(count_of + leaf, mask=ok, other=0)[:, None]
    v = tl.where(leaf < n_leaves, leaf, leaf + n_above)
    point = tl.load(order + at, mask=there, other=0)
    px = tl.load(places + point * D, mask=there, other=0.0).to(real)
    py = tl.zeros([NODES, LEAF], real)
    if D == 2:
        py = tl.load(places + point * D + 1, mask=there, other=0.0).to(real)
    m = there.to(real)
    pb = m
    if SCALED:
        pb = tl.load(scales + point, mask=there, other=0.0).to(real)
    if WEIGHTED:
        m = tl.load(masses + point, mask=there, other=0.0).to(real)
    written = there & (leaf < n_leaves)[:, None]
    tl.store(points + at, px, mask=written)
    tl.store(points + n + at, py, mask=written)
    tl.store(points + 2 * n + at, pb, mask=written)
    tl.store(points + 3 * n + at, m, mask=written)
    count = tl.sum(m, axis=1)
    per = 1.0 / tl.where(count > 0.0, count, 1.0)
    cx, cy, cb = tl.sum(m * px, axis=1) * per, tl.sum(m * py, axis=1) * per, tl.sum(m * pb, axis=1) * per
    dx, dy, db = px - cx[:, None], py - cy[:, None], pb - cb[:, None]
    lx, hx = _range(px, there)
    ly, hy = _range(py, there)
    lb, hb = _range(pb, there)
    xx, yy, xy = tl.sum(m * dx * dx, axis=1), tl.sum(m * dy * dy, axis=1), tl.sum(m * dx * dy, axis=1)
    xb, yb, bb = tl.sum(m * dx * db, axis=1), tl.sum(m * dy * db, axis=1), tl.sum(m * db * db, axis=1)
    scale, extent = _store_node(
        summed, bounds, v, ok, cx, cy, cb, xx, yy, xy, xb, yb, bb, count, lx, hx, ly, hy, lb, hb, WIDTH
    )
    tl.store(sizes + leaf, extent, mask=ok)
    tl.store(sizes + n_all + leaf, scale, mask=ok)


@triton.jit(do_not_specialize=["first_child", "n_children", "first", "n_nodes"])
def parent_moments(
    summed, bounds, first_child, n_children, first, n_nodes, FAN: constexpr, NODES: constexpr, WIDTH: constexpr
):
    """Write the summaries of NODES nodes of a level from those of the level below."""
    r = tl.program_id(0) * NODES + tl.arange(0, NODES)
    ok = r < n_nodes
    c = r[:, None] * FAN + tl.arange(0, FAN)[None, :]
    there = c < n_children
    c += first_child
    s = summed + c * WIDTH
    m = tl.load(s + 9, mask=there, other=0.0)
    count = tl.sum(m, axis=1)
    share = m / tl.where(count > 0.0, count, 1.0)[:, None]
    px = tl.load(s + 0, mask=there, other=0.0)
    py = tl.load(s + 1, mask=there, other=0.0)
    pb = tl.load(s + 2, mask=there, other=0.0)
    cx, cy, cb = tl.sum(share * px, axis=1), tl.sum(share * py, axis=1), tl.sum(share * pb, axis=1)
    dx, dy, db = px - cx[:, None], py - cy[:, None], pb - cb[:, None]
    xx = tl.sum(tl.load(s + 3, mask=there, other=0.0) + m * dx * dx, axis=1)
    yy = tl.sum(tl.load(s + 4, mask=there, other=0.0) + m * dy * dy, axis=1)
    xy = tl.sum(tl.load(s + 5, mask=there, other=0.0) + m * dx * dy, axis=1)
    xb = tl.sum(tl.load(s + 6, mask=there, other=0.0) + m * dx * db, axis=1)
    yb = tl.sum(tl.load(s + 7, mask=there, other=0.0) + m * dy * db, axis=1)
    bb = tl.sum(tl.load(s + 8, mask=there, other=0.0) + m * db * db, axis=1)
    f = bounds + c * 8
    lx = tl.min(tl.load(f + 0, mask=there, other=3.0e38), axis=1)
    hx = tl.max(tl.load(f + 1, mask=there, other=-3.0e38), axis=1)
    ly = tl.min(tl.load(f + 2, mask=there, other=3.0e38), axis=1)
    hy = tl.max(tl.load(f + 3, mask=there, other=-3.0e38), axis=1)
    lb = tl.min(tl.load(f + 4, mask=there, other=3.0e38), axis=1)
    hb = tl.max(tl.load(f + 5, mask=there, other=-3.0e38), axis=1)
    _store_node(summed, bounds, first + r, ok, cx, cy, cb, xx, yy, xy, xb, yb, bb, count, lx, hx, ly, hy, lb, hb, WIDTH)


@triton.jit(do_not_specialize_on_alignment=["x", "y", "b", "mass"])
def near_sums(x, y, b, mass, first, own, leaves, starts, ends, near_cells, partial, LEAF: constexpr):
    """Write the sums for the points of a leaf over the points of some near leaves."""
    real = x.dtype.element_ty
    piece = tl.program_id(0)
    lane = tl.arange(0, LEAF)
    leaf = tl.load(leaves + piece)
    i = tl.load(first + leaf) + lane
    mine = lane < tl.load(own + leaf)
    xi = tl.load(x + i, mask=mine, other=0.0)
    yi = tl.load(y + i, mask=mine, other=0.0)
    ai = tl.load(b + i, mask=mine, other=1.0)
    vv = tl.zeros([LEAF, LEAF], real)
    vx = tl.zeros([LEAF, LEAF], real)
    vy = tl.zeros([LEAF, LEAF], real)
    for t in range(tl.load(starts + piece), tl.load(ends + piece)):
        other = tl.load(near_cells + t)
        j = tl.load(first + other) + lane
        there = lane < tl.load(own + other)
        xj = tl.load(x + j, mask=there, other=0.0)
        yj = tl.load(y + j, mask=there, other=0.0)
        bj = tl.load(b + j, mask=there, other=1.0)
        mj = tl.load(mass + j, mask=there, other=0.0)
        ex = xi[:, None] - xj[None, :]
        ey = yi[:, None] - yj[None, :]
        h = ai[:, None] * bj[None, :]
        m = reciprocal(h + ex * ex + ey * ey)
        w = h * m * mj[None, :]
        vv += w
        wm = w * m
        vx += wm * ex
        vy += wm * ey
    at = partial + piece.to(tl.int64) * 3 * LEAF + lane
    tl.store(at, tl.sum(vv, axis=1))
    tl.store(at + LEAF, tl.sum(vx, axis=1))
    tl.store(at + 2 * LEAF, tl.sum(vy, axis=1))


@triton.jit
def _far_field(summed, cells, start, end, cx, cy, a, BLOCK: constexpr, WIDTH: constexpr):
    """Return the coefficients of the field of far nodes around the centre of a leaf with the scale a."""
    zero = tl.zeros([BLOCK], summed.dtype.element_ty)
    f, fx, fy, fa = zero, zero, zero, zero
    fxx, fxy, fyy, fxa, fya, faa = zero, zero, zero, zero, zero, zero
    fxxx, fxxy, fxyy, fyyy = zero, zero, zero, zero
    fxxa, fxya, fyya, fxaa, fyaa, faaa = zero, zero, zero, zero, zero, zero
    for t in range(start, end, BLOCK):
        at = t + tl.arange(0, BLOCK)
        there = at < end
        row = summed + tl.load(cells + at, mask=there, other=0).to(tl.int64) * WIDTH
        px = cx - tl.load(row, mask=there, other=0.0)
        py = cy - tl.load(row + 1, mask=there, other=0.0)
        pb = tl.load(row + 2, mask=there, other=1.0)
        xx = tl.load(row + 3, mask=there, other=0.0)
        yy = tl.load(row + 4, mask=there, other=0.0)
        xy = tl.load(row + 5, mask=there, other=0.0)
        xb = tl.load(row + 6, mask=there, other=0.0)
        yb = tl.load(row + 7, mask=there, other=0.0)
        bb = tl.load(row + 8, mask=there, other=0.0)
        n = tl.load(row + 9, mask=there, other=0.0)
        c = _coefficients(px, py, a, pb, xx, yy, xy, xb, yb, bb, n)
        f += c[0]
        fx += c[1]
        fy += c[2]
        fa += c[3]
        fxx += c[4]
        fxy += c[5]
        fyy += c[6]
        fxa += c[7]
        fya += c[8]
        faa += c[9]
        fxxx += c[10]
        fxxy += c[11]
        fxyy += c[12]
        fyyy += c[13]
        fxxa += c[14]
        fxya += c[15]
        fyya += c[16]
        fxaa += c[17]
        fyaa += c[18]
        faaa += n * 0.16666666666666666 * c[19]
    f, fx, fy, fa = tl.sum(f), tl.sum(fx), tl.sum(fy), tl.sum(fa)
    fxx, fxy, fyy = tl.sum(fxx), tl.sum(fxy), tl.sum(fyy)
    fxa, fya, faa = tl.sum(fxa), tl.sum(fya), tl.sum(faa)
    fxxx, fxxy, fxyy, fyyy = tl.sum(fxxx), tl.sum(fxxy), tl.sum(fxyy), tl.sum(fyyy)
    fxxa, fxya, fyya = tl.sum(fxxa), tl.sum(fxya), tl.sum(fyya)
    fxaa, fyaa, faaa = tl.sum(fxaa), tl.sum(fyaa), tl.sum(faaa)
    return f, fx, fy, fa, fxx, fxy, fyy, fxa, fya, faa, fxxx, fxxy, fxyy, fyyy, fxxa, fxya, fyya, fxaa, fyaa, faaa


@triton.jit(do_not_specialize=["n_leaves", "n_above"], do_not_specialize_on_alignment=["x", "y", "b", "mass"])
def leaf_sums(
    x,
    y,
    b,
    mass,
    first,
    own_count,
    summed,
    far_start,
    far_cells,
    of_leaf,
    partial,
    order,
    potential,
    forces,
    n_leaves,
    n_above,
    D: constexpr,
    LEAF: constexpr,
    BLOCK: constexpr,
    WIDTH: constexpr,
):
    """Write the sums for the points of one leaf, in the order of the map.

    The field of the far nodes of the leaf is expanded to third order.
    """
    leaf = tl.program_id(0)
    own = summed + tl.where(leaf < n_leaves, leaf, leaf + n_above) * WIDTH
    cx, cy, a = tl.load(own), tl.load(own + 1), tl.load(own + 2)
    start, end = tl.load(far_start + leaf), tl.load(far_start + leaf + 1)
    field = _far_field(summed, far_cells, start, end, cx, cy, a, BLOCK, WIDTH)
    lane = tl.arange(0, LEAF)
    i = tl.load(first + leaf) + lane
    mine = lane < tl.load(own_count + leaf)
    xi = tl.load(x + i, mask=mine, other=0.0)
    yi = tl.load(y + i, mask=mine, other=0.0)
    ai = tl.load(b + i, mask=mine, other=1.0)
    value, gx, gx_of_y, gx_of_z, gy, gy_of_x, gy_of_z = _expanded(xi - cx, yi - cy, ai - a, field)
    gx = -0.5 * (gx + (gx_of_y + gx_of_z))
    gy = -0.5 * (gy + (gy_of_x + gy_of_z))
    start, end = tl.load(of_leaf + leaf), tl.load(of_leaf + leaf + 1)
    for t in range(start, end):
        at = partial + t * 3 * LEAF + tl.arange(0, LEAF)
        value += tl.load(at)
        gx += tl.load(at + LEAF)
        gy += tl.load(at + 2 * LEAF)
    own_mass = tl.load(mass + i, mask=mine, other=0.0)
    point = tl.load(order + i, mask=mine, other=0)
    tl.store(potential + point, value - own_mass, mask=mine)  # without the point itself
    tl.store(forces + point * D, gx.to(tl.float64), mask=mine)
    if D == 2:
        tl.store(forces + point * D + 1, gy.to(tl.float64), mask=mine)
