"""Row weights are masses: a row of mass m counts as m rows at one place, which are not neighbours of each other."""

from __future__ import annotations

import numpy as np
import pytest
from covering import in_one_test
from on_backends import DEVICE, TORCH
from scipy.spatial.distance import cdist

from drsne import DRSNE, Objective, density_path, preparation
from drsne.affinities import DEFAULT_CALIBRATION, conditional_affinities
from drsne.backends.arrays import host
from drsne.backends.numba import cells
from drsne.backends.numba.threads import Workers
from drsne.estimators.path import AUTO_WEIGHTS
from drsne.neighbors.graph import KnnGraph
from drsne.terms import masses as weighted
from drsne.terms.contrast import automatic, local_dimension
from drsne.terms.profile import log_scales, profile, winsorized

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) * RNG.uniform(0.5, 3, (40, 1))
MASSES = RNG.integers(1, 5, 40).astype(float)
EXPANDED = np.repeat(np.arange(40), MASSES.astype(int))
PERPLEXITY, K = 6.0, 9
ON_DEVICE = {"backend": "torch", "device": DEVICE}
of_torch = pytest.mark.skipif(not TORCH, reason="needs PyTorch")
BACKENDS = [pytest.param({}, id="numba"), pytest.param(ON_DEVICE, id="torch", marks=of_torch)]
ALL_SUMS = [
    *BACKENDS,
    pytest.param({**ON_DEVICE, "engine": "tree", "engine_options": {"theta": 0.0}}, id="torch-tree", marks=of_torch),
]


def prepared(objective: Objective, weight: float, workers: Workers, **params):
    settings = preparation.Settings(perplexity=PERPLEXITY, density_neighbors=K, random_state=0, **params)
    return preparation.prepared(settings, X, [objective], weight, workers, MASSES)[objective]


def expanded_neighbors(distances, k):
    """Return the k nearest rows of every row, where rows of mass m are listed m times and the row itself is not."""
    indices = np.empty((len(X), k), int)
    for i in range(len(X)):
        others = EXPANDED[i != EXPANDED]
        indices[i] = others[np.argsort(distances[i, others], kind="stable")[:k]]
    return indices


