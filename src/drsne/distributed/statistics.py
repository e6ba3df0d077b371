"""Stage 1: the numbers of rows, the means and variances of the columns, and a uniform sample of the rows."""

from __future__ import annotations

from typing import Any

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


@np.errstate(over="ignore", invalid="ignore")  # merge refuses values that are too large
def summarize(part: Part, number: int, work: Work, seed: int, share: float) -> None:
    """Write the statistics of a partition, and its rows whose random number is below ``share``."""
    rng = numbers(seed, STAGE, number)
    count, mean, squares = 0, np.zeros(0), np.zeros(0)
    keys, rows, values = [], [], []
    for block in part.blocks():
        some = block.astype(np.float64)
        own_mean = some.mean(axis=0)
        own_squares = ((some - own_mean) ** 2).sum(axis=0)
        if count:  # the parallel form of Welford's update
            total, away = count + len(some), own_mean - mean
            squares = squares + own_squares + away**2 * (count * len(some) / total)
            mean = mean + away * (len(some) / total)
        else:
            mean, squares = own_mean, own_squares
        key = rng.random(len(block))
        chosen = np.flatnonzero(key < share)
        keys.append(key[chosen])
        rows.append(count + chosen)
        values.append(block[chosen])
        count += len(block)
    sample = {
        "keys": np.concatenate([np.empty(0), *keys]),
        "rows": np.concatenate([np.empty(0, np.int64), *rows]),
        "X": np.concatenate(values) if values else np.empty((0, 0)),
    }
    work.save(work.path(STAGE, number), {"count": count, "mean": mean, "squares": squares, **sample})


def share_for(size: int, n_rows: int) -> float:
    """Return the share of the rows among which a sample of this size is chosen."""
    return min(1.0, _SPARE * size / n_rows)


@np.errstate(over="ignore", invalid="ignore")
def merge(work: Work, n_parts: int, size: int) -> None:
    """Write the statistics of all rows, and the ``size`` rows with the smallest random numbers."""
    count, mean, squares = 0, np.zeros(0), np.zeros(0)
    kept: dict[str, list[NDArray[Any]]] = {"keys": [], "parts": [], "rows": [], "X": []}
    for number in range(n_parts):
        found = work.load(work.path(STAGE, number))
        n = int(found["count"])
        if not n:
            continue
        away = found["mean"] - mean if count else found["mean"]
        mean = mean + away * (n / (count + n)) if count else found["mean"]
        squares = found["squares"] + (squares + away**2 * (count * n / (count + n)) if count else 0.0)
        count += n
        kept["parts"].append(np.full(len(found["keys"]), number))
        for name in ("keys", "rows", "X"):
            kept[name].append(found[name])
    every = {name: np.concatenate(each) for name, each in kept.items()}
    first = np.lexsort((every["rows"], every["parts"], every["keys"]))[:size]
    first = first[np.lexsort((every["rows"][first], every["parts"][first]))]
    sample = {name: each[first] for name, each in every.items() if name != "keys"}
    _check_sizes(sample["X"], squares)
    work.save(work.path(STAGE), {"count": count, "mean": mean, "variance": squares / max(1, count), **sample})


def _check_sizes(sample: NDArray[Any], squares: NDArray[np.float64]) -> None:
    """Raise an error if squared distances would overflow or underflow."""
    largest = float(np.abs(sample).max(initial=0.0)) if np.isfinite(squares).all() else np.inf
    if largest and not _SIZES[0] < largest < _SIZES[1]:
        found = f"up to {largest:g}" if np.isfinite(largest) else "whose variances are not finite"
        raise ValueError(
            f"The largest values of source must be between {_SIZES[0]:g} and {_SIZES[1]:g} in size; got values "
            f"{found}. Multiply all columns by the same factor, write the rows to another folder, and choose another output."
        )


def spread(n: int, wanted: int) -> NDArray[np.intp]:
    """Return at most ``wanted`` of n places at equal intervals."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, wanted)).astype(np.intp))
