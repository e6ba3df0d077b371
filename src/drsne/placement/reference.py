"""What a fitted model keeps in order to place new rows: the training rows, the map, and the rules for new rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.affinities import Calibration
from drsne.objectives.concentration import Profile

Array = NDArray[np.float64]
UNBOUNDED = 1e300  # larger than any logarithm


class Law(NamedTuple):
    """A clipped linear function of the log radius of a row, ``clip(slope log r + intercept, low, high) + shift``.

    With a smoothing s, v becomes ``log(exp(v) + s)`` before it is clipped.
    """

    slope: float = 0.0
    intercept: float = 0.0
    low: float = -UNBOUNDED
    high: float = UNBOUNDED
    shift: float = 0.0
    smoothing: float = 0.0

    @classmethod
    def of_profile(cls, found: Profile, exponent: float, smoothing: float) -> Law:
        """Return the log relative concentration of a row among the rows of a profile."""
        top = int(found.relative.argmax())
        intercept = float(np.log(found.relative[top]) + exponent * np.log(found.radius[top]))
        return cls(-exponent, intercept, smoothing=smoothing)

    def times(self, factor: float) -> Law:
        """Return ``factor`` times the function, for a factor that is not negative."""
        return Law(*(factor * each for each in self[:5]), smoothing=self.smoothing)

    def at(self, log_radii: Array, beyond: Array | float = 0.0) -> Array:
        """Return the values of the function. Both bounds are moved outwards by ``beyond``."""
        values = self.slope * log_radii + self.intercept
        if self.smoothing:
            values = np.log(np.exp(values) + self.smoothing)
        return np.asarray(np.clip(values, self.low - beyond, self.high + beyond) + self.shift)


class MapTerm(NamedTuple):
    """The density term over one kind of neighbours, with the concentration of the map."""

    share: float = 0.0  # factor on the density weight
    added: float = 0.0  # length that is added to each radius
    log_mean: float = 0.0  # log of the mean concentration


class RadiusTerm(NamedTuple):
    """The density term of den-SNE, with the log radii of the map."""

    share: float = 0.0
    mean: float = 0.0
    spread: float = 0.0  # standard deviation, with its shift
    correlation: float = 0.0


class Density(NamedTuple):
    """The density terms of the loss of a new row. Terms with the share 0 are not used."""

    weight: float = 0.0  # lambda
    of_data: MapTerm = MapTerm()
    of_map: MapTerm = MapTerm()
    of_radii: RadiusTerm = RadiusTerm()
    exponent: float = 1.0
    squared_distance: float = 0.0  # constant that is added to squared distances
    profile: float = 0.0  # constant that is added to relative concentrations


@dataclass(frozen=True, kw_only=True)
class Training:
    """The training rows, and the rules by which new rows get their affinities, scales and targets."""

    rows: Any  # the data in which neighbours are searched, or None if they were given as distances
    metric: Any
    radii: Array  # radii of the training rows, (n,)
    precisions: Array  # (n,)
    offsets: Array  # log p_{j|i} + precision_i d_ij^2, which is the same for all neighbours j of a row i, (n,)
    perplexity: float
    affinity_neighbors: int
    density_neighbors: int  # 0 if radii are those of den-SNE
    small_groups: bool = False
    added: float = 0.0  # length that is added to each radius in the data
    calibration: Calibration = field(default_factory=Calibration)
    target: Law = Law()
    log_scale: Law = Law()
    concentration: Law = Law()
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0
    mass: float = 1.0  # sum of the affinities of the KL term
    directed: bool = False  # whether the KL term uses only the density neighbours
    masses: Array | None = None  # weights of the training rows, (n,), or None if all are 1
    given: bool = False  # whether the fit used given neighbours instead of a search


@dataclass
class Reference:
    """The training rows, their map, and what placing new rows derives from them on first use."""

    training: Training
    places: Array  # (n, d)
    scales: Array  # (n,)
    density: Density
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def check_placeable(self) -> None:
        """Raise an error if new rows cannot be placed."""
        if self.training.given:
            raise ValueError(
                "New rows cannot be placed in a map that was fitted with neighbors=..., because their neighbours among "
                "the training rows are unknown. Fit without neighbors, or with metric='precomputed'."
            )
        if self.training.rows is None and self.training.metric != "precomputed":
            raise ValueError(
                "This model was saved without its training data, which new rows are compared with. Load it with "
                "drsne.load(path, X=...), where X are the training data."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}
