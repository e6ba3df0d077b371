"""The pull of points towards given places, with which an update keeps known rows near their old positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.terms.problem import Problem
from drsne.terms.term import Moment, Term

Array = NDArray[np.float64]
_OUTSIDE = 1.2  # distance from the centre at which new rows can start, in units of the radius of the old map
_JITTER = 0.01  # distance by which new rows are moved at the start of an update, in units of the neighbour distances
_SPREADING_ROUNDS = 20  # largest number of steps from a known row to a new row without known neighbours
_OVERSHOOT = 10.0  # product of the largest rate and the curvature of the pull at which steps would overshoot


@dataclass(frozen=True, kw_only=True)
class Pull(Term):
    """A quadratic pull, ``(1/n) sum_i strength_i |y_i - place_i|^2``."""

    name: ClassVar[str] = "pull"
    per_point: ClassVar[tuple[str, ...]] = ("places", "strength")
    places: Array  # (n, d)
    strength: Array  # strength of the pull of each point, (n,); 0 for points that are free

    def factor(self, at: Moment) -> float:
        """Return 1, because the pull does not depend on the schedule."""
        return 1.0

    def add_gradient(self, gradient: Array, weight: float, memory: Any, at: Moment) -> float:
        """Add the gradient of the pull, and return its value."""
        away = at.Y - self.places
        force = self.strength[:, None] * away
        gradient += (2.0 * weight) * force
        return float((force * away).sum()) / len(at.Y)

    def damping(self, scales: Array | None) -> Array:
        """Return factors by which the steps of points are divided, in the units of the scales of the kernel."""
        return 1.0 + _OVERSHOOT * self.strength * (1.0 if scales is None else scales**2)


class OldPlaces(NamedTuple):
    """Old places of some rows, near which an update keeps them."""

    places: Array  # (n, d); nan for new rows
    strength: Array  # strength of the pull towards them, (n,); 0 for new rows
    unit: float  # median distance of points to their neighbours in the old map

    def start(self, P: sp.csr_matrix, usual: Array) -> Array:
        """Return a map to start from: the old places, and for new rows the means of those of their neighbours.

        New rows that no known row reaches start where the ``usual`` initial map would have them, after an affine
        transformation that brings its known rows near their old places, but not far outside of the old map. All new
        rows are moved a little, in the directions of the usual initial map, because points that coincide do not repel
        each other.
        """
        old = ~np.isnan(self.places[:, 0])
        base = np.column_stack([usual, np.ones(len(usual))])
        affine = base @ np.linalg.lstsq(base[old], self.places[old], rcond=None)[0]
        centre = self.places[old].mean(axis=0)
        reach = _OUTSIDE * float(np.linalg.norm(self.places[old] - centre, axis=1).max())
        away = affine - centre
        length = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
        affine = centre + away * np.minimum(1.0, reach / length)
        places, known = np.where(old[:, None], self.places, affine), old.copy()
        new = P[np.flatnonzero(~old)]
        for _ in range(_SPREADING_ROUNDS):
            if known.all():
                break
            weights = new @ known
            reached = weights > 0.0
            means = (new @ (places * known[:, None]))[reached] / weights[reached, None]
            places[np.flatnonzero(~old)[reached]] = means
            known[np.flatnonzero(~old)[reached]] = True
        away = usual - usual.mean(axis=0)
        spread = float(np.sqrt((away**2).mean())) or 1.0
        return np.where(old[:, None], places, places + (_JITTER * self.unit / spread) * away)

    @classmethod
    def of(cls, old: Array, rows: NDArray[np.intp], k: int, stiffness: float) -> OldPlaces:
        """Return the places of the rows with these numbers in an old map.

        The pull on a row is measured in units of its mean distance to its k nearest neighbours in the old map.
        """
        from scipy.spatial import cKDTree

        distances, _ = cKDTree(old).query(old, min(k, len(old) - 1) + 1)  # the first one is the row itself
        radii = np.maximum(distances[:, 1:].mean(axis=1), 1e-6 * float(np.ptp(old)) + 1e-300)
        known = rows >= 0
        places = np.where(known[:, None], old[rows], np.nan)
        return cls(places, np.where(known, stiffness / radii[rows] ** 2, 0.0), float(np.median(radii)))

    def applied(self, problem: Problem) -> None:
        """Add the pull towards the old places to a problem, and let it start from there."""
        problem.initial = self.start(problem.affinities.matrix(), problem.initial)
        problem.add(Pull(places=problem.initial, strength=self.strength))
