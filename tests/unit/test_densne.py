from __future__ import annotations

import hashlib
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import in_one_test
from sklearn.base import clone
from sklearn.neighbors import kneighbors_graph

from drsne import DRSNE, Adam, DenSNE, Momentum, Phase, Schedule
from drsne.neighbors.search import knn

QUICK = {"perplexity": 10.0, "density_weight": 0.5, "max_iter": 60, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(4.0 * g, 0.25 * 4.0**g, (40, 6)) for g in range(3)])
    return DenSNE(**QUICK).fit(X), X


def test_fitted_attributes(model):
    m, X = model
    n = len(X)
    assert m.embedding_.shape == (n, 2)
    assert m.affinities_.sum() == pytest.approx(1.0)
    assert m.precisions_.shape == m.input_log_radii_.shape == m.log_radii_.shape == (n,)
    assert (m.n_iter_, m.n_features_in_, m.engine_, m.pca_) == (60, 6, "exact", None)
    assert set(m.history_) == {"iteration", "kl", "correlation", "gradient_norm"}
    assert m.history_["iteration"].tolist() == [0, 50, 60]
    assert m.history_["kl"][-1] == m.kl_divergence_
    assert m.history_["correlation"][-1] == m.correlation_


def test_radii_and_terms_can_be_recomputed(model):
    m, X = model
    P = m.affinities_.toarray().astype(np.float64)
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(m.input_log_radii_, np.log((P * D).sum(axis=1) / P.sum(axis=1)), rtol=1e-5)
    d = ((m.embedding_[:, None] - m.embedding_[None]) ** 2).sum(axis=2)
    W = 1 / (1 + d)
    np.fill_diagonal(W, 0.0)
    stored = m.affinities_.toarray() > 0
    r = np.log((stored * W * d).sum(axis=1) / (stored * W).sum(axis=1))
    np.testing.assert_allclose(m.log_radii_, r, rtol=1e-4, atol=1e-4)
    rho = np.cov(m.input_log_radii_, r)[0, 1] / m.input_log_radii_.std(ddof=1) / np.sqrt(r.var(ddof=1) + 0.1)
    assert m.correlation_ == pytest.approx(rho, abs=1e-4)
    kl = (P[stored] * np.log(P[stored] / (W / W.sum())[stored])).sum()
    assert m.kl_divergence_ == pytest.approx(kl, rel=1e-4)


def test_density_term_does_what_it_says(blobs):
    maps = [DenSNE(perplexity=10, density_weight=w, random_state=0).fit(blobs) for w in (0.0, 0.1, 1.0)]
    rho = [m.correlation_ for m in maps]
    assert rho[0] + 0.1 < rho[1] < rho[2]
    assert maps[0].kl_divergence_ < maps[2].kl_divergence_
    radius = [np.median(knn(maps[2].embedding_, 10).distances[40 * g : 40 * g + 40, -1]) for g in range(3)]
    assert radius[0] < radius[1] < radius[2]


@pytest.mark.parametrize("schedule", [None, Schedule(phases=(Phase(n_iter=80, optimizer=Momentum(rate=0.5)),))])
def test_weight_zero_is_the_same_tsne_as_drsne(blobs, schedule):
    options = {"perplexity": 10.0, "density_weight": 0.0, "random_state": 0}
    options |= {"max_iter": 120} if schedule is None else {"schedule": schedule}
    np.testing.assert_array_equal(DenSNE(**options).fit(blobs).embedding_, DRSNE(**options).fit(blobs).embedding_)


