"""Every engine in the folder, with the fixed and with the adaptive kernel, against sums written out in NumPy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from covering import each_value, for_each
from on_backends import ENGINES, engine_of, supported
from problems import small_problem, some_log_scales

from drsne import DRSNE, Objective, engines
from drsne.backends.numba import KIND
from drsne.backends.numba.threads import Workers

# In two dimensions the tree expands the field of far nodes around the leaf that reads it, also in the scales. Errors of
# forces and partition sum that are allowed for it there, on maps as fits have them and on hard ones.
USUAL, HARD = (1.5e-2, 2.5e-3), (6e-2, 1e-2)
HARD_MAPS = ("start", "opening", "tight clusters", "duplicates", "a line", "a ring")
# A GPU rounds the mean of equal coordinates, so the forces in "one place" are not quite zero.
ROUNDING = 1e-20
ADAPTIVE = [name for name in engines.names() if engines.load(name).adaptive]
ADAPTIVE_ENGINES = [(backend, name) for backend, name in ENGINES if name in ADAPTIVE]


def direct(Y, smoothing=0.0, scales=None):
    """Return ``sum w`` and ``sum_j w^2 u (y_i - y_j)``, with ``w = 1 / (1 + smoothing + u d^2)``."""
    u = 1.0 if scales is None else 1.0 / np.outer(scales, scales)
    away = [column[:, None] - column[None] for column in Y.T]
    W = 1.0 / (1.0 + smoothing + u * sum(each**2 for each in away))
    np.fill_diagonal(W, 0.0)
    V = W**2 * u
    return W.sum(), np.stack([(V * each).sum(axis=1) for each in away], axis=1)


def assert_close(found, expected, tolerance, rounding=ROUNDING):
    """Compare a partition sum and forces; ``tolerance`` has the bounds of the forces and of the partition sum."""
    (Z, F), (expected_Z, expected_F) = found, expected
    assert abs(Z - expected_Z) <= tolerance[1] * expected_Z
    assert np.linalg.norm(F - expected_F) <= tolerance[0] * np.linalg.norm(expected_F) + rounding


def groups(rng, n, d, spread, size):
    centres = rng.uniform(-spread, spread, (12, d))
    return centres[rng.integers(12, size=n)] + size * rng.normal(size=(n, d)) * rng.uniform(0.3, 1.5, (n, 1))


def apart(rng, d, distance):
    Y = 3.0 * rng.normal(size=(1200, d))
    Y[::2, 0] += distance
    return Y


def clumps(rng, d, spread):
    """Exaggerated maps of clustered data: most points amid a crowd that pulls on them from all sides alike."""
    centres, size = rng.uniform(-spread, spread, (50, d)), np.logspace(-1, -3, 50)
    which = rng.integers(50, size=2500)
    return centres[which] + size[which, None] * rng.normal(size=(2500, d))


def ring(rng, d):
    angle = rng.uniform(0.0, 2.0 * np.pi, 1200)
    return np.pad(20.0 * np.c_[np.cos(angle), np.sin(angle)], ((0, 0), (0, 3)))[:, :d]


def stacks(rng, count, n=2500):
    """Groups of exact duplicates."""
    return rng.uniform(-10, 10, (count, 2))[rng.integers(count, size=n)]


MAPS = {
    "start": lambda rng, d: 1e-4 * rng.normal(size=(1500, d)),
    "opening": lambda rng, d: 0.1 * rng.normal(size=(1500, d)),
    "unit": lambda rng, d: rng.normal(size=(1500, d)) + 5.0,
    "exaggerated": lambda rng, d: groups(rng, 2500, d, 8.0, 0.3),
    "clumps": lambda rng, d: clumps(rng, d, 10.0),
    "clumps far apart": lambda rng, d: clumps(rng, d, 50.0),
    "final": lambda rng, d: groups(rng, 2500, d, 50.0, 4.0),
    "sparse": lambda rng, d: 100.0 * rng.normal(size=(700, d)),
    "outliers": lambda rng, d: np.vstack([groups(rng, 1995, d, 20.0, 2.0), rng.uniform(-400.0, 400.0, (5, d))]),
    "apart": lambda rng, d: apart(rng, d, 300.0),
    "a million apart": lambda rng, d: apart(rng, d, 1e6),
    "a line": lambda rng, d: np.linspace(-40, 40, 1500)[:, None] * np.eye(d)[:1],
    "one place": lambda rng, d: np.full((300, d), 7.0),
    "three points": lambda rng, d: np.array([[0.0], [1.0], [30.0]]) * np.ones(d),
}
ADAPTIVE_MAPS = {
    **{kind: MAPS[kind] for kind in ("start", "opening", "exaggerated", "clumps", "final", "outliers", "a line")},
    **{kind: MAPS[kind] for kind in ("one place", "three points")},
    "tight clusters": lambda rng, d: groups(rng, 1500, d, 50.0, 0.01),
    "duplicates": lambda rng, d: np.repeat(10.0 * rng.normal(size=(60, d)), 20, axis=0),
    "a ring": ring,
    "two halves": lambda rng, d: apart(rng, d, 1000.0),
}
HARD_2D = {
    "10 stacks": lambda rng: stacks(rng, 10),
    "100 stacks": lambda rng: stacks(rng, 100),
    "tight clusters": lambda rng: stacks(rng, 10) + 0.01 * rng.normal(size=(2500, 2)),
    "ring": lambda rng: 10.0 * np.c_[np.cos(ANGLES), np.sin(ANGLES)],
    "diagonal line": lambda rng: np.linspace(-40, 40, 2500)[:, None] * np.ones(2),
}
ANGLES = np.linspace(0.0, 2.0 * np.pi, 2500, endpoint=False)


def some_scales(rng, Y, spread):
    """Half by chance and half by place, as scales of neighbours are alike."""
    along = np.sin(Y[:, 0] / max(1e-12, np.ptp(Y[:, 0])) * 6.0)
    return np.exp(spread * (0.5 * along + 0.5 * rng.uniform(-1.0, 1.0, len(Y))))


@cache
def sums_of(kind, d, spread=None):
    """Return a map, its scales and its sums over all pairs."""
    rng = np.random.default_rng(0)
    Y = (MAPS if spread is None else ADAPTIVE_MAPS)[kind](rng, d)
    scales = None if spread is None else some_scales(rng, Y, spread)
    return Y, scales, direct(Y, 1e-3, scales)


@for_each("backend, name", ENGINES, {"d": [1, 2, 3, 5], "kind": MAPS}, where=supported)
def test_partition_and_forces(backend, name, d, kind):
    Y, _, expected = sums_of(kind, d)
    assert_close(engine_of(name, backend).repulsion(Y, 1e-3), expected, engines.load(name).tolerance)


@for_each(
    "backend, name",
    ADAPTIVE_ENGINES,
    {"d": [1, 2, 3, 5], "kind": ADAPTIVE_MAPS, "spread": [0.0, 1.0, 2.0, 8.0]},
    where=supported,
)
def test_partition_and_forces_of_the_adaptive_kernel(backend, name, d, kind, spread):
    Y, scales, expected = sums_of(kind, d, spread)
    tolerance = engines.load(name).tolerance
    if d == 2 and name != "exact":
        tolerance = HARD if kind in HARD_MAPS or spread > 2.0 else USUAL
    assert_close(engine_of(name, backend).repulsion(Y, 1e-3, scales), expected, tolerance)


@each_value({"d": [1, 2, 3], "spread": [None, 2.0]})
def test_theta_zero_and_all_pairs_in_double_precision_are_exact(d, spread):
    Y, scales, expected = sums_of("final", d, spread)
    for name, options, tolerance in (
        ("tree", {"precision": "double", "theta": 0.0}, 1e-12),
        ("exact", {"precision": "double"}, 1e-11),
        ("exact", {"precision": "single"}, 1e-5),
    ):
        found = engine_of(name, **options).repulsion(Y, 1e-3, scales)
        assert_close(found, expected, (tolerance, tolerance), 0.0)


@pytest.mark.parametrize("d", [1, 2])
def test_high_accuracy_of_the_mesh(d):
    for make in MAPS.values():
        Y = make(np.random.default_rng(1), d)
        found = engine_of("fft", accuracy="high").repulsion(Y, 0.0)
        assert_close(found, direct(Y), (1e-3, 1e-4), 0.0)


@pytest.mark.parametrize("kind", ["mesh", "split"])
def test_every_way_of_the_mesh_is_within_its_accuracy(kind, monkeypatch):
    """Each of the two meshes on a map that it serves, whichever the cost model would take."""
    from drsne.engines import fft

    monkeypatch.setattr(fft, "PAIR_COST", 1e9 if kind == "mesh" else 0.0)
    monkeypatch.setattr(fft, "TREE_COST", 1e9)
    Y, state = groups(np.random.default_rng(0), 3000, 2, 10.0, 1.0), fft.FFTState()
    found = engine_of("fft").repulsion(Y, 0.0, state=state)
    assert state.used == kind
    assert_close(found, direct(Y), (1.5e-2, 5e-4), 0.0)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_one_scale_for_all_is_the_fixed_kernel_on_a_map_of_another_size(name):
    Y, engine = MAPS["final"](np.random.default_rng(2), 2), engine_of(name)
    for c in (0.25, 3.7):
        Z, F = engine.repulsion(Y, 0.0, np.full(len(Y), c))
        assert_close((Z, c * F), direct(Y / c), engine.tolerance, 0.0)


@pytest.mark.parametrize("name", engines.names())
def test_gradients_follow_the_exact_ones(name):
    """The whole gradient of a problem, in an exaggerated and in a plain evaluation."""
    engine = engines.load(name)
    for d in (each for each in (1, 2, 3) if engine.supports(each, KIND)):
        Y = MAPS["final"](np.random.default_rng(2), d)[:600] / 4
        for scales in (None, some_log_scales(600))[: 1 + engine.adaptive]:
            problem, exact = (small_problem(Objective(), n=600, k=10, log_scales=scales) for _ in range(2))
            problem.engine = engine_of(name)
            for exaggeration in (1.0, 12.0):
                G, expected = (each.evaluate(Y, exaggeration=exaggeration).gradient for each in (problem, exact))
                assert np.linalg.norm(G - expected) <= max(1.5e-2, engine.tolerance[0]) * np.linalg.norm(expected)


@pytest.mark.parametrize("name", engines.names())
def test_same_for_every_number_of_threads(name):
    rng, engine = np.random.default_rng(0), engines.load(name)
    for scale, d in ((1e-4, 2), (1.0, 2), (30.0, 2), (10.0, 1), (10.0, 3)):  # tree, mesh and split mesh
        Y = scale * rng.normal(size=(3000, d))
        for scales in (None, some_scales(rng, Y, 2.0))[: 1 + engine.adaptive]:
            results = set()
            for n_jobs in (1, 2, 4) if engine.supports(d, KIND) else ():
                with Workers(n_jobs) as workers:
                    Z, F = engine_of(name, workers=workers).repulsion(Y, 0.0, scales)
                results.add((Z, F.tobytes()))
            assert len(results) <= 1


def test_auto_takes_the_fastest_for_the_size():
    for d, above in ((1, "fft"), (2, "fft"), (3, "tree"), (4, "exact")):
        assert engines.resolve("auto", 500, d, KIND) == "exact"
        assert engines.resolve("auto", 100_000, d, KIND) == above
    assert engines.resolve("tree", 10, 2, KIND) == "tree"
    for d, n in KIND.crossover[True].items():
        assert engines.resolve("auto", n, d, KIND, adaptive=True) == "exact"
        assert engines.resolve("auto", n + 1, d, KIND, adaptive=True) != "exact"


def test_a_mesh_that_turns_out_too_coarse_is_not_used_again_at_once():
    """Between two checks of the error, what failed the last one stays ruled out."""
    engine = engine_of("fft")
    state, other = engine.start(), engine.start()
    engine.repulsion(MAPS["exaggerated"](np.random.default_rng(0), 2), 0.0, state=state)
    assert state.used == "mesh"
    Y = MAPS["clumps"](np.random.default_rng(0), 2)
    for _ in range(3):
        engine.repulsion(Y, 0.0, state=other)
        assert other.used != "mesh"


@pytest.mark.parametrize(("name", "force"), [("fft", 1.5e-2), ("tree", 1e-2)])
def test_a_hard_map_after_an_ordinary_one(name, force):
    """What was checked on one map must not be taken for granted on another."""
    for make in HARD_2D.values():
        rng, engine = np.random.default_rng(0), engine_of(name)
        state = engine.start()
        engine.repulsion(MAPS["final"](rng, 2), 0.0, state=state)
        Y = make(rng)
        assert_close(engine.repulsion(Y, 0.0, state=state), direct(Y), (force, 5e-4), 0.0)


def test_an_ordinary_map_after_a_hard_one_has_its_theta_back():
    rng, engine = np.random.default_rng(0), engine_of("tree")
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
    rng, engine, exact = np.random.default_rng(0), engine_of("tree"), engine_of("exact")
    Y = groups(rng, 9000, 2, 50.0, 4.0)
    rho = np.exp(0.3 * rng.normal(size=len(Y))) if adaptive else None
    state = engine.start()
    last = state.adaptive if adaptive else state.fixed
    for _ in range(3):
        engine.repulsion(Y, 0.0, rho, state)
        Y = Y + 0.02 * rng.normal(size=Y.shape)
    assert last.cells.uses == 2
    old, expected = last.cells, exact.repulsion(Y, 0.0, rho)
    assert_close(engine.repulsion(Y, 0.0, rho, state), expected, engine.tolerance, 0.0)
    if rho is not None:  # other scales with the same cells
        found = engine.repulsion(Y, 0.0, rho**0.5, state)
        assert last.cells is old
        assert_close(found, exact.repulsion(Y, 0.0, rho**0.5), (engine.tolerance[0], np.inf), 0.0)
    shuffled = rng.permutation(len(Y))
    found = engine.repulsion(Y[shuffled], 0.0, None if rho is None else rho[shuffled], state)
    assert last.cells is not old
    assert_close(found, (expected[0], expected[1][shuffled]), (engine.tolerance[0], np.inf), 0.0)


def test_engines_without_the_kernel_are_refused_before_anything_is_searched(blobs, monkeypatch):
    from drsne import preparation

    fixed = Objective(kernel="fixed")
    for name in (each for each in engines.names() if each not in ADAPTIVE):
        options = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 5, "random_state": 0, "engine": name}
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
        monkeypatch.undo()
