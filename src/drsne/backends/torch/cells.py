"""Cells of a map for sums over a tree, and the pairs of cells that are summed.

Points are sorted so that every leaf is a run of 32 points, and every other node a run of 4 nodes of the level below.
All levels then have a known size, and every step is a sort or a sum over the rows of an array. A leaf with points of
several groups of the map is much wider than others, and almost all leaves are near to it. Such wide leaves are divided
into parts at the gaps between their points. The parts are nodes too, numbered after the leaves.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from drsne.backends.torch import division, wide_leaves
from drsne.backends.torch.division import LEAF
from drsne.backends.torch.kernels import ROUNDED

FAN = 4  # number of nodes in a node of the next level
N_SUMMED = 16  # number of columns in the summary of a node
X, Y, B, XX, YY, XY, XB, YB, BB, COUNT, EXTENT, SPREAD = range(12)  # the columns that are used
_HEIGHT = 0.5  # length, in units of the map, that corresponds to a factor e of the scales
_VISITED, _VISITORS = 64, 8192  # number of nodes that a program visits at the same time, and number of programs
_WIDE = 2.0  # extent of a leaf, relative to the mean, above which it is divided into parts
_CUTS = 2  # number of times that a wide leaf and its parts are cut in two, which makes at most FAN parts
WIDE_WALK = 4.0  # extent of a leaf or a part, relative to the mean, above which several programs list its cells
_SUMMED_TOGETHER = 32  # largest number of near leaves that are summed together
TOP = 64  # largest number of nodes in the highest level, a power of two
LEAVES = 1024  # number of leaves that a program lists or measures at the same time
# The largest number of evaluations with the same lists, the largest change of the extent of the map, and the extent
# below which the kernel is the same everywhere.
_LISTED_USES, _LISTED_GROWTH, _SMALL = 8, 1.1, 0.02
# A leaf has grown much if its extent exceeds a multiple of the old one by a share of its scale. Lists are made again if
# more than a share of the leaves has.
LEAF_GROWTH, LEAF_SLACK, _MOST_STRETCHED = 1.5, 0.3, 0.005
_PAIRS = 2**25  # largest number of pairs of cells that are compared at a time


TRITON = importlib.util.find_spec("triton") is not None


def compiled(values: Tensor) -> bool:
    """Return whether there are Triton programs for these values. Without Triton, plain PyTorch is used."""
    return bool(TRITON and values.is_cuda and values.dtype in (torch.float32, torch.float64))


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
        if compiled:
            return cls._written(near)
        counts = -(near.start.diff() // -_SUMMED_TOGETHER)
        of_leaf = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        leaf = torch.arange(len(counts), device=counts.device).repeat_interleave(counts, output_size=int(of_leaf[-1]))
        start = near.start[leaf] + (torch.arange(len(leaf), device=leaf.device) - of_leaf[leaf]) * _SUMMED_TOGETHER
        return cls(leaf, start, torch.minimum(start + _SUMMED_TOGETHER, near.start[leaf + 1]), of_leaf)

    @classmethod
    def _written(cls, near: Lists) -> Pieces:
        """Return the pieces that a Triton program writes."""
        from drsne.backends.torch.kernels.visits import pieces

        n_leaves, device = len(near.start) - 1, near.start.device
        # There are at most this many pieces. To know their number, the host would have to wait for the device.
        most = len(near.cells) // _SUMMED_TOGETHER + n_leaves
        found = cls(*(torch.empty(size, dtype=torch.int64, device=device) for size in (most, most, most, n_leaves + 1)))
        pieces[(-(-n_leaves // LEAVES),)](near.start, *found, n_leaves, most, _SUMMED_TOGETHER, LEAVES, **ROUNDED)
        return found


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


class Runs(NamedTuple):
    """The points of the leaves and of the parts of wide leaves, which are both called leaves here."""

    wide: Tensor  # the leaves that are divided into parts
    first: Tensor  # the first point of each leaf, int32
    count: Tensor  # the number of its points
    own: Tensor  # the same, but 0 for wide leaves, because their parts are summed instead
    share: Tensor  # 1 divided by the number of leaves with points of their own, or 0 without such points


@dataclass
class Structure:
    """A division of the points into nested cells, which stays valid while the points move."""

    slots: Tensor  # the points, leaf by leaf, and further numbers that fill the last of 2^m leaves
    n: int  # number of points
    levels: list[int]  # number of nodes in each level, leaves first
    runs: Runs
    kept: KeptLists | None = None

    @property
    def order(self) -> Tensor:
        """The points, leaf by leaf."""
        return self.slots[: self.n]

    @property
    def offsets(self) -> list[int]:
        """The number of the first node of each level."""
        starts = [0]
        for size in self.levels[:-1]:
            starts.append(starts[-1] + size)
        return starts

    @property
    def n_leaves(self) -> int:
        """The number of leaves, without the parts of wide leaves."""
        return self.levels[0]

    @property
    def n_above(self) -> int:
        """The number of nodes that are not leaves. Parts of wide leaves are numbered after them."""
        return sum(self.levels[1:])

    def of_leaves(self, nodes: Tensor) -> Tensor:
        """Return the rows of the leaves and of the parts of wide leaves in a table of all nodes."""
        return torch.cat((nodes[: self.n_leaves], nodes[self.n_leaves + self.n_above :]))


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


def structure(places: Tensor, last: Structure | None = None) -> Structure:
    """Return a division of points (n, d) into cells, each of which is divided at the median of its widest side.

    The first half of a cell always has as many points as whole leaves allow, so all cells have known sizes. With the
    division of the ``last`` places of the points, only its small cells are divided again.
    """
    n = len(places)
    places = places.to(torch.float32).contiguous()
    n_leaves = -(-n // LEAF)
    whole = LEAF << max(0, (n_leaves - 1).bit_length())
    slots, size = torch.arange(whole, device=places.device), whole
    if last is not None:
        slots, size = last.slots, min(whole, division.SMALL_CELL)
    slots, extents = division.divided(places, slots, size, compiled=compiled(places))
    levels = [n_leaves]
    while levels[-1] > TOP:
        levels.append(-(-levels[-1] // FAN))
    slots, runs = _with_parts(places, slots, extents)
    return Structure(slots, n, levels, runs)


def _with_parts(places: Tensor, slots: Tensor, extents: Tensor) -> tuple[Tensor, Runs]:
    """Return the points with those of the parts of each wide leaf together, and the runs of all leaves and parts."""
    extent = extents[: len(places) // LEAF]  # a last leaf with fewer points is never divided
    wide = torch.nonzero(extent > _WIDE * extent.mean())[:, 0]
    begin = LEAF * wide[:, None]
    if compiled(places):
        from drsne.backends.torch.kernels.cells import cut

        sizes = torch.empty((len(wide), 2**_CUTS), dtype=torch.int32, device=slots.device)
        if len(wide):
            cut[(len(wide),)](places, slots, wide, sizes, places.shape[1], _CUTS, LEAF, num_warps=1, **ROUNDED)
    else:
        inside = slots.view(-1, LEAF)[wide]
        order, sizes = wide_leaves.divided(places[inside].permute(2, 0, 1), _CUTS)
        slots = slots.clone()
        slots.view(-1, LEAF)[wide] = slots[begin + order]
    first_of_leaves, count_of_leaves = _leaf_runs(len(places), slots.device)
    first = torch.cat((first_of_leaves, (begin + sizes.cumsum(dim=1) - sizes).reshape(-1).to(torch.int32)))
    count = torch.cat((count_of_leaves, sizes.reshape(-1).to(torch.int32)))
    own = count.clone()
    own[wide] = 0
    filled = (own > 0).to(torch.float32)
    return slots, Runs(wide, first, count, own, filled / filled.sum())


@lru_cache(maxsize=2)
def _leaf_runs(n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the first point of each leaf, and the numbers of points."""
    first = torch.arange(0, n, LEAF, dtype=torch.int32, device=device)
    return first, (n - first).clamp(max=LEAF)


