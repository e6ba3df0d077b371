"""Sums of the kernel over the cells of a map (docs/theory.md, eqs. 52 to 55), in Triton on a GPU or in plain PyTorch.

The formulas are those of :mod:`drsne.backends.numba.kernels.adaptive_tree`: a scale is one more coordinate of a point,
nodes have second moments, and the field of the far nodes of a leaf is expanded to third order around its centre.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drsne.backends.torch import cells
from drsne.backends.torch.cells import FAN, N_SUMMED, Cells, Lists, Structure
from drsne.backends.torch.division import LEAF
from drsne.backends.torch.kernels import FUSED, ROUNDED
from drsne.backends.torch.ranges import row_ranges
from drsne.precision import pair_type, scaled_pair_type

_BLOCK = 64  # number of far nodes that a program reads at a time
_NODES = 32  # number of nodes that a program summarises
# Numbers of pairs of near leaves, and of leaves and far nodes, that plain PyTorch sums at a time.
_NEAR_PAIRS, _FAR_PAIRS = 2**15, 2**20


# The factor on theta if the extents of both the leaf and the cell count, by the number of dimensions of the map, and
# the weight of the extent of the scales.
_LEAF_THETA, _SPREADING = {1: 1.25, 2: 1.5}, 0.25


class Sums(NamedTuple):
    """The result of sums over cells, in the order of the points of the map."""

    partition: float
    forces: Tensor  # (n, d)
    potential: Tensor  # sum_j w_ij, (n,)
    order: Tensor  # the points, leaf by leaf


def summed_cells(
    Y: Tensor, scales: Tensor | None, at: Structure, real: torch.dtype, masses: Tensor | None = None
) -> Cells:
    """Return the summaries of the nodes for points at ``Y`` (n, d), d <= 2, with these scales and masses."""
    n, d = Y.shape
    points = torch.empty((4, n), dtype=real, device=Y.device)
    if cells.compiled(points):
        return _compiled_cells(Y, scales, at, points, masses)
    points[0] = Y[at.order, 0]
    points[1] = Y[at.order, 1] if d == 2 else 0.0
    points[2] = 1.0 if scales is None else scales[at.order]
    points[3] = 1.0 if masses is None else masses[at.order]
    summed = _plain_moments(points, at)
    low, high = torch.aminmax(points[:2], dim=1)
    sizes = at.of_leaves(summed)[:, [cells.EXTENT, cells.B]].T.contiguous()
    stretched = summed.new_zeros(()) if at.kept is None else at.kept.stretched(sizes)
    extents = torch.stack(((high - low).max(), (sizes[0] * at.runs.share).sum(), stretched))
    return Cells(at, points, summed, sizes, *extents.tolist())


def _compiled_cells(Y: Tensor, scales: Tensor | None, at: Structure, points: Tensor, masses: Tensor | None) -> Cells:
    """Return the same by Triton programs."""
    from drsne.backends.torch.kernels import tree as kernels
    from drsne.backends.torch.kernels.visits import extents

    (n, d), device, n_leaves = Y.shape, Y.device, len(at.runs.first)  # with the parts of wide leaves
    summed, bounds = (torch.empty((n_leaves + at.n_above, m), dtype=points.dtype, device=device) for m in (N_SUMMED, 8))
    sizes = torch.empty((2, n_leaves), dtype=points.dtype, device=device)
    given = (Y if each is None else each.contiguous() for each in (Y, scales, masses))
    runs = at.order, at.runs.first, at.runs.count
    kinds = n, n_leaves, at.n_leaves, at.n_above, d, scales is not None, masses is not None
    kernels.leaf_moments[(-(-n_leaves // _NODES),)](
        *given, *runs, points, summed, bounds, sizes, *kinds, LEAF, _NODES, N_SUMMED, **FUSED
    )
    for level in range(1, len(at.levels)):
        below, first = at.offsets[level - 1 : level + 1]
        inside, size = at.levels[level - 1 : level + 1]
        grid = (-(-size // _NODES),)
        kernels.parent_moments[grid](summed, bounds, below, inside, first, size, FAN, _NODES, N_SUMMED, **FUSED)
    found = torch.empty(4, dtype=torch.float64, device=device)
    kept = sizes if at.kept is None else at.kept.leaves
    extents[(1,)](
        *(bounds, sizes, at.runs.own, at.runs.share, kept, cells.LEAF_GROWTH, cells.LEAF_SLACK, cells.WIDE_WALK, found),
        *(at.offsets[-1], at.levels[-1], n_leaves, at.kept is not None, cells.TOP, cells.LEAVES),
        num_warps=8,
        **ROUNDED,
    )
    extent, leaves, stretched, n_walks = found.tolist()
    return Cells(at, points, summed, sizes, extent, leaves, stretched, int(n_walks))


def sums(found: Cells, opening: float, spreading: float, d: int) -> Sums:
    """Return the sums over all points."""
    at, points = found.structure, found.points
    compiled = cells.compiled(points)
    if at.kept is None or not at.kept.valid(opening, found.extent, found.stretched):
        at.kept = None  # the old lists are freed before the new ones are made
        far, near = cells.lists(found, opening, spreading)
        pieces = cells.Pieces.of(near, compiled=compiled)
        at.kept = cells.KeptLists(far, near, pieces, opening, found.extent, found.sizes[0])
    at.kept.uses += 1
    far, near, pieces = at.kept.far, at.kept.near, at.kept.pieces
    n = len(at.order)
    forces = torch.empty((n, d), dtype=torch.float64, device=points.device)
    potential = torch.empty(n, dtype=points.dtype, device=points.device)
    if compiled:
        from drsne.backends.torch.kernels import tree as kernels

        leaf, start, end, of_leaf = pieces
        runs = at.runs.first, at.runs.own
        partial = torch.empty((len(leaf), 3, LEAF), dtype=points.dtype, device=points.device)
        kernels.near_sums[(len(leaf),)](
            *points, *runs, leaf, start, end, near.cells, partial, LEAF, num_warps=4, **FUSED
        )
        out = at.order, potential, forces, at.n_leaves, at.n_above, d
        kernels.leaf_sums[(len(at.runs.first),)](
            *points, *runs, found.summed, *far, of_leaf, partial, *out, LEAF, _BLOCK, N_SUMMED, num_warps=1, **FUSED
        )
    else:
        sums_of_points = _plain_sums(found, far, near)
        potential[at.order] = sums_of_points[0]
        forces[at.order] = sums_of_points[1 : 1 + d].T.to(torch.float64)
    return Sums(float(potential.sum(dtype=torch.float64)), forces, potential, at.order)


def pair_dtype(Y: Tensor, scales: Tensor | None, precision: str) -> torch.dtype:
    """Return the type for the terms of each pair of a map."""
    real = pair_type(Y, precision) if scales is None else scaled_pair_type(Y, scales, precision)
    return torch.float32 if real == np.float32 else torch.float64


def _plain_moments(points: Tensor, at: Structure) -> Tensor:
    """Return the summaries of all nodes."""
    blocks, there = _blocks(points, at.runs.first, at.runs.count)
    none = points.new_zeros((6, *there.shape))
    low, high = (torch.where(there, blocks[:3], filling) for filling in (torch.inf, -torch.inf))
    of_leaves = _summary(blocks[:3], none, blocks[3], low.amin(dim=2), high.amax(dim=2))
    rows, *level = (each[..., : at.n_leaves] for each in of_leaves)
    levels = [rows]
    for size in at.levels[1:]:
        mean, moments, count, low, high = level
        empty = size * FAN - len(count)
        low, high = _divided(low, empty, torch.inf).amin(dim=2), _divided(high, empty, -torch.inf).amax(dim=2)
        mean, moments, count = (_divided(each, empty, 0.0) for each in (mean, moments, count))
        rows, *level = _summary(mean, moments, count, low, high)
        levels.append(rows)
    return torch.cat((*levels, of_leaves[0][:, at.n_leaves :]), dim=1).T.contiguous()


def _summary(values: Tensor, moments: Tensor, mass: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, ...]:
    """Return the summaries of nodes, (16, nodes), and their means, second moments, masses and bounds.

    ``values`` (3, nodes, m), ``moments`` and ``mass`` are those of what is inside each node.
    """
    count = mass.sum(dim=1)
    filled = count > 0.0
    mean = (mass * values).sum(dim=2) / torch.where(filled, count, 1.0)
    x, y, b = values - mean[:, :, None]
    moments = (moments + mass * torch.stack((x * x, y * y, x * y, x * b, y * b, b * b))).sum(dim=2)
    extent = torch.where(filled, high - low, 0.0)
    scale = torch.where(filled, mean[2:], 1.0)
    rows = torch.cat((mean[:2], scale, moments, count[None], extent[:2].amax(dim=0)[None], extent[2:]))
    return torch.nn.functional.pad(rows, (0, 0, 0, N_SUMMED - 12)), mean, moments, count, low, high


def _blocks(points: Tensor, first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return the points of each leaf, (4, leaves, LEAF), and which of them there are. The others have no mass."""
    lanes = torch.arange(LEAF, device=points.device)
    there = lanes < count[:, None]
    found = points[:, (first[:, None] + lanes).clamp(max=points.shape[1] - 1)]
    found[3] = torch.where(there, found[3], 0.0)
    return found, there


