"""Segments of tensors: where they begin, ranges of rows with few entries, and sums in an order that never changes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor


def starts(counts: Tensor) -> Tensor:
    """Return where segments with these numbers of entries begin, and where the last one ends."""
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def segment_sums(values: Tensor, counts: Tensor) -> Tensor:
    """Return the sums over segments with these numbers of rows."""
    found: Tensor = torch.segment_reduce(values, "sum", lengths=counts, axis=0)
    return found


def row_ranges(indptr: Tensor, most: int) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield ranges of rows that have about ``most`` entries at most, the ranges of these, and their number by row."""
    n, total = len(indptr) - 1, int(indptr[-1])
    cuts, ends = [0, n], [0, total]
    if total > most:
        wanted = torch.arange(1, math.ceil(total / most), device=indptr.device, dtype=indptr.dtype) * most
        cuts = [0, *torch.searchsorted(indptr, wanted).tolist(), n]
        ends = indptr[torch.tensor(cuts, device=indptr.device)].tolist()
    for lo, hi, begin, end in zip(cuts, cuts[1:], ends, ends[1:], strict=False):
        if lo < hi:
            yield slice(lo, hi), slice(begin, end), indptr[lo : hi + 1].diff()


def row_sums(values: Tensor) -> Tensor:
    """Return the sums over the last dimension.

    The halves of an array are added until one number is left, so the result for a row does not depend on the number of
    rows, which changes the order of the sums of PyTorch.
    """
    while (width := values.shape[-1]) > 1:
        half = width // 2
        summed = values[..., :half] + values[..., half : 2 * half]
        if width % 2:
            summed[..., 0] += values[..., -1]
        values = summed
    return values[..., 0]


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Return the scalar products of the rows of two arrays (m, d)."""
    return row_sums(a * b)
