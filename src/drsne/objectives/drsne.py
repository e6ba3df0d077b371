"""The objective of DR-SNE: KL divergence plus density weight times concentration loss (docs/theory.md, eq. 26)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne import checks
from drsne.affinities import DEFAULT_CALIBRATION, Calibration
from drsne.backends import Backend, PairList
from drsne.backends.arrays import host
from drsne.engines import Engine
from drsne.objectives.added_row import Density, Law, MapTerm
from drsne.objectives.concentration import (
    DEFAULT_QUANTILE,
    DEFAULT_SMOOTHING,
    Profile,
    Smoothing,
    added_length,
    loss_and_slope,
    profile,
    repeated,
)
from drsne.objectives.contrast import of_scales
from drsne.objectives.kernel import KERNELS, adaptation
from drsne.objectives.kl import StoredPairs, prepared
from drsne.objectives.neighborhoods import (
    EmbeddingNeighborhoods,
    InputNeighborhoods,
    Memory,
    Neighborhoods,
    NeighborTable,
)
from drsne.objectives.problem import LARGE_MAP, Problem, Smoothings, State, Terms

Array = NDArray[np.float64]
_LEAST_SAMPLE = 10  # smallest automatic number of neighbours in a share


class NeighborhoodWeights(NamedTuple):
    """The meaning of a value of ``neighborhoods`` (docs/theory.md, section 8)."""

    input: float  # weight of the loss over the neighbours in the data
    embedding: float  # weight of the loss over the neighbours in the map


NEIGHBORHOODS = {
    "input": NeighborhoodWeights(1.0, 0.0),  # the paper's method
    "embedding": NeighborhoodWeights(0.0, 1.0),
    "both": NeighborhoodWeights(1.0, 0.7),
}
PROFILE_WEIGHT = 70.0  # largest weight of the default density term; above it, the paper's term is used (section 9)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """Detailed settings of the objective, in addition to the parameters of the estimator.

    Parameters
    ----------
    support : {"symmetric", "directed"}, default="symmetric"
        Pairs (i, j) of the KL term. "symmetric" uses all pairs with an affinity. "directed" uses only the pairs with j
        among the k density neighbours of i, as in the paper.
    normalizer : {"attached", "detached"}, default="attached"
        Whether the mean concentration of the map is differentiated. "detached", as in the authors' code, adds a net
        force that makes the map grow or shrink.
    input_weight, embedding_weight : float, default=1.0 and 0.0
        Factors on lambda for the loss over the neighbours of each point in the data, as in the paper, and for the loss
        over its nearest neighbours in the map. Both losses have the same target.
    input_exponent : float or None, default=None
        alpha in ``c = r^-alpha`` in the data. None stands for ``embedding_exponent`` times the ``contrast`` of the
        estimator.
    embedding_exponent : float, default=1.0
        alpha in ``c = r^-alpha`` in the map.
    max_contrast : float, default=inf
        Upper limit of the automatic contrast.
    input_smoothing, embedding_smoothing : Smoothing
        Small constants of the concentration in the data and in the map.
    affinity_smoothing : float, default=0.0
        delta in log(q + delta) and log(p + delta).
    distance_smoothing : float, default=0.0
        Constant that is added to the squared distance in ``w = 1 / (1 + d^2)``. With the adaptive kernel, it is added
        to the squared distance in units of the scales, ``w = 1 / (1 + d^2 / (rho_i rho_j) + distance_smoothing)``.
    kernel : {"auto", "adaptive", "fixed"}, default="auto"
        Kernel of the affinities in the map. The "fixed" kernel, which t-SNE and the paper use, has the same scale at
        all points. The "adaptive" kernel has its own scale at every point, taken from the radius of the point in the
        data (docs/theory.md, section 11). "auto" means "adaptive" if the density term is used and "fixed" if
        ``density_weight=0``. Below ``density_weight=0.1``, the automatic kernel adapts only in part: the scales are
        raised to the power ``10 * density_weight``.
    scale_exponent : float, "auto" or None, default=None
        Power of the radii in the data to which the scales of an adaptive kernel are proportional. None stands for the
        contrast, ``input_exponent / embedding_exponent``, if it is at most 2, and for ``1 + contrast / 2`` above. With
        "auto", the power is computed in the same way from the automatic contrast, even if ``input_exponent`` is given.
    target_quantile : float, default=0.01
        Quantile at which the target of the density term is winsorised at either end. Without this, a few very sparse
        points would be placed so far away that the rest of the map shrinks. With 0, the target is not changed.
    small_groups : bool, default=True
        Whether to measure the radius of a point over fewer than k neighbours, in the data and in the map, if the other
        neighbours lie beyond a clear gap. Groups of fewer than k + 1 points then have their own concentration.
    calibration : Calibration
        Settings of the search for the precisions of the affinities.
    precision : {"single", "double"}, default="single"
        Floating-point precision of the terms of each pair of points. Sums over many pairs always have double precision.
    sampled_neighbors : int, "auto" or None, default="auto"
        Largest number of density neighbours that one iteration visits. If a point has more neighbours, they are divided
        into shares. Each iteration updates one share, and the sums over the other shares are a few iterations old. The
        losses are always computed over all neighbours. "auto" stands for a sixth of the neighbours, but at least 10, if
        there are at least 8192 points and ``embedding_weight`` is 0. (Neighbours in the map change, so old shares would
        pull points away from their current neighbours.) In other cases, and with None, every iteration visits all
        neighbours.

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
    input_exponent: float | None = None
    embedding_exponent: float = 1.0
    max_contrast: float = math.inf
    input_smoothing: Smoothing = DEFAULT_SMOOTHING
    embedding_smoothing: Smoothing = DEFAULT_SMOOTHING
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0
    kernel: str = "auto"
    scale_exponent: float | str | None = None
    target_quantile: float = DEFAULT_QUANTILE
    small_groups: bool = True
    calibration: Calibration = DEFAULT_CALIBRATION
    precision: str = "single"
    sampled_neighbors: int | str | None = "auto"

    def __post_init__(self) -> None:
        checks.choice("support", self.support, ("symmetric", "directed"))
        checks.choice("normalizer", self.normalizer, ("attached", "detached"))
        checks.choice("precision", self.precision, ("single", "double"))
        checks.choice("kernel", self.kernel, KERNELS)
        checks.flag("small_groups", self.small_groups)
        if checks.number("target_quantile", self.target_quantile, at_least=0) >= 0.5:
            raise ValueError(
                f"target_quantile must be below 0.5; got {self.target_quantile!r}. Pass 0 for an unchanged target."
            )
        if self.input_exponent is not None:
            checks.number(
                "input_exponent", self.input_exponent, above=0, hint="Pass None for the estimator's contrast."
            )
        checks.number("embedding_exponent", self.embedding_exponent, above=0)
        if self.max_contrast != math.inf:
            checks.number("max_contrast", self.max_contrast, above=0, hint="Pass math.inf for the usual limits.")
        if isinstance(self.scale_exponent, str):
            checks.choice("scale_exponent", self.scale_exponent, ("auto",), also=", a number of at least 0 or None")
        elif self.scale_exponent is not None:
            checks.number("scale_exponent", self.scale_exponent, at_least=0, hint="Pass None for the default.")
        for name in ("input_weight", "embedding_weight"):
            checks.number(name, getattr(self, name), at_least=0)
        if not self.input_weight + self.embedding_weight:
            raise ValueError(
                "input_weight and embedding_weight must not both be 0; got 0 and 0. Pass density_weight=0 for plain "
                "t-SNE."
            )
        if isinstance(self.sampled_neighbors, str):
            checks.choice("sampled_neighbors", self.sampled_neighbors, ("auto",), also=", an integer or None")
        elif self.sampled_neighbors is not None:
            checks.integer("sampled_neighbors", self.sampled_neighbors, at_least=1, hint="Pass None for all.")
        for name in ("affinity_smoothing", "distance_smoothing"):
            checks.number(name, getattr(self, name), at_least=0)
        for name, kind in (
            ("input_smoothing", Smoothing),
            ("embedding_smoothing", Smoothing),
            ("calibration", Calibration),
        ):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(
                    f"{name} must be a drsne.{kind.__name__}; got {getattr(self, name)!r}. Omit {name} to use "
                    "the default."
                )

    @property
    def contrast(self) -> float | None:
        """The power of the concentration in the data that the map should show, or None if it is not known yet."""
        return None if self.input_exponent is None else float(self.input_exponent) / self.embedding_exponent

    def at(self, automatic: float) -> Objective:
        """Return the objective for data with this automatic contrast; all exponents are then numbers."""
        automatic = min(automatic, self.max_contrast)
        exponent = self.embedding_exponent * automatic if self.input_exponent is None else self.input_exponent
        power = self.scale_exponent
        if power is None or isinstance(power, str):
            power = of_scales(exponent / self.embedding_exponent if power is None else automatic)
        return replace(self, input_exponent=exponent, scale_exponent=power)

    def of_the_paper(self) -> Objective:
        """Return the objective with the paper's density term.

        The term compares the neighbours in the data only, without a contrast, and its target is not winsorised. The
        scales of the kernel do not change.
        """
        weights = NEIGHBORHOODS["input"]
        scale_exponent = self.scale_exponent
        if scale_exponent is None:
            scale_exponent = "auto" if self.contrast is None else of_scales(self.contrast)
        return replace(
            self,
            input_weight=weights.input,
            embedding_weight=weights.embedding,
            input_exponent=self.embedding_exponent,
            scale_exponent=scale_exponent,
            target_quantile=0.0,
        )

    def adapts(self, weight: float) -> bool:
        """Return whether the kernel is adaptive at a ``weight`` of the density term."""
        return self.kernel == "adaptive" or (self.kernel == "auto" and weight > 0)

    def adaptation(self, weight: float) -> float:
        """Return the power to which the scales of the kernel are raised at a ``weight`` of the density term."""
        return adaptation(self.kernel, weight)

    def sample_of(self, k: int, n_samples: int) -> int | None:
        """Return how many of k density neighbours an iteration visits, or None for all."""
        if self.sampled_neighbors != "auto":
            return self.sampled_neighbors  # type: ignore[return-value]
        sampled = n_samples >= LARGE_MAP and self.embedding_weight == 0
        return max(_LEAST_SAMPLE, -(-k // 6)) if sampled else None


class DRSNEProblem(Problem):
    """The objective of DR-SNE on some data.

    Parameters
    ----------
    objective : Objective
        Settings of the objective.
    P : csr_matrix of shape (n, n) or PairList
        Symmetric affinities, or those that the backend has made.
    neighbors : ndarray of shape (n, k)
        Density neighbours N_k(i) in the data.
    target : ndarray of shape (n,)
        The profile log c~_i that the map should have.
    weight : float
        lambda, the weight of the concentration loss.
    engine : Engine
        The engine that evaluates the repulsion.
    backend : Backend
        The backend that evaluates all other sums.
    log_scales : ndarray of shape (n,), default=None
        log rho_i of the adaptive kernel, or None for the fixed kernel.
    adaptation : float, default=1.0
        Power to which the scales of an adaptive kernel are raised.
    kept : ndarray of shape (n,), default=None
        How many of the k nearest neighbours of each point, in the data and in the map, count towards its concentration.
        If None, all of them count.
    masses : ndarray of shape (n,), default=None
        Masses of the points. ``neighbors`` then list a neighbour of mass m up to m times.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        P: sp.csr_matrix | PairList,
        neighbors: NDArray[np.int32],
        target: Array,
        weight: float,
        engine: Engine,
        backend: Backend,
        log_scales: Array | None = None,
        adaptation: float = 1.0,
        kept: NDArray[np.int32] | None = None,
        masses: Array | None = None,
    ) -> None:
        self.objective = objective
        P, delta = prepared(P, objective.precision), objective.affinity_smoothing
        pairs = {"objective": StoredPairs.of(P, delta, masses)}
        if objective.support == "directed":
            assert not isinstance(P, PairList)  # preparations on a device are for the default support
            scaled = P / P.sum(dtype=np.float64)
            pairs = {"objective": StoredPairs.directed(P, neighbors, delta), "all": StoredPairs.of(scaled, delta)}
        k = neighbors.shape[1]
        sample = objective.sample_of(k, len(target))
        listed: list[Neighborhoods] = []
        if objective.input_weight:
            near = repeated(neighbors, kept)
            near = np.ascontiguousarray(near) if isinstance(near, np.ndarray) else near.contiguous()
            listed.append(InputNeighborhoods(objective.input_weight, near, sample))
        if objective.embedding_weight:
            listed.append(EmbeddingNeighborhoods(objective.embedding_weight, k, sample, kept, masses))
        super().__init__(
            Terms(pairs, target, tuple(listed), log_scales),
            weight=weight,
            precision=objective.precision,
            engine=engine,
            backend=backend,
            smoothings=Smoothings(delta, objective.distance_smoothing),
            adaptation=adaptation,
            masses=masses,
        )

    @property
    def adaptive(self) -> bool:
        """Whether the kernel is adaptive."""
        return self.terms.log_scales is not None

    def scales_at(self, power: float) -> Array:
        """Return the scales rho_i of the kernel, raised to a power. With the fixed kernel, all scales are 1."""
        log_scales = self.terms.log_scales
        return np.ones(len(self.target)) if log_scales is None else np.exp(power * log_scales)

    def concentration(self, Y: Array, state: State | None = None) -> Array:
        """Return the profile log c~_i of a map.

        It is measured over the neighbours in the data, or over the neighbours in the map if the objective uses only
        those.
        """
        state = self.start() if state is None else state
        typed = self.typed(state.in_order(self.backend.received(Y)))
        table = state.terms.neighborhoods[0].table(typed, state.memories[0], self.backend)
        return host(state.restored(self._profile(typed, table).log))

    def density(self, Y: Array, weight: float, state: State | None = None) -> Density:
        """Return the density terms of the loss of a new row, with the concentrations of the map ``Y``."""
        objective, smoothing = self.objective, self.objective.embedding_smoothing
        found = Density(
            weight,
            exponent=objective.embedding_exponent,
            squared_distance=smoothing.squared_distance,
            profile=smoothing.profile,
        )
        state = self.start() if state is None else state
        typed = self.typed(state.in_order(self.backend.received(Y)))
        for neighborhoods, memory in zip(state.terms.neighborhoods, state.memories, strict=True):
            radii = host(neighborhoods.table(typed, memory, self.backend).radii(typed, smoothing.squared_distance))
            low = profile(radii, objective.embedding_exponent, smoothing, self.masses)
            log_mean = -Law.of_profile(low, objective.embedding_exponent, 0.0).intercept
            term = MapTerm(neighborhoods.weight, added_length(radii, smoothing, self.masses), log_mean)
            in_data = isinstance(neighborhoods, InputNeighborhoods)
            found = found._replace(of_data=term) if in_data else found._replace(of_map=term)
        return found

    def _profile(self, Y: NDArray[Any], table: NeighborTable) -> Profile:
        smoothing = self.objective.embedding_smoothing
        radii = table.radii(Y, smoothing.squared_distance)
        return profile(radii, self.objective.embedding_exponent, smoothing, self._masses)

    def _density_term(
        self, Y: NDArray[Any], state: State, weight: float, gradient: Array, losses: bool, iteration: int | None
    ) -> float | None:
        total = 0.0
        for neighborhoods, memory in zip(state.terms.neighborhoods, state.memories, strict=True):
            loss = self._term(neighborhoods, memory, Y, state, weight, gradient, losses, iteration)
            total += neighborhoods.weight * loss if losses else 0.0
        return total if losses else None

    def _term(
        self,
        neighborhoods: Neighborhoods,
        memory: Memory,
        Y: NDArray[Any],
        state: State,
        weight: float,
        gradient: Array,
        losses: bool,
        iteration: int | None,
    ) -> float:
        """Add the gradient of the loss over one kind of neighbours to ``gradient``, and return the loss."""
        if not weight:  # the memory is left unchanged, so that computing losses does not affect later iterations
            return self._loss(self._profile(Y, neighborhoods.table(Y, memory, self.backend)), state)[0]
        floor = self.objective.embedding_smoothing.squared_distance
        sums = neighborhoods.sums(Y, memory, iteration, self.backend)
        radii = sums.radii(Y, floor, iteration)
        loss, slope = self._loss_of(radii, state)
        sums.add_forces(Y, (self.total * weight * neighborhoods.weight) * slope, floor, gradient)
        if losses and sums.table.n_shares > 1 and iteration is not None:  # the sums over some shares are out of date
            loss, _ = self._loss(self._profile(Y, sums.table), state)
        return loss

    def _loss_of(self, radii: Array, state: State) -> tuple[float, Array]:
        """Return the loss and its slope at these radii. For many points and the usual smoothing, it is compiled."""
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        compiled = len(radii) >= LARGE_MAP and self.masses is None
        added = added_length(radii, smoothing) if compiled else 0.0
        if not added or smoothing.mean or smoothing.profile:
            return self._loss(profile(radii, exponent, smoothing, self._masses), state)
        attached = self.objective.normalizer == "attached"
        return self.backend.profile_slope(radii, state.terms.target, exponent=exponent, added=added, attached=attached)

    def _loss(self, low: Profile, state: State) -> tuple[float, Array]:
        exponent, smoothing = self.objective.embedding_exponent, self.objective.embedding_smoothing
        attached = self.objective.normalizer == "attached"
        return loss_and_slope(state.terms.target, low, exponent, smoothing, attached=attached, masses=self._masses)
