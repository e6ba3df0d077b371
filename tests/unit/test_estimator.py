from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import each_value
from sklearn.neighbors import kneighbors_graph

from drsne import DRSNE, Adam, Objective, Phase, Schedule
from drsne.neighbors.search import knn

QUICK = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 60, "random_state": 0}


@pytest.fixture
def model(blobs):
    return DRSNE(**QUICK).fit(blobs), blobs


def test_fitted_attributes(model):
    m, X = model
    n = len(X)
    assert m.embedding_.shape == (n, 2)
    assert m.affinities_.shape == (n, n)
    assert m.affinities_.format == "csr"
    assert m.affinities_.sum() == pytest.approx(1.0)
    assert m.precisions_.shape == m.input_concentration_.shape == m.concentration_.shape == (n,)
    assert (m.n_iter_, m.stopped_by_, m.n_features_in_) == (60, None, 6)
    assert not hasattr(m, "feature_names_in_")
    assert set(m.history_) == {"iteration", "kl", "concentration", "gradient_norm"}
    assert m.history_["iteration"].tolist() == [0, 50, 60]
    assert (m.history_["kl"][-1], m.history_["concentration"][-1]) == (m.kl_divergence_, m.concentration_loss_)
    assert (m.history_["gradient_norm"] > 0).all()


def test_concentrations_are_in_one_unit(model):
    m, X = model
    for log in (m.input_concentration_, m.concentration_):
        assert np.exp(log).mean() == pytest.approx(1.0, abs=1e-5)
    radii = knn(X, 10).distances.mean(axis=1)
    np.testing.assert_allclose(np.exp(m.input_concentration_), (1 / radii) / (1 / radii).mean(), rtol=0.02)
    low = np.linalg.norm(m.embedding_[:, None] - m.embedding_[knn(X, 10).indices], axis=2).mean(axis=1)
    np.testing.assert_allclose(np.exp(m.concentration_), (1 / low) / (1 / low).mean(), rtol=0.02)


def test_losses_can_be_recomputed(model):
    m, X = model
    D = ((m.embedding_[:, None] - m.embedding_[None]) ** 2).sum(axis=2)
    W = 1 / (1 + D / (m.scales_[:, None] * m.scales_[None]))
    np.fill_diagonal(W, 0.0)
    P = m.affinities_.toarray()
    stored = P > 0
    kl = (P[stored] * np.log(P[stored] / (W / W.sum())[stored])).sum()
    assert m.kl_divergence_ == pytest.approx(kl, rel=1e-5)
    whole = DRSNE(**QUICK, objective=Objective(target_quantile=0.0, small_groups=False)).fit(X)
    gap = whole.input_concentration_ - whole.concentration_
    assert whole.concentration_loss_ == pytest.approx((gap**2).mean(), rel=1e-9)


def test_density_term_does_what_it_says(blobs):
    plain = DRSNE(perplexity=10, density_neighbors=10, density_weight=0.0, random_state=0).fit(blobs)
    dense = DRSNE(perplexity=10, density_neighbors=10, random_state=0).fit(blobs)
    assert dense.concentration_loss_ < 0.3 * plain.concentration_loss_
    assert plain.kl_divergence_ < dense.kl_divergence_
    assert plain.history_["kl"][-1] < plain.history_["kl"][0]
    radius = [np.median(knn(dense.embedding_, 10).distances[40 * g : 40 * g + 40, -1]) for g in range(3)]
    assert radius[0] < radius[1] < radius[2]


@each_value({"d": [1, 2, 3, 4], "init": ["pca", "random"]})
def test_dimensions_and_starts(blobs, d, init):
    m = DRSNE(d, init=init, **QUICK).fit(blobs)
    assert m.embedding_.shape == (120, d)
    assert np.isfinite(m.embedding_).all()
    assert m.get_feature_names_out().tolist() == [f"drsne{c}" for c in range(d)]


def test_data_are_converted_once():
    class Frame(pd.DataFrame):
        count = 0

        def __array__(self, *args, **kwargs):
            Frame.count += 1
            return super().__array__(*args, **kwargs)

    class Number:
        count = 0

        def __init__(self, value):
            self.value = value

        def __float__(self):
            Number.count += 1
            return float(self.value)

    X = np.random.default_rng(0).integers(-50, 50, (50, 2))
    expected = DRSNE(**QUICK).fit(X.astype(float))
    made, frame = DRSNE(**QUICK), Frame({"a": X[:, 0], "b": X[:, 1].astype(float)})
    for method in ("fit", "transform"):
        Frame.count = 0
        getattr(made, method)(frame)
        assert Frame.count == 1
    np.testing.assert_array_equal(made.embedding_, expected.embedding_)
    np.testing.assert_array_equal(made.transform(frame), expected.transform(X))
    made = DRSNE(**QUICK).fit([[Number(value) for value in row] for row in X])
    assert Number.count == X.size
    np.testing.assert_array_equal(made.embedding_, expected.embedding_)


