"""Functions that judges share: means over seeds, curves, and descriptions of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from drsne_paper.rows import Row

T = TypeVar("T", bound=Hashable)


class Mean(NamedTuple):
    """A mean over seeds."""

    mean: float
    std: float  # ddof 1; nan for one seed
    n: int


def mean(rows: Iterable[Row], score: str) -> Mean:
    """Return the mean of a score."""
    values = [row["metrics"][score] for row in rows]
    return Mean(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan, len(values))


def grouped(keyed: Iterable[tuple[T, Row]]) -> dict[T, list[Row]]:
    """Return the rows of each key. The keys are in the order of their first rows."""
    out: dict[T, list[Row]] = {}
    for key, row in keyed:
        out.setdefault(key, []).append(row)
    return out


def above(one: Mean, other: Mean) -> bool:
    """Return whether ``one`` is larger, by more than twice the standard error of the difference if this is known."""
    error = math.sqrt(one.std**2 / one.n + other.std**2 / other.n)
    return one.mean - other.mean > (0.0 if math.isnan(error) else 2.0 * error)


def ranks(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's correlation; 0 if one of the sequences is constant."""
    from scipy.stats import spearmanr

    if len(set(one)) < 2 or len(set(other)) < 2:
        return 0.0
    return float(spearmanr(one, other).statistic)


def trend(curve: Mapping[float, Mean]) -> float:
    """Return Spearman's correlation between the values and the means at these values."""
    return ranks(list(curve), [one.mean for one in curve.values()])


def ends(curve: Mapping[float, Mean]) -> str:
    """Return a description of both ends of a curve."""
    values = list(curve)
    return f"{curve[values[0]].mean:.3f} at {values[0]:g}, {curve[values[-1]].mean:.3f} at {values[-1]:g}"


def listed(items: Sequence[str]) -> str:
    """Return at most five of the items, separated by commas."""
    return ", ".join(items[:5]) + (f" and {len(items) - 5} more" if len(items) > 5 else "")
