"""Fits by PyTorch, on the device of DRSNE_TEST_DEVICE (the CPU if it is not set)."""

from __future__ import annotations

import types

import numpy as np
import pytest
import scipy.sparse as sp
from on_backends import DEVICE, engine_of, torch_backend
from on_triton import assert_the_same
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

import drsne
from drsne import DRSNE, DenSNE
from drsne.affinities import DEFAULT_CALIBRATION, affinities
from drsne.backends import choice
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import nearest

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 0.2, (150, 6)), rng.normal(4, 1.0, (150, 6))])


def fitted(X, kind=DRSNE, **params):
    settings = {"max_iter": 60, "perplexity": 10, "random_state": 0, "device": DEVICE, "backend": "torch"}
    if kind is DRSNE:
        settings["density_neighbors"] = 10
    return kind(**{**settings, **params}).fit(X)


def test_a_fit_is_that_of_numba_but_for_rounding(X):
    """Rounding grows from step to step, so a fit of few iterations is compared."""
    params = {"max_iter": 12, "n_iter_exaggeration": 5}
    found, expected = (fitted(X, backend=backend, **params) for backend in ("torch", "numba"))
    if DEVICE != "cpu":
        expected = fitted(X, backend="numba", device=None, **params)
    spread = np.abs(expected.embedding_).max()
    assert np.abs(found.embedding_ - expected.embedding_).max() < 1e-2 * spread
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-3)
    assert abs(found.affinities_ - expected.affinities_).max() < 1e-5 * expected.affinities_.max()
    np.testing.assert_allclose(found.input_concentration_, expected.input_concentration_, atol=1e-5)
    np.testing.assert_allclose(found.precisions_, expected.precisions_, rtol=1e-4)


def test_the_same_seed_gives_the_same_map(X):
    first, second = fitted(X), fitted(X)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert first.embedding_.dtype == np.float64
    assert fitted(X.astype(np.float32)).embedding_.dtype == np.float32
    assert np.isfinite(fitted(X.astype(np.float16)).embedding_).all()


def test_what_every_fit_has(X, tmp_path):
    model = fitted(X)
    assert model.engine_ == "exact"
    assert model.knn_recall_ is None
    assert sp.issparse(model.affinities_)
    assert model.affinities_.sum() == pytest.approx(1.0, abs=1e-4)
    assert np.corrcoef(model.input_concentration_, model.concentration_)[0, 1] > 0.9
    np.testing.assert_array_equal(model.transform(X[:5]), model.embedding_[:5])
    model.save(tmp_path / "model.drsne")
    np.testing.assert_array_equal(
        drsne.load(tmp_path / "model.drsne").transform(X[:5] + 0.1), model.transform(X[:5] + 0.1)
    )


@pytest.mark.parametrize(
    "params",
    [
        {"density_weight": 0},
        {"neighborhoods": "input", "kernel": "fixed"},
        {"n_components": 1},
        {"n_components": 3},
        {"metric": "cosine"},
        {"metric": "manhattan"},
        {"init": "random"},
        {"pca_components": 3},
        {"engine": "tree"},
    ],
)
def test_settings(X, params):
    model = fitted(X, **params)
    assert np.isfinite(model.embedding_).all()
    expected = fitted(X, backend="numba", device=None, **params)
    assert model.kl_divergence_ == pytest.approx(expected.kl_divergence_, abs=0.1)


def test_densne(X):
    found, expected = (fitted(X, DenSNE, **kw) for kw in ({}, {"backend": "numba", "device": None}))
    assert found.correlation_ == pytest.approx(expected.correlation_, abs=0.02)


def test_other_data(X):
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    graph = NearestNeighbors(n_neighbors=40).fit(X).kneighbors_graph(mode="distance")
    for data, params in (
        (distances, {"metric": "precomputed"}),
        (sp.csr_matrix(X), {}),
        (X, {"neighbors": graph}),
    ):
        found, expected = fitted(data, **params), fitted(data, backend="numba", device=None, **params)
        assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, abs=0.1)


