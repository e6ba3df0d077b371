"""Small Parquet tables in partitions, for the tests of drsne.distributed."""

from __future__ import annotations

import numpy as np
import pandas as pd

import drsne
from drsne import DRSNE

QUICK = {
    "model": DRSNE(perplexity=10, density_neighbors=10, max_iter=60),
    "n_landmarks": 150,
    "n_checked": 40,
    "n_scored": 200,
    "verbose": 0,
}
SIZES = (300, 1, 0, 250, 199)


def rows(n, seed=0, d=5):
    """Return groups whose scales differ by a factor of 100."""
    rng = np.random.default_rng(seed)
    centres, scales = np.random.default_rng(99).normal(size=(4, d)) * 8, np.logspace(-1, 1, 4)
    group = rng.integers(0, 4, n)
    return (centres[group] + scales[group, None] * rng.normal(size=(n, d))).astype(np.float32)


def write(folder, sizes=SIZES):
    """Write one file for each size, and return all rows."""
    folder.mkdir(parents=True)
    every = [rows(n, seed) for seed, n in enumerate(sizes)]
    for number, X in enumerate(every):
        pd.DataFrame(X, columns=list("abcde")).to_parquet(folder / f"part.{number}.parquet", index=False)
    return np.concatenate(every)


def contents(folder):
    """Return the bytes of all files in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def fit(source, output, **changes):
    """Make a small map of a source, with some settings changed."""
    return drsne.distributed.fit(source, output, **(QUICK | changes))


def counted(monkeypatch, module, name, before=lambda calls: None):
    """Return a list that gets the arguments of each call of a function, which ``before`` can interrupt."""
    original, calls = getattr(module, name), []

    def counting(*arguments):
        calls.append(arguments)
        before(calls)
        return original(*arguments)

    monkeypatch.setattr(module, name, counting)
    return calls
