"""Stages 1 and 2: statistics and a uniform sample of the rows, and landmarks, which are rows that stand for the others.

Landmarks are drawn without replacement with weights ``w = max(1, g / 1.5)^coverage``, at most 100. Here g is the
distance of a row to its tenth neighbour in the uniform sample, divided by the same distance of sample rows around it.
Where the sample is as dense as around its neighbours, g is near 1, whatever the scale of the region. It is large for
rows of rare or sparse regions of which the sample has too few rows.

Every row has a random number E / w, where E is exponential, and the n rows with the smallest numbers are landmarks.
Given the (n + 1)-th smallest number t, a row is drawn with the probability ``1 - exp(-w t)``. The inverse of this
probability is an unbiased estimate of the number of rows that a landmark stands for. These masses are divided by their
sum and multiplied by the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.numba.threads import Workers
from drsne.distributed.sources import Part
from drsne.distributed.work import LANDMARKS, STATISTICS, Work
from drsne.neighbors.queries import search_among

NEIGHBORS = 10  # number of neighbours in the sample that determine how well a region is sampled
_GAP, _MOST = 1.5, 100.0  # ratio of radii above which rows have larger weights, and the largest weight
_SIZES = 1e-100, 1e100  # squares of larger and smaller values would be infinite or zero
_SAMPLED_AMONG = 2.0  # factor on the share of rows among which the sample is chosen, so that it is always complete
_DRAWN_AMONG = 1.3  # factor on the number of rows among which the landmarks are chosen
_NUMBERS = np.empty(0, np.int64)
_NONE = {"keys": np.empty(0), "weights": np.empty(0), "parts": _NUMBERS, "rows": _NUMBERS, "X": np.empty((0, 0))}

Arrays = Mapping[str, NDArray[Any]]


class _Moments(NamedTuple):
    """The number of rows, the means of their columns, and the sums of squared differences from these means."""

    n_rows: int = 0
    mean: NDArray[np.float64] = np.zeros(0)
    squares: NDArray[np.float64] = np.zeros(0)

    def plus(self, other: _Moments) -> _Moments:
        """Return the moments of these and other rows together, by the parallel form of Welford's update."""
        if not self.n_rows or not other.n_rows:
            return other if other.n_rows else self
        total = self.n_rows + other.n_rows
        away = other.mean - self.mean
        mean = self.mean + away * (other.n_rows / total)
        return _Moments(total, mean, self.squares + other.squares + away**2 * (self.n_rows * other.n_rows / total))


def _random(seed: int, stage: str, part: int) -> np.random.Generator:
    """Return the random numbers of a partition in a stage. They do not depend on the worker."""
    return np.random.default_rng([seed, *stage.encode(), part])


def _joined(tables: Sequence[Arrays], names: Iterable[str]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([each[name] for each in tables or [_NONE]]) for name in names}


def _of_all(tables: Sequence[Arrays], *names: str) -> tuple[dict[str, NDArray[Any]], NDArray[np.intp]]:
    """Return the rows of all partitions in the order of the data, and their numbers in the order of their keys."""
    numbered = [{**each, "parts": np.full(len(each["keys"]), part)} for part, each in enumerate(tables)]
    every = _joined([each for each in numbered if len(each["keys"])], ("keys", "parts", "rows", "X", *names))
    return every, np.argsort(every["keys"], kind="stable")


def summarize(part: Part, number: int, work: Work, seed: int, size: int, n_rows: int) -> None:
    """Write the statistics of a partition, and its rows that can be in a sample of ``size`` of all ``n_rows``."""
    rng, moments, found = _random(seed, STATISTICS, number), _Moments(), []
    for block in part.blocks():
        _check_large(part, block)
        keys = rng.random(len(block))
        chosen = np.flatnonzero(keys < min(1.0, _SAMPLED_AMONG * size / n_rows))
        found.append({"keys": keys[chosen], "rows": moments.n_rows + chosen, "X": block[chosen]})
        rows = block.astype(np.float64)
        mean = rows.mean(axis=0)
        moments = moments.plus(_Moments(len(rows), mean, ((rows - mean) ** 2).sum(axis=0)))
    work.save(work.path(STATISTICS, number), {**_joined(found, ("keys", "rows", "X")), **moments._asdict()})


