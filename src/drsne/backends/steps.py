"""Steps of the optimisers as formulas on arrays, for backends without a faster version."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def in_units(values: Array, units: Array | None) -> Array:
    """Return the rows of ``values`` times the ``units`` of the points, if there are any."""
    return values if units is None else units[:, None] * values


def momentum_step(
    gradient: Array,
    step: Array,
    gains: Array,
    *,
    rate: float,
    momentum: float,
    min_gain: float | None,
    grow_from_rest: bool,
    units: Array | None = None,
) -> Array:
    """Update the last ``step`` and the ``gains`` in place, and return the step.

    The gain of a coordinate grows while the gradient keeps its sign, that is, while the last step went downhill.
    """
    gradient = in_units(gradient, units)
    if min_gain is not None:
        uphill = np.sign(step) == np.sign(gradient) if grow_from_rest else step * gradient >= 0.0
        lowered = gains * 0.8
        gains += 0.2
        np.copyto(gains, lowered, where=uphill)
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
    units: Array | None = None,
) -> Array:
    """Update the running ``mean`` and mean ``square`` of the gradient in place, and return the step."""
    gradient = in_units(gradient, units)
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


def combined(attraction: Array, repulsion: Array, a: float, b: float, factor: float) -> Array:
    """Return ``factor * (a * attraction - b * repulsion)``; both may be overwritten."""
    attraction *= a
    repulsion *= b
    attraction -= repulsion
    attraction *= factor
    return attraction


def moved(Y: Array, step: Array, *, units: Array | None, longest: float | None, center: bool) -> Array | None:
    """Return the map after a step, or None if it is not finite.

    Steps are limited to the length ``longest``, then multiplied by the ``units`` of the points. If ``center`` is True,
    the mean of the map becomes 0.
    """
    if longest is not None:
        length = np.sqrt(np.einsum("ij,ij->i", step, step))
        if not length.max() <= longest:
            step = step * np.minimum(1.0, longest / np.maximum(length, longest))[:, None]
    out = Y + in_units(step, units)
    for column in out.T:  # in a loop, because NumPy's mean over the first axis takes ten times as long
        mean = float(column.mean())
        if not math.isfinite(mean):
            return None
        if center:
            column -= mean
    return out
