"""The objective: attraction + repulsion + lambda x concentration; the only place where the terms meet.

``L = L_KL + lambda L_conc`` (docs/theory.md, eq. 26), with ``L_KL`` over the stored pairs of P. Gradients are
of **n times** the loss: per point they then do not depend on n, and neither do rates, clipping and Adam's eps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import _checks
from drsne.affinities import DEFAULT_CALIBRATION, Calibration
from drsne.concentration import DEFAULT_SMOOTHING, Neighborhoods, Smoothing, loss_and_slope, profile
from drsne.engines import Engine
from drsne.kernels import attraction as kernels
from drsne.parallel import Workers, n_blocks

Array = NDArray[np.float64]
_LEAST_PARTITION = np.finfo(np.float64).tiny  # a map so wide that no pair is left repels nothing


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is minimised, beyond the estimator's plain parameters.

    Parameters
    ----------
    support : {"symmetric", "directed"}, default="symmetric"
        Pairs of the KL term: every pair with affinity, or (the paper) only j among the k density
        neighbours of i.
    normalizer : {"attached", "detached"}, default="attached"
        Whether the mean concentration of the map is differentiated. Detached (the authors' code) adds a
        net force that swells or shrinks the map.
    input_exponent, embedding_exponent : float, default=1.0
        alpha in ``c = r^-alpha``, in each space.
    input_smoothing, embedding_smoothing : Smoothing
        Small constants of the concentration in each space.
    affinity_smoothing : float, default=0.0
        delta in log(q + delta) and log(p + delta).
    distance_smoothing : float, default=0.0
        Added to the squared distance in ``w = 1 / (1 + d^2)``.
    calibration : Calibration
        How affinities reach the perplexity.
    precision : {"single", "double"}, default="single"
        Arithmetic of a pair in the repulsion; sums are always double.

    Examples
    --------
    >>> from drsne import Objective
    >>> Objective(normalizer="detached").normalizer
    'detached'
    """

    support: str = "symmetric"
    normalizer: str = "attached"
    input_exponent: float = 1.0
    embedding_exponent: float = 1.0
    input_smoothing: Smoothing = DEFAULT_SMOOTHING
    embedding_smoothing: Smoothing = DEFAULT_SMOOTHING
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0
    calibration: Calibration = DEFAULT_CALIBRATION
    precision: str = "single"

    def __post_init__(self) -> None:
        _checks.choice("support", self.support, ("symmetric", "directed"))
        _checks.choice("normalizer", self.normalizer, ("attached", "detached"))
        _checks.choice("precision", self.precision, ("single", "double"))
        for name in ("input_exponent", "embedding_exponent"):
            _checks.number(name, getattr(self, name), above=0)
        for name in ("affinity_smoothing", "distance_smoothing"):
            _checks.number(name, getattr(self, name), at_least=0)
        for name, kind in (
            ("input_smoothing", Smoothing),
            ("embedding_smoothing", Smoothing),
            ("calibration", Calibration),
        ):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a drsne.{kind.__name__}; got {getattr(self, name)!r}.")


