"""Scores of the quality study.

To add a score, add a line to ``SCORES`` and a branch to ``Scorer``, and run ``quality.py --score``: the maps are
kept, so nothing is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drsne import metrics
from drsne.graph import KnnGraph, nearest
from drsne.metrics import concentration, density
from drsne.metrics._inputs import euclidean
from drsne.metrics.trust import kept, own_neighbors
from drsne.parallel import Workers


@dataclass(frozen=True)
class Score:
    """How a score is shown."""

    label: str  # in tables
    title: str
    larger_is_better: bool = True


SCORES = {
    "trustworthiness_10": Score("TW", "Trustworthiness, 10 neighbours"),
    "continuity_10": Score("Cont", "Continuity, 10 neighbours"),
    "concentration_correlation_29": Score("CC", "Concentration correlation, 29 neighbours"),
    "density_rank_correlation_30": Score("rho30", "Density rank correlation, 30 neighbours"),
    "density_rank_correlation_5": Score("rho5", "Density rank correlation, 5 neighbours"),
    "fragmentation": Score("Frag", "Fragmentation", larger_is_better=False),
}
TRUST, CONCENTRATION, DENSITY, LOCAL = 10, 29, 30, 5  # neighbours


def available() -> list[str]:
    """Return the scores that the installed package can compute."""
    return [name for name in SCORES if name != "fragmentation" or hasattr(metrics, "fragmentation")]


class Scorer:
    """Scores maps of one data set, whose neighbours are searched once."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X
        self._rows = np.arange(len(X))
        with Workers() as workers:
            self._graph = nearest(X, DENSITY, metric="euclidean", workers=workers)

    def __call__(self, Y: np.ndarray, names: list[str]) -> dict[str, float | None]:
        """Return the scores of a map by name; None if a score is not defined, as for a map that is not finite."""
        if not np.isfinite(Y).all():
            return dict.fromkeys(names)
        values = {name: float(self._score(name, Y)) for name in names}
        return {name: value if np.isfinite(value) else None for name, value in values.items()}

    def _score(self, name: str, Y: np.ndarray) -> Any:
        rows, graph = self._rows, self._graph
        if name == "trustworthiness_10":
            return kept(euclidean(self._X), own_neighbors(Y, TRUST, rows), TRUST, rows)[0]
        if name == "continuity_10":
            return kept(euclidean(Y), graph.indices[:, :TRUST].astype(np.intp), TRUST, rows)[0]
        if name == "concentration_correlation_29":
            near = KnnGraph(graph.indices[:, :CONCENTRATION], graph.distances[:, :CONCENTRATION])
            return concentration.correlation(near, Y, rows)
        if name == "density_rank_correlation_30":
            return density.correlation(graph.distances[:, DENSITY - 1], Y, DENSITY, rows)
        if name == "density_rank_correlation_5":
            return density.correlation(graph.distances[:, LOCAL - 1], Y, LOCAL, rows)
        return metrics.fragmentation(self._X, Y)