@in_one_test(
    ("parameters", "kind", "message"),
    [
        ({"density_weight": -0.1}, ValueError, "density_weight must be a finite number of at least 0; got -0.1"),
        ({"density_weight": "auto"}, TypeError, "density_weight must be a finite number of at least 0; got 'auto'"),
        ({"density_weight": np.nan}, ValueError, "density_weight must be a finite number"),
        ({"density_fraction": -0.1}, ValueError, "density_fraction must be a finite number of at least 0; got -0.1"),
        ({"density_fraction": 1.1}, ValueError, r"density_fraction must be at most 1; got 1.1. The default is 0.5"),
        ({"variance_shift": -1}, ValueError, "variance_shift must be a finite number of at least 0; got -1"),
        ({"variance_shift": None}, TypeError, "variance_shift must be a finite number"),
        ({"precision": "half"}, ValueError, "precision must be one of 'double', 'single'; got 'half'"),
        ({"n_components": 0}, ValueError, "n_components must be an integer of at least 1; got 0"),
        ({"perplexity": "30"}, TypeError, "perplexity must be a finite number"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1; got 0"),
        ({"engine": "gpu"}, ValueError, "engine must be one of"),
        ({"engine": "fft", "n_components": 3}, ValueError, "engine='fft'.*n_components=3"),
        ({"metric": "near"}, ValueError, "metric"),
        ({"init": "zero"}, ValueError, "init must be one of"),
        ({"callbacks": 3}, TypeError, "callbacks must be a callable or a list of callables; got 3"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0; got 0"),
        ({"schedule": 7}, TypeError, "schedule must be a drsne.Schedule or None; got 7"),
        (
            {"schedule": Schedule(phases=()), "density_fraction": 0.3},
            ValueError,
            "density_fraction must .*default.*schedule",
        ),
    ],
)
def test_bad_parameters(blobs, parameters, kind, message):
    m = DenSNE(**parameters)  # nothing is checked here
    with pytest.raises(kind, match=message):
        m.fit(blobs)


def test_density_fraction_is_the_share_of_iterations_with_the_term(blobs):
    maps = {}
    for fraction in (0.0, 0.2, 0.8):
        m = DenSNE(**{**QUICK, "density_fraction": fraction, "n_iter_exaggeration": 5})
        seen = []
        m.set_params(callbacks=lambda t, Y, losses, seen=seen: seen.append(Y)).fit(blobs)
        maps[fraction] = seen
    parted = {f: next(t for t in range(60) if (maps[f][t] != maps[0.0][t]).any()) for f in (0.2, 0.8)}
    assert parted == {0.2: 48, 0.8: 12}


def test_every_n_jobs_gives_the_same_map():
    X = np.random.default_rng(0).normal(size=(900, 20)) * np.linspace(1, 4, 900)[:, None]
    for options in ({}, {"n_components": 3}, {"engine": "fft"}, {"precision": "double"}):
        seen = {
            hashlib.sha256(
                DenSNE(n_jobs=n_jobs, density_weight=1.0, max_iter=40, random_state=0, **options)
                .fit(X)
                .embedding_.tobytes()
            ).hexdigest()
            for n_jobs in (1, 3)
        }
        assert len(seen) == 1


def test_fast_engines_reach_the_same_terms():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(8.0 * g, 0.25 * 3.0**g, (200, 6)) for g in range(3)])
    terms = {}
    for name in ("exact", "fft", "tree"):
        # The divergence of a single map depends on rounding, by as much as on the seed (.02).
        models = [DenSNE(engine=name, max_iter=300, random_state=seed).fit(X) for seed in range(3)]
        terms[name] = np.mean([(model.correlation_, model.kl_divergence_) for model in models], axis=0)
    for name in ("fft", "tree"):
        np.testing.assert_allclose(terms[name], terms["exact"], atol=0.025)


def test_names_pandas_clone_and_pickle(model, blobs):
    m, X = model
    frame = pd.DataFrame(blobs, index=[f"cell{i}" for i in range(120)]).rename(columns=str)
    out = DenSNE(**QUICK).set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == ["densne0", "densne1"]
    assert out.index.equals(frame.index)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(m)).embedding_, m.embedding_)
    np.testing.assert_array_equal(clone(m).fit(X).embedding_, m.embedding_)


@in_one_test("d", [1, 2, 3, 4])
def test_dimensions(blobs, d):
    m = DenSNE(d, **QUICK).fit(blobs)
    assert m.embedding_.shape == (120, d)
    assert np.isfinite(m.embedding_).all()


