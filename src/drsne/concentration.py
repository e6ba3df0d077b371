"""Relative concentration: profiles of data and map, and the loss between them (docs/theory.md, eqs. 15 to 24).

``r_i`` is the mean distance to the k neighbours of point i plus a smoothing length, ``c_i = r_i^-alpha``,
and the profile is ``log(c_i / mean(c))``. ``L_conc`` is the mean squared difference of two profiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne import _checks
from drsne.arrangement import Arrangement
from drsne.kernels import concentration as kernels
from drsne.map_neighbors import nearest_in_map
from drsne.parallel import Workers

Array = NDArray[np.float64]
_FOR_MEDIAN = 8192
REFRESHED_EVERY = 10  # iterations between two searches for the neighbours in a map


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
            _checks.number(name, getattr(self, name), at_least=0)


DEFAULT_SMOOTHING = Smoothing()
DEFAULT_QUANTILE = 0.01  # of the target that is clipped at either end (benchmarks/defaults.py)
SCALE_QUANTILE = 0.005  # of the log scales of the adaptive kernel, likewise
LARGEST_LOG_SCALE = 12.0 * np.log(2.0)  # beyond, products of inverse scales leave single precision


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


def log_scales(radii: Array, power: float, smoothing: Smoothing, quantile: float = SCALE_QUANTILE) -> Array:
    """Return the log scales of the adaptive kernel, ``power (log r_i - mean log r)``, winsorised (eq. 49).

    They are also bounded by ``LARGEST_LOG_SCALE`` at either end, for data whose radii differ beyond all measure.
    ``r_i`` is the radius with the smoothing of the target, so duplicates have a scale as well.
    """
    log = np.log(profile(radii, 1.0, smoothing).radius)
    scale = power * (log - log.mean())
    low, high = np.quantile(scale, (quantile, 1.0 - quantile))
    return np.asarray(np.clip(scale, max(low, -LARGEST_LOG_SCALE), min(high, LARGEST_LOG_SCALE)))


def _median_radius(radii: Array) -> float:
    """The median of the radii, or where there are many that of some thousands of them, evenly spread."""
    median = float(np.median(radii[:: max(1, len(radii) // _FOR_MEDIAN)]))
    if median > 0.0:
        return median
    positive = radii[radii > 0.0]  # over half of the points sit on k duplicates
    return float(np.median(positive)) if len(positive) else 0.0


class _Share(NamedTuple):
    """Some neighbours of every point, and who lists whom."""

    neighbors: NDArray[np.int32]  # (n, m)
    offsets: NDArray[np.int64]  # (n + 1,)
    listed_by: NDArray[np.int32]  # the points that list i, point after point

    @classmethod
    def of(cls, neighbors: NDArray[np.int32]) -> _Share:
        neighbors = np.ascontiguousarray(neighbors, dtype=np.int32)
        offsets, listed_by = np.empty(len(neighbors) + 1, np.int64), np.empty(neighbors.size, np.int32)
        kernels.list_back(neighbors, offsets, listed_by)
        return cls(neighbors, offsets, listed_by)


class Neighborhoods:
    """Whose distances make up each point's radius.

    Parameters
    ----------
    neighbors : ndarray of shape (n, k)
        Neighbours of every point, nearest first.
    sample : int, default=None
        Largest number of neighbours visited at a time. More are cut into shares of every s-th neighbour, each
        with a mean near that of all.
    """

    def __init__(self, neighbors: NDArray[np.int32], sample: int | None = None) -> None:
        self.neighbors, self.k = neighbors, neighbors.shape[1]
        self.n_parts = 1 if sample is None else -(-self.k // sample)
        self._made: list[_Share] | None = None

    @property
    def _shares(self) -> list[_Share]:
        """Made when they are first asked for: in the first order of many points they never are."""
        if self._made is None:
            self._made = [_Share.of(self.neighbors[:, part :: self.n_parts]) for part in range(self.n_parts)]
        return self._made

    def radii(self, Y: NDArray[Any], smoothing: Smoothing, workers: Workers) -> Array:
        """Mean distance of each point of ``Y`` to all of its neighbours."""
        lengths, own = np.empty((self.n_parts, len(Y))), np.empty_like(Y)
        for part in range(self.n_parts):
            self.measure(Y, part, smoothing, workers, lengths[part], own)
        return np.asarray(lengths.sum(axis=0) / self.k)

    def measure(
        self, Y: NDArray[Any], part: int, smoothing: Smoothing, workers: Workers, lengths: Array, own: NDArray[Any]
    ) -> None:
        """Sums over one share of the neighbours: of l_ij, and of (y_i - y_j) / l_ij, how it changes with y_i."""
        neighbors = self._shares[part].neighbors
        kernel = kernels.radii_2d if Y.shape[1] == 2 else kernels.radii_any
        workers.run(kernel, len(Y), Y, neighbors, *_constants(Y, smoothing), lengths, own)

    def pull_back(
        self, Y: NDArray[Any], part: int, slope: Array, smoothing: Smoothing, workers: Workers, back: NDArray[Any]
    ) -> None:
        """``sum_l slope_l (y_i - y_l) / l_il`` over the points l that list i in one share of their neighbours."""
        share, slope = self._shares[part], slope.astype(Y.dtype)
        listed = (share.offsets, share.listed_by, slope)
        kernel = kernels.pull_back_2d if Y.shape[1] == 2 else kernels.pull_back_any
        workers.run(kernel, len(Y), Y, *listed, *_constants(Y, smoothing), back)


def _constants(Y: NDArray[Any], smoothing: Smoothing) -> tuple[Any, ...]:
    lane = Y.dtype.type
    return lane(smoothing.squared_distance), lane(1.0), np.finfo(lane).tiny


class Rolling:
    """Sums over all neighbours, of which each iteration renews one share; the others are a few iterations old.

    A sample alone would be noise, and Adam follows noise: on MNIST (70,000 points, k = 30, lambda = 10) a third of the
    neighbours at a time cost .02 in trustworthiness; renewed in turn they cost nothing that could be measured.
    """

    def __init__(self, near: Neighborhoods) -> None:
        self.near = near
        self._lengths: Array = np.empty((0, 0))
        self._own: NDArray[Any] = np.empty((0, 0, 0))
        self._back: NDArray[Any] = np.empty((0, 0, 0))
        self._last: int | None = None
        self._parts: Sequence[int] = ()

    def radii(self, Y: NDArray[Any], smoothing: Smoothing, workers: Workers, iteration: int | None) -> Array:
        """Mean distances at ``Y``; all shares are new where ``iteration`` does not follow on the last one."""
        near, (n, d) = self.near, Y.shape
        if self._own.shape != (near.n_parts, n, d) or self._own.dtype != Y.dtype:
            self._lengths = np.empty((near.n_parts, n))
            self._own, self._back = (np.empty((near.n_parts, n, d), Y.dtype) for _ in range(2))
            self._last = None
        goes_on = iteration is not None and self._last is not None and iteration == self._last + 1
        self._parts = [iteration % near.n_parts] if goes_on and iteration is not None else range(near.n_parts)
        self._last = iteration
        for part in self._parts:
            near.measure(Y, part, smoothing, workers, self._lengths[part], self._own[part])
        return np.asarray(self._lengths.sum(axis=0) / near.k)

    def pull_back(self, Y: NDArray[Any], slope: Array, smoothing: Smoothing, workers: Workers, forces: Array) -> None:
        """Add ``sum_l slope_l dr_l/dy_i`` to the force on every point."""
        per_length = slope / self.near.k
        for part in self._parts:
            self.near.pull_back(Y, part, per_length, smoothing, workers, self._back[part])
        if len(self._own) == 1:  # no need to compile what is only faster for many
            forces += per_length[:, None] * self._own[0] + self._back[0]
            return
        workers.run(kernels.add_forces, len(Y), per_length, self._own, self._back, forces)


class InputNeighborhoods:
    """The neighbours in the data: the same for every map."""

    def __init__(self, neighbors: NDArray[np.int32], sample: int | None) -> None:
        self.neighbors, self._sample = neighbors, sample
        self._rolling = Rolling(Neighborhoods(neighbors, sample))

    def at(self, Y: NDArray[Any], iteration: int | None, workers: Workers) -> Rolling:
        """The sums over them."""
        return self._rolling

    def now(self, Y: NDArray[Any], workers: Workers) -> Rolling:
        """The same."""
        return self._rolling

    def arranged(self, arrangement: Arrangement) -> InputNeighborhoods:
        """The same for another order of the points."""
        return InputNeighborhoods(arrangement.table(self.neighbors), self._sample)


class EmbeddingNeighborhoods:
    """Each point's own nearest neighbours in the map, found anew every few iterations and held fixed between."""

    def __init__(self, k: int, sample: int | None, kept: NDArray[np.int32] | None = None) -> None:
        self._k, self._sample, self._kept = k, sample, kept
        self._held: Rolling | None = None
        self._since: int | None = None

    def at(self, Y: NDArray[Any], iteration: int | None, workers: Workers) -> Rolling:
        """The sums over them; without an ``iteration`` over those of this very map."""
        fresh = self._since is None or iteration is None or not 0 <= iteration - self._since < REFRESHED_EVERY
        if self._held is None or fresh:
            self._held, self._since = self.now(Y, workers), iteration
        return self._held

    def now(self, Y: NDArray[Any], workers: Workers) -> Rolling:
        """The sums over those of this very map, which are not held on to."""
        return Rolling(Neighborhoods(repeated(nearest_in_map(Y, self._k, workers), self._kept), self._sample))

    def arranged(self, arrangement: Arrangement) -> EmbeddingNeighborhoods:
        """None yet: they are found in the order that the points have then."""
        kept = None if self._kept is None else arrangement.arranged(self._kept)
        return EmbeddingNeighborhoods(self._k, self._sample, kept)


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
