"""Every engine that supports the adaptive kernel against sums written out in numpy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from covering import each_pair, each_value
from on_backends import ADAPTIVE_ENGINES, engine_of, supported
from problems import small_problem, some_log_scales

from drsne import DRSNE, Objective, engines
from drsne.backends.numba import KIND
from drsne.backends.numba.threads import Workers

# In two dimensions the tree expands the field of far nodes around the leaf that reads it, also in the scales. Errors of
# forces and partition sum that are allowed for it there, on maps as fits have them and on hard ones.
USUAL, HARD = (1.5e-2, 2.5e-3), (6e-2, 1e-2)
HARD_MAPS = ("start", "opening", "tight clusters", "duplicates", "a line", "a ring")
ROUNDING = 1e-20  # a GPU rounds the mean of equal coordinates, so the forces in "one place" are not quite zero
ADAPTIVE = [name for name in engines.names() if engines.load(name).adaptive]
SUPPORTED = [(name, d) for name in ADAPTIVE for d in (1, 2, 3) if engines.load(name).supports(d, KIND)]


def direct(Y, scales, smoothing=0.0):
    """Z = sum w and F_i = sum_j w^2 (y_i - y_j) / (rho_i rho_j) with w = 1 / (1 + d^2 / (rho_i rho_j) + smoothing)."""
    inverse = 1 / (scales[:, None] * scales[None])
    S = sum((column[:, None] - column[None]) ** 2 for column in Y.T)
    W = 1 / (1 + inverse * S + smoothing)
    np.fill_diagonal(W, 0.0)
    V = W**2 * inverse
    return W.sum(), np.stack([column * V.sum(axis=1) - V @ column for column in (Y - Y.mean(axis=0)).T], axis=1)


def clusters(rng, d, spread, size):
    centres = rng.uniform(-spread, spread, (12, d))
    return centres[rng.integers(12, size=1500)] + size * rng.normal(size=(1500, d))


def duplicates(rng, d):
    return np.repeat(10.0 * rng.normal(size=(60, d)), 20, axis=0)


def halves(rng, d, distance):
    Y = 3.0 * rng.normal(size=(1000, d))
    Y[::2, 0] += distance
    return Y


def ring(rng, d):
    angle = rng.uniform(0.0, 2.0 * np.pi, 1200)
    return np.stack([20.0 * np.cos(angle), 20.0 * np.sin(angle), np.zeros(1200)], axis=1)[:, :d]


MAPS = {
    "start": lambda rng, d: 1e-4 * rng.normal(size=(1000, d)),
    "opening": lambda rng, d: 0.1 * rng.normal(size=(1000, d)),
    "exaggerated": lambda rng, d: clusters(rng, d, 8.0, 0.3),
    "final": lambda rng, d: clusters(rng, d, 50.0, 4.0),
    "tight clusters": lambda rng, d: clusters(rng, d, 50.0, 0.01),
    "duplicates": duplicates,
    "a line": lambda rng, d: np.linspace(-40, 40, 1200)[:, None] * np.eye(d)[:1],
    "a ring": ring,
    "outliers": lambda rng, d: np.vstack([clusters(rng, d, 20.0, 2.0), rng.uniform(-400.0, 400.0, (5, d))]),
    "two halves": lambda rng, d: halves(rng, d, 1000.0),
    "one place": lambda rng, d: np.full((300, d), 7.0),
    "three points": lambda rng, d: np.array([[0.0], [1.0], [30.0]]) * np.ones(d),
}


def scales_of(rng, Y, spread):
    """Half by chance and half by place, as scales of neighbours are alike."""
    along = np.sin(Y[:, 0] / max(1e-12, np.ptp(Y[:, 0])) * 6.0)
    return np.exp(spread * (0.5 * along + 0.5 * rng.uniform(-1.0, 1.0, len(Y))))


@cache
def sums_of(kind, d, spread):
    """Return a map, its scales and its sums over all pairs."""
    rng = np.random.default_rng(0)
    Y = MAPS[kind](rng, min(d, 3) if kind == "a ring" else d)
    scales = scales_of(rng, Y, spread)
    return Y, scales, direct(Y, scales, 1e-3)


def check(engine, Y, scales, smoothing, tolerance, expected=None):
    of_forces, of_partition = tolerance
    expected_Z, expected_F = direct(Y, scales, smoothing) if expected is None else expected
    Z, F = engine.repulsion(Y, smoothing, scales)
    assert abs(Z - expected_Z) <= of_partition * expected_Z
    assert np.linalg.norm(F - expected_F) <= of_forces * np.linalg.norm(expected_F) + ROUNDING


@each_pair({"backend, name": ADAPTIVE_ENGINES, "d": [1, 2, 3, 5], "kind": MAPS, "spread": [2.0, 8.0]}, where=supported)
def test_partition_and_forces(backend, name, d, kind, spread):
    Y, scales, expected = sums_of(kind, d, spread)
    tolerance = engines.load(name).tolerance
    if d == 2 and name != "exact":
        tolerance = HARD if kind in HARD_MAPS or spread > 2.0 else USUAL
    check(engine_of(name, backend), Y, scales, 1e-3, tolerance, expected)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_theta_zero_is_exact(d):
    rng = np.random.default_rng(1)
    Y = MAPS["final"](rng, d)
    engine = engine_of("tree", precision="double", theta=0.0)
    check(engine, Y, scales_of(rng, Y, 2.0), 0.1, (1e-12, 1e-12))


@each_value({"d": [1, 2, 3, 5], "precision": ["single", "double"]})
def test_all_pairs_to_the_last_digits(precision, d):
    rng = np.random.default_rng(0)
    Y = MAPS["final"](rng, d)
    engine = engine_of("exact", precision=precision)
    digits = {"single": 1e-5, "double": 1e-11}[precision]
    check(engine, Y, scales_of(rng, Y, 2.0), 1e-8, (digits, digits))


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("c", [0.25, 3.7])
def test_one_scale_for_all_is_the_fixed_kernel_on_a_map_of_another_size(name, c):
    Y = MAPS["final"](np.random.default_rng(2), 2)
    engine = engine_of(name)
    Z, F = engine.repulsion(Y, 0.0, np.full(len(Y), c))
    expected_Z, expected_F = direct(Y / c, np.ones(len(Y)))
    assert abs(Z - expected_Z) <= engine.tolerance[1] * expected_Z
    assert np.linalg.norm(c * F - expected_F) <= engine.tolerance[0] * np.linalg.norm(expected_F)


@pytest.mark.parametrize(("name", "d"), SUPPORTED)
def test_gradients_follow_the_exact_ones(name, d):
    Y = MAPS["final"](np.random.default_rng(2), d)[:600] / 4
    problem, exact = (small_problem(Objective(), n=600, k=10, log_scales=some_log_scales(600)) for _ in range(2))
    problem.engine = engine_of(name)
    for exaggeration in (1.0, 12.0):
        G = problem.evaluate(Y, exaggeration=exaggeration).gradient
        expected = exact.evaluate(Y, exaggeration=exaggeration).gradient
        assert np.linalg.norm(G - expected) <= 1.5e-2 * np.linalg.norm(expected)


@pytest.mark.parametrize(("name", "d"), SUPPORTED)
def test_same_for_every_number_of_threads(name, d):
    rng = np.random.default_rng(0)
    Y = 10.0 * rng.normal(size=(3000, d))
    scales, results = scales_of(rng, Y, 2.0), []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            Z, F = engine_of(name, workers=workers).repulsion(Y, 0.0, scales)
            results.append((Z, F.tobytes()))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", [name for name in engines.names() if name not in ADAPTIVE])
def test_engines_without_the_kernel_are_refused_before_anything_is_searched(name, blobs, monkeypatch):
    from drsne import preparation

    options = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 5, "random_state": 0, "engine": name}
    fixed = Objective(kernel="fixed")
    for allowed in (
        {"kernel": "fixed", "density_weight": 1.0},
        {"density_weight": 0.0},
        {"objective": fixed, "density_weight": 1.0},
    ):
        assert DRSNE(**options, **allowed).fit(blobs).engine_ == name
    monkeypatch.setattr(preparation, "nearest", lambda *a, **k: pytest.fail("too late"))
    for refused in (
        {"density_weight": 1.0},
        {"kernel": "adaptive", "density_weight": 0.0},
        {"density_weight": "auto"},
        {"objective": Objective(), "density_weight": 1.0},
    ):
        with pytest.raises(ValueError, match=f"engine must be .* adaptive kernel.*got '{name}'.*kernel='fixed'"):
            DRSNE(**options, **refused).fit(blobs)