def merge_statistics(work: Work, n_parts: int, size: int) -> None:
    """Write the statistics of all rows, and the ``size`` rows with the smallest random numbers."""
    tables = [work.load(work.path(STATISTICS, number)) for number in range(n_parts)]
    moments = _Moments()
    for each in tables:
        moments = moments.plus(_Moments(int(each["n_rows"]), each["mean"], each["squares"]))
    every, order = _of_all(tables)
    chosen = np.sort(order[:size])
    sample = {name: every[name][chosen] for name in ("parts", "rows", "X")}
    if 0.0 < (largest := float(np.abs(sample["X"]).max(initial=0.0))) < _SIZES[0]:  # squares would underflow
        raise _wrong_size(f"values up to {largest:g}")
    variance = moments.squares / max(1, moments.n_rows)
    work.save(work.path(STATISTICS), {"count": moments.n_rows, "mean": moments.mean, "variance": variance, **sample})


def _check_large(part: Part, block: NDArray[Any]) -> None:
    """Raise an error if squared distances would overflow."""
    row, column = np.unravel_index(np.abs(block).argmax(), block.shape)
    if abs(value := float(block[row, column])) > _SIZES[1]:
        raise _wrong_size(f"{value:g} in {part.where(int(column))}")


def _wrong_size(found: str) -> ValueError:
    return ValueError(
        f"The largest values of source must be between {_SIZES[0]:g} and {_SIZES[1]:g} in size; got {found}. If the "
        "values are right, multiply all columns by the same factor, write the rows to another folder, and choose "
        "another output."
    )


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
    path = work.path(STATISTICS)
    return _coverage(path, work.version(path), law)


def bound(work: Work, law: Law, n_landmarks: int) -> float:
    """Return a number that is probably larger than the random numbers of all landmarks."""
    found = work.load(work.path(STATISTICS))
    share = (_DRAWN_AMONG * n_landmarks + 10.0 * np.sqrt(n_landmarks)) / int(found["count"])
    if share >= 1.0:
        return 1e300  # all rows
    with Workers(1) as workers:
        weights = _coverage_of(work, law).weights(found["X"], workers)
    low, high = 0.0, -float(np.log1p(-share))  # weights are at least 1
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(-np.expm1(-weights * middle).mean()) < share else (low, middle)
    return high


def draw(part: Part, number: int, work: Work, seed: int, law: Law, below: float, n_jobs: Any) -> None:
    """Write the rows of a partition whose random numbers are below a bound, with these numbers and the weights."""
    rng, coverage, first, found = _random(seed, LANDMARKS, number), _coverage_of(work, law), 0, []
    with Workers(n_jobs) as workers:
        for block in part.blocks():
            weights = coverage.weights(block, workers)
            keys = rng.exponential(size=len(block)) / weights
            chosen = np.flatnonzero(keys < below)
            drawn = {"keys": keys[chosen], "weights": weights[chosen], "rows": first + chosen, "X": block[chosen]}
            found.append(drawn)
            first += len(block)
    work.save(work.path(LANDMARKS, number), _joined(found, ("keys", "weights", "rows", "X")))


def merge(work: Work, n_parts: int, n_landmarks: int) -> bool:
    """Write the landmarks with their masses, and return whether the bound was large enough for all of them."""
    count = int(work.load(work.path(STATISTICS))["count"])
    wanted = min(n_landmarks, count)
    every, order = _of_all([work.load(work.path(LANDMARKS, number)) for number in range(n_parts)], "weights")
    if len(order) < min(wanted + 1, count):
        return False
    masses, first = np.ones(wanted), order[:wanted]
    if wanted < count:
        masses = -1.0 / np.expm1(-every["weights"][first] * every["keys"][order[wanted]])
        masses *= count / masses.sum()
    in_data = np.argsort(first)
    chosen = {name: every[name][first[in_data]] for name in ("parts", "rows", "X")}
    work.save(work.path(LANDMARKS), {**chosen, "masses": masses[in_data]})
    return True
