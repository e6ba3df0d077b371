"""Local radii of data and map as den-SNE has them, and their correlation (docs/theory.md, eqs. 42 to 48).

A radius is a weighted mean of squared distances; in the data the weights are the affinities, in the map
``w_ij = 1 / (1 + |y_i - y_j|^2)`` over the same stored pairs. ``rho`` is the correlation of the logarithms, with a
constant added to the variance of the map's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.graph import KnnGraph
from drsne.kernels import radii as kernels
from drsne.pairs import Pairs
from drsne.parallel import Workers

Array = NDArray[np.float64]
_LEAST_SHARE = 1e-6  # of the median radius (a squared length): what a radius in the data is at least
_LEAST_IN_MAP = 1e-12  # the same in the map, in map units: neighbours that coincide have no direction to part in
_SAME = 1e-6  # spread of log radii that is rounding, not data


class MapRadii(NamedTuple):
    """Log radii of a map, with what the gradient needs."""

    log: Array  # r_i, (n,)
    lever: Array  # -dr_i / dS_i for S_i = sum_j w_ij, (n,)


def input_log_radii(graph: KnnGraph, conditional: NDArray[Any]) -> Array:
    """Return ``log(sum_j p_ij d_ij^2 / sum_j p_ij)`` for the symmetric affinities of conditional rows (n, k).

    Sums over a row of ``C + C^T`` are the sums over a row and a column of ``C``: the distances of the transposed pairs
    are never stored.
    """
    largest = float(graph.distances.max())
    n = len(graph.distances)
    if not largest > 0.0:
        return np.zeros(n)  # all points coincide
    weights = conditional.astype(np.float64, copy=False)
    squares = weights * (graph.distances / largest) ** 2  # no overflow, whatever the units
    columns = np.ascontiguousarray(graph.indices).ravel()

    def both(values: Array) -> Array:
        return np.asarray(values.sum(axis=1) + np.bincount(columns, weights=values.ravel(), minlength=n))

    radii = both(squares) / both(weights)
    positive = radii[radii > 0.0]
    if len(positive) == 0:
        return np.zeros(n)  # all affinity sits on duplicates
    least = _LEAST_SHARE * float(np.median(positive))
    return np.asarray(np.log(np.maximum(radii, least)) + 2.0 * np.log(largest))


def standardized(values: Array) -> Array:
    """``values`` less their mean, over their sample standard deviation; all 0 where they do not differ."""
    away = values - values.mean()
    spread = float(np.sqrt((away * away).sum() / (len(values) - 1)))
    return np.asarray(away / spread) if spread > _SAME else np.zeros_like(values)


def map_radii(Y: NDArray[Any], stored: Pairs, workers: Workers) -> MapRadii:
    """Log radii of a map over the stored pairs."""
    n = len(Y)
    near, far = np.empty(n), np.empty(n)  # S_i = sum_j w_ij, and sum_j w_ij d_ij^2
    kernel = kernels.sums_2d if Y.shape[1] == 2 else kernels.sums_any
    workers.run(kernel, n, Y, stored.indptr, stored.columns, Y.dtype.type(1.0), near, far)
    radius = far / near
    held = radius < _LEAST_IN_MAP
    # w d^2 = 1 - w, so r = log(m / S - 1) for the row's m pairs: dr/dS = -(1 / S + 1 / (m - S)) = -m / (S (m - S)).
    lever = np.where(held, 0.0, np.diff(stored.indptr) / (near * np.where(held, 1.0, far)))
    return MapRadii(np.log(np.maximum(radius, _LEAST_IN_MAP)), lever)


def correlation_and_slope(target: Array, log: Array, shift: float) -> tuple[float, Array]:
    """``rho`` and ``drho/dr_i``: with ``c`` the covariance and ``s`` the shifted deviation, ``rho = c / s``."""
    away, others = log - log.mean(), len(log) - 1
    s = float(np.sqrt((away * away).sum() / others + shift))
    if not s > 0.0:
        return 0.0, np.zeros_like(log)
    c = float((away * target).sum()) / others
    return c / s, (target / s - (c / s**3) * away) / others  # the mean of the target is 0


def add_forces(
    Y: NDArray[Any], stored: Pairs, radii: MapRadii, slope: Array, workers: Workers, gradient: Array
) -> None:
    """Add ``sum_l slope_l dr_l/dy_i`` to the gradient at every point.

    ``dr_i/dy_i = 2 lever_i sum_j w_ij^2 (y_i - y_j)``, and each pair is stored in both rows.
    """
    pull = (2.0 * slope * radii.lever).astype(Y.dtype)
    kernel = kernels.forces_2d if Y.shape[1] == 2 else kernels.forces_any
    workers.run(kernel, len(Y), Y, stored.indptr, stored.columns, Y.dtype.type(1.0), pull, gradient)
