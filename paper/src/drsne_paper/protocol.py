"""The paper's constrained choice: for each seed, the map above a threshold with the best concentration correlation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from drsne_paper.rows import Row


class Choice(NamedTuple):
    """The chosen runs of a method on a data set."""

    rows: tuple[Row, ...]  # the chosen run of every seed that has one
    edges: tuple[bool, ...]  # for each of ``rows``, whether its value is the smallest or largest that was run
    n_seeds: int  # number of seeds that were run
    n_values: int  # number of values of the grid that were run

    def mean(self, score: str) -> float:
        """Return the mean over seeds; nan if no seed has a map above the threshold, or if a run lacks the score."""
        values = self._values(score)
        return float(np.mean(values)) if values else float("nan")

    def std(self, score: str) -> float:
        """Return the standard deviation over seeds (ddof 1); nan for fewer than two, or if a run lacks the score."""
        values = self._values(score)
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")

    def _values(self, score: str) -> list[float]:
        values = [row["metrics"][score] for row in self.rows if score in row["metrics"]]
        return values if len(values) == len(self.rows) else []


def choose(rows: Sequence[Row], threshold: float, criterion: str = "concentration_correlation") -> Choice:
    """Choose, for each seed, the best map whose trustworthiness is at least ``threshold``, of one method and data set.

    Ties go to the smallest value of the grid. A seed without such a map is skipped, as in the paper's code.
    """
    by_seed: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["error"] is None:
            by_seed[row["seed"]].append(row)
    values = sorted({row["value"] for row in rows if row["value"] is not None})
    chosen, edges = [], []
    for seed in sorted(by_seed):
        scored = [row for row in by_seed[seed] if not np.isnan(row["metrics"][criterion])]
        allowed = [row for row in scored if row["metrics"]["trustworthiness"] >= threshold]
        if allowed:
            best = max(allowed, key=lambda row: (row["metrics"][criterion], -(row["value"] or 0)))
            chosen.append(best)
            edges.append(len(values) > 1 and best["value"] in (values[0], values[-1]))
    return Choice(tuple(chosen), tuple(edges), len(by_seed), max(len(values), 1))
