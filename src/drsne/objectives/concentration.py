"""Relative concentration: profiles of data and map, and the loss between them (docs/theory.md, eqs. 15 to 24).

``r_i`` is the mean distance to the k neighbours of point i plus a smoothing length, ``c_i = r_i^-alpha``,
and the profile is ``log(c_i / mean(c))``. ``L_conc`` is the mean squared difference of two profiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne import checks

Array = NDArray[np.float64]
_FOR_MEDIAN = 8192


@dataclass(frozen=True, kw_only=True)
class Smoothing:
    """The small constants of the concentration term, one per role, for one space.

    Parameters
    ----------
    relative : float, default=1e-3
        Added to each radius, in units of the space's median radius: the profile of data does not depend
        on its units, and exact duplicates cannot outweigh all else. Held fixed in the gradient.
    length : float, default=0.0
        Added to each radius, as an absolute length (the paper's epsilon).
    squared_distance : float, default=0.0
        Added to each squared distance under the root.
    mean : float, default=0.0
        Added to the mean concentration.
    profile : float, default=0.0
        Added to the relative concentration inside the logarithm.
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
DEFAULT_QUANTILE = 0.01  # of the target that is clipped at either end (benchmarks/defaults.py)
# Of log radii: six to seven times the standard deviation that chance gives points strewn over a plane (k = 30),
# and the most that an exponent is raised for it.
STANDS_OUT, MOST_CONTRAST = 0.8, 2.0
LEAST_GROUP = 5  # neighbours before a gap
GAP_CHANCE = 1e-3  # of a gap in points strewn along a line, the least favourable dimension


def group_neighbors(distances: Array) -> NDArray[np.int32]:
    """Return how many of each point's neighbours, (n, k) ascending distances, lie before a clear gap; k without one.

    If points are strewn evenly in D dimensions, ``(d_m / d_m+1)^D`` is distributed as the largest of m uniform
    numbers, so a ratio ``d_m+1 / d_m`` of t has the probability ``t^(-D m)``. A gap is clear if that is below
    ``GAP_CHANCE`` for D = 1; of several, the least likely counts. Groups of fewer than k + 1 points end at a gap, and
    the radius of their points must not reach into other groups (docs/theory.md, section 11).
    """
    n, k = distances.shape
    kept = np.full(n, k, np.int32)
    if k <= LEAST_GROUP:
        return kept
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = distances[:, LEAST_GROUP:] / distances[:, LEAST_GROUP - 1 : -1]
        surprise = np.arange(LEAST_GROUP, k) * np.log(ratio)
    surprise[~np.isfinite(surprise)] = 0.0  # duplicates of a point are no group
    best = surprise.argmax(axis=1)
    clear = surprise[np.arange(n), best] > -np.log(GAP_CHANCE)
    kept[clear] = best[clear] + LEAST_GROUP
    return kept


def repeated(table: NDArray[Any], kept: NDArray[np.int32] | None) -> NDArray[Any]:
    """Return a table (n, k) whose rows repeat each of their first ``kept`` entries about equally often.

    Means over rows are then over those entries, and exactly so where ``kept`` divides k.
    """
    if kept is None or (kept == table.shape[1]).all():
        return table
    rows = np.flatnonzero(kept < table.shape[1])
    out = table.copy()
    columns = (2 * np.arange(table.shape[1])[None, :] + 1) * kept[rows, None] // (2 * table.shape[1])
    out[rows] = np.take_along_axis(table[rows], columns, axis=1)
    return out


class Profile(NamedTuple):
    """Logarithms of relative concentration, with what the gradient needs."""

    log: Array  # log c~_i, (n,)
    relative: Array  # c~_i, (n,)
    radius: Array  # r_i with its smoothing, (n,)


def profile(radii: Array, exponent: float, smoothing: Smoothing) -> Profile:
    """The relative-concentration profile of mean neighbour distances ``radii``."""
    radius = radii + (smoothing.length + smoothing.relative * _median_radius(radii))
    if radius.max(initial=0.0) <= 0.0:
        radius = np.ones_like(radius)  # all points coincide: a flat profile
    np.maximum(radius, np.finfo(np.float64).tiny, out=radius)
    # c and log c, less its largest value: c = r^-alpha does not overflow; where it underflows its logarithm is kept.
    least = radius.min()
    with np.errstate(over="ignore"):  # a ratio of the widest to the narrowest radius
        log_c = -exponent * np.log(np.minimum(radius / least, np.finfo(np.float64).max))
    c = least / radius if exponent == 1.0 else np.exp(log_c)
    mean = c.mean() + (smoothing.mean * least**exponent if smoothing.mean else 0.0)
    relative = c / mean
    log = np.log(relative + smoothing.profile) if smoothing.profile else log_c - np.log(mean)
    return Profile(log, relative, radius)


def contrast(radii: Array, smoothing: Smoothing) -> float:
    """By how much an exponent is raised for differences of ``radii`` to stand out from chance in a map.

    Such that log radii spread over ``STANDS_OUT``, but at least 1 and at most 2; rounded, so that what the data's units
    leave in the last bits does not reach the map.
    """
    spread = float(np.log(profile(radii, 1.0, smoothing).radius).std())
    return float(f"{np.clip(STANDS_OUT / max(spread, 1e-12), 1.0, MOST_CONTRAST):.3g}")


def winsorized(log: Array, quantile: float) -> Array:
    """Return a profile with its values beyond ``quantile`` and one less it set to these quantiles, normalised again."""
    if not quantile:
        return log
    return rescaled(np.clip(log, *np.quantile(log, (quantile, 1.0 - quantile))), 1.0, again=True)


def _median_radius(radii: Array) -> float:
    """The median of the radii, or where there are many that of some thousands of them, evenly spread."""
    median = float(np.median(radii[:: max(1, len(radii) // _FOR_MEDIAN)]))
    if median > 0.0:
        return median
    positive = radii[radii > 0.0]  # over half of the points sit on k duplicates
    return float(np.median(positive)) if len(positive) else 0.0


def rescaled(log: Array, factor: float, *, again: bool = False) -> Array:
    """Return the profile of ``r^-(factor alpha)``, from that of ``r^-alpha``, normalised ``again`` in any case."""
    if factor == 1.0 and not again:
        return log
    scaled = factor * log
    top = scaled.max()
    return np.asarray(scaled - top - np.log(np.exp(scaled - top).mean()))


def loss_and_slope(
    target: Array, low: Profile, exponent: float, smoothing: Smoothing, *, attached: bool
) -> tuple[float, Array]:
    """``L_conc`` and ``dL_conc/dr_i``, with the normalising mean differentiated (``attached``) or held fixed.

    Eq. 24: ``dL/dr_i = (2 alpha / n) (1 / r_i) (s_i e_i - c~_i mean(s e))`` with ``e`` the difference of the
    profiles and ``s_i = c~_i / (c~_i + smoothing.profile)``; the last term is the normaliser's.
    """
    e = target - low.log
    damped = e * (low.relative / (low.relative + smoothing.profile)) if smoothing.profile else e
    pull = damped - low.relative * damped.mean() if attached else damped
    return float(np.mean(e * e)), (2.0 * exponent / len(e)) * pull / low.radius
