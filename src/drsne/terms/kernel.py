"""The scales of the adaptive kernel (docs/theory.md, section 11)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drsne.terms import masses as weighted
from drsne.terms.profile import Smoothing, profile

Array = NDArray[np.float64]
KERNELS = ("auto", "adaptive", "fixed")
FULL_ADAPTATION = 0.1  # smallest density weight at which the automatic kernel adapts fully
SCALE_QUANTILE = 0.005  # quantile beyond which the log scales are winsorised at either end
LARGEST_LOG_SCALE = 12.0 * np.log(2.0)  # largest log scale; beyond it, products overflow in single precision


def log_scales(
    radii: Array,
    power: float,
    smoothing: Smoothing,
    quantile: float = SCALE_QUANTILE,
    masses: Array | None = None,
) -> Array:
    """Return the log scales of the adaptive kernel, ``power (log r_i - mean log r)``, winsorised (eq. 49).

    They are also bounded by ``LARGEST_LOG_SCALE`` at either end. ``r_i`` is the radius with the smoothing of the
    target, so duplicates also have a scale.
    """
    log = np.log(profile(radii, 1.0, smoothing, masses).radius)
    scale = power * (log - weighted.mean(log, masses))
    low, high = weighted.quantiles(scale, (quantile, 1.0 - quantile), masses)
    return np.asarray(np.clip(scale, max(low, -LARGEST_LOG_SCALE), min(high, LARGEST_LOG_SCALE)))


def adaptation(kernel: str, weight: float) -> float:
    """Return the power to which the scales of a kernel are raised at a density ``weight``."""
    if kernel == "auto":
        return min(1.0, weight / FULL_ADAPTATION)
    return float(kernel == "adaptive")