def test_a_path_of_weights_and_an_update(X):
    path = drsne.density_path(
        X, [0, 1], perplexity=10, density_neighbors=10, max_iter=60, random_state=0, backend="torch", device=DEVICE
    )
    assert len(path.embeddings) == 2
    model = fitted(X)
    before = model.embedding_.copy()
    model.update(X, np.arange(len(X)), stiffness=100.0)
    assert np.abs(model.embedding_ - before).max() < 0.5 * np.abs(before).max()


def test_an_interrupt_keeps_the_last_map(X):
    maps = []

    def stop(iteration, Y, losses):
        assert isinstance(Y, np.ndarray)
        maps.append(Y.copy())
        if iteration == 7:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="Interrupted after"):
        model = fitted(X, callbacks=stop)
    assert model.stopped_by_ == "interrupt"
    np.testing.assert_array_equal(model.embedding_, maps[-1])
    assert not np.array_equal(maps[-1], maps[-2])


def test_wrong_devices_and_backends(X):
    for device in ("gpu", "cpu:3", "cuda:", "cuda:x", "cuda:00", "cuda:\u0661", "", 0):
        with pytest.raises(ValueError, match="device must be"):
            DRSNE(backend="torch", device=device).fit(X)
    with pytest.raises(ValueError, match="backend must be"):
        DRSNE(backend="jax").fit(X)
    with pytest.raises(ValueError, match=r"device='cuda:99' is not there: .* Pass device=None"):
        DRSNE(device="cuda:99").fit(X)
    with pytest.raises(ValueError, match="device='cuda:99' is not there"):
        drsne.density_path(X, [0, 1], device="cuda:99")
    with pytest.raises(ValueError, match=r"engine='fft' does not support backend='torch'\. Pass"):
        fitted(X, engine="fft")
    with pytest.raises(ValueError, match="engine='tree' does not support n_components=3 with backend='torch'"):
        fitted(X, engine="tree", n_components=3)


def test_tensors_that_numpy_cannot_read(X):
    """A fit takes tensors on the CPU. It names what is wrong with others."""
    sent = torch.as_tensor(X)
    np.testing.assert_array_equal(fitted(sent).embedding_, fitted(X).embedding_)
    wrong = [
        (sent.clone().requires_grad_(), "float64 on cpu that requires a gradient"),
        (sent.bfloat16(), "bfloat16 on"),
    ]
    wrong += [(sent.to(DEVICE), f"float64 on {DEVICE}")] if DEVICE != "cpu" else [(sent.to("meta"), "float64 on meta")]
    for values, what in wrong:
        with pytest.raises(TypeError, match=rf"X must be .* got a tensor of type torch\.{what}.* Pass X\.detach\(\)"):
            fitted(values)


def test_a_device_without_enough_memory(X, monkeypatch):
    from drsne.backends.torch.backend import TorchBackend

    model = fitted(X)
    before = model.embedding_

    def fails(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB. GPU 0 has 1 GiB")

    monkeypatch.setattr(TorchBackend, "attraction", fails)
    with pytest.raises(MemoryError, match=r"needs about 0\.0 GB \(CUDA out of memory\)\. Lower perplexity"):
        model.fit(X)
    assert model.embedding_ is before


def test_the_free_memory_of_a_gpu(X, monkeypatch):
    """It includes what PyTorch keeps after a fit. Without a device, PyTorch uses the GPU, so its memory counts."""
    from drsne.estimators import memory

    for backend, device in (("torch", None), ("numba", "cuda")):
        params = DRSNE(backend=backend, device=device).get_params()
        needed = drsne.memory_estimate(10**6, 50, device="cuda")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 2**30 + 10)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 10)
        for free in (0, needed - 2**30, needed):
            monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 2**38))
            found = memory.shortage((10**6, 50), params)
            assert found == (None if free else (needed, 2**30))
        assert drsne.memory_estimate(10**6, 50, backend=backend, device=device) == needed


