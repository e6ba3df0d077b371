"""The objective: attraction + repulsion + lambda x concentration; the only place where the terms meet.

``L = L_KL + lambda L_conc`` (docs/theory.md, eq. 26), with ``L_KL`` over the stored pairs of P. Gradients are
of **n times** the loss: per point they then do not depend on n, and neither do rates, clipping and Adam's eps.
:class:`OnPairs` is what it shares with den-SNE's (:mod:`drsne.correlation`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import _checks
from drsne._rounding import lane_type
from drsne.affinities import DEFAULT_CALIBRATION, Calibration
from drsne.arrangement import Arrangement, along_curve
from drsne.concentration import (
    DEFAULT_QUANTILE,
    DEFAULT_SMOOTHING,
    EmbeddingNeighborhoods,
    InputNeighborhoods,
    Neighborhoods,
    Profile,
    Smoothing,
    contrast,
    loss_and_slope,
    profile,
    repeated,
)
from drsne.engines import Engine
from drsne.pairs import Constants, Pairs, neighbor_term, ready
from drsne.parallel import Workers

Array = NDArray[np.float64]
_MANY = 8192  # points from which on their order in memory matters, and samples of neighbours are enough
_LEAST_SAMPLE = 10  # neighbours
_ARRANGED_EVERY = 50  # iterations


class Reading(NamedTuple):
    """What ``neighborhoods`` stands for: weights of the two readings of a map (docs/theory.md, section 8)."""

    input_weight: float
    embedding_weight: float
    contrasted: bool  # whether differences of the data's concentration are made larger where they are small


KERNELS = ("auto", "adaptive", "fixed")
FULL_ADAPTATION = 0.1  # lambda from which on the automatic kernel adapts fully (docs/theory.md, section 11)
NEIGHBORHOODS = {
    "input": Reading(1.0, 0.0, contrasted=False),  # the paper's
    "embedding": Reading(0.0, 1.0, contrasted=True),
    "both": Reading(1.0, 0.7, contrasted=True),
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
        alpha in ``c = r^-alpha``, in each space. An ``input_exponent`` of "auto" is that of the map, up to doubled
        where the radii of the data differ so little that their differences would drown in chance.
    input_smoothing, embedding_smoothing : Smoothing
        Small constants of the concentration in each space.
    affinity_smoothing : float, default=0.0
        delta in log(q + delta) and log(p + delta).
    distance_smoothing : float, default=0.0
        Added to the squared distance in ``w = 1 / (1 + d^2)``; with the adaptive kernel, to the squared distance in
        units of the two points' scales, ``w = 1 / (1 + d^2 / (rho_i rho_j) + distance_smoothing)``.
    kernel : {"auto", "adaptive", "fixed"}, default="auto"
        The kernel of the map's affinities q. "fixed" is that of t-SNE and of the paper, one width for all points;
        "adaptive" gives every point the scale that its neighbourhood has in the data (docs/theory.md, section 11).
        "auto" is adaptive if the density term takes part and fixed at ``density_weight=0``. In between, below
        ``density_weight=0.1``, it adapts in part: the scales are raised to the power ``10 * density_weight``.
    target_quantile : float, default=0.01
        The data's concentrations below this quantile, and above one less it, count as that quantile in the target
        of the density term (they are winsorised): otherwise a few very sparse points are sent so far away that the
        rest of the map shrinks. 0 takes all as they are.
    small_groups : bool, default=True
        Measure the radius of a point over fewer than k neighbours, in the data and in the map, if the others lie
        beyond a clear gap: groups of fewer than k + 1 points then have a concentration of their own.
    calibration : Calibration
        How affinities reach the perplexity.
    precision : {"single", "double"}, default="single"
        Arithmetic of a pair; sums over many are double.
    sampled_neighbors : int, "auto" or None, default="auto"
        Density neighbours that an iteration visits at most: of more, iterations renew the share of every s-th in
        turn, and keep the others' from a few iterations before. The losses are always over all of them as they
        are. "auto" is a sixth, but at least 10, from 8192 points on where the map's own neighbours play no part: those
        change, and old shares of them pull points away from their neighbours. None is all.

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
    input_exponent: float | str = 1.0
    embedding_exponent: float = 1.0
    input_smoothing: Smoothing = DEFAULT_SMOOTHING
    embedding_smoothing: Smoothing = DEFAULT_SMOOTHING
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0
    kernel: str = "auto"
    target_quantile: float = DEFAULT_QUANTILE
    small_groups: bool = True
    calibration: Calibration = DEFAULT_CALIBRATION
    precision: str = "single"
    sampled_neighbors: int | str | None = "auto"

    def __post_init__(self) -> None:
        _checks.choice("support", self.support, ("symmetric", "directed"))
        _checks.choice("normalizer", self.normalizer, ("attached", "detached"))
        _checks.choice("precision", self.precision, ("single", "double"))
        _checks.choice("kernel", self.kernel, KERNELS)
        _checks.flag("small_groups", self.small_groups)
        if _checks.number("target_quantile", self.target_quantile, at_least=0) >= 0.5:
            raise ValueError(
                f"target_quantile must be below 0.5; got {self.target_quantile!r}. Pass 0 to leave the target as it is."
            )
        if isinstance(self.input_exponent, str):
            _checks.choice("input_exponent", self.input_exponent, ("auto",), also=" or a number above 0")
        else:
            _checks.number("input_exponent", self.input_exponent, above=0)
        _checks.number("embedding_exponent", self.embedding_exponent, above=0)
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

    def at(self, radii: Array) -> Objective:
        """The objective for data with these radii: an automatic exponent has its value."""
        if not isinstance(self.input_exponent, str):
            return self
        return replace(self, input_exponent=self.embedding_exponent * contrast(radii, self.input_smoothing))

    def adapts(self, weight: float) -> bool:
        """Return whether the kernel is adaptive at that ``weight`` of the density term."""
        return self.kernel == "adaptive" or (self.kernel == "auto" and weight > 0)

    def adaptation(self, weight: float) -> float:
        """Return how far the kernel adapts at that ``weight``: the power to which its scales are raised."""
        if self.kernel == "auto":
            return min(1.0, weight / FULL_ADAPTATION)
        return float(self.kernel == "adaptive")

    def sample_of(self, k: int, n_samples: int) -> int | None:
        """Density neighbours that an iteration visits, of k; None for all."""
        if self.sampled_neighbors != "auto":
            return self.sampled_neighbors  # type: ignore[return-value]
        few = n_samples >= _MANY and self.embedding_weight == 0
        return max(_LEAST_SAMPLE, -(-k // 6)) if few else None


class Evaluation(NamedTuple):
    """Gradient of n times the loss, the losses where asked for, and the scales of the kernel."""

    gradient: Array  # (n, d)
    kl: float | None
    concentration: float | None
    scales: Array | None = None  # (n,), or None for the fixed kernel


class _Reading(NamedTuple):
    """A reading of the map's concentration: over whose neighbours, with what weight."""

    weight: float
    neighborhoods: InputNeighborhoods | EmbeddingNeighborhoods


