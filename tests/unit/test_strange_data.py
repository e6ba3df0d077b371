"""Strange but valid data: every fit ends with a finite map, and numpy has nothing to warn about.

Each day has seeds of its own. If the environment variable DRSNE_SEEDS is "all", as in ``make nightly``, all seeds are
used; ``DRSNE_SEEDS=5,7`` repeats the cases of two seeds.
"""

from __future__ import annotations

import datetime
import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform

from drsne import DRSNE, DenSNE
from drsne.presets import paper

DATA = {
    "normal": lambda X, rng: X,
    "duplicates": lambda X, rng: X[rng.randint(0, max(1, len(X) // 4), len(X))],
    "all equal": lambda X, rng: np.full_like(X, rng.choice([0.0, 1.0, 1e300])),
    "a constant column": lambda X, rng: np.c_[np.full(len(X), rng.choice([0.0, 1e9])), X[:, 1:]],
    "huge": lambda X, rng: X * 10.0 ** rng.uniform(100, 300),
    "tiny": lambda X, rng: X * 10.0 ** rng.uniform(-140, -100),
    "whole numbers": lambda X, rng: np.round(X),
    "an outlier": lambda X, rng: np.vstack([X[:-1], X[-1:] * 10.0 ** rng.uniform(3, 150)]),
    "many scales": lambda X, rng: X * 10.0 ** rng.uniform(-100, 100, (len(X), 1)),
}


def estimator(rng, n, **options):
    kind = rng.randint(6)
    if kind in (0, 2):
        return DenSNE(max_iter=30, precision="double" if kind else "single", **options)
    if kind == 1:
        # The paper's code takes distances as they are, so its affinities underflow for huge data.
        return DRSNE(**paper(n, 0.01, min(n - 1, 10), variant="text", max_iter=100), **options)
    return DRSNE(
        max_iter=30,
        perplexity=float(rng.choice([1.0, 2.0, 5.0, 30.0])),
        n_components=int(rng.randint(1, 4)),
        neighborhoods=str(rng.choice(["input", "embedding", "both"])),
        density_weight=float(rng.choice([0.0, 1.0, 2.1, 50.0])),
        density_neighbors=int(rng.randint(1, n + 3)),
        **options,
    )


def distances(X, rng):
    """Distances between all rows, as a matrix or as a sparse graph of a few neighbours."""
    D = squareform(pdist(X, "chebyshev"))
    if rng.rand() < 0.5 or len(X) < 5:
        return D
    k = rng.randint(2, len(X) - 1)
    near = np.argsort(D - np.eye(len(X)), axis=1, kind="stable")[:, 1 : k + 1]
    offsets = np.arange(0, near.size + 1, k)
    return sp.csr_matrix((np.take_along_axis(D, near, axis=1).ravel(), near.ravel(), offsets), shape=D.shape)


def seeds():
    """Return three of twelve seeds, others on each day, or those of the environment variable DRSNE_SEEDS."""
    given = os.environ.get("DRSNE_SEEDS")
    if given is None:
        day = datetime.datetime.now(datetime.UTC).toordinal()
        return [(3 * day + offset) % 12 for offset in range(3)]
    return range(12) if given == "all" else [int(seed) for seed in given.split(",")]


@pytest.mark.parametrize("seed", seeds())  # the name of a case has its seed
@pytest.mark.parametrize("name", DATA)
def test_strange_data_give_maps_without_numpys_warnings(name, seed):
    rng = np.random.RandomState(seed)
    X = DATA[name](rng.normal(size=(rng.randint(3, 41), rng.randint(1, 4))), rng)
    metric = str(rng.choice(["euclidean", "euclidean", "precomputed", "manhattan", "cosine"]))
    data = distances(X, rng) if metric == "precomputed" else X
    model = estimator(rng, len(X), metric=metric, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # our own: lowered perplexities and the like
        model.fit(data)
    assert np.isfinite(model.embedding_).all()
    assert model.affinities_.sum() == pytest.approx(1.0, abs=1e-5)