@pytest.mark.parametrize(
    "objective",
    [
        Objective(precision="double", kernel="fixed", small_groups=False),
        Objective(precision="double", kernel="adaptive"),
        Objective(precision="double", kernel="adaptive", embedding_weight=0.7, distance_smoothing=0.2),
    ],
    ids=["fixed", "adaptive", "both"],
)
@pytest.mark.parametrize("params", ALL_SUMS)
def test_loss_and_gradient_are_those_of_the_expanded_rows(objective, params, monkeypatch):
    monkeypatch.setattr(cells, "_THETA", 0.0)  # sums over all pairs
    weight = 1.7
    with Workers(1) as workers:
        problem = prepared(objective, weight, workers, **params)
        objective = problem.loss.terms[0].objective
        Y = np.random.default_rng(1).normal(size=(40, 2)) * 3
        found = problem.evaluate(Y, losses=True)
        in_data = problem.loss.terms[0].neighborhoods[0].neighbors
        there, received = problem.backend.received(Y), problem.start().loss.terms[0].neighborhoods[1:]
        in_map = [host(each.table(there, None, problem.backend).neighbors) for each in received]
    P, scales = problem.loss.pairs["objective"].pairs, problem.scales_at(1.0)
    dense = np.zeros((40, 40))
    for i in range(40):
        dense[i, P.columns[P.indptr[i] : P.indptr[i + 1]]] = P.values[P.indptr[i] : P.indptr[i + 1]]
    of_copies = (dense / MASSES[:, None] / MASSES[None])[EXPANDED][:, EXPANDED]
    apart = EXPANDED[:, None] != EXPANDED[None]

    def losses(Y):
        copies, rho = Y[EXPANDED], scales[EXPANDED]
        w = 1.0 / (1.0 + objective.distance_smoothing + cdist(copies, copies) ** 2 / (rho[:, None] * rho[None]))
        q = w / w[apart].sum()
        some = of_copies > 0
        kl = (of_copies[some] * np.log(of_copies[some] / q[some])).sum()
        conc = 0.0
        for share, lists in zip((1.0, objective.embedding_weight), (in_data, *in_map), strict=False):
            radii = np.linalg.norm(Y[:, None] - Y[lists], axis=2).mean(axis=1)
            added = 1e-3 * np.median(radii[EXPANDED])
            c = (radii + (added if fixed_length is None else fixed_length[share])) ** -objective.embedding_exponent
            log = np.log(c / c[EXPANDED].mean())
            conc += share * np.mean((problem.loss.terms[0].target - log)[EXPANDED] ** 2)
        return kl, conc

    fixed_length = None
    kl, conc = losses(Y)
    assert found.losses["kl"] == pytest.approx(kl, rel=1e-9)
    assert found.losses["concentration"] == pytest.approx(conc, rel=1e-9)
    # The gradient treats the smoothing length as a constant.
    fixed_length = {}
    for share, lists in zip((1.0, objective.embedding_weight), (in_data, *in_map), strict=False):
        fixed_length[share] = 1e-3 * np.median(np.linalg.norm(Y[:, None] - Y[lists], axis=2).mean(axis=1)[EXPANDED])
    for i in (0, 7, 21):
        for c in range(2):
            step = np.zeros_like(Y)
            step[i, c] = 1e-5
            (kl_above, above), (kl_below, below) = losses(Y + step), losses(Y - step)
            slope = (kl_above - kl_below + weight * (above - below)) / 2e-5
            assert found.gradient[i, c] * MASSES[i] / MASSES.sum() == pytest.approx(slope, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("params", BACKENDS)
def test_affinities_and_radii_are_those_of_the_expanded_rows(params):
    with Workers(1) as workers:
        found = prepared(Objective(precision="double"), 1.0, workers, **params)
        D = cdist(X, X)
        near = expanded_neighbors(D, int(3 * PERPLEXITY + 0.5))
        conditional, _, _ = conditional_affinities(
            np.take_along_axis(D, near, axis=1), PERPLEXITY, DEFAULT_CALIBRATION, workers
        )
    C = np.zeros((40, 40))
    for i in range(40):
        np.add.at(C[i], near[i], conditional[i])
    P = (MASSES[:, None] * C + (MASSES[:, None] * C).T) / (2 * MASSES.sum())
    np.testing.assert_allclose(found.affinities.P.toarray(), P, atol=1e-12)
    assert found.affinities.P.sum() == pytest.approx(1.0)
    lists = expanded_neighbors(D, K)
    whole = prepared(Objective(precision="double", small_groups=False), 1.0, workers, **params)
    np.testing.assert_allclose(whole.about.training.radii, np.take_along_axis(D, lists, axis=1).mean(axis=1))


def test_the_engine_is_that_of_the_user():
    X, weights = RNG.normal(size=(200, 4)), RNG.uniform(0.5, 3.0, 200)
    params = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 60, "random_state": 0}
    found = {
        name: DRSNE(engine=engine, engine_options=options, **params).fit_transform(X, sample_weight=weights)
        for name, engine, options in (
            ("usual", "auto", None), ("tree", "tree", None), ("exact", "exact", None),
            ("coarse tree", "tree", {"theta": 0.9}), ("fine tree", "tree", {"theta": 1e-6}),
        )
    }  # fmt: skip
    np.testing.assert_array_equal(found["usual"], found["tree"])
    np.testing.assert_array_equal(found["exact"], found["fine tree"])
    assert not np.array_equal(found["exact"], found["tree"])
    assert not np.array_equal(found["coarse tree"], found["tree"])
    with pytest.raises(ValueError, match="engine must be 'auto', 'exact' or 'tree' with sample_weight; got 'fft'"):
        DRSNE(engine="fft", kernel="fixed", **params).fit(X, sample_weight=weights)


def test_statistics_are_those_of_repeated_values():
    radii = RNG.uniform(0.5, 3, 40)
    repeated = radii[EXPANDED]
    smoothing = Objective().input_smoothing
    assert weighted.mean(radii, MASSES) == pytest.approx(repeated.mean())
    assert weighted.std(radii, MASSES) == pytest.approx(repeated.std())
    levels = (0.0, 0.01, 0.3, 0.5, 0.99, 1.0)
    np.testing.assert_allclose(weighted.quantiles(radii, levels, MASSES), np.quantile(repeated, levels))
    for dimension in (3.0, 30.0):
        assert automatic(radii, dimension, smoothing, MASSES) == automatic(repeated, dimension, smoothing)
    distances = np.sort(RNG.uniform(1, 3, (40, 6)), axis=1)
    weighted_dimension = local_dimension(distances, None, MASSES).value
    assert weighted_dimension == pytest.approx(local_dimension(distances[EXPANDED]).value)
    log, logs = profile(radii, 1.3, smoothing, MASSES).log, profile(repeated, 1.3, smoothing).log
    np.testing.assert_allclose(log[EXPANDED], logs)
    np.testing.assert_allclose(winsorized(log, 0.05, MASSES)[EXPANDED], winsorized(logs, 0.05))
    np.testing.assert_allclose(
        log_scales(radii, 1.2, smoothing, masses=MASSES)[EXPANDED], log_scales(repeated, 1.2, smoothing)
    )


def test_entries_of_neighbours_by_mass():
    graph = KnnGraph(np.array([[2, 0, 1]], np.int32), np.array([[1.0, 2.0, 3.0]]))
    masses = np.array([2.0, 9.0, 3.0])
    assert weighted.slots(graph, masses, 6).indices.tolist() == [[2, 2, 2, 0, 0, 1]]
    assert weighted.slots(graph, masses, 28).indices.ravel().tolist().count(1) == 18  # all mass, 14, shares 28 entries
    assert weighted.slots(graph, None, 2).indices.tolist() == [[2, 0]]