class Terms(NamedTuple):
    """What the terms of a loss are summed over, in some order of the points."""

    pairs: dict[str, Pairs]  # "objective", and "all" where that is another
    readings: tuple[_Reading, ...]
    target: Array
    log_scale: Array | None = None  # log rho_i of the adaptive kernel
    arrangement: Arrangement | None = None

    def pairs_of(self, name: str) -> Pairs:
        """The pairs of that name, or the objective's."""
        return self.pairs.get(name, self.pairs["objective"])

    def arranged(self, arrangement: Arrangement) -> Terms:
        """The same in another order of the points."""
        return Terms(
            {name: pairs.arranged(arrangement) for name, pairs in self.pairs.items()},
            tuple(_Reading(weight, near.arranged(arrangement)) for weight, near in self.readings),
            arrangement.arranged(self.target),
            None if self.log_scale is None else arrangement.arranged(self.log_scale),
            arrangement,
        )


class OnPairs:
    """A KL term and a density term on given data, the points in whatever order suits the memory."""

    _answer: type[Any]  # gradient, KL divergence and value of the density term, by name

    _adaptation = 1.0  # how far the kernel adapts: the power to which its scales are raised

    def __init__(self, objective: Objective, given: Terms, weight: float, engine: Engine, workers: Workers) -> None:
        self.objective, self.weight, self.target = objective, weight, given.target
        self._engine, self._workers = engine, workers
        self._given = self._at = given

    def evaluate(
        self,
        Y: Array,
        *,
        exaggeration: float = 1.0,
        density: float = 1.0,
        pairs: str = "objective",
        losses: bool = False,
        iteration: int | None = None,
        scale: float = 1.0,
    ) -> Any:
        """Gradient of n times the loss at ``Y``.

        ``exaggeration`` multiplies the attraction alone, ``density`` multiplies lambda, ``pairs="all"`` takes
        every pair with affinity, rescaled to mass one, whatever the objective's support. The losses are those
        of the same pairs without exaggeration. With an ``iteration`` that follows on the last one, the density
        term may renew that iteration's share of the neighbours only. ``scale`` says how far the kernel adapts: its
        scales are ``rho_i`` to that power, and 0 is the fixed kernel.
        """
        if iteration is not None and len(Y) >= _MANY and iteration % _ARRANGED_EVERY == 0:
            self._arrange(Y)
        M, lanes = self._in_order(Y)
        constants = Constants(exaggeration, self.objective.affinity_smoothing, self.objective.distance_smoothing)
        stored = self._at.pairs_of(pairs)
        log_scale = self._at.log_scale
        power = scale * self._adaptation
        scales = None if log_scale is None or not power else np.exp(power * log_scale)
        gradient, kl = neighbor_term(M, lanes, stored, constants, self._engine, self._workers, losses, scales)
        gradient *= len(Y)
        value = self._density_term(lanes, self.weight * density, gradient, losses, iteration)
        return self._answer(self._restored(gradient), kl, value, None if scales is None else self._restored(scales))

    def _density_term(
        self, lanes: NDArray[Any], weight: float, gradient: Array, losses: bool, iteration: int | None
    ) -> float | None:
        """Adds n times ``weight`` times its gradient to ``gradient``; its value where asked for."""
        raise NotImplementedError

    def _arrange(self, Y: Array) -> None:
        """Let points that are near in the map be near in memory."""
        self._at = self._given  # let go of the old arrangement before the new one is made
        arrangement = Arrangement(along_curve(Y, self._workers).order, self._workers)
        self._at = self._given.arranged(arrangement)

    def _in_order(self, Y: Array) -> tuple[Array, NDArray[Any]]:
        """The map in the present order of the points, and the same in the type in which pairs are computed."""
        M = Y if self._at.arrangement is None else self._at.arrangement.arranged(Y)
        return M, M.astype(lane_type(M, self.objective.precision), copy=False)

    def _restored(self, values: Array) -> Array:
        """Values of the points, back in the order of the data."""
        return values if self._at.arrangement is None else self._at.arrangement.restored(values)


