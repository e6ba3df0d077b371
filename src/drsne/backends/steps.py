"""Steps of the optimisers as formulas on arrays, for backends without a faster version."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def momentum_step(
    gradient: Array,
    step: Array,
    gains: Array,
    *,
    rate: float,
    momentum: float,
    min_gain: float | None,
    grow_from_rest: bool,
) -> Array:
    """Update the last ``step`` and the ``gains`` in place, and return the step.

    The gain of a coordinate grows while the gradient keeps its sign, that is, while the last step went downhill.
    """
    if min_gain is not None:
        uphill = np.sign(step) == np.sign(gradient) if grow_from_rest else step * gradient >= 0.0
        gains[:] = np.where(uphill, gains * 0.8, gains + 0.2)
        np.maximum(gains, min_gain, out=gains)
        gradient = gains * gradient
    step *= momentum
    step -= rate * gradient
    return step


def adam_step(
    gradient: Array,
    mean: Array,
    square: Array,
    *,
    rate: float,
    betas: tuple[float, float],
    eps: float,
    n_steps: int,
) -> Array:
    """Update the running ``mean`` and mean ``square`` of the gradient in place, and return the step."""
    one, two = betas
    mean *= one
    mean += (1.0 - one) * gradient
    power = gradient * gradient
    power *= 1.0 - two
    square *= two
    square += power
    root = np.sqrt(square, out=power)
    root *= 1.0 / math.sqrt(1.0 - two**n_steps)
    root += eps
    step = np.divide(mean, root, out=root)
    step *= -rate / (1.0 - one**n_steps)
    return step
