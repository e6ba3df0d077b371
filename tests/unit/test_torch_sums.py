"""Sums over pairs and cells by PyTorch, on the device of DRSNE_TEST_DEVICE (the CPU if it is not set)."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_pair
from on_backends import DEVICE, EngineOnArrays, engine_of, torch_backend
from scipy.spatial.distance import cdist

from drsne import engines
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.engines._weighted import WeightedEngine
from drsne.neighbors.graph import KnnGraph
from drsne.precision import scaled_pair_type
from drsne.terms import masses as weighted

torch = pytest.importorskip("torch")

from drsne.backends.torch import cells, kernels, tree  # noqa: E402


def engine(name, masses, *, precision="single", **options):
    backend = torch_backend()
    return EngineOnArrays(engines.build(name, backend, precision=precision, options=options, masses=masses), backend)


def direct(Y, masses, smoothing, scales):
    """Return the partition sum and the forces, summed over all pairs in double precision."""
    u = np.ones(len(Y)) if scales is None else 1.0 / scales
    u = u[:, None] * u[None]
    w = 1.0 / (1.0 + smoothing + u * cdist(Y, Y) ** 2)
    np.fill_diagonal(w, 0.0)
    both = masses[:, None] * masses[None]
    f = both * u * w * w
    return (both * w).sum(), f.sum(axis=1)[:, None] * Y - f @ Y


def errors(found, expected, masses):
    """Return the relative errors of the partition sum and of the forces per mass."""
    (Z, F), (true_Z, true_F) = found, expected
    away = np.linalg.norm((F - true_F) / masses[:, None]) / np.linalg.norm(true_F / masses[:, None])
    return abs(Z / true_Z - 1.0), away


MASSES = ("similar", "different", "one heavy")


@pytest.fixture(params=MASSES)
def masses(request):
    rng = np.random.default_rng(1)
    found = np.exp({"similar": 0.5, "different": 3.0, "one heavy": 0.5}[request.param] * rng.normal(size=900))
    if request.param == "one heavy":
        found *= 1e-2
        found[17] = 1e6
    return found


@each_pair(
    {
        "name, d, options, bounds": [
            ("exact", 2, {}, (1e-5, 1e-4)),
            ("exact", 3, {}, (1e-5, 1e-4)),
            ("exact", 4, {"precision": "double"}, (1e-12, 1e-11)),
            ("tree", 1, {"theta": 0.0, "precision": "double"}, (1e-9, 1e-9)),
            ("tree", 2, {"theta": 0.0, "precision": "double"}, (1e-9, 1e-9)),
            ("tree", 1, {}, (5e-4, 1e-2)),
            ("tree", 2, {}, (5e-4, 1e-2)),
        ],
        "adaptive": [False, True],
        "masses": MASSES,
    },
    indirect=["masses"],
)
def test_sums_are_those_over_all_pairs(name, d, options, bounds, masses, adaptive):
    rng = np.random.default_rng(2)
    Y = np.concatenate([rng.normal(0, 1, (450, d)), rng.normal(20, 8, (450, d))])
    scales = np.exp(0.5 * rng.normal(size=900)) if adaptive else None
    for smoothing in (0.0, 0.3):
        expected = direct(Y, masses, smoothing, scales)
        found = engine(name, masses, **options).repulsion(Y, smoothing, scales)
        assert all(error < bound for error, bound in zip(errors(found, expected, masses), bounds, strict=True))
        if name == "exact" and d < 4:
            with Workers(1) as workers:
                by_numba = WeightedEngine(NumbaBackend(workers), masses).repulsion(Y, smoothing, scales)
            assert max(errors(found, by_numba, masses)) < 1e-2


def test_sums_of_moving_points():
    """Cells are used again for points that move, and errors are checked."""
    rng = np.random.default_rng(3)
    masses, Y = rng.uniform(0.2, 5.0, 2000), rng.normal(size=(2000, 2))
    scales = np.exp(0.3 * rng.normal(size=2000))
    moving = engine("tree", masses)
    state = moving.start()
    for _ in range(30):
        Y = 1.1 * Y + 0.02 * rng.normal(size=Y.shape)
        Z, F = moving.repulsion(Y, 0.0, scales, state)
    partition, force = errors((Z, F), direct(Y, masses, 0.0, scales), masses)
    assert partition < 5e-4
    assert force < 1e-2
    assert state.adaptive.cells is not None


def test_equal_masses_have_the_sums_of_points_without_masses():
    Y = np.random.default_rng(4).normal(0, 5, (1000, 2))
    for name in ("exact", "tree"):
        backend = torch_backend()
        Z, F = EngineOnArrays(engines.build(name, backend, precision="single"), backend).repulsion(Y, 0.0)
        found = engine(name, np.full(1000, 2.0)).repulsion(Y, 0.0)
        assert found[0] == pytest.approx(4.0 * Z, rel=1e-6)
        np.testing.assert_allclose(found[1], 4.0 * F, atol=1e-5 * np.abs(4.0 * F).max())


def test_statistics_of_tensors_are_those_of_arrays():
    """Sums of equal masses have ties, which are the same on every device only if these sums are exact."""
    rng = np.random.default_rng(5)
    values, levels = rng.normal(size=300), (0.0, 0.01, 0.3, 0.5, 0.99, 1.0)
    near = KnnGraph(rng.integers(0, 300, (300, 20)).astype(np.int32), rng.normal(size=(300, 20)))
    for masses in (rng.integers(1, 5, 300).astype(float), rng.uniform(1e-3, 3.0, 300), np.full(300, 2.0**-20)):
        sent = torch.as_tensor(values, device=DEVICE), levels, torch.as_tensor(masses, device=DEVICE)
        np.testing.assert_allclose(weighted.quantiles(*sent), weighted.quantiles(values, levels, masses), rtol=1e-12)
        there = KnnGraph(*(torch.as_tensor(each, device=DEVICE) for each in near))
        for k in (5, 60):
            found, expected = weighted.slots(there, sent[2], k), weighted.slots(near, masses, k)
            np.testing.assert_array_equal(found.indices.cpu(), expected.indices)
            np.testing.assert_array_equal(found.distances.cpu(), expected.distances)


def test_sums_in_parts_are_those_of_all_cells(monkeypatch):
    """Plain PyTorch sums pairs in parts, so that maps with very small scales do not take more memory than a search."""
    rng = np.random.default_rng(4)
    Y = torch.as_tensor(rng.normal(size=(900, 2)) * 9, device=DEVICE)
    scales = torch.as_tensor(np.exp(rng.normal(size=900)), device=DEVICE)
    monkeypatch.setattr(kernels, "compiled", lambda values: False)

    def sums():
        at = tree.TorchTree.structure(Y, scales)
        return tree.sums(tree.summed_cells(Y, scales, at, torch.float64), 0.2, 0.15, 2)

    whole = sums()
    monkeypatch.setattr(tree, "_NEAR_PAIRS", 7)
    monkeypatch.setattr(tree, "_FAR_PAIRS", 5)
    parts = sums()
    torch.testing.assert_close(parts.forces, whole.forces, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.potential, whole.potential, rtol=1e-12, atol=1e-12)


def test_cells_that_grow_are_listed_again():
    """Some points move so far that the lists of the last evaluation would be wrong for their leaves."""
    backend, engine = torch_backend(), engine_of("tree", "torch")
    rng = np.random.default_rng(8)
    Y = np.concatenate([rng.normal(0, 4, (2000, 2)), rng.normal(30, 4, (2000, 2))])
    state = engine.start()
    engine.repulsion(Y, 0.0, None, state)
    Y[:: len(Y) // 40] += 5.0
    _, forces = engine.repulsion(Y, 0.0, None, state)
    _, expected = backend.repulsion(backend.received(Y), smoothing=0.0, scales=None, precision="double")
    expected = expected.cpu().numpy()
    assert np.linalg.norm(forces - expected) < 0.01 * np.linalg.norm(expected)


def test_small_cells_are_divided_again():
    """The large cells keep their points, and a leaf has the points that a division of its large cell alone gives it."""
    rng = np.random.default_rng(8)
    n, small = 5000, cells.SMALL_CELL
    places = torch.as_tensor(rng.normal(size=(n, 3)), device=DEVICE)
    last = cells.structure(places)
    moved = places + torch.as_tensor(0.3 * rng.normal(size=(n, 3)), device=DEVICE)
    found = cells.structure(moved, last)
    assert sorted(found.order.tolist()) == list(range(n))
    assert found.levels == last.levels
    for begin in range(0, n, small):
        own = last.order[begin : begin + small]
        assert set(found.order[begin : begin + small].tolist()) == set(own.tolist())
        if len(own) == small:
            alone = own[cells.structure(moved[own]).order]
            assert found.order[begin : begin + small].tolist() == alone.tolist()


def test_the_type_of_pairs_is_that_of_numpy():
    Y, scales = np.random.default_rng(9).normal(size=(50, 2)), np.exp(np.linspace(-1, 1, 50))
    for extent, least, largest in ((1, 1, 1), (1e4, 1, 1), (1, 1e-4, 1), (1, 1, 1e4), (1e3, 1e-2, 1), (1e-13, 1, 1)):
        places, changed = extent * Y, scales.copy()
        changed[3], changed[7] = least * changed[3], largest * changed[7]
        sent = (torch.as_tensor(each, device=DEVICE) for each in (places, changed))
        assert scaled_pair_type(*sent, "single") == scaled_pair_type(places, changed, "single")
