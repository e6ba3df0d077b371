"""Steps of the optimisers on tensors. The formulas are those of :mod:`drsne.backends.steps`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


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
    """Update the last ``step`` and the ``gains`` in place, and return the step."""
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
    """Update the running ``mean`` and mean ``square`` of the gradient in place, and return the step."""
    if units is not None:
        gradient = units[:, None] * gradient
    one, two = betas
    mean.mul_(one).add_(gradient, alpha=1.0 - one)
    square.mul_(two).addcmul_(gradient, gradient, value=1.0 - two)
    root = square.sqrt().mul_(1.0 / math.sqrt(1.0 - two**n_steps)).add_(eps)
    return (mean / root).mul_(-rate / (1.0 - one**n_steps))


def combined(attraction: Tensor, repulsion: Tensor, a: float, b: float, factor: float) -> Tensor:
    """Return ``factor * (a * attraction - b * repulsion)``; both may be overwritten."""
    return attraction.mul_(factor * a).sub_(repulsion, alpha=factor * b)


def moved(Y: Tensor, step: Tensor, *, units: Tensor | None, longest: float | None, center: bool) -> Any:
    """Return the map after a step, or None if it is not finite.

    Steps are limited to the length ``longest``, then multiplied by the ``units`` of the points. If ``center`` is True,
    the mean of the map becomes 0.
    """
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
