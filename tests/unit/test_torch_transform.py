"""New rows placed by PyTorch, on the device of DRSNE_TEST_DEVICE (the CPU if it is not set), compared with numba."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value, in_one_test
from on_backends import DEVICE, torch_backend
from scipy.spatial import cKDTree

import drsne
from drsne import DRSNE, DenSNE, Objective
from drsne.backends.numba import cells
from drsne.backends.numba.kernels import placement
from drsne.backends.numba.placement import LIMITS, NumbaPlacer
from drsne.backends.numba.threads import Workers
from drsne.backends.protocol import Rows, Shared
from drsne.neighbors.queries import search_among
from drsne.neighbors.search import nearest

torch = pytest.importorskip("torch")

from drsne.backends.torch import kernels, map_neighbors, queries, row_losses  # noqa: E402
from drsne.backends.torch.placement import TorchPlacer  # noqa: E402

SHORT = {"max_iter": 150, "random_state": 0, "perplexity": 15, "density_neighbors": 15}
NUMBA, TORCH = {"backend": "numba", "device": None}, {"backend": "torch", "device": DEVICE}


def blobs(n: int = 300, d: int = 6) -> np.ndarray:
    """Return three groups of different densities."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(3, d)) * 12
    kind = rng.integers(3, size=n)
    return centre[kind] + rng.normal(size=(n, d)) * np.array([0.3, 1.0, 2.5])[kind, None]


X, NEW = blobs(), blobs(40) + 0.05
FOREIGN = np.random.default_rng(3).uniform(-1, 1, (8, X.shape[1])) * [[20.0]] * 4 + 100
ROWS = np.concatenate([NEW, NEW[:8] + 3.0, FOREIGN, 1e5 * FOREIGN[:2]])


@pytest.fixture
def all_pairs(monkeypatch):
    """Let numba sum the repulsion over all points, as PyTorch does."""
    monkeypatch.setattr(cells, "_THETA", 0.0)


@pytest.fixture(scope="module")
def model() -> DRSNE:
    return DRSNE(**SHORT).fit(X)


def on(model, where):
    return model.set_params(**where)


def problem(d: int, *, stretch: float = 1.1, pull: float = 0.0, seed: int = 0):
    """Return random rows in a random map, with all terms of the loss."""
    rng = np.random.default_rng(seed)
    n, m, k = 200, 30, 20
    places, scales, masses = rng.normal(size=(n, d)) * 6, np.exp(0.5 * rng.normal(size=n)), rng.uniform(0.5, 3, n)
    near, listed, in_map = (rng.integers(0, n, (m, size)).astype(np.int32) for size in (k, 7, 9))
    affinities = rng.uniform(size=(m, k))
    own = np.exp(0.5 * rng.normal(size=m))
    skipped = np.where(rng.uniform(size=m) < 0.5, -1, rng.integers(0, n, m)).astype(np.int32)
    weights, apart = rng.uniform(size=(2, m)) * (rng.uniform(size=(2, m)) < 0.8)
    pulls = places[:m], pull * np.linspace(0.0, 1.0, m)
    rows = Rows(near, affinities, own, listed, rng.normal(size=m), weights, 10.0 * apart, skipped, *pulls)
    constants = stretch, 1e-3, 0.05, 1.3, 5.0, 30.0, places.mean(axis=0)
    terms = (0.7, 0.1, 0.3), (0.5, 0.2, 0.4), (0.6, 0.2, 1.3, 0.5), 1.5, 0.01, 0.1
    Y = rng.normal(size=(m, d)) * 6
    return (places, scales, masses, stretch), rows, constants, terms, in_map, Y


def placed_by(kind, fixed, rows, constants, terms):
    """Return a placer, its rows, and what they share. The field of numba is summed over all points."""
    workers = Workers(1)
    placer = NumbaPlacer(workers) if kind == "numba" else TorchPlacer(DEVICE, LIMITS, workers)
    at, partition = placer.field(*fixed)
    return placer, placer.received(rows), Shared(at, constants, terms), partition


