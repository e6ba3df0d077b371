"""Ranges of rows that have a limited number of entries, so that temporary arrays stay small."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor


def row_ranges(indptr: Tensor, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield ranges of rows that have about ``most`` entries at most, and the ranges of their entries."""
    n, total = len(indptr) - 1, int(indptr[-1])
    if total <= most:
        yield 0, n, 0, total
        return
    parts = math.ceil(total / most)
    wanted = torch.arange(1, parts, device=indptr.device, dtype=indptr.dtype) * most
    cuts = [0, *torch.searchsorted(indptr, wanted).tolist(), n]
    ends = indptr[torch.tensor(cuts, device=indptr.device)].tolist()
    for lo, hi, begin, end in zip(cuts, cuts[1:], ends, ends[1:], strict=False):
        if lo < hi:
            yield lo, hi, begin, end
