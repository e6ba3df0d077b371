"""Every engine in the folder against sums written out in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from drsne import engines
from drsne.parallel import Workers


def direct(Y, smoothing):
    delta = Y[:, None] - Y[None]
    W = 1 / (1 + (delta**2).sum(axis=2) + smoothing)
    np.fill_diagonal(W, 0.0)
    return W.sum(), (W[..., None] ** 2 * delta).sum(axis=1)


@pytest.mark.parametrize("name", engines.names())
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize(("precision", "tolerance"), [("single", 2e-5), ("double", 1e-12)])
def test_partition_and_forces(name, d, scale, precision, tolerance):
    kind = engines.load(name)
    if not kind.supports(d):
        pytest.skip(f"{name} has no {d}-D maps")
    Y = scale * np.random.default_rng(0).normal(size=(700, d)) + 5.0 * scale
    Z, F = kind(Workers(), precision=precision).repulsion(Y, 1e-8)
    expected_Z, expected_F = direct(Y, 1e-8)
    assert abs(Z - expected_Z) <= tolerance * expected_Z
    assert np.linalg.norm(F - expected_F) <= tolerance * np.linalg.norm(expected_F)


@pytest.mark.parametrize("name", engines.names())
def test_same_for_every_number_of_threads(name):
    Y = np.random.default_rng(0).normal(size=(1500, 2)) * 10
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            Z, F = engines.load(name)(workers).repulsion(Y, 0.0)
            results.append((Z, F.tobytes()))
    assert results[0] == results[1] == results[2]


def test_listing_engines_loads_none():
    assert "exact" in engines.names()
    assert engines.resolve("auto") in engines.names()
