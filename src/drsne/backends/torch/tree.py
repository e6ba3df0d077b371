"""Sums of the kernel over the cells of a map (docs/theory.md, eqs. 52 to 55), in Triton on a GPU or in plain PyTorch.

The formulas are those of :mod:`drsne.backends.numba.kernels.adaptive_tree`: a scale is one more coordinate of a point,
nodes have second moments, and the field of the far nodes of a leaf is expanded to third order around its centre.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drsne.backends.torch import cells, kernels, lists
from drsne.backends.torch.cells import FAN, LEAF, Structure
from drsne.backends.torch.kernels import FUSED, ROUNDED, grid
from drsne.backends.torch.lists import N_SUMMED, Cells, Lists
from drsne.backends.torch.segments import row_ranges, segment_sums
from drsne.precision import pair_type, scaled_pair_type

_BLOCK = 64  # number of far nodes that a program reads at a time
_NODES = 32  # number of nodes that a program summarises
# Numbers of pairs of near leaves, and of leaves and far nodes, that plain PyTorch sums at a time.
_NEAR_PAIRS, _FAR_PAIRS = 2**15, 2**20
# The factor on theta if the extents of both the leaf and the cell count, by the number of dimensions of the map, and
# the weight of the extent of the scales.
_LEAF_THETA, _SPREADING = {1: 1.25, 2: 1.5}, 0.25
_HEIGHT = 0.5  # length, in units of the map, that corresponds to a factor e of the scales


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
    if kernels.compiled(points):
        return _compiled_cells(Y, scales, at, points, masses)
    points[0] = Y[at.order, 0]
    points[1] = Y[at.order, 1] if d == 2 else 0.0
    points[2] = 1.0 if scales is None else scales[at.order]
    points[3] = 1.0 if masses is None else masses[at.order]
    summed = _plain_moments(points, at)
    low, high = torch.aminmax(points[:2], dim=1)
    sizes = at.of_leaves(summed)[:, [lists.EXTENT, lists.B]].T.contiguous()
    stretched = summed.new_zeros(()) if at.kept is None else at.kept.stretched(sizes)
    extents = torch.stack(((high - low).max(), (sizes[0] * at.runs.share).sum(), stretched))
    return Cells(at, points, summed, sizes, *extents.tolist())


def _compiled_cells(Y: Tensor, scales: Tensor | None, at: Structure, points: Tensor, masses: Tensor | None) -> Cells:
    """Return the same by Triton programs."""
    (n, d), device, n_leaves = Y.shape, Y.device, len(at.runs.first)  # with the parts of wide leaves
    summed, bounds = (torch.empty((n_leaves + at.n_above, m), dtype=points.dtype, device=device) for m in (N_SUMMED, 8))
    sizes = torch.empty((2, n_leaves), dtype=points.dtype, device=device)
    given = (Y if each is None else each.contiguous() for each in (Y, scales, masses))
    runs = at.order, at.runs.first, at.runs.count
    kinds = n, n_leaves, at.n_leaves, at.n_above, d, scales is not None, masses is not None
    kernels.tree.leaf_moments[grid(n_leaves, _NODES)](
        *given, *runs, points, summed, bounds, sizes, *kinds, LEAF, _NODES, N_SUMMED, **FUSED
    )
    for level in range(1, len(at.levels)):
        (below, first), (inside, size) = (each[level - 1 : level + 1] for each in (at.offsets, at.levels))
        program = kernels.tree.parent_moments[grid(size, _NODES)]
        program(summed, bounds, below, inside, first, size, FAN, _NODES, N_SUMMED, **FUSED)
    found = torch.empty(4, dtype=torch.float64, device=device)
    kept = sizes if at.kept is None else at.kept.leaves
    kernels.visits.extents[(1,)](
        *(bounds, sizes, at.runs.own, at.runs.share, kept, lists.LEAF_GROWTH, lists.LEAF_SLACK, lists.WIDE_WALK, found),
        *(at.offsets[-1], at.levels[-1], n_leaves, at.kept is not None, cells.TOP, lists.LEAVES),
        num_warps=8,
        **ROUNDED,
    )
    extent, leaves, stretched, n_walks = found.tolist()
    return Cells(at, points, summed, sizes, extent, leaves, stretched, int(n_walks))


def sums(found: Cells, opening: float, spreading: float, d: int) -> Sums:
    """Return the sums over all points."""
    at, points = found.structure, found.points
    compiled = kernels.compiled(points)
    if at.kept is None or not at.kept.valid(opening, found.extent, found.stretched):
        at.kept = None  # the old lists are freed before the new ones are made
        far, near = lists.lists(found, opening, spreading)
        pieces = lists.Pieces.of(near, compiled=compiled)
        at.kept = lists.KeptLists(far, near, pieces, opening, found.extent, found.sizes[0])
    at.kept.uses += 1
    far, near, pieces = at.kept.far, at.kept.near, at.kept.pieces
    n = len(at.order)
    forces = torch.empty((n, d), dtype=torch.float64, device=points.device)
    potential = torch.empty(n, dtype=points.dtype, device=points.device)
    if compiled:
        leaf, start, end, of_leaf = pieces
        runs = at.runs.first, at.runs.own
        partial = torch.empty((len(leaf), 3, LEAF), dtype=points.dtype, device=points.device)
        program = kernels.tree.near_sums[(len(leaf),)]
        program(*points, *runs, leaf, start, end, near.cells, partial, LEAF, num_warps=4, **FUSED)
        out = at.order, potential, forces, at.n_leaves, at.n_above, d
        program = kernels.tree.leaf_sums[(len(at.runs.first),)]
        program(
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
    value, gx, gx_of_y, gx_of_z, gy, gy_of_x, gy_of_z = kernels.expansion.expanded(x, y, z, field.T[:, :, None])
    out = torch.stack((value, -0.5 * (gx + gx_of_y + gx_of_z), -0.5 * (gy + gy_of_x + gy_of_z)))
    leaf = torch.repeat_interleave(torch.arange(n_leaves, device=points.device), near.start.diff())
    for begin in range(0, len(leaf), _NEAR_PAIRS):
        mine, other = leaf[begin : begin + _NEAR_PAIRS], near.cells[begin : begin + _NEAR_PAIRS].to(torch.int64)
        ex, ey = (each[mine][:, :, None] - each[other][:, None, :] for each in blocks[:2])
        h = blocks[2][mine][:, :, None] * blocks[2][other][:, None, :]
        m = 1.0 / (h + ex * ex + ey * ey)
        w = h * m * blocks[3][other][:, None, :]
        terms = torch.stack((w.sum(dim=2), (w * m * ex).sum(dim=2), (w * m * ey).sum(dim=2)), dim=1)
        owners, counts = torch.unique_consecutive(mine, return_counts=True)
        out[:, owners] += segment_sums(terms, counts).permute(1, 0, 2)
    of_points = torch.empty_like(points[:3])
    of_points[:, (runs.first[:, None] + torch.arange(LEAF, device=points.device))[there]] = out[:, there]
    of_points[0] -= points[3]  # without the point itself
    return of_points


def _expansions(summed: Tensor, leaves: Tensor, far: Lists) -> Tensor:
    """Return the coefficients of the field of the far nodes of each leaf around its centre, (leaves, 20)."""
    parts = []
    for rows, entries, counts in row_ranges(far.start, _FAR_PAIRS):
        own = leaves[rows].repeat_interleave(counts, dim=0)
        other = summed[far.cells[entries].to(torch.int64)]
        x, y = own[:, lists.X] - other[:, lists.X], own[:, lists.Y] - other[:, lists.Y]
        b, *moments, n = other[:, lists.B : lists.COUNT + 1].T
        *terms, last = kernels.expansion.coefficients(x, y, own[:, lists.B], b, *moments, n)
        parts.append(segment_sums(torch.stack((*terms, n * last / 6.0), dim=1), counts))
    return torch.cat(parts)


class TorchTree:
    """The sums over a tree that :mod:`drsne.engines.tree` needs."""

    LARGE = 0  # cells are used again for maps of any size
    MOST_USES, GROWN = 16, 1.3  # largest number of evaluations with the same cells, and largest growth of the leaves
    MOST_AGE = 8  # number of times that only small cells are made again

    @staticmethod
    def centred(Y: Tensor) -> Tensor:
        return Y - Y.mean(dim=0)

    @staticmethod
    def structure(Y: Tensor, scales: Tensor | None, last: Structure | None = None) -> Structure:
        """Return a division of the points of a map into cells, which has the large cells of the ``last`` one.

        The log scales of the points are a further coordinate, in which cells are divided too.
        """
        Y = Y if scales is None else torch.cat((Y, _HEIGHT * torch.log(scales)[:, None]), dim=1)
        return cells.structure(Y, last)

    divided_again = structure

    @staticmethod
    def cells(Y: Tensor, scales: Tensor | None, at: Structure, precision: str, memory: dict[str, Any]) -> Cells:
        return summed_cells(Y, scales, at, pair_dtype(Y, scales, precision), memory.get("masses"))

    @staticmethod
    def sums(found: Cells, d: int, theta: float) -> Sums:
        return sums(found, (_LEAF_THETA[d] * theta) ** 2, _SPREADING, d)
