"""Sums over the cells of a map as Triton programs. The same in plain PyTorch is in ``drsne.backends.torch.tree``."""

from __future__ import annotations

import triton
import triton.language as tl

from drsne.backends.torch.kernels.reciprocal import reciprocal


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
    D: tl.constexpr,
    SCALED: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LEAF: tl.constexpr,
    NODES: tl.constexpr,
    WIDTH: tl.constexpr,
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
    big = 3.0e38
    lx = tl.min(tl.where(there, px, big), axis=1)
    hx = tl.max(tl.where(there, px, -big), axis=1)
    ly = tl.min(tl.where(there, py, big), axis=1)
    hy = tl.max(tl.where(there, py, -big), axis=1)
    lb = tl.min(tl.where(there, pb, big), axis=1)
    hb = tl.max(tl.where(there, pb, -big), axis=1)
    full = count > 0.0
    out = summed + v * WIDTH
    tl.store(out + 0, cx, mask=ok)
    tl.store(out + 1, cy, mask=ok)
    scale = tl.where(full, cb, 1.0)
    tl.store(out + 2, scale, mask=ok)
    tl.store(sizes + n_all + leaf, scale, mask=ok)
    tl.store(out + 3, tl.sum(m * dx * dx, axis=1), mask=ok)
    tl.store(out + 4, tl.sum(m * dy * dy, axis=1), mask=ok)
    tl.store(out + 5, tl.sum(m * dx * dy, axis=1), mask=ok)
    tl.store(out + 6, tl.sum(m * dx * db, axis=1), mask=ok)
    tl.store(out + 7, tl.sum(m * dy * db, axis=1), mask=ok)
    tl.store(out + 8, tl.sum(m * db * db, axis=1), mask=ok)
    tl.store(out + 9, count, mask=ok)
    extent = tl.where(full, tl.maximum(hx - lx, hy - ly), 0.0)
    tl.store(out + 10, extent, mask=ok)
    tl.store(sizes + leaf, extent, mask=ok)
    tl.store(out + 11, tl.where(full, hb - lb, 0.0), mask=ok)
    to = bounds + v * 8
    tl.store(to + 0, lx, mask=ok)
    tl.store(to + 1, hx, mask=ok)
    tl.store(to + 2, ly, mask=ok)
    tl.store(to + 3, hy, mask=ok)
    tl.store(to + 4, lb, mask=ok)
    tl.store(to + 5, hb, mask=ok)