@pytest.mark.parametrize("params", BACKENDS)
def test_a_weighted_map_of_distinct_rows_resembles_the_map_of_all_rows(params):
    rng = np.random.default_rng(3)
    distinct = np.concatenate([rng.normal(0, 0.4, (60, 5)), rng.normal(5, 1.5, (60, 5))])
    counts = np.where(np.arange(120) < 60, 3, 1)
    short = {"perplexity": 15, "density_neighbors": 15, "max_iter": 250, "random_state": 0, **params}
    weighted_map = DRSNE(**short).fit(distinct, sample_weight=counts)
    dense, sparse = weighted_map.input_concentration_[:60], weighted_map.input_concentration_[60:]
    plain = DRSNE(**short).fit(distinct)
    of_plain = plain.input_concentration_
    assert dense.mean() - sparse.mean() > of_plain[:60].mean() - of_plain[60:].mean() + 0.1
    assert np.corrcoef(weighted_map.input_concentration_, weighted_map.concentration_)[0, 1] > 0.8
    new = distinct[:5] + 0.01
    together = weighted_map.transform(new)
    assert np.array_equal(np.concatenate([weighted_map.transform(new[i : i + 1]) for i in range(5)]), together)
    assert np.linalg.norm(together - weighted_map.embedding_[:5], axis=1).max() < 0.3 * np.ptp(weighted_map.embedding_)


@pytest.mark.parametrize("params", BACKENDS)
def test_masses_of_one_change_nothing_and_others_are_checked(params):
    short = {"perplexity": 5, "density_neighbors": 5, "max_iter": 30, "random_state": 0, **params}
    assert np.array_equal(DRSNE(**short).fit_transform(X, sample_weight=np.ones(40)), DRSNE(**short).fit_transform(X))
    light = DRSNE(**short).fit(X, sample_weight=np.full(40, 0.5)).embedding_
    assert np.isfinite(light).all()
    with pytest.raises(ValueError, match="sample_weight must be above 0 for every row; got 0 in row 3"):
        DRSNE(**short).fit(X, sample_weight=np.where(np.arange(40) == 3, 0.0, 1.0))
    with pytest.raises(ValueError, match="support='symmetric'"):
        DRSNE(objective=Objective(support="directed"), **short).fit(X, sample_weight=MASSES)
    with pytest.raises(ValueError, match="sample_weight"):
        DRSNE(**short).fit(X, sample_weight=np.ones(3))


@pytest.mark.parametrize("params", BACKENDS)
@in_one_test("pair", [(0.1, 0.3), (0.3, 0.9), (1.1, 3.3)])
def test_fractional_weights_place_rows_independently_of_the_batch(pair, params):
    rows = np.random.default_rng(5).normal(size=(150, 4))
    weights = np.where(np.arange(150) % 2, *pair)
    model = DRSNE(perplexity=5, density_neighbors=5, max_iter=30, random_state=0, **params)
    model.fit(rows, sample_weight=weights)
    new = np.random.default_rng(6).normal(size=(20, 4))
    together = model.transform(new)
    assert all(np.array_equal(model.transform(new[i : i + 1]), together[i : i + 1]) for i in range(0, 20, 3))


@pytest.mark.parametrize("params", BACKENDS)
def test_few_heavy_rows(params):
    model = DRSNE(perplexity=20, density_neighbors=30, max_iter=30, random_state=0, **params)
    model.fit(X[:20], sample_weight=np.full(20, 10.0))
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X[20:25])).all()
    assert model.engine_ == ("exact" if params else "tree")
    with pytest.warns(UserWarning, match="the sample_weight of the other rows adds up to only about 2"):
        DRSNE(max_iter=10, **params).fit(X, sample_weight=np.full(40, 0.06))
    with pytest.raises(ValueError, match="between 1e-06 and 1e"):
        DRSNE(**params).fit(X, sample_weight=np.full(40, 1e9))


def test_a_path_takes_weights_as_a_fit_does():
    short = {"perplexity": 5, "density_neighbors": 5, "max_iter": 30, "random_state": 0}
    fitted = DRSNE(density_weight="auto", max_trustworthiness_drop=1.0, **short).fit(X, sample_weight=MASSES)
    path = density_path(X, AUTO_WEIGHTS, sample_weight=MASSES, **short)
    np.testing.assert_array_equal(path.embeddings, fitted.path_.embeddings)
    np.testing.assert_array_equal(path.input_concentration, fitted.input_concentration_)
    assert not np.array_equal(path.embeddings[0], density_path(X, [0], **short).embeddings[0])
    with pytest.raises(ValueError, match="sample_weight must be above 0 for every row; got -1"):
        density_path(X, sample_weight=-MASSES / MASSES.max(), **short)