def _divided(values: Tensor, empty: int, filling: float) -> Tensor:
    """Return values (..., m) as (..., nodes, FAN), after ``empty`` more values."""
    padded = torch.nn.functional.pad(values, (0, empty), value=filling)
    return padded.reshape(*values.shape[:-1], -1, FAN)


def _plain_sums(found: Cells, far: Lists, near: Lists) -> Tensor:
    """Return the potential and the two forces of every point leaf by leaf, (3, n)."""
    points, runs = found.points, found.structure.runs
    n_leaves, own = len(runs.first), found.structure.of_leaves(found.summed)
    field = _expansions(found.summed, own, far)
    blocks, there = _blocks(points, runs.first, runs.own)
    centre = own[:, :3].T
    x, y, z = blocks[:3] - centre[:, :, None]
    f, fx, fy, fa, fxx, fxy, fyy, fxa, fya, faa, fxxx, fxxy, fxyy, fyyy, fxxa, fxya, fyya, fxaa, fyaa, faaa = field.T[
        :, :, None
    ]
    value = (
        f
        + x * (fx + x * (fxx + x * fxxx + y * fxxy + z * fxxa) + z * (fxa + z * fxaa))
        + y * (fy + y * (fyy + y * fyyy + x * fxyy + z * fyya) + x * (fxy + z * fxya) + z * (fya + z * fyaa))
        + z * (fa + z * (faa + z * faaa))
    )
    gx = fx + 2.0 * x * (fxx + y * fxxy + z * fxxa) + 3.0 * x * x * fxxx
    gx = gx + y * (fxy + y * fxyy + z * fxya) + z * (fxa + z * fxaa)
    gy = fy + 2.0 * y * (fyy + x * fxyy + z * fyya) + 3.0 * y * y * fyyy
    gy = gy + x * (fxy + x * fxxy + z * fxya) + z * (fya + z * fyaa)
    out = torch.stack((value, -0.5 * gx, -0.5 * gy))
    leaf = torch.repeat_interleave(torch.arange(n_leaves, device=points.device), near.start.diff())
    for begin in range(0, len(leaf), _NEAR_PAIRS):
        mine, other = leaf[begin : begin + _NEAR_PAIRS], near.cells[begin : begin + _NEAR_PAIRS].to(torch.int64)
        ex, ey = (each[mine][:, :, None] - each[other][:, None, :] for each in blocks[:2])
        h = blocks[2][mine][:, :, None] * blocks[2][other][:, None, :]
        m = 1.0 / (h + ex * ex + ey * ey)
        w = h * m * blocks[3][other][:, None, :]
        terms = torch.stack((w.sum(dim=2), (w * m * ex).sum(dim=2), (w * m * ey).sum(dim=2)), dim=1)
        owners, counts = torch.unique_consecutive(mine, return_counts=True)
        out[:, owners] += torch.segment_reduce(terms, "sum", lengths=counts, axis=0).permute(1, 0, 2)
    of_points = torch.empty_like(points[:3])
    of_points[:, (runs.first[:, None] + torch.arange(LEAF, device=points.device))[there]] = out[:, there]
    of_points[0] -= points[3]  # without the point itself
    return of_points


