"""Row weights in fits by PyTorch, on the device of DRSNE_TEST_DEVICE (the CPU if it is not set)."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_pair
from on_backends import DEVICE, EngineOnArrays, torch_backend
from scipy.spatial.distance import cdist

from drsne import DRSNE, engines, load, metrics
from drsne.backends.numba import cells
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.engines._weighted import WeightedEngine
from drsne.neighbors.graph import KnnGraph
from drsne.terms import masses as weighted

torch = pytest.importorskip("torch")


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
    masses, Y = rng.uniform(0.2, 5.0, 3000), rng.normal(size=(3000, 2))
    scales = np.exp(0.3 * rng.normal(size=3000))
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


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(6)
    X = np.concatenate([rng.normal(0, 0.3, (250, 5)), rng.normal(4, 1, (250, 5))])
    return X, rng.integers(1, 5, 500).astype(float)


def fitted(data, **params):
    settings = {"perplexity": 15, "density_neighbors": 15, "random_state": 0, **params}
    return DRSNE(**settings).fit(data[0], sample_weight=data[1])


ON_DEVICE = {"backend": "torch", "device": DEVICE}


def test_a_fit_is_that_of_numba_but_for_rounding(data, monkeypatch):
    """Rounding grows from step to step, so a fit of few iterations is compared, with the sums over all pairs."""
    monkeypatch.setattr(cells, "_THETA", 0.0)
    short = {"max_iter": 12, "n_iter_exaggeration": 5}
    found, expected = fitted(data, **ON_DEVICE, **short), fitted(data, **short)
    assert np.abs(found.embedding_ - expected.embedding_).max() < 1e-2 * np.abs(expected.embedding_).max()
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-3)
    assert abs(found.affinities_ - expected.affinities_).max() < 1e-5 * expected.affinities_.max()
    np.testing.assert_allclose(found.input_concentration_, expected.input_concentration_, atol=1e-5)
    np.testing.assert_allclose(found.precisions_, expected.precisions_, rtol=1e-4)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"engine": "tree"},
        {"density_weight": 0},
        {"neighborhoods": "input", "kernel": "fixed"},
        {"n_components": 1},
        {"n_components": 3},
        {"metric": "cosine"},
    ],
    ids=str,
)
def test_maps_are_as_good_as_those_of_numba(data, params):
    params = {"max_iter": 250, **params}
    found, expected = fitted(data, **ON_DEVICE, **params), fitted(data, **{**params, "engine": "auto"})
    assert found.engine_ == params.get("engine", "exact")
    assert found.kl_divergence_ == pytest.approx(expected.kl_divergence_, abs=0.1)
    metric = params.get("metric", "euclidean")
    scores = [metrics.trustworthiness(data[0], each.embedding_, metric=metric) for each in (found, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    profiles = [np.corrcoef(each.input_concentration_, each.concentration_)[0, 1] for each in (found, expected)]
    assert profiles[0] == pytest.approx(profiles[1], abs=0.1)


def test_the_same_seed_gives_the_same_map(data):
    first, second = (fitted(data, **ON_DEVICE, engine="tree", max_iter=60) for _ in range(2))
    np.testing.assert_array_equal(first.embedding_, second.embedding_)


def test_other_fits_with_weights(data, tmp_path):
    X, masses = data
    distances = cdist(X, X)
    short = {"perplexity": 15, "density_neighbors": 15, "max_iter": 60, "random_state": 0, **ON_DEVICE}
    precomputed = DRSNE(**short, metric="precomputed").fit(distances, sample_weight=masses)
    assert np.isfinite(precomputed.embedding_).all()
    automatic = DRSNE(**short, density_weight="auto", max_trustworthiness_drop=1.0).fit(X, sample_weight=masses)
    assert automatic.density_weight_ > 0
    automatic.save(tmp_path / "model.drsne")
    new = X[:5] + 0.1
    np.testing.assert_array_equal(load(tmp_path / "model.drsne").transform(new), automatic.transform(new))
