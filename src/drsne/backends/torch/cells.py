"""The cells of a map: its points divided into leaves, and leaves joined to larger cells.

Points are sorted so that every leaf is a run of 32 points, and every other node a run of 4 nodes of the level below.
All levels then have a known size, and every step is a sort or a sum over the rows of an array. Cells are halved at the
medians of their widest sides until they are leaves. A Triton program divides each small cell at once. Large cells of
large maps are halved by programs that count how many coordinates are below a value, because sorting them would take
much longer.

A leaf with points of several groups of the map is much wider than others, and almost all leaves are near to it. Such
wide leaves are divided into parts at the gaps between their points. The parts are nodes too, numbered after the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from drsne.backends.torch import kernels
from drsne.backends.torch.kernels import ROUNDED

LEAF = 32  # number of points in a leaf
FAN = 4  # number of nodes in a node of the next level
TOP = 64  # largest number of nodes in the highest level, a power of two
_WIDE = 2.0  # extent of a leaf, relative to the mean, above which it is divided into parts
CUTS = 2  # number of times that a wide leaf and its parts are cut in two, which makes at most FAN parts
SMALL_CELL = 1024  # number of points in the cells that are divided again
_COUNTED_FROM = 2**22  # smallest number of points for which large cells are halved by counting
_BLOCK = 2048  # number of points in a program that counts
_BINS = 2048  # number of bins of a histogram, which sorts by 11 of 33 bits
_SHIFTS = (22, 11, 0)


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
    kept: Any = None  # the lists that are used for a few evaluations

    @property
    def order(self) -> Tensor:
        """The points, leaf by leaf."""
        return self.slots[: self.n]

    @property
    def offsets(self) -> list[int]:
        """The number of the first node of each level."""
        return [0, *accumulate(self.levels[:-1])]

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
        slots, size = last.slots, min(whole, SMALL_CELL)
    slots, extents = _leaves(places, slots, size)
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
    if kernels.compiled(places):
        sizes = torch.empty((len(wide), 2**CUTS), dtype=torch.int32, device=slots.device)
        if len(wide):
            program = kernels.cells.cut[(len(wide),)]
            program(places, slots, wide, sizes, places.shape[1], CUTS, LEAF, num_warps=1, **ROUNDED)
    else:
        inside = slots.view(-1, LEAF)[wide]
        order, sizes = parts(places[inside].permute(2, 0, 1), CUTS)
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


def _leaves(places: Tensor, slots: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the points in the order of their leaves, and the largest extent of every leaf.

    ``places`` (n, d) are in single precision. ``slots`` are the points by cells of this ``size``, and numbers from n on
    that fill the last cells. These stand for the upper corner of the map, which stays behind all points.
    """
    compiled = kernels.compiled(places)
    corner = places.amax(dim=0)
    small = min(size, SMALL_CELL)
    if size > small:
        halve = counted if compiled and len(slots) >= _COUNTED_FROM else halved
        slots, _ = halve(_values(places, corner, slots), slots, size, small)
    if compiled:
        found, extents = torch.empty_like(slots), places.new_empty(len(slots) // LEAF)
        sizes = *places.shape, small // LEAF, LEAF
        program = kernels.cells.divide[(len(slots) // small,)]
        program(places, corner, slots, found, extents, *sizes, num_warps=4, **ROUNDED)
        return found, extents
    # The order within both halves stays as it was, as in the Triton program.
    slots, values = halved(_values(places, corner, slots), slots, small, LEAF, in_order=True)
    leaves = values.reshape(len(values), -1, LEAF)
    return slots, (leaves.amax(dim=2) - leaves.amin(dim=2)).amax(dim=0)


def _values(places: Tensor, corner: Tensor, slots: Tensor) -> Tensor:
    """Return the coordinates of the points in the order of the slots, (d, slots)."""
    filled = corner[:, None].repeat(1, len(slots))
    filled[:, : len(places)] = places.T
    return filled[:, slots]


def halved(values: Tensor, slots: Tensor, size: int, until: int, *, in_order: bool = False) -> tuple[Tensor, Tensor]:
    """Return slots and values after cells were sorted and halved until they have ``until`` points.

    With ``in_order``, the order within both halves of a cell stays as it was.
    """
    while size > until:
        inside = values.reshape(len(values), -1, size)
        widest = (inside.amax(dim=2) - inside.amin(dim=2)).argmax(dim=0)
        key = inside.gather(0, widest[None, :, None].expand(1, -1, size))[0]
        order = key.sort(dim=1, stable=True).indices
        if in_order:
            order = order.reshape(len(key), 2, -1).sort(dim=2).values.reshape(order.shape)
        first = torch.arange(0, len(slots), size, device=slots.device)[:, None]
        moved = (order + first).reshape(-1)
        slots, values = slots[moved], values[:, moved]
        size //= 2
    return slots, values


def counted(values: Tensor, slots: Tensor, size: int, until: int) -> tuple[Tensor, Tensor]:
    """Return the same as :func:`halved` with ``in_order``, by Triton programs that count. Cells have whole blocks."""
    programs, device, (d, whole) = kernels.cells, values.device, values.shape
    blocks = whole // _BLOCK
    values = values.contiguous()
    while size > until:
        n_cells = whole // size
        bounds = torch.empty((blocks, d, 2), dtype=values.dtype, device=device)
        programs.bounds[(blocks,)](values, bounds, whole, d, _BLOCK, **ROUNDED)
        bounds = bounds.reshape(n_cells, -1, d, 2)
        axis = (bounds[..., 1].amax(dim=1) - bounds[..., 0].amin(dim=1)).argmax(dim=1).to(torch.int32)
        median = torch.zeros(n_cells, dtype=torch.int64, device=device)
        left = torch.full_like(median, size // 2)
        for shift in _SHIFTS:
            bins = torch.empty((blocks, _BINS), dtype=torch.int32, device=device)
            programs.histogram[(blocks,)](values, axis, median, bins, whole, size, shift, _BLOCK, _BINS, **ROUNDED)
            reached = bins.reshape(n_cells, -1, _BINS).sum(dim=1).cumsum(dim=1)
            found = (reached < left[:, None]).sum(dim=1, keepdim=True)
            left = left - torch.nn.functional.pad(reached, (1, 0)).gather(1, found)[:, 0]
            median = median * _BINS + found[:, 0]
        # ``left`` of the points at the median belong to the lower half.
        counts = torch.empty((blocks, 2), dtype=torch.int32, device=device)
        programs.count[(blocks,)](values, axis, median, counts, whole, size, _BLOCK, **ROUNDED)
        less, equal = counts.reshape(n_cells, -1, 2).unbind(dim=2)
        before = equal.cumsum(dim=1) - equal
        taken = torch.minimum((left[:, None] - before).clamp(min=0), equal)
        lower = less + taken
        begin = (lower.cumsum(dim=1) - lower).reshape(-1)
        new_values, new_slots = torch.empty_like(values), torch.empty_like(slots)
        programs.part[(blocks,)](
            *(values, slots, axis, median, taken.reshape(-1), begin, new_values, new_slots, whole, size, d, _BLOCK),
            **ROUNDED,
        )
        values, slots, size = new_values, new_slots, size // 2
    return slots, values


def parts(values: Tensor, cuts: int) -> tuple[Tensor, Tensor]:
    """Return an order of the points of each leaf in which its parts follow each other, and the sizes of the parts.

    ``values`` are the coordinates (d, leaves, points). A leaf, and then each of its parts, is cut in two at the largest
    gap along any axis, ``cuts`` times in all. A part of points that coincide is not cut, so some parts may be empty.
    """
    part = torch.zeros(values.shape[1:], dtype=torch.int64, device=values.device)
    for cut in range(cuts):
        numbers = torch.arange(2**cut, device=values.device)
        member = part[:, None, :] == numbers[None, :, None]  # (leaves, parts, points)
        inside = torch.where(member, values[:, :, None, :], torch.inf)
        along = inside.sort(dim=3).values
        gaps = torch.where(along[..., 1:] < torch.inf, along.diff(dim=3), -1.0)
        largest = gaps.max(dim=3)  # (d, leaves, parts)
        axis = largest.values.argmax(dim=0, keepdim=True)
        before = largest.indices.gather(0, axis)[..., None]  # the last point below the gap
        axis = axis[..., None].expand(1, -1, -1, values.shape[2])
        above = inside.gather(0, axis)[0] > along.gather(0, axis)[0].gather(2, before[0])
        part = 2 * part + (above & member).any(dim=1)
    sizes = (part[:, :, None] == torch.arange(2**cuts, device=values.device)).sum(dim=1)
    return part.sort(dim=1, stable=True).indices, sizes