def _expansions(summed: Tensor, leaves: Tensor, far: Lists) -> Tensor:
    """Return the coefficients of the field of the far nodes of each leaf around its centre, (leaves, 20).

    They are named by the powers of x, y and the scale a.
    """
    parts = []
    for lo, hi, begin, end in row_ranges(far.start, _FAR_PAIRS):
        counts = far.start[lo : hi + 1].diff()
        terms = _terms(leaves[lo:hi].repeat_interleave(counts, dim=0), summed[far.cells[begin:end].to(torch.int64)])
        parts.append(torch.segment_reduce(terms, "sum", lengths=counts, axis=0))
    return torch.cat(parts)


def _terms(own: Tensor, other: Tensor) -> Tensor:
    """Return the same coefficients for each pair of a leaf and a far node, (pairs, 20)."""
    a, b = own[:, cells.B], other[:, cells.B]
    x, y = own[:, cells.X] - other[:, cells.X], own[:, cells.Y] - other[:, cells.Y]
    xx, yy, xy, xb, yb, bb, n = other[:, cells.XX : cells.COUNT + 1].T
    s, h = x * x + y * y, a * b
    m = 1.0 / (h + s)
    w, r = h * m, s * m
    # Derivatives with respect to the squared distance s and the scales a and b.
    ws = -w * m
    wss = -2.0 * ws * m
    wsss = -3.0 * wss * m
    bm, am = b * m, a * m
    was, wbs = bm * m * (w - r), am * m * (w - r)
    wass, wbss = 2.0 * bm * m * m * (r - 2.0 * w), 2.0 * am * m * m * (r - 2.0 * w)
    wa = bm * r
    waa = -2.0 * bm * wa
    waaa = -3.0 * bm * waa
    waas, wbbs = 2.0 * bm * bm * m * (2.0 * r - w), 2.0 * am * am * m * (2.0 * r - w)
    wbb = -2.0 * am * am * r
    wabs = m * m * (4.0 * r * w - r * r - w * w)
    wabb = 2.0 * am * m * r * (w - 2.0 * r)
    trace = xx + yy
    px, py = xx * x + xy * y, xy * x + yy * y
    q, c = px * x + py * y, xb * x + yb * y
    g = n * ws + wss * trace + 2.0 * wsss * q - 2.0 * wbss * c + 0.5 * wbbs * bb
    second, k = 2.0 * n * wss, 4.0 / 3.0 * n * wsss
    return torch.stack(
        (
            n * w + ws * trace + 2.0 * wss * q - 2.0 * wbs * c + 0.5 * wbb * bb,  # 1
            2.0 * (g * x + 2.0 * wss * px - wbs * xb),  # x
            2.0 * (g * y + 2.0 * wss * py - wbs * yb),  # y
            n * wa + was * trace + 2.0 * wass * q - 2.0 * wabs * c + 0.5 * wabb * bb,  # a
            n * (ws + 2.0 * wss * x * x),  # xx
            n * 4.0 * wss * x * y,  # xy
            n * (ws + 2.0 * wss * y * y),  # yy
            n * 2.0 * was * x,  # xa
            n * 2.0 * was * y,  # ya
            n * 0.5 * waa,  # aa
            x * (second + k * x * x),  # xxx
            y * (second + 3.0 * k * x * x),  # xxy
            x * (second + 3.0 * k * y * y),  # xyy
            y * (second + k * y * y),  # yyy
            n * (was + 2.0 * wass * x * x),  # xxa
            n * 4.0 * wass * x * y,  # xya
            n * (was + 2.0 * wass * y * y),  # yya
            n * waas * x,  # xaa
            n * waas * y,  # yaa
            n * waaa / 6.0,  # aaa
        ),
        dim=1,
    )


