"""Every engine in the folder against sums written out in numpy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from covering import each_pair, each_value
from on_backends import ADAPTIVE_ENGINES, ENGINES, engine_of, supported
from problems import small_problem

from drsne import Objective, engines
from drsne.backends.numba import KIND
from drsne.backends.numba.threads import Workers

ROUNDING = 1e-20  # a GPU rounds the mean of equal coordinates, so the forces in "one place" are not quite zero


def direct(Y, smoothing):
    return pair_sums(Y, 1.0, 1 + smoothing)


def direct_adaptive(Y, rho):
    return pair_sums(Y, rho[:, None] * rho[None], 1.0)


def pair_sums(Y, product, base):
    """Return the sum of w and ``sum_j w^2 (y_i - y_j) / product``, where ``w = 1 / (base + d^2 / product)``."""
    W = 1 / (base + sum((column[:, None] - column[None]) ** 2 for column in Y.T) / product)
    np.fill_diagonal(W, 0.0)
    V = W**2 / product
    return W.sum(), np.stack([(V * (column[:, None] - column[None])).sum(axis=1) for column in Y.T], axis=1)


@cache
def sums_of(kind, d, scales=None, smoothing=0.0):
    """Return a map, its scales and its sums over all pairs."""
    rng = np.random.default_rng(0)
    Y = MAPS[kind](rng, d)
    if scales is None:
        return Y, None, direct(Y, smoothing)
    rho = SCALES[scales](rng, Y)
    return Y, rho, direct_adaptive(Y, rho)


def assert_close(found, expected, tolerance, rounding=ROUNDING):
    """Compare a partition sum and forces; ``tolerance`` has the bounds of the forces and of the partition sum."""
    (Z, F), (expected_Z, expected_F) = found, expected
    assert abs(Z - expected_Z) <= tolerance[1] * expected_Z
    assert np.linalg.norm(F - expected_F) <= tolerance[0] * np.linalg.norm(expected_F) + rounding


def blobs(rng, n, d, spread, size):
    centres = rng.uniform(-spread, spread, (12, d))
    return centres[rng.integers(12, size=n)] + size * rng.normal(size=(n, d)) * rng.uniform(0.3, 1.5, (n, 1))


def with_outliers(rng, d):
    return np.vstack([blobs(rng, 1995, d, 20.0, 2.0), rng.uniform(-400.0, 400.0, (5, d))])


def apart(rng, d, distance):
    Y = 3.0 * rng.normal(size=(1200, d))
    Y[::2, 0] += distance
    return Y


def clumps(rng, d, spread):
    """Exaggerated maps of clustered data: most points amid a crowd that pulls on them from all sides alike."""
    centres, size = rng.uniform(-spread, spread, (50, d)), np.logspace(-1, -3, 50)
    which = rng.integers(50, size=2500)
    return centres[which] + size[which, None] * rng.normal(size=(2500, d))


MAPS = {
    "start": lambda rng, d: 1e-4 * rng.normal(size=(1500, d)),
    "opening": lambda rng, d: 0.1 * rng.normal(size=(1500, d)),
    "unit": lambda rng, d: rng.normal(size=(1500, d)) + 5.0,
    "exaggerated": lambda rng, d: blobs(rng, 2500, d, 8.0, 0.3),
    "clumps": lambda rng, d: clumps(rng, d, 10.0),
    "clumps far apart": lambda rng, d: clumps(rng, d, 50.0),
    "final": lambda rng, d: blobs(rng, 2500, d, 50.0, 4.0),
    "sparse": lambda rng, d: 100.0 * rng.normal(size=(700, d)),
    "outliers": with_outliers,
    "apart": lambda rng, d: apart(rng, d, 300.0),
    "a million apart": lambda rng, d: apart(rng, d, 1e6),
    "a line": lambda rng, d: np.linspace(-40, 40, 1500)[:, None] * np.eye(d)[:1],
    "one place": lambda rng, d: np.full((300, d), 7.0),
    "three points": lambda rng, d: np.array([[0.0], [1.0], [30.0]]) * np.ones(d),
}


@each_pair({"backend, name": ENGINES, "d": [1, 2, 3, 5], "kind": MAPS}, where=supported)
def test_partition_and_forces(backend, name, d, kind):
    Y, _, expected = sums_of(kind, d, smoothing=1e-3)
    assert_close(engine_of(name, backend).repulsion(Y, 1e-3), expected, engines.load(name).tolerance)


@each_value({"d": [1, 2], "kind": MAPS})
def test_high_accuracy_of_the_mesh(d, kind):
    Y = MAPS[kind](np.random.default_rng(1), d)
    assert_close(engine_of("fft", accuracy="high").repulsion(Y, 0.0), direct(Y, 0.0), (1e-3, 1e-4), 0.0)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_theta_zero_is_exact(d):
    Y = MAPS["final"](np.random.default_rng(1), d)
    assert_close(
        engine_of("tree", precision="double", theta=0.0).repulsion(Y, 0.0), direct(Y, 0.0), (1e-12, 1e-12), 0.0
    )


@pytest.mark.parametrize("kind", ["mesh", "split"])
def test_every_way_of_the_mesh_is_within_its_accuracy(kind, monkeypatch):
    """Each of the two meshes on a map that it serves, whichever the cost model would take."""
    from drsne.engines import fft

    monkeypatch.setattr(fft, "PAIR_COST", 1e9 if kind == "mesh" else 0.0)
    monkeypatch.setattr(fft, "TREE_COST", 1e9)
    Y = blobs(np.random.default_rng(0), 3000, 2, 10.0, 1.0)
    state = fft.FFTState()
    Z, F = engine_of("fft").repulsion(Y, 0.0, state=state)
    assert state.used == kind
    expected_Z, expected_F = direct(Y, 0.0)
    assert abs(Z - expected_Z) <= 5e-4 * expected_Z
    assert np.linalg.norm(F - expected_F) <= 1.5e-2 * np.linalg.norm(expected_F)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_all_pairs_to_the_last_digits(precision):
    Y = MAPS["final"](np.random.default_rng(0), 2)
    expected_Z, expected_F = direct(Y, 1e-8)
    Z, F = engine_of("exact", precision=precision).repulsion(Y, 1e-8)
    tolerance = {"single": 2e-6, "double": 1e-12}[precision]
    assert abs(Z - expected_Z) <= tolerance * expected_Z
    assert np.linalg.norm(F - expected_F) <= tolerance * np.linalg.norm(expected_F)


@pytest.mark.parametrize(
    ("name", "d"), [(name, d) for name in engines.names() for d in (1, 2, 3) if engines.load(name).supports(d, KIND)]
)
def test_gradients_follow_the_exact_ones(name, d):
    """The whole gradient of a problem, in an exaggerated and in a plain evaluation."""
    Y = MAPS["final"](np.random.default_rng(2), d)[:600] / 4
    problem, exact = (small_problem(Objective(), n=600, k=10) for _ in range(2))
    problem.engine = engine_of(name)
    for exaggeration in (1.0, 12.0):
        G = problem.evaluate(Y, exaggeration=exaggeration).gradient
        expected = exact.evaluate(Y, exaggeration=exaggeration).gradient
        assert np.linalg.norm(G - expected) <= max(1.5e-2, engines.load(name).tolerance[0]) * np.linalg.norm(expected)


def test_the_coarse_tree_at_theta_zero():
    Y = MAPS["final"](np.random.default_rng(1), 2)
    assert_close(engine_of("coarse", theta=0.0).repulsion(Y, 0.0), direct(Y, 0.0), (1e-12, 1e-12), 0.0)


@pytest.mark.parametrize("name", engines.names())
def test_same_for_every_number_of_threads(name):
    for scale in (1e-4, 1.0, 30.0):  # tree, mesh and split mesh
        same_at_any_n_jobs(name, scale * np.random.default_rng(0).normal(size=(3000, 2)))


def same_at_any_n_jobs(name, Y):
    results = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            Z, F = engine_of(name, workers=workers).repulsion(Y, 0.0)
            results.append((Z, F.tobytes()))
    assert results[0] == results[1] == results[2]


def test_auto_takes_the_fastest_for_the_size():
    for d, above in ((1, "fft"), (2, "fft"), (3, "tree"), (4, "exact")):
        assert engines.resolve("auto", 500, d, KIND) == "exact"
        assert engines.resolve("auto", 100_000, d, KIND) == above
    assert engines.resolve("tree", 10, 2, KIND) == "tree"


def test_auto_depends_on_the_kernel():
    for d in (1, 2, 3):
        n = KIND.crossover[True][d]
        assert engines.resolve("auto", n, d, KIND, adaptive=True) == "exact"
        assert engines.resolve("auto", n + 1, d, KIND, adaptive=True) != "exact"


def test_a_mesh_that_turns_out_too_coarse_is_not_used_again_at_once():
    """Between two checks of the error, what failed the last one stays ruled out."""
    Y = MAPS["clumps"](np.random.default_rng(0), 2)
    engine = engine_of("fft")
    state = engine.start()
    engine.repulsion(MAPS["exaggerated"](np.random.default_rng(0), 2), 0.0, state=state)
    assert state.used == "mesh"
    other = engine.start()
    for _ in range(3):
        engine.repulsion(Y, 0.0, state=other)
        assert other.used != "mesh"


SCALES = {
    "all 1": lambda rng, Y: np.ones(len(Y)),
    "random": lambda rng, Y: np.exp(0.8 * rng.normal(size=len(Y))),
    "by position": lambda rng, Y: np.exp(np.clip((Y[:, 0] - Y[:, 0].mean()) / (Y[:, 0].std() or 1.0), -2, 2)),
}


@each_pair(
    {
        "backend, name": ADAPTIVE_ENGINES,
        "d": [1, 2, 3],
        "scales": SCALES,
        "kind": ["opening", "exaggerated", "clumps", "final", "outliers", "a line", "one place"],
    },
    where=supported,
)
def test_partition_and_forces_of_the_adaptive_kernel(backend, name, d, scales, kind):
    Y, rho, expected = sums_of(kind, d, scales)
    assert_close(engine_of(name, backend).repulsion(Y, 0.0, rho), expected, engines.load(name).tolerance, 1e-12)


def stacks(rng, count, n=2500):
    """Groups of exact duplicates."""
    return rng.uniform(-10, 10, (count, 2))[rng.integers(count, size=n)]


def ring(n=2500):
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return 10 * np.c_[np.cos(t), np.sin(t)]


HARD = {
    "10 stacks": lambda rng: stacks(rng, 10),
    "100 stacks": lambda rng: stacks(rng, 100),
    "tight clusters": lambda rng: stacks(rng, 10) + 0.01 * rng.normal(size=(2500, 2)),
    "ring": lambda rng: ring(),
    "diagonal line": lambda rng: np.linspace(-40, 40, 2500)[:, None] * np.ones(2),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize(("name", "options", "force"), [("fft", {}, 1.5e-2), ("tree", {}, 1e-2)])
def test_a_hard_map_after_an_ordinary_one(kind, name, options, force):
    """What was checked on one map must not be taken for granted on another."""
    rng = np.random.default_rng(0)
    engine = engine_of(name, **options)
    state = engine.start()
    engine.repulsion(MAPS["final"](rng, 2), 0.0, state=state)
    Y = HARD[kind](rng)
    assert_close(engine.repulsion(Y, 0.0, state=state), direct(Y, 0.0), (force, 5e-4), 0.0)


def test_an_ordinary_map_after_a_hard_one_has_its_theta_back():
    rng = np.random.default_rng(0)
    engine = engine_of("tree")
    Y, rho = MAPS["final"](rng, 2), np.ones(2500)
    alone = engine_of("tree").repulsion(Y, 0.0)[1]
    state = engine.start()
    engine.repulsion(stacks(rng, 10), 0.0, rho, state)
    assert np.array_equal(engine.repulsion(Y, 0.0, state=state)[1], alone)  # each kernel has its own
    engine.repulsion(stacks(rng, 10), 0.0, state=state)
    assert state.fixed.share < 1.0
    for _ in range(400):
        engine.repulsion(Y, 0.0, state=state)
    assert np.array_equal(engine.repulsion(Y, 0.0, state=state)[1], alone)


@pytest.mark.parametrize("adaptive", [False, True])
def test_cells_are_used_again_while_points_move_little(adaptive):
    """Cells that are a few steps old give sums within the same bounds; other points get cells of their own."""
    rng = np.random.default_rng(0)
    Y = blobs(rng, 9000, 2, 50.0, 4.0)
    rho = np.exp(0.3 * rng.normal(size=len(Y))) if adaptive else None
    engine = engine_of("tree")
    state = engine.start()
    last = state.adaptive if adaptive else state.fixed
    for _ in range(3):
        engine.repulsion(Y, 0.0, rho, state)
        Y = Y + 0.02 * rng.normal(size=Y.shape)
    assert last.cells.uses == 2
    old = last.cells
    Z, F = engine.repulsion(Y, 0.0, rho, state)
    expected_Z, expected_F = engine_of("exact").repulsion(Y, 0.0, rho)
    of_forces, of_partition = engine.tolerance
    assert abs(Z - expected_Z) <= of_partition * expected_Z
    assert np.linalg.norm(F - expected_F) <= of_forces * np.linalg.norm(expected_F)
    if rho is not None:  # other scales with the same cells
        _, F = engine.repulsion(Y, 0.0, rho**0.5, state)
        assert last.cells is old
        _, changed = engine_of("exact").repulsion(Y, 0.0, rho**0.5)
        assert np.linalg.norm(F - changed) <= of_forces * np.linalg.norm(changed)
    shuffled = rng.permutation(len(Y))
    Z, F = engine.repulsion(Y[shuffled], 0.0, None if rho is None else rho[shuffled], state)
    assert last.cells is not old
    assert np.linalg.norm(F - expected_F[shuffled]) <= of_forces * np.linalg.norm(expected_F)