class Problem(OnPairs):
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
    log_scale : ndarray of shape (n,), default=None
        log rho_i of the adaptive kernel; None is the fixed one.
    adaptation : float, default=1.0
        How far the kernel adapts: the power to which its scales are raised.
    kept : ndarray of shape (n,), default=None
        How many of a point's k nearest neighbours, in the data and in the map, count in the density term; None is
        all of them.
    """

    _answer = Evaluation

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
        log_scale: Array | None = None,
        adaptation: float = 1.0,
        kept: NDArray[np.int32] | None = None,
    ) -> None:
        self._adaptation = adaptation
        P, delta = ready(P, objective.precision), objective.affinity_smoothing
        pairs = {"objective": Pairs.of(P, delta)}
        if objective.support == "directed":
            scaled = P / P.sum(dtype=np.float64)
            pairs = {"objective": Pairs.directed(P, neighbors, delta), "all": Pairs.of(scaled, delta)}
        k = neighbors.shape[1]
        sample = objective.sample_of(k, len(target))
        readings = (
            _Reading(
                objective.input_weight, InputNeighborhoods(np.ascontiguousarray(repeated(neighbors, kept)), sample)
            ),
            _Reading(objective.embedding_weight, EmbeddingNeighborhoods(k, sample, kept)),
        )
        taken = tuple(reading for reading in readings if reading.weight)
        super().__init__(objective, Terms(pairs, taken, target, log_scale), weight, engine, workers)

    @property
    def adaptive(self) -> bool:
        """Whether the kernel is adaptive."""
        return self._given.log_scale is not None

    def scales_at(self, power: float) -> Array:
        """Return the scales of the kernel, rho_i, raised to a power; all 1 for the fixed kernel."""
        log_scale = self._given.log_scale
        return np.ones(len(self.target)) if log_scale is None else np.exp(power * log_scale)

    def concentration(self, Y: Array) -> Array:
        """The profile of a map, log c~_i, over the neighbours in the data where these take part, else in the map."""
        _, lanes = self._in_order(Y)
        near = self._at.readings[0].neighborhoods.at(lanes, None, self._workers).near
        return self._restored(self._profile(lanes, near).log)

    def _profile(self, lanes: NDArray[Any], near: Neighborhoods) -> Profile:
        objective = self.objective
        radii = near.radii(lanes, objective.embedding_smoothing, self._workers)
        return profile(radii, objective.embedding_exponent, objective.embedding_smoothing)

    def _density_term(
        self, lanes: NDArray[Any], weight: float, gradient: Array, losses: bool, iteration: int | None
    ) -> float | None:
        if not weight and not losses:
            return None
        total, smoothing = 0.0, self.objective.embedding_smoothing
        for factor, neighborhoods in self._at.readings:
            if weight:
                rolling = neighborhoods.at(lanes, iteration, self._workers)
            else:  # only looked at: what the next iterations hold on to must not depend on that
                rolling = neighborhoods.now(lanes, self._workers)
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