def raised(Y: Tensor, scales: Tensor) -> Tensor:
    """Return the points of a map with their log scales as a further coordinate, in which cells are divided too."""
    return torch.cat((Y, _HEIGHT * torch.log(scales)[:, None]), dim=1)


def lists(found: Cells, opening: float, spreading: float) -> tuple[Lists, Lists]:
    """Return the far nodes and the near leaves of each leaf.

    A node is far enough from a leaf if ``(e + e')^2 + spreading a b ((Db/b)^2 + (Da/a)^2)`` is at most ``opening``
    times ``a b + distance^2``, where e and e' are the extents of the node and the leaf, and Da and Db the extents of
    their scales. In place of a wide leaf, its parts are in the lists and have lists. Near leaves are given by their
    numbers among the leaves and parts.
    """
    if compiled(found.points):
        return _visited(found, opening, spreading)
    at, summed = found.structure, found.summed
    spread = (summed[:, SPREAD] / summed[:, B]) ** 2
    place = torch.stack((summed[:, X], summed[:, Y], summed[:, B], summed[:, EXTENT], spread), dim=1)
    device, inside = summed.device, _inside(at).to(torch.int64)
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
    return tuple(_grouped(each, len(of_leaves)) for each in (far, near))  # type: ignore[return-value]


def _visited(found: Cells, opening: float, spreading: float) -> tuple[Lists, Lists]:
    """Return the far nodes and near leaves of each leaf by Triton programs, which count them first.

    Leaves that are much wider than others visit very many cells, so there is a walk for each node of the highest level.
    """
    from drsne.backends.torch.kernels import visits as kernels

    at, device, n_walks = found.structure, found.points.device, found.n_walks
    n_top, n_nodes, n_leaves, runs = at.levels[-1], len(found.summed), len(at.runs.first), at.runs
    known = _inside_levels(tuple(at.levels), device)
    place = torch.empty((n_nodes, 8), dtype=found.summed.dtype, device=device)
    walks = torch.empty((n_walks, 3), dtype=torch.int32, device=device)
    kernels.tables[(-(-n_nodes // LEAVES),)](
        *(found.summed, known, runs.own, runs.wide, place),
        *(at.n_leaves, len(known), len(runs.wide), 2**_CUTS, N_SUMMED, LEAVES),
        **ROUNDED,
    )
    of_leaf = torch.empty(n_leaves + 1, dtype=torch.int64, device=device)
    kernels.begin[(-(-n_leaves // LEAVES),)](
        *(found.sizes, runs.own, WIDE_WALK, found.leaves, walks, of_leaf),
        *(at.offsets[-1], n_top, n_leaves, at.n_leaves, at.n_above, LEAVES),
        **ROUNDED,
    )
    # While nodes of one level are on a stack, those of higher levels stay there, so each level adds at most FAN - 1
    # nodes for each one that is taken. The parts of wide leaves are one more level.
    height = n_top + FAN * _VISITED * (len(at.levels) + 1)
    programs = min(n_walks, _VISITORS)
    stacks = torch.empty(programs * height, dtype=torch.int32, device=device)
    counts = torch.empty((2, n_walks + 1), dtype=torch.int64, device=device)
    fixed = place, opening, spreading, walks, stacks
    sizes = n_walks, at.n_leaves, at.n_above, height, FAN, _VISITED
    # Both programs must decide alike, so products and sums are not fused: that could differ between the two.
    kernels.visit[(programs,)](*fixed, *counts, *counts, *sizes, False, num_warps=1, **ROUNDED)
    starts = counts.cumsum(dim=1)
    far, near = (torch.empty(count, dtype=torch.int32, device=device) for count in starts[:, -1].tolist())
    kernels.visit[(programs,)](*fixed, *starts, far, near, *sizes, True, num_warps=1, **ROUNDED)
    starts = starts[:, of_leaf].contiguous()
    return Lists(starts[0], far), Lists(starts[1], near)


def _inside(at: Structure) -> Tensor:
    """Return the first node inside each node and the number of nodes inside it, (nodes, 2)."""
    wide, parts = at.runs.wide, 2**_CUTS
    known = _inside_levels(tuple(at.levels), wide.device)
    found = torch.nn.functional.pad(known, (0, 0, 0, parts * len(wide)))
    found[wide, 0] = len(known) + parts * torch.arange(len(wide), dtype=torch.int32, device=wide.device)
    found[wide, 1] = parts
    return found


@lru_cache(maxsize=2)
def _inside_levels(levels: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the same for the nodes of the levels."""
    none, start = torch.zeros(levels[0], dtype=torch.int32, device=device), 0
    first, count = [none], [none]
    for below, size in pairwise(levels):
        numbers = FAN * torch.arange(size, dtype=torch.int32, device=device)
        first.append(start + numbers)
        count.append((below - numbers).clamp(max=FAN))
        start += below
    return torch.stack((torch.cat(first), torch.cat(count)), dim=1).contiguous()


def _grouped(pairs: list[tuple[Tensor, Tensor]], n_leaves: int) -> Lists:
    """Return pairs of leaves and cells, sorted by leaf."""
    leaf, cell = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    leaf, by_leaf = torch.sort(leaf.to(torch.int32), stable=True)
    bounds = torch.arange(n_leaves + 1, device=leaf.device, dtype=torch.int32)
    return Lists(torch.searchsorted(leaf, bounds), cell[by_leaf].to(torch.int32))
