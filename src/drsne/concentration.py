"""Relative concentration: profiles of data and map, and the loss between them (docs/theory.md, eqs. 15 to 24).

``r_i`` is the mean distance to the k neighbours of point i plus a smoothing length, ``c_i = r_i^-alpha``,
and the profile is ``log(c_i / mean(c))``. ``L_conc`` is the mean squared difference of two profiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne import _checks
from drsne.kernels import concentration as kernels
from drsne.parallel import Workers

Array = NDArray[np.float64]


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
    radius = np.maximum(radius, np.finfo(np.float64).tiny)
    # log c, less its largest value: c = r^-alpha does not overflow, and where it underflows its logarithm is kept.
    log_c = -exponent * np.log(radius)
    largest = log_c.max()
    c = np.exp(log_c - largest)
    mean = c.mean() + (smoothing.mean * np.exp(-largest) if smoothing.mean else 0.0)
    relative = c / mean
    log = np.log(relative + smoothing.profile) if smoothing.profile else log_c - largest - np.log(mean)
    return Profile(log, relative, radius)


def _median_radius(radii: Array) -> float:
    median = float(np.median(radii))
    if median > 0.0:
        return median
    positive = radii[radii > 0.0]  # over half of the points sit on k duplicates
    return float(np.median(positive)) if len(positive) else 0.0


class Neighborhoods:
    """Whose distances make up each point's radius: ``(n, k)`` indices and their transpose."""

    def __init__(self, neighbors: NDArray[np.int32]) -> None:
        n, k = neighbors.shape
        self.neighbors = np.ascontiguousarray(neighbors, dtype=np.int32)
        flat = self.neighbors.ravel()
        order = np.argsort(flat, kind="stable")
        self.listed_by = (order // k).astype(np.int32)  # the points that list i, point after point
        self.offsets = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(flat, minlength=n), out=self.offsets[1:])

    def radii(self, Y: Array, smoothing: Smoothing, workers: Workers) -> Array:
        """Mean distance of each point of ``Y`` to its neighbours."""
        out = np.empty(len(Y))
        workers.run(kernels.radii, len(Y), Y, self.neighbors, smoothing.squared_distance, out)
        return out

    def pull_back(self, Y: Array, slope: Array, smoothing: Smoothing, workers: Workers) -> Array:
        """``sum_l slope_l dr_l/dy_i`` for every point."""
        out = np.empty_like(Y)
        workers.run(
            kernels.radius_forces,
            len(Y),
            Y,
            self.neighbors,
            self.offsets,
            self.listed_by,
            slope,
            smoothing.squared_distance,
            out,
        )
        return out


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