def test_names_of_backends_and_devices(monkeypatch):
    assert choice.resolve("numba", None) == ("numba", None)
    assert choice.resolve("numba", "cpu") == ("numba", None)
    assert choice.resolve("torch", "cpu") == choice.resolve("torch", "cpu:0") == ("torch", "cpu")
    assert choice.at_hand("torch", torch.device("cpu", 0)) == ("torch", "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choice.resolve("numba", "cuda") == ("torch", "cuda")  # a CUDA device implies PyTorch
    assert choice.resolve("numba", "cuda:1") == ("torch", "cuda:1")
    assert choice.resolve("torch", None) == ("torch", "cuda")
    monkeypatch.setattr(torch, "__version__", "2.8.1+cu128")
    with pytest.raises(ImportError, match=r"need PyTorch 2\.9 or newer; got 2\.8\.1\+cu128\. Update it"):
        choice.resolve("torch", None)
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"need the package torch.*pip install 'drsne\[torch\]'"):
        choice.resolve("torch", None)


def test_neighbours_of_rows(monkeypatch):
    from drsne.backends.torch import neighbors

    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(0, 1, (2500, 5)), rng.normal(9, 0.1, (2500, 5))]).astype(np.float32)
    X[7] = X[3]
    expected = cKDTree(X.astype(np.float64)).query(X, 21)[0][:, 1:]
    sent = torch.as_tensor(X - X.mean(axis=0), device=DEVICE, dtype=torch.float64)
    found = neighbors.nearest(sent, 20)
    assert found.recall is None
    np.testing.assert_allclose(found.distances.cpu(), expected, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(neighbors, "_INVERTED_FROM", 1000)
    monkeypatch.setattr(neighbors, "_LIST", 100)
    monkeypatch.setattr(neighbors, "_PROBES", (2, 16))
    found = neighbors.nearest(sent, 20)
    assert found.recall >= neighbors.GOOD_RECALL
    right = (found.distances.cpu().numpy() <= expected[:, -1:] * 1.0001).mean()
    assert right == pytest.approx(found.recall, abs=0.02)
    assert (found.indices.cpu().numpy() != np.arange(len(X))[:, None]).all()
    # Rows without clusters: too few neighbours are in the lists, so all rows are searched.
    uniform = torch.as_tensor(rng.uniform(-1, 1, size=(3000, 30)), device=DEVICE)
    monkeypatch.setattr(neighbors, "_PROBES", (1, 2))
    found = neighbors.nearest(uniform, 20)
    assert found.recall is None
    exact = cKDTree(uniform.cpu().numpy()).query(uniform.cpu().numpy(), 21)[0][:, 1:]
    np.testing.assert_allclose(found.distances.cpu(), exact, rtol=1e-4)


@pytest.mark.parametrize("change", ["far", "very far", "outlier", "two places", "large", "small", "huge", "tiny"])
def test_neighbours_of_unusual_rows(change):
    """The same neighbours as those of numba, which proves its searches."""
    X = np.random.default_rng(5).normal(size=(300, 5))
    if change == "outlier":
        X[7] = 1e6
    elif change == "two places":
        X[:150] += 1e4
    else:
        X = {"far": X + 1e6, "very far": X + 1e8}.get(change, X)
        X = X * {"large": 1e39, "small": 1e-46, "huge": 1e200, "tiny": 1e-200}.get(change, 1.0)
    with Workers(1) as workers:
        expected = nearest(X, 20, metric="euclidean", workers=workers)
    found = torch_backend().nearest(X, 20, cosine=False)
    np.testing.assert_allclose(found.distances.cpu(), expected.distances, rtol=1e-6)


def test_data_whose_precisions_overflow_are_refused(X):
    with pytest.raises(ValueError, match=r"largest distance is .*Rescale X"):
        fitted(X * 1e-160)


def test_neighbours_of_many_equal_rows(monkeypatch):
    from drsne.backends.torch import neighbors

    X = np.random.default_rng(6).normal(size=(3000, 4))
    X[::2] = X[0]
    monkeypatch.setattr(neighbors, "_INVERTED_FROM", 1000)
    monkeypatch.setattr(neighbors, "_LIST", 16)
    monkeypatch.setattr(neighbors, "_BLOCK", 2**16)  # several blocks for each list
    found = torch_backend().nearest(X, 10, cosine=False)
    expected = cKDTree(X).query(X, 11)[0][:, 1:]
    assert (found.distances.cpu().numpy() <= expected[:, -1:] + 1e-9).mean() > 0.95


@pytest.mark.filterwarnings("ignore:perplexity=10 is out of reach")
def test_directions_of_rows():
    """Rows of very different lengths, and rows of zeros, which are searched on the CPU."""
    X = np.random.default_rng(7).normal(size=(200, 4))
    X[:5] *= np.array([1e-14, 1e-30, 1e-50, 1e30, 1e-200])[:, None]
    numba = {"backend": "numba", "device": None}
    for zeros in (0, 3):
        X[10 : 10 + zeros] = 0.0
        found, expected = (fitted(X, metric="cosine", max_iter=5, **kw) for kw in ({}, numba))
        np.testing.assert_allclose(found.input_concentration_, expected.input_concentration_, atol=1e-4)


def test_settings_of_the_paper(X):
    assert np.isfinite(fitted(X, objective=drsne.Objective(support="directed")).embedding_).all()
    params = {"random_state": 0, **drsne.presets.paper(len(X), 0.01, 20, max_iter=20)}
    found, expected = (DRSNE(**kw, **params).fit(X) for kw in ({"backend": "torch", "device": DEVICE}, {}))
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-6)


