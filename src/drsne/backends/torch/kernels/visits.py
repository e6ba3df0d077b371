"""The lists of cells as Triton programs. The same in plain PyTorch is in ``drsne.backends.torch.lists``."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr


@triton.jit
def _n_walks(sizes, own, leaf, n_all, n_top, limit):
    """Return the numbers of walks of some leaves. Leaves above a limit have one for each node of the highest level."""
    there = leaf < n_all
    extent = tl.load(sizes + leaf, mask=there, other=0.0)
    filled = tl.load(own + leaf, mask=there, other=0) > 0
    return tl.where(filled, tl.where(extent > limit, n_top, 1), 0)


@triton.jit(do_not_specialize=["first_top", "n_top", "n_all"])
def extents(
    bounds,
    sizes,
    own,
    share,
    kept,
    growth: tl.float64,
    slack: tl.float64,
    wide: tl.float64,
    out,
    first_top,
    n_top,
    n_all,
    KEPT: constexpr,
    TOP: constexpr,
    BLOCK: constexpr,
):
    """Write the extent of a map, the mean extent of its leaves, the share that has grown much, and the number of walks.

    There is one program, because all of this is little. ``kept`` are the extents of the leaves for the last lists.
    """
    real = sizes.dtype.element_ty
    growth, slack, wide = tl.full((), growth, real), tl.full((), slack, real), tl.full((), wide, real)
    node = first_top + tl.arange(0, TOP)
    is_top = node < first_top + n_top
    low, high, big = bounds + node * 8, bounds + node * 8 + 1, 3.0e38
    x = tl.max(tl.load(high, mask=is_top, other=-big), axis=0) - tl.min(tl.load(low, mask=is_top, other=big), axis=0)
    low, high = low + 2, high + 2
    y = tl.max(tl.load(high, mask=is_top, other=-big), axis=0) - tl.min(tl.load(low, mask=is_top, other=big), axis=0)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    grown = tl.zeros([BLOCK], tl.int32)
    for t in range(0, n_all, BLOCK):
        leaf = t + lane
        there = leaf < n_all
        extent = tl.load(sizes + leaf, mask=there, other=0.0)
        total += (extent * tl.load(share + leaf, mask=there, other=0.0)).to(tl.float64)
        if KEPT:
            limit = growth * tl.load(kept + leaf, mask=there, other=0.0)
            limit += slack * tl.load(sizes + n_all + leaf, mask=there, other=0.0)
            grown += (there & (extent > limit)).to(tl.int32)
    mean = tl.sum(total, axis=0).to(real)  # as in the program that writes the walks
    n_walks = tl.zeros([BLOCK], tl.int32)
    for t in range(0, n_all, BLOCK):
        n_walks += _n_walks(sizes, own, t + lane, n_all, n_top, wide * mean)
    tl.store(out, tl.maximum(x, y).to(tl.float64))
    tl.store(out + 1, mean.to(tl.float64))
    tl.store(out + 2, tl.sum(grown, axis=0).to(tl.float64) / n_all)
    tl.store(out + 3, tl.sum(n_walks, axis=0).to(tl.float64))


@triton.jit
def _store_integer(to, value, mask):
    """Store integers among floating-point numbers: their bits in single precision, and their values in double."""
    if to.dtype.element_ty == tl.float32:
        tl.store(to, value.to(tl.float32, bitcast=True), mask=mask)
    else:
        tl.store(to, value.to(tl.float64), mask=mask)


@triton.jit
def _integer(number):
    """Return the integers that such numbers stand for."""
    return number.to(tl.int32, bitcast=True) if number.dtype == tl.float32 else number.to(tl.int32)


@triton.jit(do_not_specialize=["n_leaves", "n_known", "n_wide"])
def tables(
    summed, known, own, wide, place, n_leaves, n_known, n_wide, PARTS: constexpr, WIDTH: constexpr, NODES: constexpr
):
    """Write what walks need of NODES nodes: their places, scales and extents, and the nodes inside them.

    These are eight numbers for each node, one after the other. The first node inside a node and the number of the nodes
    inside it are integers. ``known`` has both for the ``n_known`` nodes that there are before leaves are divided into
    PARTS parts. The parts are numbered after these nodes.
    """
    v = tl.program_id(0) * NODES + tl.arange(0, NODES)
    ok = v < n_known + PARTS * n_wide
    row, to = summed + v * WIDTH, place + v * 8
    scale = tl.load(row + 2, mask=ok, other=1.0)
    spread = tl.load(row + 11, mask=ok, other=0.0) / scale
    tl.store(to, tl.load(row, mask=ok), mask=ok)
    tl.store(to + 1, tl.load(row + 1, mask=ok), mask=ok)
    tl.store(to + 2, scale, mask=ok)
    tl.store(to + 3, tl.load(row + 10, mask=ok), mask=ok)
    tl.store(to + 4, spread * spread, mask=ok)
    # A leaf without points of its own is wide. Its row is written by the program that counts wide leaves.
    copied = ok & ((v >= n_leaves) | (tl.load(own + v, mask=v < n_leaves, other=0) > 0))
    first = tl.load(known + 2 * v, mask=v < n_known, other=0)
    count = tl.load(known + 2 * v + 1, mask=v < n_known, other=0)
    _store_integer(to + 5, first, copied)
    _store_integer(to + 6, count, copied)
    is_wide = v < n_wide
    to = place + tl.load(wide + v, mask=is_wide, other=0) * 8
    _store_integer(to + 5, n_known + PARTS * v, is_wide)
    _store_integer(to + 6, tl.full([NODES], PARTS, tl.int32), is_wide)


@triton.jit(do_not_specialize=["first_top", "n_top", "n_all", "n_leaves", "n_above"])
def begin(
    sizes,
    own,
    wide: tl.float64,
    mean: tl.float64,
    walks,
    of_leaf,
    first_top,
    n_top,
    n_all,
    n_leaves,
    n_above,
    BLOCK: constexpr,
):
    """Write the walks of BLOCK leaves, and the number of walks before each leaf.

    The walks of the leaves of other programs are counted again, which takes less time than to wait for their numbers.
    """
    lane = tl.arange(0, BLOCK)
    real = sizes.dtype.element_ty
    limit = tl.full((), wide, real) * tl.full((), mean, real)
    before = tl.zeros([BLOCK], tl.int32)
    for t in range(0, tl.program_id(0) * BLOCK, BLOCK):
        before += _n_walks(sizes, own, t + lane, n_all, n_top, limit)
    leaf = tl.program_id(0) * BLOCK + lane
    count = _n_walks(sizes, own, leaf, n_all, n_top, limit)
    end = tl.sum(before, axis=0) + tl.cumsum(count, 0)
    tl.store(of_leaf + leaf, (end - count).to(tl.int64), mask=leaf < n_all)
    tl.store(of_leaf + leaf + 1, end.to(tl.int64), mask=leaf == n_all - 1)
    node = tl.where(leaf < n_leaves, leaf, leaf + n_above)
    for c in range(tl.max(count, axis=0)):
        to = walks + 3 * (end - count + c)
        tl.store(to, node, mask=c < count)
        tl.store(to + 1, first_top + c + tl.zeros([BLOCK], tl.int32), mask=c < count)
        tl.store(to + 2, tl.where(count > 1, 1, n_top), mask=c < count)


@triton.jit
def _n_pieces(near_start, leaf, n_all, TOGETHER: constexpr):
    """Return where the near leaves of some leaves begin and end, and in how many pieces they are summed."""
    start = tl.load(near_start + leaf, mask=leaf < n_all, other=0)
    end = tl.load(near_start + leaf + 1, mask=leaf < n_all, other=0)
    return start, end, (end - start + TOGETHER - 1) // TOGETHER


@triton.jit(do_not_specialize=["n_all", "n_pieces"], do_not_specialize_on_alignment=["near_start"])
def pieces(near_start, leaf_of, start_of, end_of, of_leaf, n_all, n_pieces, TOGETHER: constexpr, BLOCK: constexpr):
    """Write the pieces of BLOCK leaves, and the number of pieces before each leaf. The rest of n_pieces are empty."""
    lane = tl.arange(0, BLOCK)
    before = tl.zeros([BLOCK], tl.int64)
    for t in range(0, tl.program_id(0) * BLOCK, BLOCK):
        _, _, count = _n_pieces(near_start, t + lane, n_all, TOGETHER)
        before += count
    leaf = tl.program_id(0) * BLOCK + lane
    start, end, count = _n_pieces(near_start, leaf, n_all, TOGETHER)
    past = tl.sum(before, axis=0) + tl.cumsum(count, 0)
    tl.store(of_leaf + leaf, past - count, mask=leaf < n_all)
    tl.store(of_leaf + leaf + 1, past, mask=leaf == n_all - 1)
    for c in range(tl.max(count, axis=0)):
        to = past - count + c
        here = start + c * TOGETHER
        tl.store(leaf_of + to, leaf.to(tl.int64), mask=c < count)
        tl.store(start_of + to, here, mask=c < count)
        tl.store(end_of + to, tl.minimum(here + TOGETHER, end), mask=c < count)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        none = tl.zeros([BLOCK], tl.int64)
        for u in range(tl.sum(before, axis=0) + tl.sum(count, axis=0), n_pieces, BLOCK):
            tl.store(leaf_of + u + lane, none, mask=u + lane < n_pieces)
            tl.store(start_of + u + lane, none, mask=u + lane < n_pieces)
            tl.store(end_of + u + lane, none, mask=u + lane < n_pieces)


@triton.jit
def _four(values, row):
    """Return the four numbers of some rows of a table, which are read together."""
    found = tl.load(values + 4 * row[:, None] + tl.arange(0, 4)[None, :])
    first_and_third, second_and_fourth = tl.split(tl.reshape(found, (row.shape[0], 2, 2)))
    first, third = tl.split(first_and_third)
    second, fourth = tl.split(second_and_fourth)
    return first, second, third, fourth


@triton.jit
def _judged(place, node, there, cx, cy, a, extent, spread, opening, spreading):
    """Return which nodes are far from a leaf, which are near leaves, and the first and the number of nodes inside."""
    x, y, b, e = _four(place, 2 * node)
    s, first, count, _ = _four(place, 2 * node + 1)
    dx, dy, h, e, s = cx - x, cy - y, a * b, extent + e, spread + s
    accepted = e * e + spreading * h * s <= opening * (h + dx * dx + dy * dy)
    is_far = (there & accepted).to(tl.int32)
    opened = there & (is_far == 0)
    count = tl.where(opened, _integer(count), 0)
    return is_far, (opened & (count == 0)).to(tl.int32), _integer(first), count


@triton.jit(
    do_not_specialize=["n_walks", "n_leaves", "n_above", "height"],
    do_not_specialize_on_alignment=["far_start", "near_start", "far", "near"],
)
def visit(
    place,
    opening: tl.float64,
    spreading: tl.float64,
    walks,
    stacks,
    far_start,
    near_start,
    far,
    near,
    n_walks,
    n_leaves,
    n_above,
    height,
    FAN: constexpr,
    BLOCK: constexpr,
    FILL: constexpr,
):
    """Count or list the far nodes and near leaves of the leaves of some walks.

    ``walks`` has the node of a leaf, the first node where the walk begins, and the number of these nodes. Each program
    has a stack of ``height`` nodes, takes BLOCK nodes from its end at a time, and puts the nodes inside those that are
    too close to its end. ``place`` also has the first node inside each node, and their number, which is 0 for leaves.
    Without FILL, the numbers of cells are written to ``far`` and ``near``, after a zero. With FILL, the cells are
    written there, from the places ``far_start`` and ``near_start`` of the walk on.
    """
    real = place.dtype.element_ty
    opening, spreading = tl.full((), opening, real), tl.full((), spreading, real)
    stack = stacks + tl.program_id(0) * height
    lane = tl.arange(0, BLOCK)
    for walk in range(tl.program_id(0), n_walks, tl.num_programs(0)):
        target = tl.load(walks + 3 * walk)
        begin = tl.load(walks + 3 * walk + 1)
        size = tl.load(walks + 3 * walk + 2)
        own = place + target * 8
        cx, cy, a = tl.load(own), tl.load(own + 1), tl.load(own + 2)
        extent, spread = tl.load(own + 3), tl.load(own + 4)
        n_far, n_near = tl.full((), 0, tl.int64), tl.full((), 0, tl.int64)
        if FILL:
            n_far = tl.load(far_start + walk)
            n_near = tl.load(near_start + walk)
        for t in range(0, size, BLOCK):
            tl.store(stack + t + lane, begin + t + lane, mask=t + lane < size)
        tl.debug_barrier()
        while size > 0:
            rest = tl.maximum(size - BLOCK, 0)
            there = rest + lane < size
            node = tl.load(stack + rest + lane, mask=there, other=0)
            tl.debug_barrier()  # all nodes are taken before new ones are put to the same places
            is_far, is_near, first, count = _judged(place, node, there, cx, cy, a, extent, spread, opening, spreading)
            if FILL:
                tl.store(far + n_far + tl.cumsum(is_far, 0) - 1, node, mask=is_far > 0)
                leaf = tl.where(node < n_leaves, node, node - n_above)
                tl.store(near + n_near + tl.cumsum(is_near, 0) - 1, leaf, mask=is_near > 0)
            n_far += tl.sum(is_far, 0)
            n_near += tl.sum(is_near, 0)
            to = stack + rest + tl.cumsum(count, 0) - count
            for c in tl.static_range(FAN):
                tl.store(to + c, first + c, mask=c < count)
            size = rest + tl.sum(count, 0)
            tl.debug_barrier()
        if not FILL:
            tl.store(far + walk + 1, n_far)
            tl.store(near + walk + 1, n_near)
            tl.store(far, tl.zeros_like(n_far), mask=walk == 0)
            tl.store(near, tl.zeros_like(n_near), mask=walk == 0)