@pytest.mark.usefixtures("all_pairs")
@each_value({"d": [1, 2, 3, 4], "stretch": [1.0, 1.2]})
def test_losses_and_gradients_are_those_of_numba(d, stretch):
    fixed, rows, constants, terms, in_map, Y = problem(d, stretch=stretch, pull=1.0)
    numba, own, shared, partition = placed_by("numba", fixed, rows, constants, terms)
    expected = numba.values(Y, own, in_map, shared)
    gradient = np.empty_like(Y)
    out = 0, np.empty(len(Y), np.bool_), np.empty(len(Y)), gradient
    numba.workers.run(placement.descend, len(Y), Y, tuple(own), in_map, (*shared.field, constants, terms), *out)
    placer, own, shared, found = placed_by("torch", fixed, rows, constants, terms)
    assert found == pytest.approx(partition, rel=1e-10)
    np.testing.assert_allclose(placer.values(Y, own, in_map, shared), expected, rtol=1e-10)
    sent = [queries.sent(each, DEVICE) for each in (Y, in_map)]
    _, slope = row_losses.loss(sent[0], own, sent[1], shared, LIMITS)
    np.testing.assert_allclose(slope.cpu(), gradient, rtol=1e-10, atol=1e-10 * np.abs(gradient).max())


@in_one_test("d", [1, 2, 3, 5])
def test_the_gradient_is_that_of_the_loss(d):
    fixed, rows, constants, terms, in_map, Y = problem(d, pull=1.0)
    _, own, shared, _ = placed_by("torch", fixed, rows, constants, terms)
    y, listed = (queries.sent(each, DEVICE) for each in (Y, in_map))
    _, gradient = row_losses.loss(y, own, listed, shared, LIMITS)
    for c in range(d):
        shift = torch.zeros_like(y)
        shift[:, c] = 1e-5
        above, below = (row_losses.loss(each, own, listed, shared, LIMITS)[0] for each in (y + shift, y - shift))
        slope = (above - below) / 2e-5
        np.testing.assert_allclose(slope.cpu(), gradient[:, c].cpu(), rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_row_makes_the_steps_of_numba(d):
    fixed, rows, constants, terms, in_map, _ = problem(d)
    found = []
    for kind in ("numba", "torch"):
        placer, own, shared, _ = placed_by(kind, fixed, rows, constants, terms)
        Y = placer.begin(own, shared, d)
        begun = Y.copy()
        arrived = [placer.descend(Y, own, in_map, shared, steps) for steps in (1, 2, 4, 12)]
        found.append((begun, Y, np.array(arrived)))
    np.testing.assert_allclose(found[1][0], found[0][0], atol=1e-10)
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-7)
    np.testing.assert_array_equal(found[1][2], found[0][2])
    assert not found[0][2][0].any()  # no row arrives with its first step
    assert found[0][2][-1].any()


def test_rows_without_a_descent_stay():
    """A row at a minimum has no direction, and the loss of a row at infinity is not a number."""
    fixed, rows, constants, terms, in_map, Y = problem(2)
    terms = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), *terms[3:]
    rows = rows._replace(affinities=np.zeros_like(rows.affinities), apart=np.zeros_like(rows.apart))
    constants = constants[0], constants[1], 0.0, *constants[3:]
    placer, own, shared, _ = placed_by("torch", fixed, rows, constants, terms)
    before = Y.copy()
    assert placer.descend(Y, own, in_map, shared, 5).all()
    np.testing.assert_array_equal(Y, before)


CASES = {
    "default": DRSNE(**SHORT),
    "plain t-SNE": DRSNE(density_weight=0.0, **SHORT),
    "neighbours in the data": DRSNE(neighborhoods="input", **SHORT),
    "one dimension": DRSNE(1, **SHORT),
    "three dimensions": DRSNE(3, **SHORT),
    "smoothings": DRSNE(objective=Objective(distance_smoothing=0.1, affinity_smoothing=1e-7, kernel="fixed"), **SHORT),
    "the paper": DRSNE(**drsne.presets.paper(len(X), 0.05, 15, max_iter=150), random_state=0),
    "principal components": DRSNE(pca_components=4, **SHORT),
    "cosine": DRSNE(metric="cosine", **SHORT),
    "manhattan": DRSNE(metric="manhattan", **SHORT),
    "squared": DRSNE(metric="sqeuclidean", **SHORT),
    "den-SNE": DenSNE(max_iter=150, random_state=0, perplexity=15),
    "weights": DRSNE(**SHORT),
}