def test_a_model_of_a_gpu_can_be_used_without_one(X, tmp_path):
    model = fitted(X)
    model.set_params(device="cuda:99")  # stands for the GPU of another machine
    model.save(tmp_path / "model.drsne")
    loaded = drsne.load(tmp_path / "model.drsne")
    np.testing.assert_array_equal(loaded.transform(X[:3] + 0.1), model.transform(X[:3] + 0.1))
    assert drsne.memory_estimate(1000, 10, device="cuda") > 0
    # The peaks of fits on an H200 (benchmarks/results/gpu.md).
    for n, d, peak in ((70_000, 50, 2.31e9), (280_000, 10, 4.14e9), (10**6, 50, 12.75e9), (10**7, 50, 54.37e9)):
        assert 1.0 <= drsne.memory_estimate(n, d, device="cuda") / peak < 1.1
    from drsne.backends.torch import backend

    least = 64 * backend._ALL_PAIRS  # of sums over all pairs, in double precision
    assert drsne.memory_estimate(10_000, 10, device="cuda", n_components=3) > least
    with pytest.raises(ValueError, match="device='cuda:99' is not there"):
        loaded.fit(X)


def test_the_types_of_triton_programs(monkeypatch):
    from drsne.backends.torch import cells

    monkeypatch.setattr(cells, "TRITON", True)
    for real, there in ((torch.float32, True), (torch.float64, True), (torch.float16, False)):
        assert cells.compiled(types.SimpleNamespace(is_cuda=True, dtype=real)) is there
    assert not cells.compiled(torch.zeros(1))


