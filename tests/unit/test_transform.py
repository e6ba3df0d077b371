"""New rows in a fitted map: independence of the batch, special rows, every kind of input, and errors."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import in_one_test
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

import drsne
from drsne import DRSNE, DenSNE, Objective
from drsne.backends.numba.kernels import placement as kernels
from drsne.backends.numba.kernels._turns import whole
from drsne.backends.numba.placement import NumbaPlacer
from drsne.backends.numba.threads import Workers
from drsne.neighbors import queries

SHORT = {"max_iter": 150, "random_state": 0, "perplexity": 15, "density_neighbors": 15}


def blobs(n: int = 300, d: int = 6, seed: int = 0) -> np.ndarray:
    """Return three groups of different densities."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(3, d)) * 12
    kind = rng.integers(3, size=n)
    return centre[kind] + rng.normal(size=(n, d)) * np.array([0.3, 1.0, 2.5])[kind, None]


X, NEW = blobs(), blobs(40, seed=0) + 0.05


@pytest.fixture(scope="module")
def model() -> DRSNE:
    return DRSNE(**SHORT).fit(X)


def one_by_one(model, rows):
    return np.concatenate([model.transform(rows[i : i + 1]) for i in range(rows.shape[0])])


def test_a_place_does_not_depend_on_the_batch(model):
    rows = np.concatenate([NEW, NEW[:5] + 3.0, *(foreign[:5] for foreign in FOREIGN)])
    assert ((model.novelty(rows) > 1.5) & (model.novelty(rows) < 3.0)).any()
    whole = model.transform(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    far = np.random.default_rng(1).normal(size=(3000, X.shape[1])) * 1e6
    assert np.array_equal(one_by_one(model, rows), whole)
    assert np.array_equal(model.transform(rows[order]), whole[order])
    assert np.array_equal(model.transform(np.concatenate([far, rows]))[-len(rows) :], whole)


def test_a_place_does_not_depend_on_the_number_of_threads_or_on_the_chunks(model, monkeypatch):
    whole = model.transform(NEW)
    for n_jobs in (2, 3):
        other = DRSNE(**SHORT, n_jobs=n_jobs).fit(X)
        assert np.array_equal(other.transform(NEW), whole)
    monkeypatch.setattr(NumbaPlacer, "chunk", 7)
    assert np.array_equal(model.transform(NEW), whole)


def test_a_training_row_gets_its_place_and_the_first_of_equal_ones(model):
    assert np.array_equal(model.transform(X), model.embedding_)
    twice = DRSNE(**SHORT).fit(np.concatenate([X, X[:5]]))
    assert np.array_equal(twice.transform(X[:5]), twice.embedding_[:5])
    assert not np.array_equal(twice.embedding_[:5], twice.embedding_[len(X) :])
    assert (model.novelty(X) == 0.0).all()
    np.testing.assert_allclose(model.new_concentration(X), model.input_concentration_, atol=1e-5)


MANY = np.concatenate([X, np.repeat(X[7:8], 250, axis=0)])[np.random.default_rng(1).permutation(len(X) + 250)]
FIRST = np.unique(MANY, axis=0, return_index=True, return_inverse=True)
FIRST = FIRST[1][FIRST[2].ravel()]  # the first row that equals each row


@pytest.mark.filterwarnings("ignore:perplexity=15 is out of reach")
@in_one_test(
    ("settings", "kind", "lists_from"),
    [
        ({}, sp.csr_matrix, 10**5),
        ({"metric": "cosine"}, np.float32, 10**5),
        ({"metric": "precomputed"}, pairwise_distances, 10**5),
        ({"pca_components": 4}, np.asarray, 10**5),
        ({}, np.asarray, 500),
    ],
)
def test_the_first_of_more_equal_rows_than_neighbours_gives_the_place(monkeypatch, settings, kind, lists_from):
    monkeypatch.setattr(queries, "APPROXIMATE_FROM", lists_from)
    rows = kind(MANY)
    model = DRSNE(**SHORT, **settings).fit(rows)
    assert np.array_equal(model.transform(rows), model.embedding_[FIRST])
    np.testing.assert_allclose(model.new_concentration(rows), model.input_concentration_[FIRST], atol=1e-5)


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_rows_that_are_equal_however_they_are_stored():
    signs = X.copy()
    signs[:20, 0] = 0.0
    signs = np.concatenate([signs, signs[:20]])
    signs[:20:2, 0] = -0.0
    zeros = X * [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    stored = sp.csr_matrix((zeros.ravel(), np.tile(np.arange(6), len(X)), np.arange(0, 6 * len(X) + 1, 6)))
    stored = sp.vstack([stored, sp.csr_matrix(zeros[:20])])
    no_direction = np.abs(X)
    no_direction[4] = 0.0
    for metric, rows, new in (
        ("euclidean", signs, signs[len(X) :]),
        ("canberra", signs, signs[len(X) :]),
        ("euclidean", stored, zeros[:20]),
        ("manhattan", stored, zeros[:20]),
        ("correlation", np.abs(X), np.abs(X[:60])),
        ("cosine", no_direction, no_direction[:60]),
    ):
        model = DRSNE(metric=metric, **SHORT).fit(rows)
        assert np.array_equal(model.transform(new), model.embedding_[: len(new)])


FOREIGN = [
    np.random.default_rng(3).uniform(-1, 1, (50, X.shape[1])) * 20 + 200,
    np.random.default_rng(4).uniform(-1, 1, (50, X.shape[1])) * 20 - 60,
    np.random.default_rng(5).normal(size=(50, X.shape[1])) * 500,
]


def test_foreign_rows_are_flagged(model):
    for foreign in FOREIGN:
        assert model.novelty(foreign).min() > 10 * np.quantile(model.novelty(NEW), 0.9)
        assert model.new_concentration(foreign).max() < np.quantile(model.input_concentration_, 0.01)


def test_a_row_near_an_isolated_training_row_gets_its_place():
    rows = np.concatenate([X, np.full((1, X.shape[1]), 3000.0)])
    for model in (DRSNE(**SHORT), DRSNE(density_weight=0.0, **SHORT), DenSNE(max_iter=60, perplexity=15)):
        placed = model.fit(rows).transform(rows[-1:] + 0.5)
        away = np.linalg.norm(model.embedding_ - placed, axis=1)
        assert away.argmin() == len(X)
        assert away[-1] < 0.2 * np.sort(away)[1]


def test_rows_are_placed_through_lists(monkeypatch):
    rows = blobs(1500, seed=2)
    usual = DRSNE(**SHORT).fit(rows)
    monkeypatch.setattr(queries, "APPROXIMATE_FROM", 1000)
    through_lists = copy.deepcopy(usual)
    whole = through_lists.transform(NEW)
    assert np.array_equal(one_by_one(through_lists, NEW[:10]), whole[:10])
    assert np.array_equal(through_lists.transform(rows), usual.embedding_)
    assert np.median(np.linalg.norm(whole - usual.transform(NEW), axis=1)) < 0.1


CASES = {
    "plain t-SNE": DRSNE(density_weight=0.0, **SHORT),
    "fixed kernel": DRSNE(kernel="fixed", **SHORT),
    "neighbours in the map": DRSNE(neighborhoods="embedding", **SHORT),
    "small weight": DRSNE(density_weight=0.05, **SHORT),
    "one dimension": DRSNE(1, **SHORT),
    "three dimensions": DRSNE(3, **SHORT),
    "four dimensions": DRSNE(4, **SHORT),
    "smoothings": DRSNE(objective=Objective(distance_smoothing=0.1, affinity_smoothing=1e-7, kernel="fixed"), **SHORT),
    "the paper": DRSNE(**drsne.presets.paper(len(X), 0.05, 15, max_iter=300), random_state=0),
    "principal components": DRSNE(pca_components=4, **SHORT),
    "cosine": DRSNE(metric="cosine", **SHORT),
    "manhattan": DRSNE(metric="manhattan", **SHORT),
    "standardised": DRSNE(metric="seuclidean", **SHORT),
    "den-SNE": DenSNE(max_iter=150, random_state=0, perplexity=15),
    "automatic weight": DRSNE(density_weight="auto", **{**SHORT, "max_iter": 60}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_map_places_rows_one_by_one_as_together(name):
    model = CASES[name].fit(X)
    whole = model.transform(NEW)
    assert np.isfinite(whole).all()
    assert np.array_equal(one_by_one(model, NEW[:8]), whole[:8])
    assert np.array_equal(model.transform(X[:9]), model.embedding_[:9])
    own = NearestNeighbors(n_neighbors=31).fit(model.embedding_).kneighbors(model.embedding_)[0][:, -1]
    places = NearestNeighbors(n_neighbors=30).fit(model.embedding_)
    if name != "cosine":  # rows that are far away can have the same direction
        for foreign in FOREIGN:
            assert places.kneighbors(model.transform(foreign))[0][:, -1].min() > np.quantile(own, 0.9)
    near = NearestNeighbors(n_neighbors=len(X) // 4).fit(model.embedding_).kneighbors(whole, return_distance=False)
    twins = pairwise_distances(NEW, X).argmin(axis=1)
    # The map of the paper is torn, so that neighbours in the data are far apart.
    assert np.mean([twin in row for twin, row in zip(twins, near, strict=True)]) > (0.6 if name == "the paper" else 0.9)


def test_sparse_rows_frames_and_other_types_give_the_same_places(model):
    whole = model.transform(NEW)
    assert np.array_equal(model.transform(NEW.tolist()), whole)
    assert np.array_equal(model.transform(np.asfortranarray(NEW)), whole)
    assert np.array_equal(model.transform(sp.csr_matrix(NEW)), whole)
    assert model.transform(NEW.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(model.transform(NEW.astype(np.float32)), whole, atol=0.2)
    assert model.transform(np.round(X[:3]).astype(int)).shape == (3, 2)
    sparse = DRSNE(**SHORT).fit(sp.csr_matrix(X))
    assert np.array_equal(one_by_one(sparse, sp.csr_matrix(NEW[:6])), sparse.transform(NEW[:6]))
    assert np.array_equal(sparse.transform(sp.csr_matrix(X[:6])), sparse.embedding_[:6])
    single = DRSNE(**SHORT).fit(X.astype(np.float32))
    assert np.array_equal(single.transform(X[:6].astype(np.float32)), single.embedding_[:6])


def test_distances_to_the_training_rows_replace_the_rows():
    D, between = pairwise_distances(X), pairwise_distances(NEW, X)
    model = DRSNE(metric="precomputed", **SHORT).fit(D)
    whole = model.transform(between)
    assert np.array_equal(one_by_one(model, between[:5]), whole[:5])
    assert np.array_equal(model.transform(D[:5]), model.embedding_[:5])
    graph = sp.csr_matrix(np.where(between <= np.sort(between, axis=1)[:, 60:61], between, 0.0))
    assert np.array_equal(model.transform(graph), whole)
    noise = np.where(np.arange(len(X)) == 9, -1e-12, 0.0)[None]  # the distances to all rows are 0 but for rounding
    stored = sp.csr_matrix((noise.ravel(), np.arange(len(X)), [0, len(X)]), noise.shape)
    for equal in (noise, stored):
        assert np.array_equal(model.transform(equal), model.embedding_[:1])
    few = sp.csr_matrix(np.where(between <= np.sort(between, axis=1)[:, 3:4], between, 0.0))
    with pytest.raises(ValueError, match="must list at least 45 training rows"):
        model.transform(few)
    with pytest.raises(ValueError, match="non-negative"):
        model.transform(-between)


def test_errors_and_empty_batches(model):
    assert model.transform(np.empty((0, X.shape[1]))).shape == (0, 2)
    assert model.novelty(np.empty((0, X.shape[1]))).shape == (0,)
    with pytest.raises(ValueError, match="must be finite"):
        model.transform(np.full((1, X.shape[1]), 1e200))
    with pytest.raises(ValueError, match="feature names"):
        DRSNE(**SHORT).fit(pd.DataFrame(X, columns=list("abcdef"))).transform(pd.DataFrame(NEW, columns=list("zbcdef")))
    given = DRSNE(neighbors=drsne.neighbors.knn(X, 45), **SHORT).fit(X)
    with pytest.raises(ValueError, match=r"fitted with neighbors=\.\.\."):
        given.transform(NEW)
    model_without = DRSNE(**SHORT).fit(X)
    model_without._reference = None
    with pytest.raises(ValueError, match="keeps nothing for new rows"):
        model_without.transform(NEW)


def test_a_failed_fit_leaves_the_model_usable(model):
    model = copy.deepcopy(model)
    whole = model.transform(NEW)
    with pytest.raises(ValueError, match="init"):
        model.set_params(init=np.zeros((3, 2))).fit(X[:, :3])
    with pytest.raises(ZeroDivisionError):
        model.set_params(init="pca", callbacks=lambda *_: 1 / 0).fit(X[:100])
    assert np.array_equal(model.transform(NEW), whole)
    assert len(model.embedding_) == model.affinities_.shape[0] == len(model.input_concentration_) == len(X)


def test_progress_is_shown(capsys, model):
    shown = DRSNE(**SHORT, verbose=1).fit(X)
    capsys.readouterr()
    shown.transform(NEW)
    assert "transform" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["plain t-SNE", "smoothings", "the paper", "den-SNE", "three dimensions"])
@pytest.mark.filterwarnings("ignore")
def test_the_gradient_of_the_loss_of_a_row(name, monkeypatch):
    model = CASES[name].fit(X)
    captured = []

    def keep(*arguments):
        captured.append(arguments)

    descend = kernels.descend
    monkeypatch.setattr(kernels, "descend", keep)
    model.transform(NEW[:5])
    Y, rows, in_map, (fixed, tree, constants, density) = captured[0][:4]
    near, p, a, listed, target, lam, apart, skipped, _, _ = rows
    stretch, delta, repulsion, _, *outside = constants
    in_map = near[:, ::3].copy() if in_map.shape[1] == 0 else in_map
    rng = np.random.default_rng(0)
    some = slice(5)
    y = Y[some] + rng.normal(size=(5, Y.shape[1]))
    pull = rng.normal(size=y.shape), np.full(5, 0.3)
    lists = near[some], p[some], a[some], listed[some]
    own = *lists, target[some], lam[some] + 0.5, apart[some] + 0.7, skipped[some], *pull
    # The tree is approximate, so its value and its gradient do not agree exactly. The other terms are also checked
    # without it, with weights for all density terms.
    for factor in (0.0, 1.0):
        shared = fixed, tree, (stretch, delta, factor * repulsion, 1.3, *outside), density

        def found(at):
            values, gradients = np.empty(5), np.empty_like(at)
            descend(at, own, in_map[some], shared, 0, np.empty(5, np.bool_), values, gradients, whole(5))  # noqa: B023
            return values, gradients

        _, gradient = found(y)
        for c in range(y.shape[1]):
            e = np.zeros(y.shape[1])
            e[c] = 1e-5
            slope = (found(y + e)[0] - found(y - e)[0]) / 2e-5
            exact = {"rel": 2e-2, "abs": 1e-3} if factor else {"rel": 1e-5, "abs": 1e-6}
            assert slope == pytest.approx(gradient[:, c], **exact)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_tree_agrees_with_the_sum_over_all_points(d):
    rng = np.random.default_rng(d)
    places, scales = rng.normal(size=(900, d)) * 8, np.exp(rng.normal(size=900) * 0.7)
    masses = rng.uniform(0.5, 4, 900)
    fixed = places, places, scales, masses
    from drsne.backends.numba.cells import field_tree

    with Workers(1) as workers:
        tree = field_tree(fixed, workers)
        partition, forces = np.empty(900), np.empty((900, d))
        workers.run(kernels.potentials, 900, fixed, tree, 1.0, partition, forces)
    difference = places[:, None] - places[None]
    h = scales[:, None] * scales[None]
    w = h / (h + (difference**2).sum(axis=2))
    np.fill_diagonal(w, 0.0)
    weighted = masses[:, None] * masses[None] * w
    np.testing.assert_allclose(partition, weighted.sum(axis=1), rtol=5e-3)
    exact = ((weighted * w / h)[:, :, None] * difference).sum(axis=1)
    assert np.linalg.norm(forces - exact) < 0.01 * np.linalg.norm(exact)


@pytest.mark.filterwarnings("ignore:perplexity=15 is out of reach")
def test_rows_near_many_equal_rows_are_not_foreign():
    """The radius of equal rows is about 0, but other rows are no nearer to them than to rows that stand alone."""
    rng = np.random.default_rng(0)
    alone = rng.normal(size=(200, 5))
    model = DRSNE(**SHORT).fit(np.vstack([np.repeat(alone[:3], 40, axis=0), alone]))
    shifts = np.array([1e-6, 1e-4, 1e-2, 0.1])
    rows = alone[0] + shifts[:, None]
    found = model.novelty(rows)
    assert (np.diff(found) > 0.0).all()
    assert found.max() < 0.5
    span = np.ptp(model.embedding_, axis=0).max()
    assert np.linalg.norm(model.transform(rows) - model.embedding_[0], axis=1).max() < 0.3 * span
    assert model.novelty(alone[:1] + 50.0)[0] > 5.0
