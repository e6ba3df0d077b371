"""Steps of the optimisers on tensors. The formulas are those of :mod:`drsne.backends.numpy`.

On a GPU, Triton programs do the same with fewer launches, because a launch takes longer than such a step of most maps.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from drsne.backends.torch import kernels
from drsne.backends.torch.kernels import ROUNDED, grid

_BLOCK = 512  # number of coordinates, or of points, in a Triton program


def _compiled(values: Tensor) -> bool:
    """Return whether there are Triton programs for the points (n, d) of these values."""
    return kernels.compiled(values) and values.dtype == torch.float64 and values.shape[1] <= 3


def momentum_step(
    gradient: Tensor,
    step: Tensor,
    gains: Tensor,
    *,
    rate: float,
    momentum: float,
    min_gain: float | None,
    grow_from_rest: bool,
    units: Tensor | None = None,
) -> Tensor:
    if _compiled(step) and step.is_contiguous() and gains.is_contiguous():
        n, d = step.shape
        kernels.steps.momentum_step[grid(n * d, _BLOCK)](
            gradient.contiguous(),
            step if units is None else units.contiguous(),
            *(step, gains, float(rate), float(momentum), 0.0 if min_gain is None else float(min_gain)),
            *(n * d, d, units is not None, min_gain is not None, grow_from_rest, _BLOCK),
            **ROUNDED,
        )
        return step
    if units is not None:
        gradient = units[:, None] * gradient
    if min_gain is not None:
        uphill = torch.sign(step) == torch.sign(gradient) if grow_from_rest else step * gradient >= 0.0
        torch.clamp(torch.where(uphill, gains * 0.8, gains + 0.2), min=min_gain, out=gains)
        gradient = gains * gradient
    return step.mul_(momentum).add_(gradient, alpha=-rate)


def adam_step(
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    *,
    rate: float,
    betas: tuple[float, float],
    eps: float,
    n_steps: int,
    units: Tensor | None = None,
) -> Tensor:
    one, two = betas
    per_root, factor = 1.0 / math.sqrt(1.0 - two**n_steps), -rate / (1.0 - one**n_steps)
    if _compiled(mean) and mean.is_contiguous() and square.is_contiguous():
        (n, d), out = mean.shape, torch.empty_like(mean)
        kernels.steps.adam_step[grid(n * d, _BLOCK)](
            gradient.contiguous(),
            mean if units is None else units.contiguous(),
            *(mean, square, out, *map(float, (one, two, eps, per_root, factor))),
            *(n * d, d, units is not None, _BLOCK),
            **ROUNDED,
        )
        return out
    if units is not None:
        gradient = units[:, None] * gradient
    mean.mul_(one).add_(gradient, alpha=1.0 - one)
    square.mul_(two).addcmul_(gradient, gradient, value=1.0 - two)
    root = square.sqrt().mul_(per_root).add_(eps)
    return (mean / root).mul_(factor)


def combined(attraction: Tensor, repulsion: Tensor, a: float, b: float, factor: float) -> Tensor:
    return attraction.mul_(factor * a).sub_(repulsion, alpha=factor * b)


def moved(Y: Tensor, step: Tensor, *, units: Tensor | None, longest: float | None, center: bool) -> Any:
    if _compiled(Y):
        return _moved(Y, step, units, longest, center)
    factor: Any = None if units is None else units[:, None]
    if longest is not None:
        length = torch.linalg.vector_norm(step, dim=1, keepdim=True)
        limit = longest / length.clamp(min=longest)
        factor = limit if factor is None else limit * factor
    out = Y + step if factor is None else torch.addcmul(Y, step, factor)
    mean = out.mean(dim=0)
    if not bool(torch.isfinite(mean).all()):
        return None
    return out.sub_(mean) if center else out


def _moved(Y: Tensor, step: Tensor, units: Tensor | None, longest: float | None, center: bool) -> Tensor | None:
    """Return the same by Triton programs. The sums of blocks of points are added in a fixed order."""
    n, d = Y.shape
    blocks = grid(n, _BLOCK)[0]
    out = torch.empty((n, d), dtype=Y.dtype, device=Y.device)
    sums = torch.empty((d, blocks), dtype=Y.dtype, device=Y.device)
    kernels.steps.advance[(blocks,)](
        *(Y.contiguous(), step.contiguous(), Y if units is None else units.contiguous()),
        *(1.0 if longest is None else float(longest), out, sums, n, blocks),
        *(d, units is not None, longest is not None, _BLOCK),
        **ROUNDED,
    )
    total = sums.sum(dim=1)
    if center:  # before the sums are read, so that the device does not wait for the host
        kernels.steps.centre[grid(n * d, _BLOCK)](out, total, n * d, n, d, _BLOCK, **ROUNDED)
    return out if all(map(math.isfinite, total.tolist())) else None