def test_start_from_an_array_goes_on_from_a_map(blobs):
    first = DRSNE(**QUICK).fit(blobs)
    start = first.embedding_.copy()
    none = Schedule(phases=(Phase(n_iter=1, optimizer=Adam(rate=1e-9)),), center=False)
    still = DRSNE(perplexity=10.0, density_neighbors=10, init=start, schedule=none).fit(blobs)
    np.testing.assert_allclose(still.embedding_, start, atol=1e-8)
    np.testing.assert_array_equal(start, first.embedding_)
    more = Schedule(phases=(Phase(n_iter=100, optimizer=Adam(rate=0.2), decay="cosine", density=True),))
    on = DRSNE(perplexity=10.0, density_neighbors=10, init=start, schedule=more).fit(blobs)

    def loss(m):
        return m.kl_divergence_ + m.density_weight * m.concentration_loss_

    assert loss(on) < loss(first)


def test_precomputed_equals_the_data(blobs):
    options = {**QUICK, "max_iter": 400}
    expected = DRSNE(**options).fit(blobs)
    D = np.sqrt(((blobs[:, None] - blobs[None]) ** 2).sum(axis=2))
    matrix = DRSNE(metric="precomputed", **options).fit(D)
    np.testing.assert_allclose(matrix.affinities_.toarray(), expected.affinities_.toarray(), rtol=1e-5, atol=1e-12)
    assert matrix.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=0.15)  # rounding alone moves it by .06
    graph = DRSNE(metric="precomputed", **options).fit(kneighbors_graph(blobs, 30, mode="distance"))
    np.testing.assert_allclose(graph.affinities_.toarray(), expected.affinities_.toarray(), rtol=1e-5, atol=1e-12)
    assert np.isfinite(graph.embedding_).all()
    assert graph.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=0.2)


def test_sparse_and_single_precision_input(blobs):
    expected = DRSNE(**QUICK).fit(blobs)
    sparse = DRSNE(**QUICK).fit(sp.csr_matrix(blobs))
    assert sparse.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=0.02)
    assert sparse.n_features_in_ == 6
    for kind in (sp.csc_matrix, sp.coo_array):
        np.testing.assert_array_equal(DRSNE(**QUICK).fit(kind(blobs)).embedding_, sparse.embedding_)
    single = DRSNE(**QUICK).fit(blobs.astype(np.float32))
    assert single.embedding_.dtype == np.float32
    assert expected.embedding_.dtype == np.float64


def test_callbacks_see_every_iteration_and_can_stop(blobs):
    seen = []

    def watch(iteration, embedding, losses):
        seen.append((iteration, embedding.shape, set(losses)))
        embedding[:] = np.nan  # a copy: harmless

    watched = DRSNE(callbacks=watch, **{**QUICK, "max_iter": 12}).fit(blobs)
    assert [at for at, _, _ in seen] == list(range(1, 13))
    np.testing.assert_array_equal(watched.embedding_, DRSNE(**{**QUICK, "max_iter": 12}).fit(blobs).embedding_)
    assert all(entry[1:] == ((120, 2), {"kl", "concentration"}) for entry in seen)
    maps = []
    m = DRSNE(callbacks=[lambda t, Y, losses: maps.append(Y), lambda t, Y, losses: t == 7], **QUICK).fit(blobs)
    assert m.n_iter_ == 7
    assert m.stopped_by_ == "callback"
    np.testing.assert_array_equal(m.embedding_, maps[-1])


def test_a_second_interrupt_keeps_the_map_too(blobs, monkeypatch):
    from drsne.terms.problem import Problem

    evaluate = Problem.evaluate
    calls = []

    def impatient(self, Y, **options):
        calls.append(Y)
        if len(calls) > 20:
            raise KeyboardInterrupt
        return evaluate(self, Y, **options)

    monkeypatch.setattr(Problem, "evaluate", impatient)
    m = DRSNE(**QUICK)
    with pytest.warns(UserWarning, match="Interrupted after 20 iterations"):
        m.fit(blobs)
    assert m.stopped_by_ == "interrupt"
    assert np.isfinite(m.embedding_).all()
    assert np.isnan(m.kl_divergence_)


def test_overflow_is_an_error_that_keeps_the_last_map(blobs):
    wild = Schedule(phases=(Phase(n_iter=50, optimizer=Adam(rate=1e308)),))
    m = DRSNE(perplexity=10.0, density_neighbors=10, schedule=wild)
    with pytest.raises(FloatingPointError, match=r"embedding_ is the last finite map"), np.errstate(all="ignore"):
        m.fit(blobs)
    assert m.stopped_by_ == "overflow"
    assert np.isfinite(m.embedding_).all()


def test_verbose_shows_a_bar_on_standard_error(blobs, capsys):
    DRSNE(verbose=1, **QUICK).fit(blobs)
    out, err = capsys.readouterr()
    assert out == ""
    assert "60/60" in err
    assert "kl" in err
    DRSNE(**QUICK).fit(blobs)
    assert capsys.readouterr().err == ""


def test_weight_zero_never_uses_the_density_term(blobs):
    few, many = (DRSNE(**{**QUICK, "density_neighbors": k}, density_weight=0.0).fit(blobs).embedding_ for k in (2, 40))
    np.testing.assert_array_equal(few, many)


def test_what_a_dataclass_covers_is_not_given_twice(blobs):
    for covering, name in ((Objective(), "density_exponent"), (Schedule(phases=()), "max_iter")):
        settings = type(covering).__name__.lower()
        with pytest.raises(ValueError, match=rf"{name} must .*default.*{settings}"):
            DRSNE(**{settings: covering, name: 10}).fit(blobs)
