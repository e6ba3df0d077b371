"""Scores of the quality study.

To add a score, add a line to ``SCORES`` and one to ``Scorer._of_one``, and run ``quality.py --score``: the maps are
kept, so nothing is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drsne.backends.numba.threads import Workers
from drsne.metrics import concentration, density
from drsne.metrics._inputs import euclidean
from drsne.metrics.fragmentation import N_NEIGHBORS as TORN
from drsne.metrics.fragmentation import torn_share
from drsne.metrics.trust import kept, own_neighbors
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import nearest


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


class Scorer:
    """Scores maps of one data set, whose neighbours are searched once."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X
        self._rows = np.arange(len(X))
        with Workers() as workers:
            self._graph = nearest(X, DENSITY, metric="euclidean", workers=workers)

    def __call__(self, maps: list[np.ndarray]) -> list[dict[str, float | None]]:
        """Return all scores of several maps by name; None if a score is not defined, as for a map that is not finite.

        The distances of the data, which take most of the time, are computed once for all of the maps.
        """
        finite = [Y for Y in maps if np.isfinite(Y).all()]
        rows, scores = self._rows, []
        if finite:
            neighbors = np.hstack([own_neighbors(Y, TRUST, rows) for Y in finite])
            scores = list(kept(euclidean(self._X), neighbors, TRUST, rows))
        found = iter(scores)
        return [
            {name: float(value) if np.isfinite(value) else None for name, value in self._of_one(Y, next(found)).items()}
            if np.isfinite(Y).all()
            else dict.fromkeys(SCORES)
            for Y in maps
        ]

    def _of_one(self, Y: np.ndarray, trustworthiness: float) -> dict[str, Any]:
        rows, graph = self._rows, self._graph
        near = KnnGraph(graph.indices[:, :CONCENTRATION], graph.distances[:, :CONCENTRATION])
        return {
            "trustworthiness_10": trustworthiness,
            "continuity_10": kept(euclidean(Y), graph.indices[:, :TRUST].astype(np.intp), TRUST, rows)[0],
            "concentration_correlation_29": concentration.correlation(near, Y, rows),
            "density_rank_correlation_30": density.correlation(graph.distances[:, DENSITY - 1], Y, DENSITY, rows),
            "density_rank_correlation_5": density.correlation(graph.distances[:, LOCAL - 1], Y, LOCAL, rows),
            "fragmentation": torn_share(KnnGraph(graph.indices[:, :TORN], graph.distances[:, :TORN]), Y, rows),
        }
