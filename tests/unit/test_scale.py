"""What large data rely on: points in another order in memory, sums renewed in turn, options, memory, PCA."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from covering import in_one_test
from problems import DOUBLE, relative_error, small_problem, some_map, with_
from scipy.sparse import csr_matrix

import drsne
from drsne import DRSNE, Objective
from drsne.backends.numba import KIND
from drsne.backends.numba.ordering import along_curve
from drsne.backends.numba.threads import Workers
from drsne.estimators import memory

QUICK = {"perplexity": 8.0, "density_neighbors": 8, "max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 0.3, (70, 60)), rng.normal(3, 1, (70, 60))])


@in_one_test("d", [1, 2, 3, 4])
def test_a_curve_visits_every_point_and_keeps_near_points_near(d):
    Y = np.random.default_rng(0).normal(size=(500, d))
    order = along_curve(Y, Workers()).order
    assert sorted(order.tolist()) == list(range(500))
    step = np.linalg.norm(np.diff(Y[order], axis=0), axis=1).mean()
    assert step < 0.7 * np.linalg.norm(np.diff(Y, axis=0), axis=1).mean()


@pytest.mark.parametrize("support", ["symmetric", "directed"])
@pytest.mark.parametrize("d", [2, 3])
def test_the_order_in_memory_changes_nothing(support, d, monkeypatch):
    from drsne.terms import problem as shared

    problem, plain = (small_problem(with_(DOUBLE, support=support), n=120) for _ in range(2))
    Y = some_map(n=120, d=d)
    monkeypatch.setattr(shared, "LARGE_MAP", 100)
    assert problem.reordered_every == 50
    state = problem.start()
    order = problem.reorder(Y, state)
    at = problem.evaluate(Y, losses=True, state=state, iteration=0)
    ordered = problem.evaluate(order.reordered(Y), losses=True, state=state, ordered=True)
    np.testing.assert_array_equal(order.restored(ordered.gradient), at.gradient)
    expected = plain.evaluate(Y, losses=True)
    assert relative_error(at.gradient, expected.gradient) < 1e-11
    assert at.losses["kl"] == pytest.approx(expected.losses["kl"], rel=1e-12)
    assert at.losses["concentration"] == pytest.approx(expected.losses["concentration"], rel=1e-12)
    np.testing.assert_allclose(
        problem.of_points(Y, state)["concentration"], plain.of_points(Y)["concentration"], rtol=1e-10
    )
    for pairs in ("objective", "all"):
        G = problem.evaluate(Y, pairs=pairs, state=state, iteration=1).gradient
        assert relative_error(G, plain.evaluate(Y, pairs=pairs).gradient) < 1e-11


def test_the_compiled_density_term_of_many_points(monkeypatch):
    from drsne.terms import concentration

    problem, Y = small_problem(Objective(embedding_weight=0.7), n=300, k=12), some_map(n=300)
    expected = problem.evaluate(Y, losses=True)
    monkeypatch.setattr(concentration, "LARGE_MAP", 100)
    found = problem.evaluate(Y, losses=True)
    assert relative_error(found.gradient, expected.gradient) < 1e-9
    assert found.losses["concentration"] == pytest.approx(expected.losses["concentration"], rel=1e-9)


def test_shares_renewed_in_turn_are_the_whole_sum_where_the_map_stands():
    sampled = small_problem(with_(DOUBLE, sampled_neighbors=3), n=60, k=11)
    whole = small_problem(with_(DOUBLE, sampled_neighbors=None), n=60, k=11)
    state, Y = sampled.start(), some_map(n=60)
    expected = whole.evaluate(Y, losses=True)
    for iteration in range(6):
        at = sampled.evaluate(Y, losses=True, state=state, iteration=iteration)
        assert relative_error(at.gradient, expected.gradient) < 1e-12
        assert at.losses["concentration"] == pytest.approx(expected.losses["concentration"], rel=1e-12)
    assert state.memories[0][0].sums.table.n_shares == 4


def test_shares_follow_a_map_that_moves():
    """After s iterations at a new place all shares are renewed; the losses are right at once."""
    sampled = small_problem(with_(DOUBLE, sampled_neighbors=4), n=60, k=12)
    whole = small_problem(with_(DOUBLE, sampled_neighbors=None), n=60, k=12)
    old, new = some_map(n=60), some_map(n=60, seed=9)
    state = sampled.start()
    sampled.evaluate(old, state=state, iteration=0)
    expected = whole.evaluate(new, losses=True)
    gaps = []
    for iteration in range(1, 6):
        at = sampled.evaluate(new, losses=True, state=state, iteration=iteration)
        assert at.losses["concentration"] == pytest.approx(expected.losses["concentration"], rel=1e-12)
        gaps.append(relative_error(at.gradient, expected.gradient))
    assert gaps[0] > 1e-3  # a third is new
    assert gaps[-1] < 1e-12
    # an iteration that does not follow on the last one renews all at once
    again = sampled.evaluate(old, state=state, iteration=50)
    assert relative_error(again.gradient, whole.evaluate(old).gradient) < 1e-12


def test_sampling_begins_with_many_points():
    assert Objective().sample_of(30, 5000) is None
    assert Objective().sample_of(30, 10_000) == 10
    assert Objective().sample_of(300, 10_000) == 50
    assert Objective(sampled_neighbors=None).sample_of(300, 10**6) is None
    # Map neighbours change under way: old shares of them tore maps apart (trustworthiness .966 instead of .989).
    assert Objective(embedding_weight=0.7).sample_of(30, 10_000) is None
    assert Objective(embedding_weight=0.7, sampled_neighbors=5).sample_of(30, 10_000) == 5
    with pytest.raises(ValueError, match="sampled_neighbors must be an integer of at least 1"):
        Objective(sampled_neighbors=0)
    with pytest.raises(ValueError, match="sampled_neighbors"):
        Objective(sampled_neighbors="some")


def test_affinities_can_be_dropped(X):
    model = DRSNE(**QUICK).fit(X)
    assert model.affinities_.dtype == np.float32
    assert model.affinities_.indices.dtype == np.int32
    assert model.affinities_.sum(dtype=np.float64) == pytest.approx(1.0, abs=1e-6)
    Y = model.embedding_
    model.set_params(keep_affinities=False).fit(X)
    assert not hasattr(model, "affinities_")
    np.testing.assert_array_equal(model.embedding_, Y)


@in_one_test(
    ("options", "error", "message"),
    [
        ({"engine_options": {"theta": 0.3}, "engine": "fft"}, ValueError, "got 'theta'.*accuracy"),
        ({"engine_options": {"theta": 0.3}, "engine": "exact"}, ValueError, "It has none"),
        ({"engine_options": {"accuracy": "best"}}, ValueError, r"engine_options\['accuracy'\] must be one of"),
        ({"engine_options": {"theta": 1.5}}, ValueError, r"engine_options\['theta'\] must be between 0"),
        ({"engine_options": {"theta": "small"}}, TypeError, r"engine_options\['theta'\] must be a finite number"),
        ({"engine_options": "accuracy"}, TypeError, "engine_options must be a dict or None"),
        ({"engine_options": {"speed": 1}}, ValueError, "engine='auto'.*got 'speed'.*accuracy, theta"),
        ({"engine": "fft", "n_components": 3}, ValueError, "engine='fft'.*n_components=3.*exact, tree"),
        ({"engine": "tree", "n_components": 4}, ValueError, "engine='tree'.*n_components=4.*exact"),
        ({"engine": "auto", "engine_options": {"theta": 0.0}, "init": "many"}, ValueError, "'theta'.*engine='fft'"),
        ({"neighbors": "junk"}, TypeError, "neighbors must be a pair"),
        ({"init": np.zeros((3, 2))}, ValueError, r"init must have shape \(n_samples, n_components\)=\(140, 2\)"),
        ({"keep_affinities": 1}, TypeError, "keep_affinities must be True or False"),
        ({"pca_components": 0}, ValueError, "pca_components must be an integer of at least 1"),
        ({"pca_components": "all"}, ValueError, "pca_components must be"),
        ({"pca_components": 5, "metric": "precomputed"}, ValueError, "pca_components must be None with metric="),
    ],
)
def test_wrong_options_are_refused(X, options, error, message, monkeypatch):
    """Before anything is searched."""
    from drsne import preparation

    monkeypatch.setattr(preparation, "nearest", lambda *a, **k: pytest.fail("too late"))
    if isinstance(options.get("init"), str):  # as if there were many samples
        options = {**options, "init": "pca"}
        for crossover in KIND.crossover:
            monkeypatch.setitem(crossover, 2, 100)
    with pytest.raises(error, match=message):
        DRSNE(**{**QUICK, **options}).fit(X)


def test_options_reach_the_engine_that_knows_them(X):
    fine = DRSNE(**QUICK, engine="tree", engine_options={"theta": 0.0}).fit(X)
    exact = DRSNE(**QUICK, engine="exact").fit(X)
    assert (fine.engine_, exact.engine_, DRSNE(**QUICK).fit(X).engine_) == ("tree", "exact", "exact")
    np.testing.assert_allclose(fine.embedding_, exact.embedding_, atol=1e-2 * np.ptp(exact.embedding_))
    # "auto" takes exact here, which has no use for an accuracy of the mesh
    DRSNE(**QUICK, engine_options={"accuracy": "high"}).fit(X)


@in_one_test(("factor", "offset"), [(1e200, 0.0), (1e160, 0.0), (1e-170, 0.0), (1.0, 1e8), (1e-3, 1e6)])
def test_principal_components_of_extreme_data(factor, offset):
    from drsne.pca import fitted_pca, scores

    X = np.random.default_rng(0).normal(size=(200, 60)) * np.logspace(1, -1, 60)
    with Workers(1) as workers:
        plain = scores(fitted_pca(X, 3), X, workers)
    Z = X * factor + offset
    with np.errstate(all="raise"), Workers(1) as workers:
        got = scores(fitted_pca(Z, 3), Z, workers) / factor
    signs = np.sign((got * plain).sum(axis=0))
    np.testing.assert_allclose(got * signs, plain, atol=1e-5 if offset == 0 else 1e-2)


def test_principal_components_of_nothing(X):
    for flat in (np.ones((30, 70)), csr_matrix((30, 2500))):
        with np.errstate(all="raise"):
            assert drsne.pca.fitted_pca(flat, 5) is None
    wide = csr_matrix(np.random.default_rng(0).normal(size=(30, 2500)))
    with pytest.warns(UserWarning, match="Lowered pca_components from 30 to 29"):
        drsne.pca.fitted_pca(wide, 30)


def test_principal_components_only_where_asked_for(X):
    from sklearn.decomposition import PCA

    assert DRSNE(**QUICK).fit(X).pca_ is None
    model = DRSNE(**QUICK, pca_components=5).fit(X)
    assert model.pca_.n_components_ == 5
    assert model.n_features_in_ == 60
    by_hand = DRSNE(**QUICK).fit(PCA(5, svd_solver="full").fit_transform(X))
    np.testing.assert_allclose(model.input_concentration_, by_hand.input_concentration_, atol=1e-6)
    assert DRSNE(**QUICK, pca_components="auto").fit(X).pca_.n_components_ == 50
    assert DRSNE(**QUICK, pca_components="auto").fit(X[:, :30]).pca_ is None
    with pytest.warns(UserWarning, match="Lowered pca_components from 80 to 60"):
        DRSNE(**QUICK, pca_components=80).fit(X)


@pytest.mark.filterwarnings("ignore:Lowered")
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_rows_with_large_offsets_stay_apart_in_principal_components(kind, tmp_path):
    rng = np.random.default_rng(0)
    dense = 1e6 * np.repeat(rng.normal(size=(3, 60)), 5, axis=0) + 0.1 * rng.normal(size=(15, 60))
    rows = kind(dense)
    model = DRSNE(**QUICK, pca_components=2).fit(rows)
    assert len(np.unique(model.embedding_, axis=0)) == 15
    np.testing.assert_array_equal(model.transform(rows), model.embedding_)
    by_hand = DRSNE(**QUICK).fit(dense @ model.pca_.components_.T)
    np.testing.assert_allclose(model.input_concentration_, by_hand.input_concentration_, atol=1e-2)
    model.save(tmp_path / "m", include_data=False)
    np.testing.assert_array_equal(drsne.load(tmp_path / "m", X=rows).transform(rows), model.embedding_)


def test_principal_components_of_sparse_data(X):
    dense = DRSNE(**QUICK, pca_components=5).fit(X)
    sparse = DRSNE(**QUICK, pca_components=5).fit(csr_matrix(X))
    np.testing.assert_allclose(dense.input_concentration_, sparse.input_concentration_, atol=1e-6)


def test_memory_estimate_grows_as_it_should():
    def of(n, d=50, **params):
        return drsne.memory_estimate(n, d, **params)

    assert of(400_000) - of(200_000) == pytest.approx(2 * (of(200_000) - of(100_000)), rel=0.01)
    assert of(100_000, density_neighbors=300) > of(100_000)
    assert of(100_000, perplexity=100) > of(100_000)
    assert of(100_000, 2000) > of(100_000, 2000, pca_components=50)
    assert of(1_000_000) < 8e9
    for n in (20_000, 1_000_000):
        adaptive, fixed = (of(n, kernel=kernel, density_weight=1.0) for kernel in ("adaptive", "fixed"))
        assert adaptive >= fixed  # where affinities are calibrated, the kernel plays no part yet
    assert of(20_000, kernel="adaptive") > of(20_000, kernel="fixed")
    assert of(20_000, kernel="auto", density_weight=0) == of(20_000, kernel="fixed", density_weight=0)
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        of(0)
    with pytest.raises(TypeError, match="speed"):
        of(10, speed=1)


@pytest.mark.rotating(3)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(("n", "d", "options"), [(20_000, 20, {}), (9_000, 400, {"density_neighbors": 200})])
def test_memory_estimate_is_near_the_peak(n, d, options):
    code = (
        "import numpy as np, drsne; "
        f"X = np.random.default_rng(0).normal(size=({n}, {d})); "
        f"drsne.DRSNE(max_iter=6, n_jobs=2, keep_affinities=False, **{options}).fit(X); "
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak = int(done.stdout) * 1024
    assert 0.6 < drsne.memory_estimate(n, d, **options) / peak < 1.6


def test_a_fit_that_will_not_fit_is_announced(X, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.warns(UserWarning, match=r"GB of memory.*free"):
        DRSNE(**QUICK).fit(X)
    monkeypatch.setattr(memory, "available", lambda: None)  # a system that does not tell
    DRSNE(**QUICK).fit(X)


def test_one_blas_thread_while_we_work():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with Workers(2), Workers(1):
        assert set(threads()) <= {1}
    assert threads() == before
