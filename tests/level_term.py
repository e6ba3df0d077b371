"""A term that a user could write: it asks the first coordinate of every point to be near a value from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from drsne.terms.term import Moment, Term


@dataclass(frozen=True, kw_only=True)
class Level(Term):
    """``(1/n) sum_i (y_i1 - level_i)^2``, at all times."""

    name: ClassVar[str] = "level"
    per_point: ClassVar[tuple[str, ...]] = ("levels",)
    levels: Any

    def factor(self, at: Moment) -> float:
        return 1.0

    def add_gradient(self, gradient: Any, weight: float, memory: Any, at: Moment) -> float:
        away = at.Y[:, 0] - self.levels
        gradient[:, 0] += 2.0 * weight * away
        return float((away * away).sum()) / at.total

    def of_new_row(self, memory: Any, at: Moment) -> LevelOfRow:
        return LevelOfRow(self.weight, at.restored(self.levels))


@dataclass(frozen=True)
class LevelOfRow:
    """A new row has the level of its nearest training row."""

    weight: float
    levels: NDArray[np.float64]

    def pull(self, rows: Any, some: Any, Y: Any) -> tuple[Any, Any, Any]:
        anchors = Y.copy()
        anchors[:, 0] = self.levels[rows.graph.indices[some, 0]]
        return self.weight * (Y[:, 0] - anchors[:, 0]) ** 2, anchors, np.full(len(Y), 2.0 * self.weight)


def level(data: Any) -> Level:
    """Prepare the term: the levels are the first column of the data."""
    return Level(weight=0.5, levels=10.0 * np.ascontiguousarray(data.X[:, 0]))
