"""Programs of Triton that make the lists of cells. The same in plain PyTorch is in ``drsne.backends.torch.cells``."""

from __future__ import annotations

import triton
import triton.language as tl


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
    growth,
    slack,
    wide,
    out,
    first_top,
    n_top,
    n_all,
    KEPT: tl.constexpr,
    TOP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the extent of a map, the mean extent of its leaves, the share that has grown much, and the number of walks.

    There is one program, because all of this is little. ``kept`` are the extents of the leaves for the last lists.
    """
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
    mean = tl.sum(total, axis=0).to(tl.float32)  # as the host passes it to the program that writes the walks
    n_walks = tl.zeros([BLOCK], tl.int32)
    for t in range(0, n_all, BLOCK):
        n_walks += _n_walks(sizes, own, t + lane, n_all, n_top, wide * mean)
    tl.store(out, tl.maximum(x, y).to(tl.float64))
    tl.store(out + 1, mean.to(tl.float64))
    tl.store(out + 2, tl.sum(grown, axis=0).to(tl.float64) / n_all)
    tl.store(out + 3, tl.sum(n_walks, axis=0).to(tl.float64))


@triton.jit(
    do_not_specialize=["n_walks", "n_leaves", "n_above", "height"],
    do_not_specialize_on_alignment=["far_start", "near_start", "far", "near"],
)
def visit(
    place,
    inside,
    opening,
    spreading,
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
    FAN: tl.constexpr,
    BLOCK: tl.constexpr,
    FILL: tl.constexpr,
):
    """Count or list the far nodes and near leaves of the leaves of some walks.

    ``walks`` has the node of a leaf, the first node where the walk begins, and the number of these nodes. Each program
    has a stack of ``height`` nodes, takes BLOCK nodes from its end at a time, and puts the nodes inside those that are
    too close to its end. ``inside`` has the first node inside each node, and their number, which is 0 for leaves.
    Without FILL, the numbers of cells are written to ``far`` and ``near``. With FILL, the cells are written there, from
    the places ``far_start`` and ``near_start`` of the walk on.
    """
    stack = stacks + tl.program_id(0) * height
    lane = tl.arange(0, BLOCK)
    for walk in range(tl.program_id(0), n_walks, tl.num_programs(0)):
        target = tl.load(walks + 3 * walk)
        begin = tl.load(walks + 3 * walk + 1)
        size = tl.load(walks + 3 * walk + 2)
        cx = tl.load(place + target * 8)
        cy = tl.load(place + target * 8 + 1)
        a = tl.load(place + target * 8 + 2)
        extent = tl.load(place + target * 8 + 3)
        spread = tl.load(place + target * 8 + 4)
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
            p = place + node * 8
            dx = cx - tl.load(p, mask=there, other=0.0)
            dy = cy - tl.load(p + 1, mask=there, other=0.0)
            h = a * tl.load(p + 2, mask=there, other=1.0)
            e = extent + tl.load(p + 3, mask=there, other=0.0)
            s = spread + tl.load(p + 4, mask=there, other=0.0)
            accepted = e * e + spreading * h * s <= opening * (h + dx * dx + dy * dy)
            is_far = (there & accepted).to(tl.int32)
            opened = there & (is_far == 0)
            first = tl.load(inside + 2 * node, mask=opened, other=0)
            count = tl.load(inside + 2 * node + 1, mask=opened, other=0)
            is_near = (opened & (count == 0)).to(tl.int32)
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
            tl.store(far + walk, n_far)
            tl.store(near + walk, n_near)
