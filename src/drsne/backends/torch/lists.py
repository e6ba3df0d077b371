"""Summaries of the cells of a map, and the lists of the cells that are summed for each leaf."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from drsne.backends.torch import kernels
from drsne.backends.torch.cells import CUTS, FAN, Structure
from drsne.backends.torch.kernels import ROUNDED, grid
from drsne.backends.torch.segments import starts

N_SUMMED = 16  # number of columns in the summary of a node
X, Y, B, XX, YY, XY, XB, YB, BB, COUNT, EXTENT, SPREAD = range(12)  # the columns that are used
LEAVES = 1024  # number of leaves that a program lists or measures at the same time
WIDE_WALK = 4.0  # extent of a leaf or a part, relative to the mean, above which several programs list its cells
_VISITED, _VISITORS = 64, 8192  # number of nodes that a program visits at the same time, and number of programs
_SUMMED_TOGETHER = 32  # largest number of near leaves that are summed together
# The largest number of evaluations with the same lists, the largest change of the extent of the map, and the extent
# below which the kernel is the same everywhere.
_LISTED_USES, _LISTED_GROWTH, _SMALL = 8, 1.1, 0.02
# A leaf has grown much if its extent exceeds a multiple of the old one by a share of its scale. Lists are made again if
# more than a share of the leaves has.
LEAF_GROWTH, LEAF_SLACK, _MOST_STRETCHED = 1.5, 0.3, 0.005
_PAIRS = 2**25  # largest number of pairs of cells that are compared at a time


class Lists(NamedTuple):
    """The cells that each leaf visits: ``cells[start[i]:start[i + 1]]`` are those of leaf i."""

    start: Tensor
    cells: Tensor


class Pieces(NamedTuple):
    """Pieces of the lists of near leaves, which are summed separately, because some leaves have very many."""

    leaf: Tensor  # the leaf of each piece
    start: Tensor  # where the piece begins in the list of near leaves
    end: Tensor
    of_leaf: Tensor  # pieces of_leaf[i] to of_leaf[i + 1] are those of leaf i

    @classmethod
    def of(cls, near: Lists, *, compiled: bool) -> Pieces:
        """Divide lists into pieces of a limited length. A Triton program writes some more pieces, which are empty."""
        n_leaves, device = len(near.start) - 1, near.start.device
        if compiled:
            # There are at most this many pieces. To know their number, the host would have to wait for the device.
            most = len(near.cells) // _SUMMED_TOGETHER + n_leaves
            sizes = most, most, most, n_leaves + 1
            found = cls(*(torch.empty(size, dtype=torch.int64, device=device) for size in sizes))
            program = kernels.visits.pieces[grid(n_leaves, LEAVES)]
            program(near.start, *found, n_leaves, most, _SUMMED_TOGETHER, LEAVES, **ROUNDED)
            return found
        counts = -(near.start.diff() // -_SUMMED_TOGETHER)
        of_leaf = starts(counts)
        leaf = torch.arange(n_leaves, device=device).repeat_interleave(counts, output_size=int(of_leaf[-1]))
        start = near.start[leaf] + (torch.arange(len(leaf), device=device) - of_leaf[leaf]) * _SUMMED_TOGETHER
        return cls(leaf, start, torch.minimum(start + _SUMMED_TOGETHER, near.start[leaf + 1]), of_leaf)


@dataclass
class KeptLists:
    """The far nodes and near leaves of every leaf, which are used for a few evaluations."""

    far: Lists
    near: Lists
    pieces: Pieces
    opening: float
    extent: float  # extent of the map for which they were made
    leaves: Tensor  # extents of the leaves for which they were made
    uses: int = 0

    def stretched(self, sizes: Tensor) -> Tensor:
        """Return the share of the leaves that have grown much since the lists were made, on the device."""
        extents, scales = sizes
        return (extents > LEAF_GROWTH * self.leaves + LEAF_SLACK * scales).to(sizes.dtype).mean()

    def valid(self, opening: float, extent: float, stretched: float) -> bool:
        """Return whether the lists can be used for a map of this extent, in which some leaves have grown."""
        alike = max(extent, self.extent) <= max(_LISTED_GROWTH * min(extent, self.extent), _SMALL)
        return opening == self.opening and self.uses < _LISTED_USES and alike and stretched <= _MOST_STRETCHED


class Cells(NamedTuple):
    """A structure with the points in its order and the summaries of its nodes."""

    structure: Structure
    points: Tensor  # x, y, scale and mass of the points leaf by leaf, (4, n)
    summed: Tensor  # (nodes, 16)
    sizes: Tensor  # extents and scales of the leaves and of the parts of wide ones, (2, leaves)
    extent: float  # extent of the map
    leaves: float  # mean extent of the leaves and of the parts of wide ones
    stretched: float  # share of the leaves that have grown much since their lists were made
    n_walks: int = 0  # number of walks in which Triton programs list cells

    def leaf_extent(self) -> float:
        """Return the mean extent of the leaves relative to that of the map, because a growing map keeps its cells."""
        return self.leaves / self.extent if self.extent > 0.0 else 0.0


def lists(found: Cells, opening: float, spreading: float) -> tuple[Lists, Lists]:
    """Return the far nodes and the near leaves of each leaf.

    A node is far enough from a leaf if ``(e + e')^2 + spreading a b ((Db/b)^2 + (Da/a)^2)`` is at most ``opening``
    times ``a b + distance^2``, where e and e' are the extents of the node and the leaf, and Da and Db the extents of
    their scales. In place of a wide leaf, its parts are in the lists and have lists. Near leaves are given by their
    numbers among the leaves and parts.
    """
    if kernels.compiled(found.points):
        return _visited(found, opening, spreading)
    at, summed = found.structure, found.summed
    spread = (summed[:, SPREAD] / summed[:, B]) ** 2
    place = torch.stack((summed[:, X], summed[:, Y], summed[:, B], summed[:, EXTENT], spread), dim=1)
    device, wide, parts = summed.device, at.runs.wide, 2**CUTS
    known = _inside_levels(tuple(at.levels), device)
    inside = torch.nn.functional.pad(known, (0, 0, 0, parts * len(wide))).to(torch.int64)
    inside[wide, 0] = len(known) + parts * torch.arange(len(wide), device=device)
    inside[wide, 1] = parts
    of_leaves = at.of_leaves(place)
    far: list[tuple[Tensor, Tensor]] = []
    near: list[tuple[Tensor, Tensor]] = []
    children = torch.arange(FAN, device=device)
    leaves = torch.nonzero(at.runs.own > 0)[:, 0]
    for own in leaves.split(max(1, _PAIRS // 1024)):
        leaf = own.repeat_interleave(at.levels[-1])
        node = (at.offsets[-1] + torch.arange(at.levels[-1], device=device)).repeat(len(own))
        while len(leaf):
            p, q = of_leaves[leaf], place[node]
            h = p[:, 2] * q[:, 2]
            away = p[:, :2] - q[:, :2]
            extent = p[:, 3] + q[:, 3]
            accepted = extent * extent + spreading * h * (p[:, 4] + q[:, 4]) <= opening * (h + (away * away).sum(dim=1))
            far.append((leaf[accepted], node[accepted]))
            leaf, node = leaf[~accepted], node[~accepted]
            first, count = inside[node].T
            last = count == 0
            near.append((leaf[last], torch.where(node < at.n_leaves, node, node - at.n_above)[last]))
            there = children < count[:, None]
            leaf, node = leaf[:, None].expand(-1, FAN)[there], (first[:, None] + children)[there]
    return grouped(far, len(of_leaves)), grouped(near, len(of_leaves))


def _visited(found: Cells, opening: float, spreading: float) -> tuple[Lists, Lists]:
    """Return the far nodes and near leaves of each leaf by Triton programs, which count them first.

    Leaves that are much wider than others visit very many cells, so there is a walk for each node of the highest level.
    """
    programs, at, device, n_walks = kernels.visits, found.structure, found.points.device, found.n_walks
    n_top, n_nodes, n_leaves, runs = at.levels[-1], len(found.summed), len(at.runs.first), at.runs
    known = _inside_levels(tuple(at.levels), device)
    place = torch.empty((n_nodes, 8), dtype=found.summed.dtype, device=device)
    walks = torch.empty((n_walks, 3), dtype=torch.int32, device=device)
    programs.tables[grid(n_nodes, LEAVES)](
        *(found.summed, known, runs.own, runs.wide, place),
        *(at.n_leaves, len(known), len(runs.wide), 2**CUTS, N_SUMMED, LEAVES),
        **ROUNDED,
    )
    of_leaf = torch.empty(n_leaves + 1, dtype=torch.int64, device=device)
    programs.begin[grid(n_leaves, LEAVES)](
        *(found.sizes, runs.own, WIDE_WALK, found.leaves, walks, of_leaf),
        *(at.offsets[-1], n_top, n_leaves, at.n_leaves, at.n_above, LEAVES),
        **ROUNDED,
    )
    # While nodes of one level are on a stack, those of higher levels stay there, so each level adds at most FAN - 1
    # nodes for each one that is taken. The parts of wide leaves are one more level.
    height = n_top + FAN * _VISITED * (len(at.levels) + 1)
    visitors = min(n_walks, _VISITORS)
    stacks = torch.empty(visitors * height, dtype=torch.int32, device=device)
    counts = torch.empty((2, n_walks + 1), dtype=torch.int64, device=device)
    fixed = place, opening, spreading, walks, stacks
    sizes = n_walks, at.n_leaves, at.n_above, height, FAN, _VISITED
    # Both programs must decide alike, so products and sums are not fused: that could differ between the two.
    programs.visit[(visitors,)](*fixed, *counts, *counts, *sizes, False, num_warps=1, **ROUNDED)
    ends = counts.cumsum(dim=1)
    far, near = (torch.empty(count, dtype=torch.int32, device=device) for count in ends[:, -1].tolist())
    programs.visit[(visitors,)](*fixed, *ends, far, near, *sizes, True, num_warps=1, **ROUNDED)
    begin_far, begin_near = ends[:, of_leaf].contiguous()
    return Lists(begin_far, far), Lists(begin_near, near)


@lru_cache(maxsize=2)
def _inside_levels(levels: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the first node inside each node of the levels and the number of nodes inside it, (nodes, 2)."""
    none, start = torch.zeros(levels[0], dtype=torch.int32, device=device), 0
    first, count = [none], [none]
    for below, size in pairwise(levels):
        numbers = FAN * torch.arange(size, dtype=torch.int32, device=device)
        first.append(start + numbers)
        count.append((below - numbers).clamp(max=FAN))
        start += below
    return torch.stack((torch.cat(first), torch.cat(count)), dim=1).contiguous()


def grouped(pairs: list[tuple[Tensor, Tensor]], n_leaves: int) -> Lists:
    """Return pairs of leaves and cells, sorted by leaf."""
    leaf, cell = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    leaf, by_leaf = torch.sort(leaf.to(torch.int32), stable=True)
    bounds = torch.arange(n_leaves + 1, device=leaf.device, dtype=torch.int32)
    return Lists(torch.searchsorted(leaf, bounds), cell[by_leaf].to(torch.int32))