class Pairs(NamedTuple):
    """Pairs of a KL term: ``A = (P_s + P_s^T) / 2`` for the stored part P_s of P, its mass and sum of p log p."""

    A: sp.csr_matrix
    mass: float
    entropy: float

    @classmethod
    def of(cls, P: sp.csr_matrix, smoothing: float) -> Pairs:
        """All of a symmetric ``P``."""
        return cls(_ready(P), float(P.data.sum()), float((P.data * np.log(P.data + smoothing)).sum()))

    @classmethod
    def directed(cls, P: sp.csr_matrix, neighbors: NDArray[np.int32], smoothing: float) -> Pairs:
        """Only the pairs (i, j) with j among the ``neighbors`` of i."""
        n, k = neighbors.shape
        chosen = sp.csr_matrix((np.ones(n * k), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        stored = sp.csr_matrix(P.multiply(chosen))
        return cls.of(stored, smoothing)._replace(A=_ready(sp.csr_matrix((stored + stored.T) * 0.5)))


def _ready(A: sp.csr_matrix) -> sp.csr_matrix:
    """``A`` as the kernels take it: sorted rows, int64 offsets, int32 columns, float64 values."""
    A.sort_indices()
    parts = (A.data.astype(np.float64, copy=False), A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int64))
    out = sp.csr_matrix(A.shape)
    out.data, out.indices, out.indptr = parts
    return out


class Evaluation(NamedTuple):
    """Gradient of n times the loss, and the losses where asked for."""

    gradient: Array  # (n, d)
    kl: float | None
    concentration: float | None


class Problem:
    """An objective on given data: evaluates losses and gradients of maps.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    P : csr_matrix of shape (n, n)
        Symmetric affinities.
    neighbors : ndarray of shape (n, k)
        Density neighbours N_k(i).
    target : ndarray of shape (n,)
        Profile of the data, log c~_i.
    weight : float
        lambda, on the scale of the written objective.
    engine : Engine
        Evaluates the repulsion.
    workers : Workers
        Threads.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        P: sp.csr_matrix,
        neighbors: NDArray[np.int32],
        target: Array,
        weight: float,
        engine: Engine,
        workers: Workers,
    ) -> None:
        self.objective, self.weight, self.target = objective, weight, target
        self.neighborhoods = Neighborhoods(neighbors)
        self._engine, self._workers = engine, workers
        self._P, delta = P, objective.affinity_smoothing
        self._stored = Pairs.of(P, delta) if objective.support == "symmetric" else Pairs.directed(P, neighbors, delta)
        self._all: Pairs | None = None

    def evaluate(
        self,
        Y: Array,
        *,
        exaggeration: float = 1.0,
        density: float = 1.0,
        pairs: str = "objective",
        losses: bool = False,
    ) -> Evaluation:
        """Gradient of n times the loss at ``Y``.

        ``exaggeration`` multiplies the attraction alone, ``density`` multiplies lambda, ``pairs="all"`` takes
        every pair with affinity, rescaled to mass one, whatever the objective's support. The losses are those
        of the same pairs without exaggeration.
        """
        stored = self._stored if pairs == "objective" else self._all_pairs()
        gradient, kl = self._neighbor_term(Y, stored, exaggeration, losses)
        concentration = None
        weight = self.weight * density
        if weight or losses:
            concentration, slope = self._profile_loss(Y)
            if weight:
                gradient += weight * self.neighborhoods.pull_back(
                    Y, slope, self.objective.embedding_smoothing, self._workers
                )
        gradient *= len(Y)
        return Evaluation(gradient, kl, concentration if losses else None)

    def concentration(self, Y: Array) -> Array:
        """The profile of a map, log c~_i."""
        objective = self.objective
        radii = self.neighborhoods.radii(Y, objective.embedding_smoothing, self._workers)
        return profile(radii, objective.embedding_exponent, objective.embedding_smoothing).log

    def _profile_loss(self, Y: Array) -> tuple[float, Array]:
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        low = profile(self.neighborhoods.radii(Y, smoothing, self._workers), exponent, smoothing)
        attached = self.objective.normalizer == "attached"
        return loss_and_slope(self.target, low, exponent, smoothing, attached=attached)

    def _neighbor_term(self, Y: Array, stored: Pairs, exaggeration: float, losses: bool) -> tuple[Array, float | None]:
        """Gradient of the KL term, 4 rho sum_j A_ij w_ij (y_i - y_j) - 4 (S / Z) F_i, and its value."""
        n, A, base = len(Y), stored.A, 1.0 + self.objective.distance_smoothing
        Z, repulsion = self._engine.repulsion(Y, self.objective.distance_smoothing)
        Z = max(Z, _LEAST_PARTITION)
        delta, mass = self.objective.affinity_smoothing * Z, stored.mass
        forces, sums = np.empty_like(Y), np.empty(n_blocks(n))
        edges = (Y, A.indptr, A.indices, A.data, base)
        if delta:
            self._workers.run(kernels.smoothed_attraction, n, *edges, delta, forces, sums)
            mass = float(sums.sum())
        else:
            self._workers.run(kernels.attraction, n, *edges, forces)
        gradient = (4.0 * exaggeration) * forces - (4.0 * mass / Z) * repulsion
        if not losses:
            return gradient, None
        self._workers.run(kernels.energy, n, *edges, delta, sums)
        return gradient, stored.entropy + float(sums.sum()) + stored.mass * float(np.log(Z))

    def _all_pairs(self) -> Pairs:
        if self._all is None:
            self._all = Pairs.of(self._P / self._P.sum(), self.objective.affinity_smoothing)
        return self._all