def test_sums_in_parts_are_those_of_all_cells(monkeypatch):
    """Plain PyTorch sums pairs in parts, so that maps with very small scales do not take more memory than a search."""
    from drsne.backends.torch import cells, tree

    rng = np.random.default_rng(4)
    Y = torch.as_tensor(rng.normal(size=(900, 2)) * 9, device=DEVICE)
    scales = torch.as_tensor(np.exp(rng.normal(size=900)), device=DEVICE)
    monkeypatch.setattr(cells, "compiled", lambda values: False)

    def sums():
        at = cells.structure(cells.raised(Y, scales))
        return tree.sums(tree.summed_cells(Y, scales, at, torch.float64), 0.2, 0.15, 2)

    whole = sums()
    monkeypatch.setattr(tree, "_NEAR_PAIRS", 7)
    monkeypatch.setattr(tree, "_FAR_PAIRS", 5)
    parts = sums()
    torch.testing.assert_close(parts.forces, whole.forces, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.potential, whole.potential, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:perplexity=30 is out of reach")
def test_many_equal_rows_in_a_tree(X):
    """The scales of equal rows are so small that pairs of the map have double precision.

    Rounding decides how equal rows move apart, so the maps of two backends differ, and the forces of one are checked.
    """
    from drsne.backends.torch import tree

    X = np.concatenate([X, np.repeat(X[:1], 40, axis=0)])
    model = DRSNE(backend="torch", device=DEVICE, engine="tree", max_iter=250, random_state=0).fit(X)
    Y, rho = model.embedding_, model.scales_
    assert rho.min() < 2e-3
    assert tree.pair_dtype(*(torch.as_tensor(each, device=DEVICE) for each in (Y, rho)), "single") == torch.float64
    (Z, F), expected = (engine_of(*kind).repulsion(Y, 0.0, rho) for kind in (("tree", "torch"), ("exact", "numba")))
    assert abs(Z - expected[0]) < 1e-9 * expected[0]
    assert np.linalg.norm(F - expected[1]) < 1e-9 * np.linalg.norm(expected[1])  # no cell is far
    assert model.kl_divergence_ == pytest.approx(1.65, abs=0.4)  # numba: 1.5 to 1.9 in 16 fits


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


def test_many_points_in_three_dimensions(X, monkeypatch):
    from drsne.backends.torch.backend import TorchBackend

    monkeypatch.setattr(TorchBackend, "kind", TorchBackend.kind._replace(slow_from=100))
    with pytest.warns(UserWarning, match="sums over all pairs of 300 points for n_components=3"):
        fitted(X, n_components=3, max_iter=5)


def test_points_in_an_order_that_follows_the_map(X, monkeypatch):
    from drsne.backends.torch import backend
    from drsne.terms import problem

    expected = fitted(X, max_iter=12)
    monkeypatch.setattr(backend, "_REORDERED_FROM", 100)
    monkeypatch.setattr(backend, "_PAIRS", 1000)  # several ranges of rows
    monkeypatch.setattr(problem, "LARGE_MAP", 100)
    monkeypatch.setattr(problem, "_REORDERED_EVERY", 4)
    found = fitted(X, max_iter=12)
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-2 * np.abs(expected.embedding_).max())


def test_neighbours_in_groups_of_columns():
    from drsne.backends.torch.neighbors import smallest

    D = torch.as_tensor(np.random.default_rng(2).normal(size=(40, 1003)), device=DEVICE)
    found = smallest(D, 7).sort(dim=1).values.cpu()
    np.testing.assert_array_equal(found, D.topk(7, dim=1, largest=False).indices.sort(dim=1).values.cpu())


def test_affinities_of_unusual_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    X[:60] = X[0]  # more ties than the perplexity
    with Workers(1) as workers:
        graph = nearest(X, 60, metric="euclidean", workers=workers)
        with pytest.warns(UserWarning, match="out of reach"):
            expected = affinities(graph, 20.0, DEFAULT_CALIBRATION, workers, np.float32)
        sent = KnnGraph(*(torch.as_tensor(each, device=DEVICE) for each in graph))
        with pytest.warns(UserWarning, match="out of reach"):
            found = affinities(sent, 20.0, DEFAULT_CALIBRATION, workers, np.float32)
    assert abs(found.matrix() - expected.matrix()).max() < 1e-6 * expected.matrix().max()
    np.testing.assert_allclose(found.precisions, expected.precisions, rtol=1e-6)
    np.testing.assert_allclose(found.offsets, expected.offsets, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("n", "d", "k"), [(9000, 2, 30), (9001, 1, 5), (9003, 3, 100), (100, 2, 30)])
