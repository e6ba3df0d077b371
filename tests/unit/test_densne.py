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

from drsne import DRSNE, DenSNE, Momentum, Phase, Schedule
from drsne.neighbors.search import knn

QUICK = {"perplexity": 10.0, "density_weight": 0.5, "max_iter": 60, "random_state": 0}


@pytest.fixture
def model(blobs):
    return DenSNE(**QUICK).fit(blobs), blobs


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


def test_names_pandas_clone_and_pickle(model, blobs):
    m, X = model
    frame = pd.DataFrame(blobs, index=[f"cell{i}" for i in range(120)]).rename(columns=str)
    out = DenSNE(**QUICK).set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == ["densne0", "densne1"]
    assert out.index.equals(frame.index)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(m)).embedding_, m.embedding_)
    np.testing.assert_array_equal(clone(m).fit(X).embedding_, m.embedding_)


@in_one_test(
    ("parameters", "kind", "message"),
    [
        ({"density_weight": "auto"}, TypeError, "density_weight must be a finite number of at least 0; got 'auto'"),
        ({"variance_shift": None}, TypeError, "variance_shift must be a finite number"),
        ({"density_fraction": 1.1}, ValueError, r"density_fraction must be at most 1; got 1.1. The default is 0.5"),
        ({"engine": "fft", "n_components": 3}, ValueError, "engine='fft'.*n_components=3"),
        ({"schedule": Schedule(phases=()), "density_fraction": 0.3}, ValueError, "fraction must .*default.*schedule"),
    ],
)
def test_bad_parameters(blobs, parameters, kind, message):
    with pytest.raises(kind, match=message):
        DenSNE(**parameters).fit(blobs)


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
    for d in (1, 3, 4):
        assert np.isfinite(DenSNE(d, **QUICK).fit(blobs).embedding_).all()
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


def test_radii_are_finite_where_all_affinity_sits_on_duplicates():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 12, axis=0)
    with pytest.warns(UserWarning, match="out of reach"):
        model = DenSNE(perplexity=5.0, max_iter=5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.input_log_radii_, 0.0)
    assert np.isfinite(model.embedding_).all()
