"""den-SNE's objective: the KL term less 2 lambda times the correlation of log radii (docs/theory.md, eq. 47)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.engines import Engine
from drsne.objective import Objective, OnPairs, Terms
from drsne.pairs import Pairs, ready
from drsne.parallel import Workers
from drsne.radii import add_forces, correlation_and_slope, map_radii

Array = NDArray[np.float64]


class CorrelationEvaluation(NamedTuple):
    """Gradient of n times the loss, and where asked for the KL divergence and the correlation."""

    gradient: Array  # (n, d)
    kl: float | None
    correlation: float | None
    scales: None = None  # den-SNE's kernel is fixed


class CorrelationProblem(OnPairs):
    """den-SNE's objective on given data: ``L_KL - 2 lambda rho``.

    Parameters
    ----------
    P : csr_matrix of shape (n, n)
        Symmetric affinities; the radii of the map are over its stored pairs.
    target : ndarray of shape (n,)
        Standardised log radii of the data, R_i.
    weight : float
        lambda, on the scale of den-SNE's program.
    variance_shift : float
        Added to the variance of the map's log radii.
    precision : {"single", "double"}
        Arithmetic of a pair.
    engine : Engine
        Evaluates the repulsion.
    workers : Workers
        Threads.
    """

    _answer = CorrelationEvaluation

    def __init__(
        self,
        *,
        P: sp.csr_matrix,
        target: Array,
        weight: float,
        variance_shift: float,
        precision: str,
        engine: Engine,
        workers: Workers,
    ) -> None:
        pairs = {"objective": Pairs.of(ready(P, precision), 0.0)}
        super().__init__(
            Objective(precision=precision, kernel="fixed"), Terms(pairs, (), target), weight, engine, workers
        )
        self._shift = variance_shift

    def log_radii(self, Y: Array) -> Array:
        """Log radii of a map, r_i."""
        return self._restored(map_radii(self._in_order(Y)[1], self._at.pairs["objective"], self._workers).log)

    def _density_term(
        self, lanes: NDArray[Any], weight: float, gradient: Array, losses: bool, iteration: int | None
    ) -> float | None:
        if not weight and not losses:
            return None
        stored = self._at.pairs["objective"]
        radii = map_radii(lanes, stored, self._workers)
        rho, slope = correlation_and_slope(self._at.target, radii.log, self._shift)
        if weight:
            # The program leaves 4 out of the gradient of KL but 2 out of that of rho: its lambda counts twice.
            add_forces(lanes, stored, radii, (-2.0 * weight * len(lanes)) * slope, self._workers, gradient)
        return rho if losses else None
