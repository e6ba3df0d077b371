"""Whole fits with every engine on maps that are hard for it."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_pair, each_value, in_one_test
from on_backends import engine_of
from scipy.spatial.distance import pdist, squareform

from drsne import DRSNE, Adam, Phase, Schedule, engines
from drsne.backends.numba import KIND

QUICK = {"perplexity": 5.0, "density_neighbors": 5, "max_iter": 60, "random_state": 0}


def kernel_of(engine):
    """The default kernel, or the fixed one where the engine has no other."""
    return "auto" if engines.load(engine).adaptive else "fixed"


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 0.3, (150, 5)), rng.normal(3, 1, (150, 5))])


@each_pair({"engine": engines.names(), "d": [1, 2]}, where=lambda engine, d: engines.load(engine).supports(d, KIND))
def test_three_points(engine, d):
    with pytest.warns(UserWarning, match="Lowered"):
        Y = DRSNE(d, engine=engine, kernel=kernel_of(engine), max_iter=60).fit_transform([[0.0, 1], [1, 0], [4, 5]])
    assert np.isfinite(Y).all()
    assert np.ptp(Y) > 0


@pytest.mark.parametrize("engine", engines.names())
@in_one_test(
    "start",
    [
        lambda rng: np.c_[np.linspace(-30, 30, 300), np.zeros(300)],  # a line
        lambda rng: rng.normal(size=(300, 2)) + 1e6 * (np.arange(300) % 2)[:, None],  # a million apart
        lambda rng: np.r_[np.zeros((299, 2)), [[1e-12, 0]]],  # nearly one place
        lambda rng: rng.normal(size=(300, 2)) * 1e-30,  # tiny
        lambda rng: rng.normal(size=(300, 2)) * 1e7,  # huge
    ],
)
def test_hard_starts(X, engine, start):
    start = start(np.random.default_rng(0))
    model = DRSNE(**QUICK, engine=engine, kernel=kernel_of(engine), init=start).fit(X)
    W = 1 / (1 + squareform(pdist(model.embedding_, "sqeuclidean")) / np.outer(model.scales_, model.scales_))
    np.fill_diagonal(W, 0.0)
    P = model.affinities_.tocoo()
    expected = (P.data * np.log(P.data / (W[P.row, P.col] / W.sum()))).sum()
    assert model.kl_divergence_ == pytest.approx(expected, abs=engines.load(engine).tolerance[1] + 1e-5)


def test_clusters_a_million_apart_take_no_million_nodes():
    import tracemalloc

    Y = np.random.default_rng(0).normal(size=(3000, 2)) + 1e6 * (np.arange(3000) % 2)[:, None]
    engine = engine_of("fft")
    engine.repulsion(Y, 0.0)  # compiled before memory is watched
    tracemalloc.start()
    Z, F = engine.repulsion(Y, 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert np.isfinite(F).all()
    # each cluster on its own, as no pair of the two matters
    apart = sum(engine_of("exact").repulsion(Y[part::2], 0.0)[0] for part in (0, 1))
    assert pytest.approx(apart, rel=1e-3) == Z


def test_fast_engines_end_in_maps_as_good_as_the_exact_one():
    from drsne.metrics import evaluate

    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(8, 10))
    X = centres[rng.integers(8, size=1000)] + rng.normal(size=(1000, 10)) * rng.uniform(0.3, 1.5, (1000, 1))
    scores = {}
    for name in ("exact", "fft", "tree"):
        model = DRSNE(engine=name, random_state=0, n_jobs=2).fit(X)
        scores[name] = {**evaluate(X, model.embedding_), "kl": model.kl_divergence_}
    for engine in ("fft", "tree"):
        assert scores[engine]["kl"] < 1.02 * scores["exact"]["kl"]
        for metric in ("trustworthiness", "concentration_correlation"):
            assert scores[engine][metric] > scores["exact"][metric] - 0.01


@pytest.mark.rotating(2)
@each_value({"engine, d": [("fft", 1), ("fft", 2), ("tree", 2), ("tree", 3)], "weight": [0.0, 5.0, 100.0, 0.0]})
def test_same_map_at_any_n_jobs(engine, d, weight):
    """With many points too: arranged in memory, sums renewed in turn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 4)) * np.linspace(1, 4, 9000)[:, None]
    schedule = Schedule(
        phases=(
            Phase(n_iter=8, optimizer=Adam(rate=1.0), exaggeration=4.0),
            Phase(n_iter=8, optimizer=Adam(rate=1.0), density=True),
        )
    )
    settings = {"perplexity": 10.0, "density_neighbors": 10, "schedule": schedule, "random_state": 0}
    one, three = (
        DRSNE(d, engine=engine, density_weight=weight, n_jobs=n_jobs, **settings).fit_transform(X) for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one, three)
