"""Stage 1: the numbers of rows, the means and variances of the columns, and a uniform sample of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.distributed.sources import Part
from drsne.distributed.work import Work

STAGE = "statistics"
_SIZES = 1e-100, 1e100  # squares of larger and smaller values would be infinite or zero
_SPARE = 2.0  # factor on the share of rows that partitions contribute, so that the sample is always complete


def numbers(seed: int, stage: str, part: int) -> np.random.Generator:
    """Return the random numbers of a partition in a stage. They do not depend on the worker."""
    return np.random.default_rng([seed, *stage.encode(), part])


class _Moments(NamedTuple):
    """The number of rows, the means of their columns, and the sums of squared differences from these means."""

    n_rows: int = 0
    mean: NDArray[np.float64] = np.zeros(0)
    squares: NDArray[np.float64] = np.zeros(0)

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> _Moments:
        """Return the moments of rows."""
        mean = rows.mean(axis=0)
        return cls(len(rows), mean, ((rows - mean) ** 2).sum(axis=0))

    def plus(self, other: _Moments) -> _Moments:
        """Return the moments of these and other rows together, by the parallel form of Welford's update."""
        if not self.n_rows or not other.n_rows:
            return self if other.n_rows == 0 else other
        total = self.n_rows + other.n_rows
        away = other.mean - self.mean
        mean = self.mean + away * (other.n_rows / total)
        return _Moments(total, mean, self.squares + other.squares + away**2 * (self.n_rows * other.n_rows / total))


def summarize(part: Part, number: int, work: Work, seed: int, share: float) -> None:
    """Write the statistics of a partition, and its rows whose random number is below ``share``."""
    rng, moments = numbers(seed, STAGE, number), _Moments()
    keys, rows, values = [], [], []
    for block in part.blocks():
        _check_large(part, block)
        key = rng.random(len(block))
        chosen = np.flatnonzero(key < share)
        keys.append(key[chosen])
        rows.append(moments.n_rows + chosen)
        values.append(block[chosen])
        moments = moments.plus(_Moments.of(block.astype(np.float64)))
    sample = {
        "keys": np.concatenate([np.empty(0), *keys]),
        "rows": np.concatenate([np.empty(0, np.int64), *rows]),
        "X": np.concatenate(values) if values else np.empty((0, 0)),
    }
    work.save(
        work.path(STAGE, number), {"count": moments.n_rows, "mean": moments.mean, "squares": moments.squares, **sample}
    )


def share_for(size: int, n_rows: int) -> float:
    """Return the share of the rows among which a sample of this size is chosen."""
    return min(1.0, _SPARE * size / n_rows)


def merge(work: Work, n_parts: int, size: int) -> None:
    """Write the statistics of all rows, and the ``size`` rows with the smallest random numbers."""
    moments = _Moments()
    kept: dict[str, list[NDArray[Any]]] = {"keys": [], "parts": [], "rows": [], "X": []}
    for number in range(n_parts):
        found = work.load(work.path(STAGE, number))
        if not int(found["count"]):
            continue
        moments = moments.plus(_Moments(int(found["count"]), found["mean"], found["squares"]))
        kept["parts"].append(np.full(len(found["keys"]), number))
        for name in ("keys", "rows", "X"):
            kept[name].append(found[name])
    every = {name: np.concatenate(each) for name, each in kept.items()}
    first = np.lexsort((every["rows"], every["parts"], every["keys"]))[:size]
    first = first[np.lexsort((every["rows"][first], every["parts"][first]))]
    sample = {name: each[first] for name, each in every.items() if name != "keys"}
    _check_small(sample["X"])
    variance = moments.squares / max(1, moments.n_rows)
    work.save(work.path(STAGE), {"count": moments.n_rows, "mean": moments.mean, "variance": variance, **sample})


def _check_large(part: Part, block: NDArray[Any]) -> None:
    """Raise an error if squared distances would overflow."""
    row, column = np.unravel_index(np.abs(block).argmax(), block.shape)
    if abs(value := float(block[row, column])) > _SIZES[1]:
        raise _wrong_size(f"{value:g} in {part.where(int(column))}")


def _check_small(sample: NDArray[Any]) -> None:
    """Raise an error if squared distances would underflow."""
    if 0.0 < (largest := float(np.abs(sample).max(initial=0.0))) < _SIZES[0]:
        raise _wrong_size(f"values up to {largest:g}")


def _wrong_size(found: str) -> ValueError:
    return ValueError(
        f"The largest values of source must be between {_SIZES[0]:g} and {_SIZES[1]:g} in size; got {found}. If the "
        "values are right, multiply all columns by the same factor, write the rows to another folder, and choose "
        "another output."
    )


def spread(n: int, wanted: int) -> NDArray[np.intp]:
    """Return at most ``wanted`` of n places at equal intervals."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, wanted)).astype(np.intp))
