"""What a fitted model keeps in order to place new rows: the training rows, the map, and the rules for new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from drsne.affinities import Calibration
from drsne.backends.arrays import host
from drsne.neighbors.graph import KnnGraph
from drsne.terms.profile import Profile
from drsne.terms.term import Density

Array = NDArray[np.float64]
T = TypeVar("T")
CORRECTING = 10  # number of the nearest training rows whose mean correction applies to the radius of a new row
_UNBOUNDED = 1e300  # larger than any logarithm


class Law(NamedTuple):
    """A clipped linear function of the log radius of a row, ``clip(slope log r + intercept, low, high) + shift``.

    With a smoothing s, v becomes ``log(exp(v) + s)`` before it is clipped.
    """

    slope: float = 0.0
    intercept: float = 0.0
    low: float = -_UNBOUNDED
    high: float = _UNBOUNDED
    shift: float = 0.0
    smoothing: float = 0.0

    @classmethod
    def of_profile(cls, found: Profile, exponent: float, smoothing: float) -> Law:
        """Return the log relative concentration of a row among the rows of a profile."""
        return cls(-exponent, -found.log_mean(exponent), smoothing=smoothing)

    def within(self, log: Array, target: Array) -> Law:
        """Return the law of the targets of new rows, which stay in the range of those of the training rows.

        ``target`` is ``log`` after it was winsorised and normalised again.
        """
        middle = int(np.argsort(log)[len(log) // 2])
        shift = float(target[middle] - log[middle])
        return self._replace(low=float(target.min()) - shift, high=float(target.max()) - shift, shift=shift)

    def times(self, factor: float) -> Law:
        """Return ``factor`` times the function, for a factor that is not negative."""
        slope, intercept, low, high, shift, smoothing = self
        return Law(factor * slope, factor * intercept, factor * low, factor * high, factor * shift, smoothing)

    def at(self, log_radii: Array) -> Array:
        """Return the values of the function."""
        values = self.slope * log_radii + self.intercept
        if self.smoothing:
            values = np.log(np.exp(values) + self.smoothing)
        return np.asarray(np.clip(values, self.low, self.high) + self.shift)


_CONSTANT = Law()


def spacings(graph: KnnGraph, radii: Array) -> Array | None:
    """Return the radii, with those of rows that have duplicates measured to other rows, or None without duplicates.

    Duplicates have no radius that says how far other rows are. Rows of which only duplicates are listed get the median
    of the others.
    """
    doubled = np.flatnonzero(host(graph.distances[:, 0]) == 0.0)
    if not len(doubled):
        return None
    distances = np.asarray(host(graph.distances[doubled]), dtype=np.float64)
    apart = distances > 0.0
    with np.errstate(invalid="ignore"):
        means = (distances * apart).sum(axis=1) / apart.sum(axis=1)
    spacings = radii.copy()
    spacings[doubled] = np.maximum(means, radii[doubled])
    known = np.isfinite(spacings)
    spacings[~known] = np.median(spacings[known]) if known.any() else 0.0
    return spacings


@dataclass(frozen=True, kw_only=True)
class Training:
    """The training rows, and the rules by which new rows get their affinities, scales and targets."""

    rows: Any  # the data in which neighbours are searched, or None if they were given as distances
    metric: Any
    radii: Array  # radii of the training rows, (n,)
    spacings: Array | None = None  # the radii, with those of duplicates measured to other rows; None if there are none
    precisions: Array  # (n,)
    offsets: Array  # log p_{j|i} + precision_i d_ij^2, which is the same for all neighbours j of a row i, (n,)
    perplexity: float
    affinity_neighbors: int
    searched_neighbors: int  # number of training rows that a new row is compared with
    density_neighbors: int  # 0 if radii are those of den-SNE
    small_groups: bool = False
    added: float = 0.0  # length that is added to each radius in the data
    calibration: Calibration = field(default_factory=Calibration)
    target: Law = _CONSTANT
    log_scale: Law = _CONSTANT
    concentration: Law = _CONSTANT
    affinity_smoothing: float = 0.0
    distance_smoothing: float = 0.0
    mass: float = 1.0  # sum of the affinities of the KL term
    directed: bool = False  # whether the KL term uses only the density neighbours
    masses: Array | None = None  # weights of the training rows, (n,), or None if all are 1
    corrections: Array | None = None  # log ratios of radii in the data that the rows were sampled from to ``radii``
    correction_shift: float = 0.0  # mean difference of these to the mean corrections of the neighbours of a row
    given: bool = False  # whether the fit used given neighbours instead of a search

    def log_radii(self, radii: Array) -> Array:
        """Return the logs of radii in the data, with their smoothing."""
        return np.asarray(np.log(np.maximum(radii + self.added, np.finfo(np.float64).tiny)))


@dataclass
class Reference:
    """The training rows, their map, and what placing new rows derives from them on first use."""

    training: Training
    places: Array  # (n, d)
    scales: Array  # (n,)
    density: Density
    digest: str = ""  # of the training rows, for a model that was loaded without them
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

    def derived(self, name: str, placer: Any, make: Callable[[], T]) -> T:
        """Return what ``make`` derives from the map on first use, and what is then kept for this placer."""
        key = f"{name} {placer.name}"
        if key not in self._derived:
            self._derived[key] = make()
        value: T = self._derived[key]
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}
