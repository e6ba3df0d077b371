"""Bad input gets one clear error; hard input gets a finite map."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import in_one_test

from drsne import DRSNE

QUICK = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 100, "random_state": 0}
FIXED = {"kernel": "fixed", "neighborhoods": "input", "density_weight": 2.1}


def data(n=60, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@in_one_test(
    ("parameters", "kind", "message"),
    [
        ({"perplexity": float("nan")}, ValueError, "perplexity must be a finite number of at least 1; got nan"),
        ({"perplexity": "30"}, TypeError, "perplexity must be a finite number of at least 1; got '30'"),
        ({"perplexity": True}, TypeError, "perplexity must be a finite number"),
        ({"perplexity": 10**400}, ValueError, "perplexity must be a finite number"),
        ({"density_weight": -1.0}, ValueError, "density_weight must be .*; got -1.0. Pass 0 for plain t-SNE"),
        ({"density_weight": "much"}, ValueError, "density_weight must be one of .*auto.*; got 'much'"),
        ({"density_neighbors": None}, TypeError, "density_neighbors must be an integer"),
        ({"engine": "quantum"}, ValueError, "engine must be one of 'auto', .*'exact'.*; got 'quantum'"),
        ({"metric": "nearness"}, ValueError, "metric must be one of .*'cosine'.*; got 'nearness'"),
        ({"objective": {"support": "directed"}}, TypeError, "objective must be a drsne.Objective or None"),
        ({"schedule": "slow"}, TypeError, "schedule must be a drsne.Schedule or None"),
        ({"callbacks": [1]}, TypeError, "callbacks must be a callable or a list of callables; got 1"),
        ({"init": None}, ValueError, "init must be 'pca', 'random' or an array .*; got None"),
        ({"init": [["1", "2"]] * 120}, ValueError, "init must hold numbers; got text"),
        ({"init": np.zeros((120, 3))}, ValueError, r"init must have shape .*=\(120, 2\); got \(120, 3\)"),
        ({"init": np.full((120, 2), np.nan)}, ValueError, "init .*NaN"),
        ({"init": np.zeros((120, 2))}, ValueError, "init must not .*same place"),
        ({"init": [[1, 2], [3]]}, ValueError, "init must be 'pca', 'random' or an array"),
        ({"init": sp.csr_matrix((120, 2))}, ValueError, "init must be 'pca', 'random' or an array"),
        ({"device": "cpu:3"}, ValueError, "device must be None, 'cpu'.*; got 'cpu:3'"),
        ({"n_jobs": np.array([1, 2])}, ValueError, "n_jobs must be None or an integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0; got 0"),
        ({"n_jobs": 2**63}, ValueError, "n_jobs must be None or an integer from"),
        ({"verbose": "loud"}, TypeError, "verbose must be an integer of at least 0; got 'loud'"),
        ({"random_state": "seed"}, ValueError, "random_state must be None, an integer .*; got 'seed'"),
        ({"random_state": -1}, ValueError, "random_state must be None, an integer .*; got -1"),
    ],
)
def test_bad_parameters(parameters, kind, message):
    model = DRSNE(**parameters)  # nothing is checked here
    with pytest.raises(kind, match=message):
        model.fit(data(120))


@in_one_test(
    ("X", "message"),
    [
        (data(2), "minimum of 3 is required"),
        (np.where(data() > 2, np.nan, data()), "X must be finite; got NaN"),
        (np.array([["a", "b"]] * 10), "X must hold numbers; got text"),
        ([["1.0", "2.0"]] * 10, "X must hold numbers; got text"),
        (np.array([["1.0", 2.0]] * 10, dtype=object), "X must hold numbers; got text"),
        (pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}), "X must hold numbers; got text"),
        (np.array([["1.0", "2.0"]] * 10, dtype=np.dtypes.StringDType()), "X must hold numbers; got text"),
        (np.zeros((10, 2), dtype="datetime64[s]"), "X must hold numbers; got text or dates"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        DRSNE(**QUICK).fit(X)


def finite(X, **changes):
    model = DRSNE(**{**QUICK, **changes}).fit(X)
    assert model.embedding_.shape == (len(X), 2)
    assert np.isfinite(model.embedding_).all()
    for name in ("input_concentration_", "concentration_", "precisions_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite([model.kl_divergence_, model.concentration_loss_]).all()
    assert np.exp(model.input_concentration_).mean() == pytest.approx(1.0, rel=1e-5)
    assert np.abs(model.embedding_.mean(axis=0)).max() <= 1e-5 * np.ptp(model.embedding_)
    return model


def test_sizes_too_large_are_lowered_with_one_warning_of_the_caller():
    with pytest.warns(UserWarning, match=r"Lowered .*perplexity from 30 to 6.333.*") as caught:
        DRSNE(max_iter=5, density_neighbors=300).fit_transform(data(20))
    assert len(caught) == 1
    assert "density_neighbors from 300 to 19" in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"Lowered density_neighbors from 300 to 59.*60 samples") as caught:
        finite(data(60), density_neighbors=300)
    assert len(caught) == 1
    for n in (3, 4, 5, 10):
        with pytest.warns(UserWarning, match="Lowered"):
            finite(data(n), perplexity=30.0, density_neighbors=30)


def test_a_perplexity_the_neighbours_can_hold_is_kept():
    """Up to a third of the neighbours; there is no cliff where they run out."""
    from sklearn.datasets import make_blobs

    from drsne.metrics import trustworthiness

    for n in (31, 60, 91):
        X = make_blobs(n, 10, centers=3, random_state=0)[0]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = finite(X, perplexity=30.0, max_iter=500)
        lowered = [f"perplexity from 30 to {(n - 1) / 3:.4g}" in str(warning.message) for warning in caught]
        assert lowered == ([True] if n < 91 else [])
        others = [DRSNE(**{**model.get_params(), "random_state": seed}) for seed in (1, 2)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            maps = [model.embedding_, *(other.fit_transform(X) for other in others)]
        # one seed in a few ends in a poor minimum at such sizes
        assert np.median([trustworthiness(X, Y, 5) for Y in maps]) > 0.8


def test_many_duplicates():
    with pytest.warns(UserWarning, match="perplexity=10 is out of reach for 60 of 60 points"):
        model = finite(np.ones((60, 4)))
    assert len(np.unique(model.embedding_, axis=0)) > 30  # not one dot on top of another
    np.testing.assert_array_equal(model.input_concentration_, 0.0)
    X = np.repeat(data(6), 20, axis=0)
    with pytest.warns(UserWarning, match="out of reach for 120 of 120"):
        finite(X)
    finite(np.repeat(data(40), 3, axis=0))
    with pytest.warns(UserWarning, match="out of reach for 70 of 100"):
        finite(np.vstack([np.zeros((70, 5)), data(30) + 9]))


def test_odd_shapes():
    finite(np.c_[data(), np.full(60, 7.0), np.zeros(60)])  # constant columns
    finite(data(60, 1))  # one column
    finite(data(30, 200), perplexity=5.0)  # more columns than rows


def test_far_outlier_and_far_islands():
    X = data(80)
    X[0] = 1e6
    outlier = finite(X)
    others = outlier.embedding_[1:]
    assert np.linalg.norm(others - others.mean(axis=0), axis=1).max() < 1e3
    X = data(80)
    X[40:] += 1e5
    islands = finite(X).embedding_
    near = np.linalg.norm(islands[:, None] - islands[None], axis=2)
    np.fill_diagonal(near, np.inf)
    assert ((near.argmin(axis=1) < 40) == (np.arange(80) < 40)).all()


def test_kinds_of_array(tmp_path):
    """All arrays are converted, and none is changed."""
    X = 10 * data(120)
    np.save(tmp_path / "X.npy", X)
    frozen = X.copy()
    frozen.setflags(write=False)
    same = np.asfortranarray(X), X.astype(object), pd.DataFrame(X), X.tolist(), X.astype(">f8"), frozen
    kinds = [*same, np.load(tmp_path / "X.npy", mmap_mode="r"), X.astype(int), X > 0, X[::2], X.astype(np.float16)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "perplexity=", UserWarning)  # signs repeat
        for kind in kinds:
            found, plain = (DRSNE(**{**QUICK, "max_iter": 30}).fit(each) for each in (kind, np.array(kind, np.float64)))
            np.testing.assert_array_equal(found.embedding_, plain.embedding_)
        started = finite(frozen, init=frozen[:, :2])
    np.testing.assert_array_equal(started.embedding_, finite(X, init=X[:, :2]).embedding_)
    np.testing.assert_array_equal(X, frozen)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    distances = D.copy()
    finite(D, metric="precomputed")
    np.testing.assert_array_equal(D, distances)


def test_more_dimensions_than_points():
    X = data(6)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    for given, metric in ((X, "euclidean"), (D, "precomputed"), (sp.csr_matrix(D), "precomputed")):
        model = DRSNE(8, metric=metric, perplexity=1.5, density_neighbors=2, max_iter=40, random_state=0).fit(given)
        assert model.embedding_.shape == (6, 8)
        assert np.isfinite(model.embedding_).all()


@in_one_test("metric", ["seuclidean", "mahalanobis", "jaccard", "minkowski"])
def test_metrics_that_need_more_than_the_data(metric):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "perplexity=", UserWarning)  # few different distances
        finite(np.round(data(60)), metric=metric)


def test_distances_that_are_none():
    X = data(60)
    X[3] = 1.0
    with pytest.raises(ValueError, match=r"metric='correlation' gave .* nan"):
        finite(X, metric="correlation")
    with pytest.raises(ValueError, match="Distances must be finite and non-negative"):
        finite(X, metric=lambda a, b: -1.0)
    with pytest.raises(ValueError, match=r"metric must .*sparse.*got 'canberra'"):
        finite(sp.csr_matrix(X), metric="canberra")


def test_wild_settings_end_in_a_map_or_in_one_error():
    """No raw numpy warning on the way: they are errors here."""
    finite(data(60), density_exponent=500.0, density_weight=1e-6)
    for wild in ({"density_weight": 1e300}, {"density_exponent": 1e300}):
        with pytest.raises(FloatingPointError, match=r"embedding_ is the last finite map\. Lower"):
            finite(data(60), **wild)


def test_subclasses_with_their_own_parameters():
    class Quick(DRSNE):
        def __init__(self, perplexity=5.0):
            super().__init__(perplexity=perplexity, density_neighbors=5, max_iter=20, random_state=0)

    plain = DRSNE(perplexity=7.0, density_neighbors=5, max_iter=20, random_state=0).fit(data(60))
    np.testing.assert_array_equal(Quick(perplexity=7.0).fit(data(60)).embedding_, plain.embedding_)

    class Sub(DRSNE):
        def __init__(self, extra=1, **others):
            super().__init__(**others)
            self.extra = extra

    assert Sub(extra=2, perplexity=7.0).perplexity == 7.0


def test_no_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    finite(data(60), verbose=1)
