"""Fits by PyTorch, on the device of DRSNE_TEST_DEVICE (the CPU if it is not set)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from on_backends import DEVICE, engine_of, torch_backend
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

import drsne
from drsne import DRSNE, DenSNE
from drsne.affinities import DEFAULT_CALIBRATION, affinities
from drsne.backends import choice
from drsne.backends.numba import cells
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import nearest

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 0.2, (150, 6)), rng.normal(4, 1.0, (150, 6))])


NUMBA = {"backend": "numba", "device": None}


def fitted(X, kind=DRSNE, weights=None, **params):
    settings = {"max_iter": 60, "perplexity": 10, "random_state": 0, "device": DEVICE, "backend": "torch"}
    if kind is DRSNE:
        settings["density_neighbors"] = 10
    return kind(**{**settings, **params}).fit(X, **({} if weights is None else {"sample_weight": weights}))


def some_weights(X):
    return np.random.default_rng(1).integers(1, 5, len(X)).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_that_of_numba_but_for_rounding(X, weighted, monkeypatch):
    """Rounding grows from step to step, so a fit of few iterations is compared, with the sums over all pairs."""
    monkeypatch.setattr(cells, "_THETA", 0.0)
    params = {"max_iter": 12, "n_iter_exaggeration": 5, "weights": some_weights(X) if weighted else None}
    found, expected = (fitted(X, **params, **where) for where in ({}, NUMBA))
    spread = np.abs(expected.embedding_).max()
    assert np.abs(found.embedding_ - expected.embedding_).max() < 1e-2 * spread
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-3)
    assert abs(found.affinities_ - expected.affinities_).max() < 1e-5 * expected.affinities_.max()
    np.testing.assert_allclose(found.input_concentration_, expected.input_concentration_, atol=1e-5)
    np.testing.assert_allclose(found.precisions_, expected.precisions_, rtol=1e-4)


def test_the_same_seed_gives_the_same_map(X):
    for params in ({}, {"engine": "tree", "weights": some_weights(X)}):
        first, second = fitted(X, **params), fitted(X, **params)
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
    weighted = {"density_weight": "auto", "max_trustworthiness_drop": 1.0, "weights": some_weights(X)}
    for saved in (model, fitted(X, **weighted)):
        assert saved.density_weight_ > 0
        saved.save(tmp_path / "model.drsne")
        kept = drsne.load(tmp_path / "model.drsne")
        np.testing.assert_array_equal(kept.transform(X[:5] + 0.1), saved.transform(X[:5] + 0.1))


@pytest.mark.rotating(3)
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
    for weights in (None, some_weights(X)):
        found, expected = (fitted(X, weights=weights, **params, **where) for where in ({}, NUMBA))
        assert found.engine_ == params.get("engine", "exact")
        assert np.isfinite(found.embedding_).all()
        assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, abs=0.1)


def test_maps_with_weights_are_as_good_as_those_of_numba(X):
    params = {"max_iter": 250, "weights": some_weights(X)}
    found, expected = fitted(X, engine="tree", **params), fitted(X, **NUMBA, **params)
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, abs=0.1)
    scores = [drsne.metrics.trustworthiness(X, each.embedding_) for each in (found, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    profiles = [np.corrcoef(each.input_concentration_, each.concentration_)[0, 1] for each in (found, expected)]
    assert profiles[0] == pytest.approx(profiles[1], abs=0.1)


def test_other_data_and_models(X):
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    graph = NearestNeighbors(n_neighbors=40).fit(X).kneighbors_graph(mode="distance")
    for data, params in (
        (distances, {"metric": "precomputed"}),
        (distances, {"metric": "precomputed", "weights": some_weights(X)}),
        (sp.csr_matrix(X), {}),
        (X, {"neighbors": graph}),
    ):
        found, expected = (fitted(data, **params, **where) for where in ({}, NUMBA))
        assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, abs=0.1)
    found, expected = (fitted(X, DenSNE, **where) for where in ({}, NUMBA))
    assert found.correlation_ == pytest.approx(expected.correlation_, abs=0.02)
    assert np.isfinite(fitted(X, objective=drsne.Objective(support="directed")).embedding_).all()
    paper = {"random_state": 0, **drsne.presets.paper(len(X), 0.01, 20, max_iter=20)}
    found, expected = (DRSNE(**where, **paper).fit(X) for where in ({"backend": "torch", "device": DEVICE}, NUMBA))
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-6)
    with pytest.raises(ValueError, match=r"largest distance is .*Rescale X"):
        fitted(X * 1e-160)


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
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for backend, device in (("numba", None), ("numba", "cpu"), ("numba", "cuda"), ("torch", "cuda"), ("torch", None)):
        assert choice.at_hand(backend, device) == ("numba", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choice.at_hand("torch", None) == ("torch", "cuda")
    assert choice.at_hand("numba", "cuda:1") == ("torch", "cuda:1")
    assert choice.at_hand("numba", "cuda:2") == ("numba", None)
    assert choice.resolve("numba", "cuda") == ("torch", "cuda")  # a CUDA device implies PyTorch
    assert choice.resolve("numba", "cuda:1") == ("torch", "cuda:1")
    assert choice.resolve("torch", None) == ("torch", "cuda")
    monkeypatch.setattr(torch, "__version__", "2.8.1+cu128")
    with pytest.raises(ImportError, match=r"need PyTorch 2\.9 or newer; got 2\.8\.1\+cu128\. Update it"):
        choice.resolve("torch", None)
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    assert choice.at_hand("torch", "cpu") == ("numba", None)
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
    for zeros in (0, 3):
        X[10 : 10 + zeros] = 0.0
        found, expected = (fitted(X, metric="cosine", max_iter=5, **where) for where in ({}, NUMBA))
        np.testing.assert_allclose(found.input_concentration_, expected.input_concentration_, atol=1e-4)


def test_the_memory_that_a_fit_needs():
    assert drsne.memory_estimate(1000, 10, device="cuda") > 0
    # The peaks of fits on an H200 (benchmarks/results/gpu.md).
    for n, d, peak in ((70_000, 50, 2.31e9), (280_000, 10, 4.14e9), (10**6, 50, 12.75e9), (10**7, 50, 54.37e9)):
        assert 1.0 <= drsne.memory_estimate(n, d, device="cuda") / peak < 1.1
    from drsne.backends.torch import backend

    least = 64 * backend._ALL_PAIRS  # of sums over all pairs, in double precision
    assert drsne.memory_estimate(10_000, 10, device="cuda", n_components=3) > least


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


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: DRSNE_TEST_DEVICE=cuda")
def test_fits_free_the_memory_of_the_device(X):
    fitted(X, engine="tree")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for seed in range(10):
        fitted(X, random_state=seed, engine="tree")
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before
