"""The contrast: the power of the concentration in the data that a map shows (docs/theory.md, section 8).

It follows from the spread of the log radii and from the local dimension of the data. Radii and distances are taken from
:mod:`drsne.preparation`, and :mod:`drsne.terms.objective` uses the contrast.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.arrays import host, taken
from drsne.terms import masses as weighted
from drsne.terms.profile import Smoothing, profile

Array = NDArray[np.float64]
# Standard deviations of the log radii that a map should have: if the radii of the data differ strongly, and if they
# differ little. Points that are placed at random on a plane have 0.12 with k = 30.
STANDS_OUT, STANDS_OUT_EVEN = 0.8, 0.7
EVEN = 0.25  # standard deviation of the log radii in the data below which they differ little
USUAL = 2.0  # largest contrast of other data, which is correct for four dimensions
# Largest contrast. Only data with 40 or more dimensions reach it. If all distances are almost equal, their differences
# can be rounding errors, which a higher contrast would draw as density.
MOST = 20.0
_STEEPNESS = 3.0  # power of EVEN / s by which the contrast rises from USUAL
_SAMPLED = 8192  # largest number of rows from which the dimension is estimated


class Dimension(NamedTuple):
    """An estimate of the local dimension of data, and its standard error. Both are nan if there is no estimate."""

    value: float
    error: float


def local_dimension(distances: Any, kept: Any = None, masses: Array | None = None) -> Dimension:
    """Estimate the local dimension of data by maximum likelihood (Levina and Bickel, 2004).

    The inverse of the dimension is the mean of ``log(d_m / d_j)`` over the neighbours j < m of a row and over the rows
    (MacKay and Ghahramani, 2005). The standard error is that of independent rows. Neighbourhoods overlap, so the true
    error can be twice as large. If there are many rows, a random sample of them is used, the same in every call.

    ``distances`` (n, k) are those to distinct neighbours in ascending order. Neighbours at distance 0, and those that
    are as far away as the last one, are not counted. ``kept`` (n,) says how many neighbours of every row lie before a
    gap; None stands for all. A row of mass m counts as m rows, but not as more than one for the standard error.
    """
    n, k = distances.shape
    rows = np.arange(n)
    if n > _SAMPLED:
        rows = np.sort(np.random.default_rng(0).choice(n, _SAMPLED, replace=False))
    some = np.asarray(host(taken(distances, rows)), dtype=np.float64)
    last = np.full(len(some), k) if kept is None else np.asarray(host(taken(kept, rows)))
    farthest = np.take_along_axis(some, last[:, None] - 1, axis=1)
    used = (some > 0.0) & (some < farthest)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.log(farthest / some, where=used, out=np.zeros_like(some)).sum(axis=1) / used.sum(axis=1)
    known = inverse > 0.0  # neither rows with duplicates alone, nor rows whose neighbours are all equally far away
    if not known.any():
        return Dimension(float("nan"), float("nan"))
    of_rows = np.ones(int(known.sum())) if masses is None else np.asarray(host(taken(masses, rows)))[known]
    mean, deviation = (statistic(inverse[known], of_rows) for statistic in (weighted.mean, weighted.std))
    effective = float(of_rows.sum() ** 2 / (of_rows**2).sum())  # number of rows of equal masses with the same error
    return Dimension(1.0 / mean, deviation / mean**2 / effective**0.5 if len(of_rows) > 1 else float("nan"))


def automatic(radii: Array, dimension: float, smoothing: Smoothing, masses: Array | None = None) -> float:
    """Return the contrast with which differences of ``radii`` stand out from chance in a map (eq. 40).

    ``dimension`` is the local dimension of the data, or nan. The contrast is rounded, because the last bits depend on
    the units of the data, but the map must not.
    """
    spread = weighted.std(np.log(profile(radii, 1.0, smoothing, masses).radius), masses)
    spread = max(spread, 1e-12)
    limit = min(np.nan_to_num(dimension) / 2.0, MOST)
    raised = min(USUAL * (EVEN / spread) ** _STEEPNESS, STANDS_OUT_EVEN / spread, limit)
    return float(f"{max(1.0, min(STANDS_OUT / spread, max(USUAL, raised))):.3g}")


def of_scales(contrast: float) -> float:
    """Return the power of the radii to which the scales of the kernel are proportional at a contrast (eq. 49).

    Up to the usual contrast, the kernel and the density term ask for the same ratios of radii. Of the rest, the kernel
    provides half, and the density term the other half: groups then stay whole more often at the same trustworthiness.
    """
    return contrast if contrast <= USUAL else 0.5 * (USUAL + contrast)
