"""The objective: attraction + repulsion + lambda x concentration; the only place where the terms meet.

``L = L_KL + lambda L_conc`` (docs/theory.md, eq. 26), with ``L_KL`` over the stored pairs of P. Gradients are
of **n times** the loss: per point they then do not depend on n, and neither do rates, clipping and Adam's eps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import _checks
from drsne._rounding import lane_type
from drsne.affinities import DEFAULT_CALIBRATION, Calibration
from drsne.arrangement import Arrangement, along_curve
from drsne.concentration import (
    DEFAULT_SMOOTHING,
    EmbeddingNeighborhoods,
    InputNeighborhoods,
    Neighborhoods,
    Profile,
    Smoothing,
    loss_and_slope,
    profile,
)
from drsne.engines import Engine
from drsne.kernels import attraction as kernels
from drsne.parallel import Workers, n_blocks

Array = NDArray[np.float64]
_MANY = 8192  # points from which on their order in memory matters, and samples of neighbours are enough
_LEAST_SAMPLE = 10  # neighbours
_ARRANGED_EVERY = 50  # iterations
_LEAST_PARTITION = np.finfo(np.float64).tiny  # a map so wide that no pair is left repels nothing


class Reading(NamedTuple):
    """What ``neighborhoods`` stands for: weights of the two readings of a map (docs/theory.md, section 8)."""

    input_weight: float
    embedding_weight: float
    contrast: float  # exponent of the data's concentration over that of the map's


NEIGHBORHOODS = {
    "input": Reading(1.0, 0.0, contrast=1.0),  # the paper's
    "embedding": Reading(0.0, 1.0, contrast=2.0),
    "both": Reading(1.0, 0.7, contrast=2.0),
}


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
    input_weight, embedding_weight : float, default=1.0 and 0.0
        Weights, beside lambda, of the two readings of a map's concentration: over each point's neighbours in the
        data (the paper's), and over its own nearest neighbours in the map. Both are held against the same profile of
        the data.
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
        Arithmetic of a pair; sums over many are double.
    sampled_neighbors : int, "auto" or None, default="auto"
        Density neighbours that an iteration visits at most: of more, iterations renew the share of every s-th in
        turn, and keep the others' from a few iterations before. The losses are always over all of them as they
        are. "auto" is a sixth, but at least 10, from 8192 points on; None is all.

    Examples
    --------
    >>> from drsne import Objective
    >>> Objective(normalizer="detached").normalizer
    'detached'
    """

    support: str = "symmetric"
    normalizer: str = "attached"
    input_weight: float = 1.0
    embedding_weight: float = 0.0
    input_exponent: float = 1.0
    embedding_exponent: float = 1.0
    input_smoothing: Smoothing = DEFAULT_SMOOTHING
    embedding_smoothing: Smoothing = DEFAULT_SMOOTHING
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0
    calibration: Calibration = DEFAULT_CALIBRATION
    precision: str = "single"
    sampled_neighbors: int | str | None = "auto"

    def __post_init__(self) -> None:
        _checks.choice("support", self.support, ("symmetric", "directed"))
        _checks.choice("normalizer", self.normalizer, ("attached", "detached"))
        _checks.choice("precision", self.precision, ("single", "double"))
        for name in ("input_exponent", "embedding_exponent"):
            _checks.number(name, getattr(self, name), above=0)
        for name in ("input_weight", "embedding_weight"):
            _checks.number(name, getattr(self, name), at_least=0)
        if not self.input_weight + self.embedding_weight:
            raise ValueError(
                "input_weight and embedding_weight must not both be 0. Pass density_weight=0 for plain t-SNE."
            )
        if isinstance(self.sampled_neighbors, str):
            _checks.choice("sampled_neighbors", self.sampled_neighbors, ("auto",), also=", an integer or None")
        elif self.sampled_neighbors is not None:
            _checks.integer("sampled_neighbors", self.sampled_neighbors, at_least=1, hint="None takes all.")
        for name in ("affinity_smoothing", "distance_smoothing"):
            _checks.number(name, getattr(self, name), at_least=0)
        for name, kind in (
            ("input_smoothing", Smoothing),
            ("embedding_smoothing", Smoothing),
            ("calibration", Calibration),
        ):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a drsne.{kind.__name__}; got {getattr(self, name)!r}.")

    def sample_of(self, k: int, n_samples: int) -> int | None:
        """Density neighbours that an iteration visits, of k; None for all."""
        if self.sampled_neighbors != "auto":
            return self.sampled_neighbors  # type: ignore[return-value]
        return None if n_samples < _MANY else max(_LEAST_SAMPLE, -(-k // 6))


class Pairs(NamedTuple):
    """Pairs of a KL term: ``A = (P_s + P_s^T) / 2`` for the stored part P_s of P, its mass and sum of p log p."""

    indptr: NDArray[Any]  # (n + 1,)
    columns: NDArray[np.int32]  # (nnz,)
    A: NDArray[Any]  # (nnz,)
    mass: float
    entropy: float

    @classmethod
    def of(cls, P: sp.csr_matrix, smoothing: float) -> Pairs:
        """All of a symmetric ``P``, without a copy."""
        mass = float(P.data.sum(dtype=np.float64))
        return cls(P.indptr, P.indices, P.data, mass, _entropy(P.data, smoothing))

    @classmethod
    def directed(cls, P: sp.csr_matrix, neighbors: NDArray[np.int32], smoothing: float) -> Pairs:
        """Only the pairs (i, j) with j among the ``neighbors`` of i."""
        n, k = neighbors.shape
        chosen = sp.csr_matrix((np.ones(n * k), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        stored = sp.csr_matrix(P.multiply(chosen))
        A = sp.csr_matrix((stored + stored.T) * 0.5)
        A.sort_indices()
        return cls.of(stored, smoothing)._replace(indptr=A.indptr, columns=A.indices, A=A.data)

    def arranged(self, arrangement: Arrangement) -> Pairs:
        """The same pairs in another order of the points."""
        indptr, columns, A = arrangement.csr(self.indptr, self.columns, self.A)
        return self._replace(indptr=indptr, columns=columns, A=A)


def _entropy(p: NDArray[Any], smoothing: float, block: int = 2**20) -> float:
    """``sum p log(p + smoothing)``, a block at a time."""
    total = 0.0
    for start in range(0, len(p), block):
        some = p[start : start + block].astype(np.float64)
        some = some[some > 0.0]
        total += float((some * np.log(some + smoothing)).sum())
    return total


class Evaluation(NamedTuple):
    """Gradient of n times the loss, and the losses where asked for."""

    gradient: Array  # (n, d)
    kl: float | None
    concentration: float | None


class _Reading(NamedTuple):
    """A reading of the map's concentration: over whose neighbours, with what weight."""

    weight: float
    neighborhoods: InputNeighborhoods | EmbeddingNeighborhoods


class _Terms(NamedTuple):
    """What the terms of a loss are summed over, in some order of the points."""

    pairs: dict[str, Pairs]  # "objective", and "all" where that is another
    readings: tuple[_Reading, ...]
    target: Array
    arrangement: Arrangement | None

    def pairs_of(self, name: str) -> Pairs:
        return self.pairs.get(name, self.pairs["objective"])

    def arranged(self, arrangement: Arrangement) -> _Terms:
        return _Terms(
            {name: pairs.arranged(arrangement) for name, pairs in self.pairs.items()},
            tuple(_Reading(weight, near.arranged(arrangement)) for weight, near in self.readings),
            arrangement.arranged(self.target),
            arrangement,
        )


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
        self._engine, self._workers = engine, workers
        stored = np.float32 if objective.precision == "single" else np.float64
        P, delta = _ready(P, stored), objective.affinity_smoothing
        pairs = {"objective": Pairs.of(P, delta)}
        if objective.support == "directed":
            scaled = P / P.sum(dtype=np.float64)
            pairs = {"objective": Pairs.directed(P, neighbors, delta), "all": Pairs.of(scaled, delta)}
        k = neighbors.shape[1]
        sample = objective.sample_of(k, len(target))
        readings = (
            _Reading(objective.input_weight, InputNeighborhoods(neighbors, sample)),
            _Reading(objective.embedding_weight, EmbeddingNeighborhoods(k, sample)),
        )
        kept = tuple(reading for reading in readings if reading.weight)
        self._given = self._at = _Terms(pairs, kept, target, None)

    def evaluate(
        self,
        Y: Array,
        *,
        exaggeration: float = 1.0,
        density: float = 1.0,
        pairs: str = "objective",
        losses: bool = False,
        iteration: int | None = None,
    ) -> Evaluation:
        """Gradient of n times the loss at ``Y``.

        ``exaggeration`` multiplies the attraction alone, ``density`` multiplies lambda, ``pairs="all"`` takes
        every pair with affinity, rescaled to mass one, whatever the objective's support. The losses are those
        of the same pairs without exaggeration. With an ``iteration`` that follows on the last one, the density
        term renews that iteration's share of the neighbours.
        """
        if iteration is not None and len(Y) >= _MANY and iteration % _ARRANGED_EVERY == 0:
            self._arrange(Y)
        arrangement = self._at.arrangement
        M = Y if arrangement is None else arrangement.arranged(Y)
        lanes = M.astype(lane_type(M, self.objective.precision), copy=False)
        gradient, kl = self._neighbor_term(M, lanes, self._at.pairs_of(pairs), exaggeration, losses)
        gradient *= len(Y)
        concentration = self._density_term(lanes, self.weight * density, gradient, losses, iteration)
        return Evaluation(gradient if arrangement is None else arrangement.restored(gradient), kl, concentration)

    def concentration(self, Y: Array) -> Array:
        """The profile of a map, log c~_i, over the neighbours in the data where these take part, else in the map."""
        arrangement = self._at.arrangement
        M = Y if arrangement is None else arrangement.arranged(Y)
        lanes = M.astype(lane_type(M, self.objective.precision), copy=False)
        log = self._profile(lanes, self._at.readings[0].neighborhoods.at(lanes, None, self._workers).near).log
        return log if arrangement is None else arrangement.restored(log)

    def _arrange(self, Y: Array) -> None:
        """Let points that are near in the map be near in memory."""
        self._at = self._given  # let go of the old arrangement before the new one is made
        arrangement = Arrangement(along_curve(Y, self._workers).order, self._workers)
        self._at = self._given.arranged(arrangement)

    def _profile(self, lanes: NDArray[Any], near: Neighborhoods) -> Profile:
        objective = self.objective
        radii = near.radii(lanes, objective.embedding_smoothing, self._workers)
        return profile(radii, objective.embedding_exponent, objective.embedding_smoothing)

    def _density_term(
        self, lanes: NDArray[Any], weight: float, gradient: Array, losses: bool, iteration: int | None
    ) -> float | None:
        """Adds n times ``weight`` times its gradient to ``gradient``; its value where asked for."""
        if not weight and not losses:
            return None
        total, smoothing = 0.0, self.objective.embedding_smoothing
        for factor, neighborhoods in self._at.readings:
            rolling = neighborhoods.at(lanes, iteration, self._workers)
            if weight:
                radii = rolling.radii(lanes, smoothing, self._workers, iteration)
                loss, slope = self._loss(profile(radii, self.objective.embedding_exponent, smoothing))
                rolling.pull_back(lanes, (len(lanes) * weight * factor) * slope, smoothing, self._workers, gradient)
            if losses and (not weight or (rolling.near.n_parts > 1 and iteration is not None)):
                loss, _ = self._loss(self._profile(lanes, rolling.near))
            total += factor * loss if losses else 0.0
        return total if losses else None

    def _loss(self, low: Profile) -> tuple[float, Array]:
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        attached = self.objective.normalizer == "attached"
        return loss_and_slope(self._at.target, low, exponent, smoothing, attached=attached)

    def _neighbor_term(
        self, M: Array, lanes: NDArray[Any], stored: Pairs, exaggeration: float, losses: bool
    ) -> tuple[Array, float | None]:
        """Gradient of the KL term, 4 rho sum_j A_ij w_ij (y_i - y_j) - 4 (S / Z) F_i, and its value."""
        n, base = len(M), lanes.dtype.type(1.0 + self.objective.distance_smoothing)
        Z, repulsion = self._engine.repulsion(M, self.objective.distance_smoothing)
        Z = max(Z, _LEAST_PARTITION)
        delta, mass = self.objective.affinity_smoothing * Z, stored.mass
        gradient, sums = np.empty_like(M), np.empty(n_blocks(n))
        edges = (lanes, stored.indptr, stored.columns, stored.A, base)
        if delta:
            self._workers.run(kernels.smoothed_attraction, n, *edges, delta, gradient, sums)
            mass = float(sums.sum())
        else:
            kernel = kernels.attraction_2d if M.shape[1] == 2 else kernels.attraction_any
            self._workers.run(kernel, n, *edges, gradient)
        gradient *= 4.0 * exaggeration
        repulsion *= 4.0 * mass / Z
        gradient -= repulsion
        if not losses:
            return gradient, None
        self._workers.run(kernels.energy, n, *edges, delta, sums)
        return gradient, stored.entropy + float(sums.sum()) + stored.mass * float(np.log(Z))


def _ready(P: sp.csr_matrix, lane: type) -> sp.csr_matrix:
    """``P`` as the kernels take it: sorted rows, int32 columns, values of the kernels' type."""
    P.sort_indices()
    if P.data.dtype == lane and P.indices.dtype == np.int32:
        return P
    out = sp.csr_matrix(P.shape)
    out.data, out.indices, out.indptr = P.data.astype(lane), P.indices.astype(np.int32), P.indptr
    return out
