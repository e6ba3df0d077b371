"""The settings of the objective of DR-SNE (docs/theory.md, eq. 26)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drsne import checks
from drsne.affinities import DEFAULT_CALIBRATION, Calibration
from drsne.terms.contrast import of_scales
from drsne.terms.problem import LARGE_MAP
from drsne.terms.profile import DEFAULT_QUANTILE, DEFAULT_SMOOTHING, Smoothing
from drsne.terms.term import Term

FULL_ADAPTATION = 0.1  # smallest density weight at which the automatic kernel adapts fully
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
        With weights of rows and ``backend="numba"``, the terms of the repulsion always have double precision too.
    sampled_neighbors : int, "auto" or None, default="auto"
        Largest number of density neighbours that one iteration visits. If a point has more neighbours, they are divided
        into shares. Each iteration updates one share, and the sums over the other shares are a few iterations old. The
        losses are always computed over all neighbours. "auto" stands for a sixth of the neighbours, but at least 10, if
        there are at least 8192 points and ``embedding_weight`` is 0. (Neighbours in the map change, so old shares would
        pull points away from their current neighbours.) In other cases, and with None, every iteration visits all
        neighbours.
    terms : tuple of callables, default=()
        Further terms of the loss. Each callable takes the prepared data and returns a :class:`drsne.terms.term.Term`
        (docs/architecture.md), or None if the term does not suit the data.

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
    terms: tuple[Callable[[Any], Term | None], ...] = ()

    def __post_init__(self) -> None:
        checks.choice("support", self.support, ("symmetric", "directed"))
        checks.choice("normalizer", self.normalizer, ("attached", "detached"))
        checks.choice("precision", self.precision, ("single", "double"))
        checks.choice("kernel", self.kernel, ("auto", "adaptive", "fixed"))
        checks.flag("small_groups", self.small_groups)
        for name in ("input_weight", "embedding_weight", "affinity_smoothing", "distance_smoothing"):
            checks.number(name, getattr(self, name), at_least=0)
        if not self.input_weight + self.embedding_weight:
            raise ValueError(
                "input_weight and embedding_weight must not both be 0; got 0 and 0. Pass density_weight=0 for plain "
                "t-SNE."
            )
        if checks.number("target_quantile", self.target_quantile, at_least=0) >= 0.5:
            raise ValueError(
                f"target_quantile must be below 0.5; got {self.target_quantile!r}. Pass 0 for an unchanged target."
            )
        checks.number("embedding_exponent", self.embedding_exponent, above=0)
        if self.input_exponent is not None:
            hint = "Pass None for the estimator's contrast."
            checks.number("input_exponent", self.input_exponent, above=0, hint=hint)
        if self.max_contrast != math.inf:
            checks.number("max_contrast", self.max_contrast, above=0, hint="Pass math.inf for the usual limits.")
        if isinstance(self.scale_exponent, str):
            checks.choice("scale_exponent", self.scale_exponent, ("auto",), also=", a number of at least 0 or None")
        elif self.scale_exponent is not None:
            checks.number("scale_exponent", self.scale_exponent, at_least=0, hint="Pass None for the default.")
        if isinstance(self.sampled_neighbors, str):
            checks.choice("sampled_neighbors", self.sampled_neighbors, ("auto",), also=", an integer or None")
        elif self.sampled_neighbors is not None:
            checks.integer("sampled_neighbors", self.sampled_neighbors, at_least=1, hint="Pass None for all.")
        kinds = {"input_smoothing": Smoothing, "embedding_smoothing": Smoothing, "calibration": Calibration}
        for name, kind in kinds.items():
            if not isinstance(value := getattr(self, name), kind):
                raise TypeError(
                    f"{name} must be a drsne.{kind.__name__}; got {value!r}. Omit {name} to use the default."
                )
        if not isinstance(self.terms, tuple) or not all(callable(each) for each in self.terms):
            raise TypeError(f"terms must be a tuple of callables; got {self.terms!r}. Omit it for the usual loss.")

    @property
    def exact_bits(self) -> bool:
        """Whether the last bits of distances matter, as they do in the presets of the paper."""
        return self.precision == "double"

    @property
    def on_device(self) -> bool:
        """Whether a device may search for neighbours and compute the affinities."""
        return self.calibration.shift and self.support == "symmetric" and self.precision == "single"

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
        scale_exponent = self.scale_exponent
        if scale_exponent is None:
            scale_exponent = "auto" if self.contrast is None else of_scales(self.contrast)
        return replace(
            self,
            input_weight=1.0,
            embedding_weight=0.0,
            input_exponent=self.embedding_exponent,
            scale_exponent=scale_exponent,
            target_quantile=0.0,
        )

    def adapts(self, weight: float) -> bool:
        """Return whether the kernel is adaptive at a ``weight`` of the density term."""
        return self.kernel == "adaptive" or (self.kernel == "auto" and weight > 0)

    def adaptation(self, weight: float) -> float:
        """Return the power to which the scales of the kernel are raised at a ``weight`` of the density term."""
        return min(1.0, weight / FULL_ADAPTATION) if self.kernel == "auto" else float(self.kernel == "adaptive")

    def sample_of(self, k: int, n_samples: int) -> int | None:
        """Return how many of k density neighbours an iteration visits, or None for all."""
        if self.sampled_neighbors != "auto":
            return self.sampled_neighbors  # type: ignore[return-value]
        sampled = n_samples >= LARGE_MAP and self.embedding_weight == 0
        return max(_LEAST_SAMPLE, -(-k // 6)) if sampled else None
