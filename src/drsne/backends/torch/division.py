"""The division of the points of a map into leaves of 32 points, by halving cells at the medians of their widest sides.

Small cells are divided by a Triton program, each at once. Large cells of large maps are halved by programs that count
how many coordinates are below a value, because sorting them would take much longer. Everything else is sorted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from drsne.backends.torch.kernels import ROUNDED

LEAF = 32  # number of points in a leaf
SMALL_CELL = 1024  # number of points in the cells that are divided again
_COUNTED_FROM = 2**22  # smallest number of points for which large cells are halved by counting
_BLOCK = 2048  # number of points in a program that counts
_BINS = 2048  # number of bins of a histogram, which sorts by 11 of 33 bits
_SHIFTS = (22, 11, 0)


def divided(places: Tensor, slots: Tensor, size: int, *, compiled: bool) -> tuple[Tensor, Tensor]:
    """Return the points in the order of their leaves, and the largest extent of every leaf.

    ``places`` (n, d) are in single precision. ``slots`` are the points by cells of this ``size``, and numbers from n on
    that fill the last cells. These stand for the upper corner of the map, which stays behind all points.
    """
    corner = places.amax(dim=0)
    small = min(size, SMALL_CELL)
    if size > small:
        values = _values(places, corner, slots)
        if compiled and len(slots) >= _COUNTED_FROM:
            slots, _ = counted(values, slots, size, small)
        else:
            slots, _ = halved(values, slots, size, small)
    if compiled:
        return _divided_cells(places, corner, slots, small)
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
    from drsne.backends.torch.kernels import halving as kernels

    d, whole = values.shape
    blocks, device = whole // _BLOCK, values.device
    values = values.contiguous()
    while size > until:
        cells = whole // size
        bounds = torch.empty((blocks, d, 2), dtype=values.dtype, device=device)
        kernels.bounds[(blocks,)](values, bounds, whole, d, _BLOCK, **ROUNDED)
        bounds = bounds.reshape(cells, -1, d, 2)
        axis = (bounds[..., 1].amax(dim=1) - bounds[..., 0].amin(dim=1)).argmax(dim=1).to(torch.int32)
        median = torch.zeros(cells, dtype=torch.int64, device=device)
        left = torch.full_like(median, size // 2)
        for shift in _SHIFTS:
            bins = torch.empty((blocks, _BINS), dtype=torch.int32, device=device)
            kernels.histogram[(blocks,)](values, axis, median, bins, whole, size, shift, _BLOCK, _BINS, **ROUNDED)
            reached = bins.reshape(cells, -1, _BINS).sum(dim=1).cumsum(dim=1)
            found = (reached < left[:, None]).sum(dim=1, keepdim=True)
            left = left - torch.nn.functional.pad(reached, (1, 0)).gather(1, found)[:, 0]
            median = median * _BINS + found[:, 0]
        # ``left`` of the points at the median belong to the lower half.
        counts = torch.empty((blocks, 2), dtype=torch.int32, device=device)
        kernels.count[(blocks,)](values, axis, median, counts, whole, size, _BLOCK, **ROUNDED)
        less, equal = counts.reshape(cells, -1, 2).unbind(dim=2)
        before = equal.cumsum(dim=1) - equal
        taken = torch.minimum((left[:, None] - before).clamp(min=0), equal)
        lower = less + taken
        begin = (lower.cumsum(dim=1) - lower).reshape(-1)
        new_values, new_slots = torch.empty_like(values), torch.empty_like(slots)
        kernels.part[(blocks,)](
            *(values, slots, axis, median, taken.reshape(-1), begin, new_values, new_slots, whole, size, d, _BLOCK),
            **ROUNDED,
        )
        values, slots, size = new_values, new_slots, size // 2
    return slots, values


def _divided_cells(places: Tensor, corner: Tensor, slots: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the slots after cells of this size were divided into leaves by a Triton program, and their extents."""
    from drsne.backends.torch.kernels.cells import divide

    found, extents = torch.empty_like(slots), places.new_empty(len(slots) // LEAF)
    n, d = places.shape
    sizes = n, d, size // LEAF, LEAF
    divide[(len(slots) // size,)](places, corner, slots, found, extents, *sizes, num_warps=4, **ROUNDED)
    return found, extents
