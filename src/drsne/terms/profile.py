"""Quantities of radii: profiles of data and map, the loss between them, and scales (docs/theory.md, eqs. 15 to 24, 49).

The radius ``r_i`` is the mean distance of point i to its k neighbours plus a smoothing length, the concentration is
``c_i = r_i^-alpha``, and the profile is ``log(c_i / mean(c))``. ``L_conc`` is the mean squared difference of two
profiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne import checks
from drsne.backends.arrays import along_rows, cast, host, namespace, same_kind
from drsne.terms import masses as weighted

Array = NDArray[np.float64]
_FOR_MEDIAN = 8192  # approximate number of radii from which a median is computed
SCALE_QUANTILE = 0.005  # quantile beyond which the log scales are winsorised at either end
LARGEST_LOG_SCALE = 12.0 * np.log(2.0)  # largest log scale; beyond it, products overflow in single precision


@dataclass(frozen=True, kw_only=True)
class Smoothing:
    """The small constants of the density term in one space, the data or the map.

    Parameters
    ----------
    relative : float, default=1e-3
        Length that is added to each radius, in units of the median radius of the space. With it, duplicates do not
        dominate the profile, and the profile does not depend on the units of the data. The gradient treats this length
        as a constant.
    length : float, default=0.0
        Absolute length that is added to each radius (the paper's epsilon).
    squared_distance : float, default=0.0
        Constant that is added to each squared distance before the square root.
    mean : float, default=0.0
        Constant that is added to the mean concentration.
    profile : float, default=0.0
        Constant that is added to the relative concentration inside the logarithm.
    """

    relative: float = 1e-3
    length: float = 0.0
    squared_distance: float = 0.0
    mean: float = 0.0
    profile: float = 0.0

    def __post_init__(self) -> None:
        for name in ("relative", "length", "squared_distance", "mean", "profile"):
            checks.number(name, getattr(self, name), at_least=0)


DEFAULT_SMOOTHING = Smoothing()
# Quantile beyond which the target is winsorised at either end (benchmarks/results/defaults.md).
DEFAULT_QUANTILE = 0.01
LEAST_GROUP = 5  # smallest number of neighbours before a gap
GAP_CHANCE = 1e-3  # probability of such a gap if points are placed at random on a line, where gaps are most likely


def group_neighbors(distances: Any) -> Any:
    """Return how many of the k neighbours of each point lie before a clear gap in the distances.

    Without a gap, the number is k. ``distances`` (n, k) are ascending. If points are placed at random with uniform
    density in D dimensions, ``(d_m / d_m+1)^D`` is distributed as the largest of m uniform numbers, so a ratio
    ``d_m+1 / d_m`` of at least t has the probability ``t^(-D m)``. A gap is clear if this is below ``GAP_CHANCE`` for D
    = 1. If there are several gaps, the least likely one is used. Groups of fewer than k + 1 points end at a gap, and
    the radii of their points must not reach into other groups (docs/theory.md, section 11).
    """
    n, k = distances.shape
    if k <= LEAST_GROUP:
        return same_kind(np.full(n, k, np.int32), distances)
    xp = namespace(distances)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = distances[:, LEAST_GROUP:] / distances[:, LEAST_GROUP - 1 : -1]
        surprise = same_kind(np.arange(LEAST_GROUP, k), distances) * xp.log(ratio)
    surprise[~xp.isfinite(surprise)] = 0.0  # duplicates of a point are not a group
    clear = xp.amax(surprise, axis=1) > -float(np.log(GAP_CHANCE))
    return cast(xp.where(clear, surprise.argmax(axis=1) + LEAST_GROUP, k), np.int32)


def repeated(table: Any, kept: Any) -> Any:
    """Return a table (n, k) whose rows repeat each of their first ``kept`` entries about equally often.

    The mean of a row is then the mean of these entries, exactly if ``kept`` divides k and approximately otherwise.
    """
    k = table.shape[1]
    if kept is None or bool((kept == k).all()):
        return table
    rows = kept < k
    out = namespace(table).empty_like(table)
    out[...] = table
    columns = same_kind(2 * np.arange(k) + 1, table)[None, :] * kept[rows][:, None] // (2 * k)
    out[rows] = along_rows(table[rows], columns)
    return out


class Profile(NamedTuple):
    """Log relative concentrations, and the values that their gradient needs."""

    log: Array  # log c~_i, (n,)
    relative: Array  # c~_i, (n,)
    radius: Array  # r_i with its smoothing, (n,)

    def log_mean(self, exponent: float) -> float:
        """Return the log of the mean concentration, ``log c_i - log c~_i``."""
        top = int(self.relative.argmax())
        return -float(np.log(self.relative[top]) + exponent * np.log(self.radius[top]))


def profile(radii: Array, exponent: float, smoothing: Smoothing, masses: Array | None = None) -> Profile:
    """Return the profile of points with these ``radii``, the mean distances to their neighbours."""
    radius = radii + added_length(radii, smoothing, masses)
    xp = namespace(radius)
    if not len(radius) or radius.max() <= 0.0:
        radius = xp.ones_like(radius)  # all points coincide, so the profile is flat
    radius = xp.clip(radius, float(np.finfo(np.float64).tiny), None)
    # c is divided by its largest value, so that c = r^-alpha does not overflow. If it underflows, log c is still right.
    least = float(radius.min())
    with np.errstate(over="ignore"):  # the ratio of the largest to the smallest radius may overflow
        log_c = -exponent * xp.log(xp.clip(radius / least, None, float(np.finfo(np.float64).max)))
    c = least / radius if exponent == 1.0 else xp.exp(log_c)
    mean = weighted.mean(c, masses) + (smoothing.mean * np.float64(least) ** exponent if smoothing.mean else 0.0)
    relative = c / mean
    log = xp.log(relative + smoothing.profile) if smoothing.profile else log_c - float(np.log(mean))
    return Profile(log, relative, radius)


def added_length(radii: Array, smoothing: Smoothing, masses: Array | None = None) -> float:
    """Return the smoothing length that is added to each of the ``radii``."""
    return smoothing.length + smoothing.relative * _median_radius(radii, masses)


def winsorized(log: Array, quantile: float, masses: Array | None = None) -> Array:
    """Return a profile that is winsorised at ``quantile`` and ``1 - quantile`` and normalised again."""
    if not quantile:
        return log
    bounds = weighted.quantiles(log, (quantile, 1.0 - quantile), masses)
    return rescaled(np.clip(log, *bounds), 1.0, again=True, masses=masses)


def _median_radius(radii: Array, masses: Array | None = None) -> float:
    """Return the median of the radii, or of a regular sample of the radii if there are many."""
    if masses is not None:
        middle_one = float(weighted.quantiles(radii, (0.5,), masses)[0])
        if middle_one > 0.0 or not radii.any():
            return middle_one
        return float(weighted.quantiles(radii[radii > 0.0], (0.5,), masses[radii > 0.0])[0])
    some = host(radii[:: max(1, len(radii) // _FOR_MEDIAN)])
    middle = len(some) // 2
    below, above = (middle - 1 + len(some) % 2), middle  # np.median does the same, and takes twice as long
    parted = np.partition(some, (below, above))
    median = 0.5 * (float(parted[below]) + float(parted[above]))
    if median > 0.0:
        return median
    positive = host(radii[radii > 0.0])  # over half of the points have k duplicates
    return float(np.median(positive)) if len(positive) else 0.0


def rescaled(log: Array, factor: float, *, again: bool = False, masses: Array | None = None) -> Array:
    """Return the profile of ``r^-(factor alpha)`` from that of ``r^-alpha``.

    If ``again`` is True, the profile is normalised even if the factor is 1.
    """
    if factor == 1.0 and not again:
        return log
    scaled = factor * log
    top = scaled.max()
    return np.asarray(scaled - top - np.log(weighted.mean(np.exp(scaled - top), masses)))


def log_scales(radii: Array, power: float, smoothing: Smoothing, masses: Array | None = None) -> Array:
    """Return the log scales of the adaptive kernel, ``power (log r_i - mean log r)``, winsorised (eq. 49).

    They are also bounded by ``LARGEST_LOG_SCALE`` at either end. ``r_i`` is the radius with the smoothing of the
    target, so duplicates also have a scale.
    """
    log = np.log(profile(radii, 1.0, smoothing, masses).radius)
    scale = power * (log - weighted.mean(log, masses))
    low, high = weighted.quantiles(scale, (SCALE_QUANTILE, 1.0 - SCALE_QUANTILE), masses)
    return np.asarray(np.clip(scale, max(low, -LARGEST_LOG_SCALE), min(high, LARGEST_LOG_SCALE)))


def loss_and_slope(
    target: Array, low: Profile, exponent: float, smoothing: Smoothing, *, attached: bool, masses: Array | None = None
) -> tuple[float, Array]:
    """Return ``L_conc`` and ``dL_conc/dr_i``. The normalising mean is differentiated if ``attached`` is True.

    Eq. 24: ``dL/dr_i = (2 alpha / n) (1 / r_i) (s_i e_i - c~_i mean(s e))``, where ``e`` is the difference of the
    profiles and ``s_i = c~_i / (c~_i + smoothing.profile)``. The last term comes from the normaliser.
    """
    e = target - low.log
    damped = e * (low.relative / (low.relative + smoothing.profile)) if smoothing.profile else e
    pull = damped - low.relative * weighted.mean(damped, masses) if attached else damped
    slope = (2.0 * exponent / (len(e) if masses is None else masses.sum())) * pull / low.radius
    return weighted.mean(e * e, masses), slope if masses is None else masses * slope