class TorchTree:
    """The sums over a tree that :mod:`drsne.engines.tree` needs."""

    LARGE = 0  # cells are used again for maps of any size
    MOST_USES, GROWN = 16, 1.3  # largest number of evaluations with the same cells, and largest growth of the leaves
    MOST_AGE = 8  # number of times that only small cells are made again

    @staticmethod
    def centred(Y: Tensor) -> Tensor:
        """Return a map whose centre is near the origin."""
        return Y - Y.mean(dim=0)

    @staticmethod
    def structure(Y: Tensor, scales: Tensor | None) -> Structure:
        """Return a division of the points of a map into cells."""
        return cells.structure(Y if scales is None else cells.raised(Y, scales))

    @staticmethod
    def divided_again(Y: Tensor, scales: Tensor | None, last: Structure) -> Structure:
        """Return a division of the points of a map into cells, which has the large cells of the ``last`` one."""
        return cells.structure(Y if scales is None else cells.raised(Y, scales), last)

    @staticmethod
    def cells(Y: Tensor, scales: Tensor | None, at: Structure, precision: str, memory: dict[str, Any]) -> Cells:
        """Return the summaries of the cells."""
        return summed_cells(Y, scales, at, pair_dtype(Y, scales, precision), memory.get("masses"))

    @staticmethod
    def sums(found: Cells, d: int, theta: float) -> Sums:
        """Return the sums over all points, at an opening angle ``theta``."""
        return sums(found, (_LEAF_THETA[d] * theta) ** 2, _SPREADING, d)
