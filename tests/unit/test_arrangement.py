"""The arrangement term: its gradient and invariances, the regions of every kind of data, and fits with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from on_backends import TORCH, torch_backend
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

import drsne
from drsne import DRSNE, DenSNE, metrics
from drsne.backends.numpy import NumpyBackend
from drsne.regions import Arranged
from drsne.terms.arrangement import Arrangement, standardized
from drsne.terms.term import Moment

pytestmark = pytest.mark.filterwarnings("ignore:perplexity=10 is out of reach")
QUICK = {"perplexity": 10, "density_neighbors": 10, "random_state": 0}


def term_of(rng, n=60, count=6, masses=None, **options):
    """A term whose regions and distances are random."""
    regions = np.append(np.arange(count), rng.integers(count, size=n - count))
    sizes = np.bincount(regions, masses, count).astype(float)
    target, pair_weights = standardized(squareform(pdist(rng.normal(size=(count, 3)))), sizes)
    shares = (np.ones(n) if masses is None else masses) / sizes[regions]
    return Arrangement(regions=regions, shares=shares, target=target, pair_weights=pair_weights, **options)


def moment(Y, backend=None, losses=True, total=None):
    return Moment(Y, Y, None, backend or NumpyBackend(), float(len(Y) if total is None else total), losses=losses)


def value_and_gradient(term, Y, total=None):
    gradient = np.zeros_like(Y)
    value = term.add_gradient(gradient, 1.0, term.start(), moment(Y, total=total))
    return value, gradient / (len(Y) if total is None else total)


def guarded(term, Y):
    """The loss whose gradient the term has: the spread in the map is kept away from zero."""
    places = np.stack([(term.shares * column) for column in Y.T], axis=1)
    centres = np.stack([np.bincount(term.regions, column) for column in places.T], axis=1)
    lengths = squareform(pdist(centres))
    away = lengths - (term.pair_weights * lengths).sum()
    spread = (term.pair_weights * away**2).sum() + term.guard**2
    return 1.0 - (term.pair_weights * term.target * away).sum() / np.sqrt(spread)


def numerical(function, Y, step=1e-5):
    gradient = np.empty_like(Y)
    for at in np.ndindex(*Y.shape):
        moved = Y.copy()
        moved[at] += step
        above = function(moved)
        moved[at] -= 2 * step
        gradient[at] = (above - function(moved)) / (2 * step)
    return gradient


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("guard", [0.0, 5.0])
def test_gradient(d, guard):
    rng = np.random.default_rng(d)
    Y, masses = 3.0 * rng.normal(size=(60, d)), rng.uniform(0.5, 3.0, 60)
    term = term_of(rng, masses=masses, guard=guard)
    value, gradient = value_and_gradient(term, Y)
    np.testing.assert_allclose(gradient, numerical(lambda Y: guarded(term, Y), Y), atol=1e-8)
    assert abs(gradient).max() > 1e-4
    assert value == pytest.approx(guarded(replace(term, guard=0.0), Y), abs=1e-9)


def test_invariances():
    rng = np.random.default_rng(0)
    Y, term = rng.normal(size=(60, 2)), term_of(rng)
    value, gradient = value_and_gradient(term, Y)
    turned = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    there, moved = value_and_gradient(term, Y @ turned + 7.0)
    assert there == pytest.approx(value)
    np.testing.assert_allclose(moved, gradient @ turned, atol=1e-12)
    assert value_and_gradient(term, 1e3 * Y)[0] == pytest.approx(value)  # the correlation has no unit
    np.testing.assert_allclose(gradient.sum(axis=0), 0.0, atol=1e-12)
    same = term.regions == term.regions[0]
    np.testing.assert_allclose(gradient[same], np.broadcast_to(gradient[0], (same.sum(), 2)))  # a region is one body
    small = value_and_gradient(term, 1e-4 * Y)[1]  # at the start of a fit, the guard keeps the gradient small
    assert abs(small).max() < 2.0 * abs(gradient).max()


def test_a_row_with_a_mass_counts_as_so_many_rows():
    rng = np.random.default_rng(1)
    masses = rng.integers(1, 4, 60).astype(float)
    term, Y = term_of(rng, masses=masses), rng.normal(size=(60, 2))
    copies = np.repeat(np.arange(60), masses.astype(int))
    sizes = np.bincount(term.regions[copies])
    repeated = replace(term, regions=term.regions[copies], shares=1.0 / sizes[term.regions[copies]])
    value, gradient = value_and_gradient(term, Y, total=masses.sum())
    there, of_copies = value_and_gradient(repeated, Y[copies])
    assert there == pytest.approx(value)
    np.testing.assert_allclose((gradient / masses[:, None])[copies], of_copies, atol=1e-14)


@pytest.mark.skipif(not TORCH, reason="needs PyTorch")
def test_torch():
    rng = np.random.default_rng(0)
    Y, term, backend = rng.normal(size=(60, 2)), term_of(rng), torch_backend()
    value, gradient = value_and_gradient(term, Y)
    there, on_device = term.on(backend), backend.received(Y)
    found = backend.received(np.zeros_like(Y))
    assert there.add_gradient(found, 1.0, there.start(), moment(on_device, backend)) == pytest.approx(value)
    np.testing.assert_allclose(found.cpu().numpy() / len(Y), gradient, atol=1e-12)


def groups(rng, n=60):
    """Groups on a line, in five dimensions."""
    return np.vstack([rng.normal(size=(n, 5)) + 8.0 * g * np.eye(5)[0] for g in range(5)])


def test_groups_are_arranged_as_in_the_data():
    X = groups(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    shuffled = 1e-4 * rng.normal(size=(5, 2)).repeat(60, axis=0) + 1e-5 * rng.normal(size=(300, 2))
    maps = [DRSNE(arrangement_weight=w, init=shuffled, **QUICK).fit(X) for w in (0.0, "auto")]
    before, after = (spearmanr(pdist(X), pdist(model.embedding_))[0] for model in maps)
    assert after > before + 0.05
    assert maps[1].arrangement_ > 0.9
    assert np.isnan(maps[0].arrangement_)
    assert maps[0].regions_ is None
    assert maps[1].regions_.shape == (300,)
    assert metrics.trustworthiness(X, maps[1].embedding_) > metrics.trustworthiness(X, maps[0].embedding_) - 0.01


def test_off():
    X = groups(np.random.default_rng(0))
    plain = DRSNE(density_weight=0, max_iter=50, **QUICK).fit(X)
    assert np.array_equal(
        DRSNE(density_weight=0, arrangement_weight="auto", max_iter=50, **QUICK).fit(X).embedding_, plain.embedding_
    )
    assert "arrangement" not in plain.history_
    assert not hasattr(DenSNE(), "arrangement_weight")
    assert drsne.presets.paper(n_samples=300, lam=0.01, k=10).get("arrangement_weight", 0) == 0
    few = DRSNE(arrangement_weight=1, max_iter=20, perplexity=5, density_neighbors=5, random_state=0).fit(
        X[:30]
    )  # too few for regions
    assert few.regions_ is None


def prepared_term(X, n_jobs=1, kind="auto", sample_weight=None, **settings):
    objective = drsne.Objective(terms=(Arranged(1.0, kind),))
    settings = {"perplexity": 10, "density_neighbors": 10, **settings}
    problem = drsne.prepare(X, objective, n_jobs=n_jobs, sample_weight=sample_weight, **settings)
    return next(term for term in problem.loss.terms if term.name == "arrangement")


KINDS = {
    "dense": lambda X: (X, {}),
    "cosine": lambda X: (X, {"metric": "cosine"}),
    "another metric": lambda X: (X, {"metric": "manhattan"}),
    "sparse": lambda X: (sp.csr_matrix(X), {}),
    "distances": lambda X: (squareform(pdist(X)), {"metric": "precomputed"}),
    "weights": lambda X: (X, {"sample_weight": np.linspace(1.0, 3.0, len(X))}),
    "geodesic": lambda X: (X, {"kind": "geodesic"}),
}


@pytest.mark.parametrize("name", KINDS)
def test_regions_of_every_kind_of_data(name):
    X = groups(np.random.default_rng(0))
    data, settings = KINDS[name](X)
    term, again = (prepared_term(data, n_jobs=n, **settings) for n in (1, 3))
    assert np.array_equal(term.regions, again.regions)
    assert np.array_equal(term.target, again.target)
    count = len(term.target)
    assert 4 <= count <= 15
    assert np.array_equal(np.unique(term.regions), np.arange(count))  # no region is empty
    assert (np.bincount(term.regions) >= 3).all()
    of_groups = np.stack(
        [np.bincount(np.repeat(np.arange(5), 60)[term.regions == r], minlength=5) for r in range(count)]
    )
    assert of_groups.max(axis=1).sum() >= (0.0 if name == "cosine" else 0.9) * 300  # regions are parts of groups
    if name not in ("cosine", "geodesic"):
        centres = np.stack([X[term.regions == r].mean(axis=0) for r in range(count)])
        off = ~np.eye(count, dtype=bool)
        assert spearmanr(squareform(pdist(centres))[off], term.target[off])[0] > 0.85


@pytest.mark.parametrize("settings", [{}, {"kind": "geodesic"}, {"metric": "manhattan"}])
def test_regions_do_not_depend_on_units(settings):
    rng = np.random.default_rng(0)
    integers = rng.integers(0, 2, (900, 12)).astype(float)  # most rows are equally far from several centres
    for X in (groups(rng), integers):
        found = [prepared_term(factor * X, **settings) for factor in (1.0, 3.7e5, 1e152)]
        for term in found[1:]:
            assert np.array_equal(found[0].regions, term.regions)
            np.testing.assert_allclose(found[0].target, term.target, atol=1e-6)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis", "sqeuclidean", "minkowski", "hamming"])
def test_regions_with_other_metrics(metric):
    X = groups(np.random.default_rng(0))
    term = prepared_term(X if metric != "hamming" else np.round(X), metric=metric)
    assert len(np.unique(term.regions)) == len(term.target) >= 4
    if metric in ("sqeuclidean", "minkowski"):
        assert np.array_equal(term.regions, prepared_term(X).regions)
        sparse = prepared_term(sp.csr_matrix(X), metric=metric)
        assert np.array_equal(sparse.regions, prepared_term(sp.csr_matrix(X)).regions)


def test_a_heavy_row_leaves_the_regions():
    X, weights = groups(np.random.default_rng(0)), np.ones(300)
    weights[0] = 1e6
    term = prepared_term(X, sample_weight=weights)
    assert len(term.target) >= 10
    heavy = term.regions == term.regions[0]
    assert term.shares[heavy].sum() == pytest.approx(1.0)
    assert term.shares[0] > 0.99


def test_data_without_regions():
    for X in (np.ones((200, 3)), np.repeat(np.eye(3), 60, axis=0)):
        for kind in ("metric", "geodesic"):
            objective = drsne.Objective(terms=(Arranged(1.0, kind),))
            problem = drsne.prepare(X, objective, perplexity=10, density_neighbors=10)
            assert "arrangement" not in problem.names


def test_schedule():
    first, second, density = DRSNE()._schedule(300, 1.0, drsne.Objective()).phases
    assert first.arrangement_factor(0) == density.arrangement_factor(5) == 0.0
    factors = [second.arrangement_factor(t) for t in range(second.n_iter)]
    assert factors[:300] == [1.0] * 300
    assert np.diff(factors[-200:]) == pytest.approx(-1 / 200)
    assert factors[-1] == pytest.approx(1 / 200)
    own = drsne.Schedule(phases=(drsne.Phase(n_iter=5, optimizer=drsne.Adam(rate=1.0)),))
    with pytest.raises(ValueError, match="arrangement_weight must be 0 or 'auto' with a schedule"):
        DRSNE(schedule=own, arrangement_weight=1).fit(np.zeros((20, 2)))


def test_parts_of_a_graph():
    """Parts that no path joins all have regions, and are far apart."""
    X = np.vstack([np.random.default_rng(g).normal(size=(60, 3)) + 1e3 * g for g in range(3)])
    term = prepared_term(X, kind="geodesic")
    part = np.array([np.flatnonzero(term.regions == r)[0] // 60 for r in range(len(term.target))])
    assert set(part) == {0, 1, 2}
    joined = part[:, None] == part[None, :]
    assert term.target[joined].max() < term.target[~joined].min()


def test_regions_of_a_graph_of_neighbours():
    X = groups(np.random.default_rng(0))
    D = squareform(pdist(X))
    near = np.argsort(D, axis=1)[:, 1:41]
    graph = sp.csr_matrix(
        (np.take_along_axis(D, near, 1).ravel(), (np.repeat(np.arange(300), 40), near.ravel())), D.shape
    )
    term = prepared_term(graph, metric="precomputed")
    assert all(len(set(np.repeat(np.arange(5), 60)[term.regions == r])) == 1 for r in range(len(term.target)))


def roll(n, rng):
    """A swiss roll, and the true coordinates along its sheet."""
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    height = 21 * rng.random(n)
    along = 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))
    return np.c_[t * np.cos(t), height, t * np.sin(t)] + rng.normal(0, 0.05, (n, 3)), np.c_[along, height]


SHEETS = {
    "roll": (lambda rng: roll(1500, rng)[0], True),
    "S": (
        lambda rng: (lambda t: np.c_[np.sin(t), 2 * rng.random(1500), np.sign(t) * (np.cos(t) - 1)])(
            3 * np.pi * (rng.random(1500) - 0.5)
        ),
        True,
    ),
    "plane": (lambda rng: np.c_[rng.random((1500, 2)) * [3, 1], rng.normal(0, 0.01, 1500)], False),
    "circle": (
        lambda rng: (
            (lambda t: np.c_[np.cos(t), np.sin(t)])(2 * np.pi * rng.random(800)) + rng.normal(0, 0.02, (800, 2))
        ),
        False,
    ),
    "noise": (lambda rng: rng.normal(size=(800, 8)), False),
    "groups": (lambda rng: groups(rng, n=100), False),
    "branches": (
        lambda rng: (
            np.vstack([np.outer(10 * rng.random(200), v) for v in np.eye(6)[:4]]) + rng.normal(0, 0.2, (800, 6))
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", SHEETS)
def test_auto_unrolls_sheets_and_nothing_else(name):
    make, unrolled = SHEETS[name]
    X = make(np.random.default_rng(0))
    chosen = prepared_term(X, perplexity=30, density_neighbors=30)
    straight, along = (
        prepared_term(X, perplexity=30, density_neighbors=30, kind=kind) for kind in ("metric", "geodesic")
    )
    expected, other = (along, straight) if unrolled else (straight, along)
    assert np.array_equal(chosen.regions, expected.regions)
    assert not np.array_equal(chosen.regions, other.regions)


def test_lengths_of_paths_are_those_along_the_sheet():
    X, along = roll(1500, np.random.default_rng(0))
    term = prepared_term(X, kind="geodesic", perplexity=30)
    centres = (
        np.stack([np.bincount(term.regions, column) for column in along.T], 1) / np.bincount(term.regions)[:, None]
    )
    near = (term.target < 1.4) & ~np.eye(len(centres), dtype=bool)  # longer ones are all equal
    assert np.corrcoef(squareform(pdist(centres))[near], term.target[near])[0, 1] > 0.985


def test_remote_rows_do_not_shrink_the_map():
    """Beyond a limit, larger distances in the data do not matter."""
    X = groups(np.random.default_rng(0), n=100)
    targets = []
    for far in (1e2, 1e4):
        there = np.vstack([X, far + np.random.default_rng(1).normal(size=(40, 5))])
        targets.append(prepared_term(there).target)
        assert targets[-1].max() < 4.0
    Y = DRSNE(arrangement_weight=3, **QUICK).fit_transform(there)
    low, high = np.quantile(Y, [0.01, 0.99], axis=0)
    assert ((Y.max(axis=0) - Y.min(axis=0)) / (high - low)).max() < 2.0


def test_path_begins_with_plain_tsne():
    X = groups(np.random.default_rng(0))
    paths = [drsne.density_path(X, weights=(0.0, 0.05, 1.0), arrangement_weight=w, **QUICK) for w in (0.0, 1.0)]
    first, second, third = (np.array_equal(*maps) for maps in zip(*(path.embeddings for path in paths), strict=True))
    assert first
    assert not second
    assert not third
    for weight, arranged, same in ((0.05, 1.0, True), (0.05, "auto", True), (1.0, 1.0, True)):
        maps = drsne.density_path(X, weights=(0.0, weight), arrangement_weight=arranged, **QUICK).embeddings
        fitted = DRSNE(density_weight=weight, arrangement_weight=arranged, **QUICK).fit(X)
        assert np.array_equal(maps[1], fitted.embedding_) == same


def test_saved(tmp_path):
    model = DRSNE(objective=drsne.Objective(terms=(Arranged(1.0),)), **QUICK).fit(groups(np.random.default_rng(0)))
    model.save(tmp_path / "model")
    loaded = drsne.load(tmp_path / "model")
    assert np.array_equal(loaded.regions_, model.regions_)
    assert loaded.objective == model.objective


def test_update_and_new_rows():
    rng = np.random.default_rng(0)
    X = groups(rng)
    model = DRSNE(arrangement_weight=1.0, **QUICK).fit(X)
    assert np.isfinite(model.transform(X[:3] + 0.1)).all()
    old = model.embedding_
    model.update(np.vstack([X, X[:5] + 0.1]), np.append(np.arange(300), np.full(5, -1)), stiffness=10.0)
    assert model.regions_.shape == (305,)
    assert np.linalg.norm(model.embedding_[:300] - old, axis=1).max() < 0.2 * np.ptp(old)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"arrangement_weight": -1}, "arrangement_weight must be a finite number of at least 0; got -1"),
        ({"arrangement_weight": "often"}, "arrangement_weight must be one of 'auto' or a number of at least 0"),
        ({"arrangement": "flat"}, "arrangement must be one of 'auto', 'geodesic', 'metric'; got 'flat'"),
    ],
)
def test_refused(params, message):
    with pytest.raises(ValueError, match=message):
        DRSNE(**params).fit(np.zeros((20, 2)))