@triton.jit(do_not_specialize=["first_child", "n_children", "first", "n_nodes"])
def parent_moments(
    summed, bounds, first_child, n_children, first, n_nodes, FAN: tl.constexpr, NODES: tl.constexpr, WIDTH: tl.constexpr
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
    full = count > 0.0
    out = summed + (first + r) * WIDTH
    tl.store(out + 0, cx, mask=ok)
    tl.store(out + 1, cy, mask=ok)
    tl.store(out + 2, tl.where(full, cb, 1.0), mask=ok)
    tl.store(out + 3, tl.sum(tl.load(s + 3, mask=there, other=0.0) + m * dx * dx, axis=1), mask=ok)
    tl.store(out + 4, tl.sum(tl.load(s + 4, mask=there, other=0.0) + m * dy * dy, axis=1), mask=ok)
    tl.store(out + 5, tl.sum(tl.load(s + 5, mask=there, other=0.0) + m * dx * dy, axis=1), mask=ok)
    tl.store(out + 6, tl.sum(tl.load(s + 6, mask=there, other=0.0) + m * dx * db, axis=1), mask=ok)
    tl.store(out + 7, tl.sum(tl.load(s + 7, mask=there, other=0.0) + m * dy * db, axis=1), mask=ok)
    tl.store(out + 8, tl.sum(tl.load(s + 8, mask=there, other=0.0) + m * db * db, axis=1), mask=ok)
    tl.store(out + 9, count, mask=ok)
    f = bounds + c * 8
    big = 3.0e38
    lx = tl.min(tl.load(f + 0, mask=there, other=big), axis=1)
    hx = tl.max(tl.load(f + 1, mask=there, other=-big), axis=1)
    ly = tl.min(tl.load(f + 2, mask=there, other=big), axis=1)
    hy = tl.max(tl.load(f + 3, mask=there, other=-big), axis=1)
    lb = tl.min(tl.load(f + 4, mask=there, other=big), axis=1)
    hb = tl.max(tl.load(f + 5, mask=there, other=-big), axis=1)
    tl.store(out + 10, tl.where(full, tl.maximum(hx - lx, hy - ly), 0.0), mask=ok)
    tl.store(out + 11, tl.where(full, hb - lb, 0.0), mask=ok)
    to = bounds + (first + r) * 8
    tl.store(to + 0, lx, mask=ok)
    tl.store(to + 1, hx, mask=ok)
    tl.store(to + 2, ly, mask=ok)
    tl.store(to + 3, hy, mask=ok)
    tl.store(to + 4, lb, mask=ok)
    tl.store(to + 5, hb, mask=ok)


@triton.jit(do_not_specialize_on_alignment=["x", "y", "b", "mass"])
def near_sums(x, y, b, mass, first, own, leaves, starts, ends, near_cells, partial, LEAF: tl.constexpr):
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


@triton.jit(
    do_not_specialize=["n_leaves", "n_above"],
    do_not_specialize_on_alignment=["x", "y", "b", "mass"],
)
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
    D: tl.constexpr,
    LEAF: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Write the sums for the points of one leaf, in the order of the map.

    The field of the far nodes of the leaf is expanded to third order.
    """
    real = x.dtype.element_ty
    leaf = tl.program_id(0)
    own = summed + tl.where(leaf < n_leaves, leaf, leaf + n_above) * WIDTH
    cx, cy, a = tl.load(own), tl.load(own + 1), tl.load(own + 2)
    f = tl.zeros([BLOCK], real)
    fx = tl.zeros([BLOCK], real)
    fy = tl.zeros([BLOCK], real)
    fa = tl.zeros([BLOCK], real)
    fxx = tl.zeros([BLOCK], real)
    fxy = tl.zeros([BLOCK], real)
    fyy = tl.zeros([BLOCK], real)
    fxa = tl.zeros([BLOCK], real)
    fya = tl.zeros([BLOCK], real)
    faa = tl.zeros([BLOCK], real)
    fxxx = tl.zeros([BLOCK], real)
    fxxy = tl.zeros([BLOCK], real)
    fxyy = tl.zeros([BLOCK], real)
    fyyy = tl.zeros([BLOCK], real)
    fxxa = tl.zeros([BLOCK], real)
    fxya = tl.zeros([BLOCK], real)
    fyya = tl.zeros([BLOCK], real)
    fxaa = tl.zeros([BLOCK], real)
    fyaa = tl.zeros([BLOCK], real)
    faaa = tl.zeros([BLOCK], real)
    start, end = tl.load(far_start + leaf), tl.load(far_start + leaf + 1)
    for t in range(start, end, BLOCK):
        at = t + tl.arange(0, BLOCK)
        there = at < end
        v = tl.load(far_cells + at, mask=there, other=0)
        s_ = summed + v.to(tl.int64) * WIDTH
        px = cx - tl.load(s_, mask=there, other=0.0)
        py = cy - tl.load(s_ + 1, mask=there, other=0.0)
        pb = tl.load(s_ + 2, mask=there, other=1.0)
        xx = tl.load(s_ + 3, mask=there, other=0.0)
        yy = tl.load(s_ + 4, mask=there, other=0.0)
        xy = tl.load(s_ + 5, mask=there, other=0.0)
        xb = tl.load(s_ + 6, mask=there, other=0.0)
        yb = tl.load(s_ + 7, mask=there, other=0.0)
        bb = tl.load(s_ + 8, mask=there, other=0.0)
        m_ = tl.load(s_ + 9, mask=there, other=0.0)
        s = px * px + py * py
        h = a * pb
        m = 1.0 / (h + s)
        w = h * m
        r = s * m
        ws = -w * m
        wss = -2.0 * ws * m
        wsss = -3.0 * wss * m
        bm, am = pb * m, a * m
        was = bm * m * (w - r)
        wbs = am * m * (w - r)
        wass = 2.0 * bm * m * m * (r - 2.0 * w)
        wbss = 2.0 * am * m * m * (r - 2.0 * w)
        wa = bm * r
        waa = -2.0 * bm * wa
        waaa = -3.0 * bm * waa
        waas = 2.0 * bm * bm * m * (2.0 * r - w)
        wbbs = 2.0 * am * am * m * (2.0 * r - w)
        wbb = -2.0 * am * am * r
        wabs = m * m * (4.0 * r * w - r * r - w * w)
        wabb = 2.0 * am * m * r * (w - 2.0 * r)
        trace = xx + yy
        qx, qy = xx * px + xy * py, xy * px + yy * py
        q = qx * px + qy * py
        c = xb * px + yb * py
        f += m_ * w + ws * trace + 2.0 * wss * q - 2.0 * wbs * c + 0.5 * wbb * bb
        g = m_ * ws + wss * trace + 2.0 * wsss * q - 2.0 * wbss * c + 0.5 * wbbs * bb
        fx += 2.0 * (g * px + 2.0 * wss * qx - wbs * xb)
        fy += 2.0 * (g * py + 2.0 * wss * qy - wbs * yb)
        fa += m_ * wa + was * trace + 2.0 * wass * q - 2.0 * wabs * c + 0.5 * wabb * bb
        fxx += m_ * (ws + 2.0 * wss * px * px)
        fyy += m_ * (ws + 2.0 * wss * py * py)
        fxy += m_ * 4.0 * wss * px * py
        fxa += m_ * 2.0 * was * px
        fya += m_ * 2.0 * was * py
        faa += m_ * 0.5 * waa
        g = 2.0 * m_ * wss
        k = 1.3333333333333333 * m_ * wsss
        fxxx += px * (g + k * px * px)
        fyyy += py * (g + k * py * py)
        fxxy += py * (g + 3.0 * k * px * px)
        fxyy += px * (g + 3.0 * k * py * py)
        fxxa += m_ * (was + 2.0 * wass * px * px)
        fyya += m_ * (was + 2.0 * wass * py * py)
        fxya += m_ * 4.0 * wass * px * py
        fxaa += m_ * waas * px
        fyaa += m_ * waas * py
        faaa += m_ * 0.16666666666666666 * waaa
    f_, fx_, fy_, fa_ = tl.sum(f), tl.sum(fx), tl.sum(fy), tl.sum(fa)
    fxx_, fxy_, fyy_ = tl.sum(fxx), tl.sum(fxy), tl.sum(fyy)
    fxa_, fya_, faa_ = tl.sum(fxa), tl.sum(fya), tl.sum(faa)
    fxxx_, fxxy_, fxyy_, fyyy_ = tl.sum(fxxx), tl.sum(fxxy), tl.sum(fxyy), tl.sum(fyyy)
    fxxa_, fxya_, fyya_ = tl.sum(fxxa), tl.sum(fxya), tl.sum(fyya)
    fxaa_, fyaa_, faaa_ = tl.sum(fxaa), tl.sum(fyaa), tl.sum(faaa)
    lane = tl.arange(0, LEAF)
    i = tl.load(first + leaf) + lane
    mine = lane < tl.load(own_count + leaf)
    xi = tl.load(x + i, mask=mine, other=0.0)
    yi = tl.load(y + i, mask=mine, other=0.0)
    ai = tl.load(b + i, mask=mine, other=1.0)
    dx, dy, z = xi - cx, yi - cy, ai - a
    value = (
        f_
        + dx * (fx_ + dx * (fxx_ + dx * fxxx_ + dy * fxxy_ + z * fxxa_) + z * (fxa_ + z * fxaa_))
        + dy
        * (fy_ + dy * (fyy_ + dy * fyyy_ + dx * fxyy_ + z * fyya_) + dx * (fxy_ + z * fxya_) + z * (fya_ + z * fyaa_))
        + z * (fa_ + z * (faa_ + z * faaa_))
    )
    gx = fx_ + 2.0 * dx * (fxx_ + dy * fxxy_ + z * fxxa_) + 3.0 * dx * dx * fxxx_
    gx += dy * (fxy_ + dy * fxyy_ + z * fxya_) + z * (fxa_ + z * fxaa_)
    gy = fy_ + 2.0 * dy * (fyy_ + dx * fxyy_ + z * fyya_) + 3.0 * dy * dy * fyyy_
    gy += dx * (fxy_ + dx * fxxy_ + z * fxya_) + z * (fya_ + z * fyaa_)
    gx *= -0.5
    gy *= -0.5
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