def test_neighbours_in_large_maps(n, d, k):
    from drsne.backends.torch.map_neighbors import nearest_in_map

    rng = np.random.default_rng(4)
    Y = np.concatenate([rng.normal(size=(n // 2, d)), rng.normal(20, 8, (n - n // 2, d))])
    found = nearest_in_map(torch.as_tensor(Y, device=DEVICE), k).cpu().numpy()
    np.testing.assert_array_equal(found, cKDTree(Y).query(Y, k + 1)[1][:, 1:])


def test_small_cells_are_divided_again():
    """The large cells keep their points, and a leaf has the points that a division of its large cell alone gives it."""
    from drsne.backends.torch import cells, division

    rng = np.random.default_rng(8)
    n, small = 5000, division.SMALL_CELL
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


DIVISIONS = """
import sys
import numpy as np, torch
torch.set_default_device(sys.argv[1])
from drsne.backends.torch import cells, division
rng = np.random.default_rng(0)
n = 391
cells._WIDE, division.SMALL_CELL, division._BLOCK = 1.2, 64, 32
values = torch.tensor(rng.normal(size=(3, 512)), dtype=torch.float32)
values[:, 100:300] = torch.round(values[:, 100:300])  # many equal coordinates
of_slots = torch.randperm(512)
for plain, program in zip(
    division.halved(values, of_slots, 512, 64, in_order=True), division.counted(values, of_slots, 512, 64)
):
    assert plain.tolist() == program.tolist()
Y = torch.tensor(np.concatenate([rng.normal(size=(n // 2, 2)), rng.normal(20, 8, (n - n // 2, 2))]))
scales = torch.tensor(np.exp(0.5 * rng.normal(size=n)))
structures = []
for d in (1, 3):
    for last in (None, structures[-1][0] if structures else None):
        places = cells.raised(Y, scales)[:, :d] if last is None else (cells.raised(Y, scales) + 0.3)[:, :d] * 1.1
        for compiled in (False, True):
            cells.compiled = lambda points: compiled
            structures.append((cells.structure(places, last),))
assert len(structures) == 8
for (plain,), (program,) in zip(structures[::2], structures[1::2]):
    assert all(a.tolist() == b.tolist() for a, b in zip(plain.runs, program.runs))
    assert plain.slots.tolist() == program.slots.tolist()
print("the same")
"""

PROGRAMS = """
import sys
import numpy as np, torch, warnings
torch.set_default_device(sys.argv[1])
real, most = (torch.float32, 1e-5) if sys.argv[2] == "single" else (torch.float64, 1e-12)
warnings.simplefilter("ignore")
from drsne.backends import PairList
from drsne.backends.torch import backend, cells, tree
rng = np.random.default_rng(0)
n = 391
cells.TOP, cells._SUMMED_TOGETHER, cells._VISITED, cells._VISITORS, cells.LEAVES = 4, 4, 4, 5, 16
cells._WIDE = 1.2
Y = torch.tensor(np.concatenate([rng.normal(size=(n // 2, 2)), rng.normal(20, 8, (n - n // 2, 2))]))
scales, masses = (torch.tensor(np.exp(0.5 * rng.normal(size=n))) for _ in range(2))
near = torch.tensor(rng.integers(0, n, (n, 13)), dtype=torch.int32)
pairs = PairList(torch.arange(0, 13 * n + 1, 13), near.reshape(-1), torch.rand(13 * n))
cells.compiled = lambda points: False
at = cells.structure(cells.raised(Y, scales))
assert len(at.runs.wide) > 3
y, u, on = Y.to(real), (1.0 / scales).to(real), backend.TorchBackend(sys.argv[1])
results, visited, pieces = [], [], []
for compiled in (False, True):
    cells.compiled = backend.compiled = lambda points: compiled
    at.kept = None
    found = tree.summed_cells(Y, scales, at, real, masses)
    sums = tree.sums(found, 0.45, 0.15, 2)
    grown = Y * torch.where(torch.arange(n) < n // 3, 2.0, 1.0)[:, None]  # some leaves are stretched
    again = tree.summed_cells(grown, scales, at, real, masses)
    assert found.stretched == 0.0 < again.stretched < 1.0
    sizes = [found.sizes, again.sizes, *(torch.tensor(each[4:7]) for each in (found, again))]
    lengths = torch.empty(n, dtype=torch.float64)
    directions, back = torch.empty((2, n, 2), dtype=real)
    on.lengths(y, near, 0.1, lengths, directions)
    on.pull_back(y, on.neighbor_list(near), scales, 0.1, back)
    attraction = [on.attraction(y, pairs, 1.1, 0.0, each)[0] for each in (None, u)]
    potential, forces = backend._over_all(Y, torch.arange(n), scales, 1.1, real)
    all_sums = torch.cat((potential[None], forces.T))
    moments = found.summed[:, [0, 1, 2, 9, 10, 11]]
    lists = cells.lists(found, 0.45, 0.15)
    for piece in (cells.Pieces.of(lists[1], compiled=compiled), cells.Pieces.of(lists[1], compiled=False)):
        n_pieces = int(piece.of_leaf[-1])
        assert all((rest[n_pieces:] == 0).all() for rest in piece[:3])
        pieces.append([piece.of_leaf.tolist(), *(each[:n_pieces].tolist() for each in piece[:3])])
    assert pieces[-1] == pieces[-2]
    sets = [sorted(each.cells[a:b].tolist()) for each in lists for a, b in zip(each.start[:-1], each.start[1:])]
    visited.append(sets)
    results.append((moments, sums.forces, sums.potential, lengths, directions, back, *attraction, all_sums, *sizes))
for plain, program in zip(*results):
    error = float((plain - program).abs().max() / plain.abs().max())
    assert error < most, (error, plain, program)
assert visited[0] == visited[1]
print("the same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["single", "double"])
def test_triton_programs_do_what_plain_pytorch_does(precision):
    """In double precision for maps in which some scales are very small, for example because rows are repeated."""
    assert_the_same(PROGRAMS, DEVICE, precision)


@pytest.mark.slow
def test_triton_programs_divide_points_as_plain_pytorch_does():
    assert_the_same(DIVISIONS, DEVICE)


# Triton reads the sources of its programs, so they have to be in a file.
RECIPROCALS_FILE = """
import triton
import triton.language as tl
from drsne.backends.torch.kernels.reciprocal import reciprocal

@triton.jit
def reciprocals(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, reciprocal(tl.load(x + at)))
"""
RECIPROCALS = """
import sys
import torch
sys.path.insert(0, sys.argv[2])
from reciprocals import reciprocals
for real, most in ((torch.float32, 2.0**-22), (torch.float64, 2.0**-51)):
    x = torch.cat((torch.linspace(1.0, 2.0, 256), 2.0 ** torch.linspace(-100, 100, 256))).to(sys.argv[1], real)
    found = torch.empty_like(x)
    reciprocals[(4,)](x, found, 128)
    assert float((found.double() * x.double() - 1.0).abs().max()) < most
print("the same")
"""


@pytest.mark.slow
def test_reciprocals(tmp_path):
    (tmp_path / "reciprocals.py").write_text(RECIPROCALS_FILE)
    assert_the_same(RECIPROCALS, DEVICE, str(tmp_path))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: DRSNE_TEST_DEVICE=cuda")
def test_fits_free_the_memory_of_the_device(X):
    fitted(X, engine="tree")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for seed in range(10):
        fitted(X, random_state=seed, engine="tree")
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before


def test_the_type_of_pairs_is_that_of_numpy():
    from drsne.precision import scaled_pair_type

    Y, scales = np.random.default_rng(9).normal(size=(50, 2)), np.exp(np.linspace(-1, 1, 50))
    for extent, least, largest in ((1, 1, 1), (1e4, 1, 1), (1, 1e-4, 1), (1, 1, 1e4), (1e3, 1e-2, 1), (1e-13, 1, 1)):
        places, changed = extent * Y, scales.copy()
        changed[3], changed[7] = least * changed[3], largest * changed[7]
        sent = (torch.as_tensor(each, device=DEVICE) for each in (places, changed))
        assert scaled_pair_type(*sent, "single") == scaled_pair_type(places, changed, "single")
