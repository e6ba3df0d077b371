"""Parts of the leaves that are much wider than others, because their points belong to several groups of a map."""

from __future__ import annotations

import torch
from torch import Tensor


def divided(values: Tensor, cuts: int) -> tuple[Tensor, Tensor]:
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
