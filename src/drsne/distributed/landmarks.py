"""Stage 2: landmarks, which are rows that stand for the others.

Rows are drawn without replacement with weights ``w = max(1, g / 1.5)^coverage``, at most 100. Here g is the distance of
a row to its tenth neighbour in the uniform sample of stage 1, divided by the same distance of sample rows around it.
Where the sample is as dense as around its neighbours, g is near 1, whatever the scale of the region. It is large for
rows of rare or sparse regions of which the sample has too few rows.

Every row has a random number E / w, where E is exponential, and the n rows with the smallest numbers are landmarks.
Given the (n + 1)-th smallest number t, a row is drawn with the probability ``1 - exp(-w t)``. The inverse of this
probability is an unbiased estimate of the number of rows that a landmark stands for. These masses are divided by their
sum and multiplied by the number of rows.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.threads import Workers
from drsne.distributed.sources import Part
from drsne.distributed.statistics import STAGE as SAMPLE
from drsne.distributed.statistics import numbers
from drsne.distributed.work import Work
from drsne.neighbors.queries import search_among

STAGE = "landmarks"
NEIGHBORS = 10  # number of neighbours in the sample that determine how well a region is sampled
_GAP, _MOST = 1.5, 100.0  # ratio of radii above which rows have larger weights, and the largest weight
_UNBOUNDED = 1e300
_NONE = np.empty(0, np.int64)
_SPARE = 1.3  # factor on the number of rows among which the landmarks are chosen


class Law(NamedTuple):
    """How the weights of rows follow from their distances."""

    metric: Any
    power: float


class Coverage:
    """Weights of rows by their distances to the rows of a sample."""

    def __init__(self, sample: NDArray[Any], law: Law, workers: Workers) -> None:
        X = np.asarray(sample, np.float64)
        self._power = law.power
        self._k = min(NEIGHBORS, len(X) - 1)
        self._search = search_among(X, law.metric, workers)
        self._radii = self._search(X, self._k + 1, workers).distances[:, -1]  # the first one is the row itself

    def weights(self, rows: NDArray[Any], workers: Workers) -> NDArray[np.float64]:
        """Return the weight of every row."""
        if not self._power:
            return np.ones(len(rows))
        near = self._search(np.ascontiguousarray(rows, np.float64), self._k, workers)
        around = np.median(self._radii[near.indices], axis=1)
        with np.errstate(over="ignore"):  # the gap of rows around duplicates can be infinite
            gap = near.distances[:, -1] / np.maximum(around, np.finfo(np.float64).tiny)
            return np.asarray(np.minimum(np.maximum(gap / _GAP, 1.0) ** self._power, _MOST))


@lru_cache(maxsize=1)
def _coverage(path: Path, version: tuple[int, ...], law: Law) -> Coverage:
    """Return the weights of rows; a worker reads the sample once."""
    with Workers(1) as workers:
        return Coverage(Work(path.parent).load(path)["X"], law, workers)


def _coverage_of(work: Work, law: Law) -> Coverage:
    path = work.path(SAMPLE)
    return _coverage(path, work.version(path), law)


def bound(work: Work, law: Law, n_landmarks: int) -> float:
    """Return a number that is probably larger than the random numbers of all landmarks."""
    found = work.load(work.path(SAMPLE))
    share = (_SPARE * n_landmarks + 10.0 * np.sqrt(n_landmarks)) / int(found["count"])
    if share >= 1.0:
        return _UNBOUNDED
    with Workers(1) as workers:
        weights = _coverage_of(work, law).weights(found["X"], workers)
    low, high = 0.0, -float(np.log1p(-share))  # weights are at least 1
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(-np.expm1(-weights * middle).mean()) < share else (low, middle)
    return high


def draw(part: Part, number: int, work: Work, seed: int, law: Law, below: float, n_jobs: Any) -> None:
    """Write the rows of a partition whose random numbers are below a bound, with these numbers and the weights."""
    rng, coverage, first = numbers(seed, STAGE, number), _coverage_of(work, law), 0
    found: dict[str, list[NDArray[Any]]] = {"keys": [np.empty(0)], "weights": [np.empty(0)], "rows": [_NONE], "X": []}
    with Workers(n_jobs) as workers:
        for block in part.blocks():
            weights = coverage.weights(block, workers)
            keys = rng.exponential(size=len(block)) / weights
            chosen = np.flatnonzero(keys < below)
            for name, each in (("keys", keys[chosen]), ("weights", weights[chosen]), ("rows", first + chosen)):
                found[name].append(each)
            found["X"].append(block[chosen])
            first += len(block)
    found["X"] = found["X"] or [np.empty((0, 0))]
    work.save(work.path(STAGE, number), {name: np.concatenate(each) for name, each in found.items()})


def merge(work: Work, n_parts: int, n_landmarks: int) -> bool:
    """Write the landmarks with their masses, and return whether the bound was large enough for all of them."""
    count = int(work.load(work.path(SAMPLE))["count"])
    kept: dict[str, list[NDArray[Any]]] = {"keys": [], "weights": [], "parts": [], "rows": [], "X": []}
    for number in range(n_parts):
        found = work.load(work.path(STAGE, number))
        if len(found["keys"]):
            kept["parts"].append(np.full(len(found["keys"]), number))
            for name, each in found.items():
                kept[name].append(each)
    every = {name: np.concatenate(each) for name, each in kept.items()} if kept["keys"] else {"keys": np.empty(0)}
    wanted = min(n_landmarks, count)
    if len(every["keys"]) < min(wanted + 1, count):
        return False
    order = np.lexsort((every["rows"], every["parts"], every["keys"]))
    masses = np.ones(wanted)
    first = order[:wanted]
    if wanted < count:
        masses = -1.0 / np.expm1(-every["weights"][first] * every["keys"][order[wanted]])
        masses *= count / masses.sum()
    place = np.lexsort((every["rows"][first], every["parts"][first]))
    chosen = first[place]
    out = {name: every[name][chosen] for name in ("parts", "X")}
    work.save(work.path(STAGE), {**out, "rows": every["rows"][chosen], "masses": masses[place]})
    return True
