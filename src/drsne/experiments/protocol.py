"""The paper's constrained choice: the largest concentration correlation among trustworthy maps, by method and seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from drsne.experiments.rows import Row


class Choice(NamedTuple):
    """What a method reaches on a data set."""

    rows: tuple[Row, ...]  # the chosen run of every seed that has one
    edges: tuple[bool, ...]  # whether its parameter is the first or last of those that were run
    n_seeds: int  # that were run
    n_values: int  # of the grid that were run

    def mean(self, score: str) -> float:
        """Return the mean over seeds; nan if no seed has a map above the threshold, or one lacks the score."""
        found = self._values(score)
        return float(np.mean(found)) if found else float("nan")

    def std(self, score: str) -> float:
        """Return the standard deviation over seeds (ddof 1); nan for fewer than two, or if one lacks the score."""
        found = self._values(score)
        return float(np.std(found, ddof=1)) if len(found) > 1 else float("nan")

    def _values(self, score: str) -> list[float]:
        found = [row["metrics"][score] for row in self.rows if score in row["metrics"]]
        return found if len(found) == len(self.rows) else []


def choose(rows: Sequence[Row], least: float, criterion: str = "concentration_correlation") -> Choice:
    """The choice among the rows of one method on one data set: per seed, the best with a trustworthiness of ``least``.

    Of equals the first value of the grid. A seed without such a map is left out, as the paper's code does.
    """
    by_seed: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["error"] is None:
            by_seed[row["seed"]].append(row)
    values = sorted({row["value"] for row in rows if row["value"] is not None})
    chosen, edges = [], []
    for seed in sorted(by_seed):
        scored = [row for row in by_seed[seed] if not np.isnan(row["metrics"][criterion])]
        trusty = [row for row in scored if row["metrics"]["trustworthiness"] >= least]
        if trusty:
            best = max(trusty, key=lambda row: (row["metrics"][criterion], -(row["value"] or 0)))
            chosen.append(best)
            edges.append(len(values) > 1 and best["value"] in (values[0], values[-1]))
    return Choice(tuple(chosen), tuple(edges), len(by_seed), max(len(values), 1))
