"""The objective of den-SNE: KL term minus 2 lambda times a correlation of log radii (docs/theory.md, eqs. 42 to 48).

Here, a radius is a weighted mean of squared distances. In the data, the weights are the affinities. In the map, they
are ``w_ij = 1 / (1 + |y_i - y_j|^2)`` over the same stored pairs. ``rho`` is the correlation of the log radii, with a
constant that is added to their variance in the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from drsne.affinities import DEFAULT_CALIBRATION, Calibration
from drsne.backends import Backend, PairList
from drsne.backends.arrays import cast, namespace
from drsne.neighbors.graph import KnnGraph
from drsne.terms.term import Density, Moment, RadiusTerm, Term

Array = NDArray[np.float64]
_LEAST_SHARE = 1e-6  # smallest radius in the data, relative to the median radius (both are squared lengths)
_LEAST_IN_MAP = 1e-12  # smallest radius in the map; neighbours that coincide have no direction
_LEAST_CORRELATION = 0.1  # smallest correlation with which the radius of a new row has a finite best value
_SAME = 1e-6  # standard deviation of log radii below which the differences are rounding errors


def input_log_radii(graph: KnnGraph, conditional: NDArray[Any]) -> Array:
    """Return ``log(sum_j p_ij d_ij^2 / sum_j p_ij)`` for the symmetric affinities of conditional rows (n, k).

    Sums over a row of ``C + C^T`` are computed as the sums over a row and a column of ``C``, so the distances of the
    transposed pairs are never stored.
    """
    largest = float(graph.distances.max())
    n = len(graph.distances)
    if not largest > 0.0:
        return np.zeros(n)  # all points coincide
    weights = conditional.astype(np.float64, copy=False)
    squares = weights * (graph.distances / largest) ** 2  # this does not overflow, whatever the units of the data
    columns = np.ascontiguousarray(graph.indices).ravel()

    def both(values: Array) -> Array:
        return np.asarray(values.sum(axis=1) + np.bincount(columns, weights=values.ravel(), minlength=n))

    radii = both(squares) / both(weights)
    positive = radii[radii > 0.0]
    if len(positive) == 0:
        return np.zeros(n)  # only duplicates have an affinity
    least = _LEAST_SHARE * float(np.median(positive))
    return np.asarray(np.log(np.maximum(radii, least)) + 2.0 * np.log(largest))


def standardized(values: Array) -> Array:
    """Return ``values`` minus their mean, divided by their standard deviation, or zeros if they do not differ."""
    away = values - values.mean()
    spread = float(np.sqrt((away * away).sum() / (len(values) - 1)))
    return np.asarray(away / spread) if spread > _SAME else np.zeros_like(values)


def map_radii(Y: NDArray[Any], pairs: PairList, backend: Backend) -> tuple[Array, Array]:
    """Return the log radii r_i of a map over the stored pairs, and ``-dr_i / dS_i`` for ``S_i = sum_j w_ij``."""
    near, far = backend.kernel_sums(Y, pairs)  # S_i = sum_j w_ij, and sum_j w_ij d_ij^2
    radius, xp = far / near, namespace(near)
    held = radius < _LEAST_IN_MAP
    # w d^2 = 1 - w, so r = log(m / S - 1) for a row of m pairs, and dr/dS = -(1 / S + 1 / (m - S)) = -m / (S (m - S)).
    sizes = pairs.indptr[1:] - pairs.indptr[:-1]
    sensitivity = xp.where(held, 0.0, sizes / (near * xp.where(held, 1.0, far)))
    return xp.log(xp.clip(radius, _LEAST_IN_MAP, None)), sensitivity


def correlation_and_slope(target: Array, log: Array, shift: float) -> tuple[float, Array]:
    """Return ``rho = c / s`` and ``drho/dr_i``, where c is the covariance and s the shifted standard deviation."""
    away, others = log - log.mean(), len(log) - 1
    s = float(np.sqrt(float((away * away).sum()) / others + shift))
    if not s > 0.0:
        return 0.0, namespace(log).zeros_like(log)
    c = float((away * target).sum()) / others
    return c / s, (target / s - (c / s**3) * away) / others  # the mean of the target is 0


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Detailed settings of the objective of den-SNE.

    Parameters
    ----------
    variance_shift : float, default=0.1
        Constant that is added to the variance of the log radii in the map.
    precision : {"single", "double"}, default="single"
        Floating-point precision of the terms of each pair of points.
    terms : tuple, default=()
        Further terms, as in :class:`drsne.Objective`.
    """

    variance_shift: float = 0.1
    precision: str = "single"
    terms: tuple[Any, ...] = ()
    calibration: ClassVar[Calibration] = DEFAULT_CALIBRATION
    on_device: ClassVar[bool] = False  # whether a device may search for neighbours
    exact_bits: ClassVar[bool] = True  # whether the last bits of distances matter

    def adapts(self, weight: float) -> bool:
        """Return False, because den-SNE has the fixed kernel."""
        return False

    def adaptation(self, weight: float) -> float:
        """Return 1. There are no scales to raise to this power."""
        return 1.0


@dataclass(frozen=True, kw_only=True)
class LogRadii(Term):
    """The density term of den-SNE, ``-2 rho``. Its value is ``rho``, and its weight is lambda as in its program."""

    name: ClassVar[str] = "correlation"
    per_point: ClassVar[tuple[str, ...]] = ("target",)
    target: Array  # standardised log radii of the data, R_i, (n,)
    variance_shift: float  # constant that is added to the variance of the log radii of the map

    def add_gradient(self, gradient: Array, weight: float, memory: Any, at: Moment) -> float | None:
        """Add the gradient of ``-2 rho``, and return rho if it is needed."""
        log, sensitivity = map_radii(at.typed, at.pairs, at.backend)
        rho, slope = correlation_and_slope(self.target, log, self.variance_shift)
        if weight:
            # The program omits the factor 4 of the gradient of KL, but only a factor 2 of the gradient of rho, so its
            # lambda counts twice. dr_i/dy_i = 2 sensitivity_i sum_j w_ij^2 (y_i - y_j), and each pair is stored in both
            # rows.
            pull = cast(2.0 * ((-2.0 * weight * len(at.Y)) * slope) * sensitivity, at.typed.dtype)
            at.backend.add_kernel_forces(at.typed, at.pairs, pull, gradient)
        return rho if at.losses else None

    def of_points(self, memory: Any, at: Moment) -> Array:
        """Return the log radii of the map, r_i."""
        return map_radii(at.typed, at.pairs, at.backend)[0]

    def of_new_row(self, memory: Any, at: Moment) -> Density:
        """Return the density term of a new row, with the log radii of the map."""
        log, target = at.restored(self.of_points(memory, at)), at.restored(self.target)
        rho, _ = correlation_and_slope(target, log, self.variance_shift)
        spread = float(np.sqrt(log.var(ddof=1) + self.variance_shift))
        term = RadiusTerm(1.0, float(log.mean()), spread, max(rho, _LEAST_CORRELATION))
        return Density(self.weight * self.factor(at), of_radii=term)