@pytest.mark.rotating(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("all_pairs")
@pytest.mark.parametrize("name", CASES)
def test_places_are_those_of_numba(name):
    """A few rows differ more, because the last step of a descent may be accepted by one backend only."""
    weights = np.random.default_rng(0).integers(1, 5, len(X)).astype(float)
    model = CASES[name].fit(X, **({"sample_weight": weights} if name == "weights" else {}))
    expected, novelty = model.transform(ROWS), model.novelty(ROWS)
    on(model, TORCH)
    found = model.transform(ROWS)
    away = np.linalg.norm(found - expected, axis=1) / np.abs(model.embedding_).max()
    assert (away < 1e-6).mean() >= 0.9
    assert away.max() < 1e-3
    np.testing.assert_allclose(model.novelty(ROWS), novelty, rtol=1e-12)
    np.testing.assert_array_equal(model.transform(X[:9]), model.embedding_[:9])
    few = slice(0, len(ROWS), 6)
    one_by_one = np.concatenate([model.transform(ROWS[i : i + 1]) for i in range(len(ROWS))[few]])
    np.testing.assert_array_equal(one_by_one, found[few])


def test_a_place_does_not_depend_on_the_batch(model, monkeypatch):
    whole = on(model, TORCH).transform(ROWS)
    order = np.random.default_rng(0).permutation(len(ROWS))
    np.testing.assert_array_equal(model.transform(ROWS[order]), whole[order])
    far = np.random.default_rng(1).normal(size=(1000, X.shape[1])) * 1e6
    np.testing.assert_array_equal(model.transform(np.concatenate([far, ROWS]))[len(far) :], whole)
    monkeypatch.setattr(TorchPlacer, "chunk", 7)
    np.testing.assert_array_equal(model.transform(ROWS), whole)
    assert model.transform(np.empty((0, X.shape[1]))).shape == (0, 2)


@pytest.mark.usefixtures("all_pairs")
def test_everything_else_about_new_rows(model):
    model = copy.deepcopy(model)  # without the tree of numba
    dense = {"in_map": model.concentration_}
    expected = (
        on(model, NUMBA)._described(ROWS, **dense),
        model.new_concentration(ROWS),
        model._movements(np.arange(50), 0),
    )
    moved = model._movements(np.arange(20), 2)
    on(model, TORCH)
    found = model._described(ROWS, **dense).concentration_map
    np.testing.assert_allclose(found, expected[0].concentration_map, atol=1e-3)
    np.testing.assert_allclose(model.new_concentration(ROWS), expected[1], rtol=1e-10)
    away = np.abs(model._movements(np.arange(50), 0) - expected[2])
    assert np.median(away) < 1e-6 * np.abs(model.embedding_).max()
    np.testing.assert_allclose(model._movements(np.arange(20), 2), moved, atol=1e-3)
    np.testing.assert_array_equal(model.transform(sp.csr_matrix(ROWS)), model.transform(ROWS))
    assert model.transform(ROWS.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore:perplexity=15 is out of reach")
def test_equal_training_rows_have_the_place_of_the_first():
    rows = np.concatenate([X, X[:5], np.repeat(X[7:8], 250, axis=0)])
    model = DRSNE(**SHORT, **TORCH).fit(rows)
    np.testing.assert_array_equal(model.transform(X[:8]), model.embedding_[:8])


def test_a_loaded_model_uses_its_device_if_it_is_there(model, tmp_path):
    expected = on(model, NUMBA).transform(ROWS)
    for where in ({"backend": "torch", "device": "cuda:99"}, {"backend": "numba", "device": "cuda:99"}):
        on(model, where).save(tmp_path / "model.drsne")
        loaded = drsne.load(tmp_path / "model.drsne")
        np.testing.assert_array_equal(loaded.transform(ROWS), expected)
        with pytest.raises(ValueError, match="device='cuda:99' is not there"):
            loaded.fit(X)
    on(model, TORCH).save(tmp_path / "model.drsne")
    np.testing.assert_array_equal(drsne.load(tmp_path / "model.drsne").transform(ROWS), model.transform(ROWS))
    for device in ("gpu", "cuda:x"):
        with pytest.raises(ValueError, match="device must be"):
            model.set_params(device=device).transform(ROWS)


def test_a_device_without_enough_memory(model, monkeypatch):
    def fails(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB. GPU 0 has 1 GiB")

    monkeypatch.setattr(TorchPlacer, "descend", fails)
    with pytest.raises(MemoryError, match=r"too little memory to place rows \(CUDA out of memory\)\. Free memory"):
        on(model, TORCH).transform(ROWS)


@in_one_test("change", ["none", "far", "very far", "outlier", "two places", "large", "small", "huge", "tiny", "equal"])
def test_nearest_training_rows_are_those_of_numba(change):
    """Those of new rows, and those of the training rows themselves. Numba proves its searches."""
    rng = np.random.default_rng(5)
    X, Q = rng.normal(size=(400, 5)), rng.normal(size=(60, 5))
    if change == "outlier":
        X[7] = 1e6
    elif change == "two places":
        X[:150] += 1e4
    elif change == "equal":
        X[::2], Q[::3] = X[1], X[1]
    else:
        factor = {"large": 1e39, "small": 1e-46, "huge": 1e200, "tiny": 1e-200}.get(change, 1.0)
        X, Q = ((each + {"far": 1e6, "very far": 1e8}.get(change, 0.0)) * factor for each in (X, Q))
    Q[-1], Q[-2] = 1e7 * Q[0], X[3]
    with Workers(1) as workers:
        own = nearest(X, 20, metric="euclidean", workers=workers).distances
        np.testing.assert_allclose(torch_backend().nearest(X, 20, cosine=False).distances.cpu(), own, rtol=1e-6)
        expected = search_among(X, "euclidean", workers)(Q, 20, workers)
        dense = TorchPlacer(DEVICE, LIMITS, workers).dense_search
        found = search_among(X, "euclidean", workers, dense)(Q, 20, workers)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-12)
    if change not in ("equal", "very far"):  # ties, which rounding makes if all rows are far away
        np.testing.assert_array_equal(found.indices, expected.indices)
    first = [np.flatnonzero((q == X).all(axis=1))[:1] for q in Q]
    assert [row[0] for row, twin in zip(found.indices, first, strict=True) if len(twin)] == [
        twin[0] for twin in first if len(twin)
    ]


@each_value({"n, d, k": [(9000, 2, 30), (9001, 1, 5), (9003, 3, 100), (100, 2, 30), (500, 4, 9)], "m": [1, 50, 3000]})
def test_nearest_points_of_a_map(n, d, k, m, monkeypatch):
    monkeypatch.setattr(map_neighbors, "_COMPARED", 2**14)  # several blocks
    rng = np.random.default_rng(4)
    places = np.concatenate([rng.normal(size=(n // 2, d)), rng.normal(20, 8, (n - n // 2, d))])
    Y = np.concatenate([rng.normal(10, 10, (m - m // 2, d)), places[: m // 2]])
    index = map_neighbors.MapIndex.of(queries.sent(places, DEVICE))
    distances, indices = (each.cpu().numpy() for each in index.nearest(queries.sent(Y, DEVICE), k))
    expected = cKDTree(places).query(Y, np.arange(1, k + 1))
    np.testing.assert_allclose(distances, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(indices, expected[1])
    own = map_neighbors.nearest_in_map(queries.sent(places, DEVICE), k).cpu()
    np.testing.assert_array_equal(own, cKDTree(places).query(places, k + 1)[1][:, 1:])


def test_the_partition_sum_of_very_many_points(monkeypatch):
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal(size=(1000, 2)), rng.normal(20, 8, (1000, 2))])
    placer = TorchPlacer(DEVICE, LIMITS, None)
    fixed = places, np.exp(0.5 * rng.normal(size=2000)), rng.uniform(0.5, 3, 2000), 1.1
    _, expected = placer.field(*fixed)
    monkeypatch.setattr(row_losses, "_MANY", 100)
    assert placer.field(*fixed)[1] == pytest.approx(expected, rel=1e-4)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: DRSNE_TEST_DEVICE=cuda")
def test_places_on_a_gpu_with_and_without_triton(monkeypatch):
    model = DRSNE(**SHORT, **TORCH).fit(X)
    found = model.transform(ROWS)
    monkeypatch.setattr(kernels, "TRITON", False)
    away = np.linalg.norm(model.transform(ROWS) - found, axis=1) / np.abs(model.embedding_).max()
    assert (away < 1e-6).mean() >= 0.9


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: DRSNE_TEST_DEVICE=cuda")
def test_models_free_the_memory_of_the_device(model):
    taken = []
    for _ in range(4):
        copied = on(copy.deepcopy(model), TORCH)
        copied.transform(ROWS)
        del copied
        gc.collect()
        torch.cuda.synchronize()
        taken.append(torch.cuda.memory_allocated())
    assert taken[-1] <= taken[0]


@pytest.mark.slow
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: DRSNE_TEST_DEVICE=cuda")
def test_many_rows_on_a_gpu():
    rows = blobs(80_000)
    model = DRSNE(random_state=0, max_iter=100, **TORCH).fit(rows[:10_000])
    places = model.transform(rows[10_000:])  # more than one chunk
    assert np.isfinite(places).all()
    some = np.arange(0, 70_000, 3500)
    np.testing.assert_array_equal(model.transform(rows[10_000:][some]), places[some])
    expected = on(model, NUMBA).transform(rows[10_000:][some])
    assert np.median(np.linalg.norm(places[some] - expected, axis=1)) < 1e-2