def test_other_inputs(blobs):
    expected = DenSNE(**QUICK).fit(blobs)
    D = np.sqrt(((blobs[:, None] - blobs[None]) ** 2).sum(axis=2))
    graph = kneighbors_graph(blobs, 30, mode="distance")
    near = knn(blobs, 30)
    for m in (
        DenSNE(metric="precomputed", **QUICK).fit(D),
        DenSNE(metric="precomputed", **QUICK).fit(graph),
        DenSNE(neighbors=(near.indices, near.distances), **QUICK).fit(blobs),
        DenSNE(**QUICK).fit(sp.csr_matrix(blobs)),
    ):
        np.testing.assert_allclose(m.input_log_radii_, expected.input_log_radii_, rtol=1e-4, atol=1e-5)
        assert np.isfinite(m.embedding_).all()
    single = DenSNE(**QUICK, keep_affinities=False, pca_components=3).fit(blobs.astype(np.float32))
    assert single.embedding_.dtype == np.float32
    assert not hasattr(single, "affinities_")
    assert single.pca_.n_components == 3


@pytest.mark.filterwarnings("ignore:perplexity=:UserWarning")
@pytest.mark.filterwarnings("ignore:Lowered:UserWarning")
@pytest.mark.parametrize("kind", ["duplicates", "few", "simplex", "one place"])
def test_degenerate_data_have_finite_maps(kind):
    rng = np.random.default_rng(0)
    X = {
        "duplicates": np.vstack([np.zeros((60, 4)), rng.normal(size=(40, 4))]),
        "few": rng.normal(size=(5, 3)),
        "simplex": np.eye(40),
        "one place": np.ones((20, 3)),
    }[kind]
    m = DenSNE(perplexity=10.0, density_weight=1.0, max_iter=60, random_state=0).fit(X)
    for values in (m.embedding_, m.log_radii_, m.input_log_radii_, m.kl_divergence_, m.correlation_):
        assert np.isfinite(values).all()
    if kind in ("simplex", "one place"):
        assert m.correlation_ == 0.0


def test_callbacks_and_early_stop(blobs):
    seen = []

    def watch(iteration, embedding, losses):
        seen.append((iteration, set(losses)))
        return iteration == 7

    m = DenSNE(callbacks=watch, **QUICK).fit(blobs)
    assert m.n_iter_ == 7
    assert m.stopped_by_ == "callback"
    assert seen == [(t, {"kl", "correlation"}) for t in range(1, 8)]


def test_interrupt_keeps_the_last_map(blobs):
    maps = []

    def interrupt(iteration, embedding, losses):
        maps.append(embedding)
        if iteration == 43:
            raise KeyboardInterrupt

    m = DenSNE(callbacks=interrupt, **QUICK)
    with pytest.warns(UserWarning, match=r"Interrupted after 43 iterations; embedding_ is the last map"):
        m.fit(blobs)
    assert m.n_iter_ == 43
    assert m.stopped_by_ == "interrupt"
    np.testing.assert_array_equal(m.embedding_, maps[-1])
    assert np.isfinite(m.correlation_)


def test_overflow_is_an_error_that_keeps_the_last_map(blobs):
    wild = Schedule(phases=(Phase(n_iter=50, optimizer=Adam(rate=1e308), density=True),))
    m = DenSNE(perplexity=10.0, schedule=wild)
    with (
        pytest.raises(FloatingPointError, match=r"Lower learning_rate, density_weight or the scale"),
        np.errstate(all="ignore"),
    ):
        m.fit(blobs)
    assert np.isfinite(m.embedding_).all()


def test_progress_bar(blobs, capsys):
    DenSNE(verbose=1, **QUICK).fit(blobs)
    assert "den-SNE" in (shown := capsys.readouterr().err)
    assert "correlation" in shown


def test_radii_are_finite_where_all_affinity_sits_on_duplicates():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 12, axis=0)
    with pytest.warns(UserWarning, match="out of reach"):
        model = DenSNE(perplexity=5.0, max_iter=5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.input_log_radii_, 0.0)
    assert np.isfinite(model.embedding_).all()
