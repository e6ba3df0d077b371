"""What users get wrong: each mistake has one message that says what was wrong and what to do."""

from __future__ import annotations

import functools
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from covering import in_one_test

from drsne import DRSNE, DenSNE, density_path, metrics, neighbors

QUICK = {"perplexity": 5.0, "density_neighbors": 5, "max_iter": 12, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 0.3, (40, 6)), rng.normal(3, 1, (40, 6))])


class AnnData:
    """Has the attributes by which the class that scanpy works with is known."""

    obsm, n_obs = {}, 3

    def __array__(self, *_, **__):
        pytest.fail("converted to an array")


def test_masked_values_are_not_lost(X):
    masked = np.ma.array(X, mask=np.zeros(X.shape, bool))
    np.testing.assert_array_equal(DRSNE(**QUICK).fit_transform(masked), DRSNE(**QUICK).fit_transform(X))
    masked[3, 2] = np.ma.masked
    with pytest.raises(ValueError, match="masked values; got 1"):
        DRSNE(**QUICK).fit(masked)


def test_missing_values_are_counted_and_their_columns_named(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame = frame.copy()  # otherwise the next line could change X
    frame.loc[3, "b"] = frame.loc[[5, 6], "e"] = np.nan
    with pytest.raises(ValueError, match=r"NaN in 3 of 480 values, in columns 'b', 'e'"):
        DRSNE(**QUICK).fit(frame)
    with pytest.raises(ValueError, match=r"NaN in 3 of 480 values, in columns 1, 4"):
        DRSNE(**QUICK).fit(frame.to_numpy())
    with pytest.raises(ValueError, match=r"infinity in 1 of 480 values, in column 0"):
        DRSNE(**QUICK).fit(np.where(np.arange(480).reshape(80, 6) == 12, np.inf, X))
    nullable = pd.DataFrame(X.round().astype(int), columns=list("abcdef")).astype("Int64")
    nullable.loc[[1, 2], "c"] = pd.NA
    with pytest.raises(ValueError, match="NaN in 2 of 480 values, in column 'c'"):
        DRSNE(**QUICK).fit(nullable)


def test_columns_of_text_are_named(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["cell type"] = pd.Categorical(["B"] * 80)
    frame["day"] = pd.Timestamp("2020-01-01")
    frame["name"] = ["row"] * 80
    with pytest.raises(ValueError, match=r"in columns 'cell type', 'day', 'name'. Encode or drop them"):
        DRSNE(**QUICK).fit(frame)


def test_a_misspelt_name_gets_a_suggestion(X):
    meant = {"neighbourhoods": "neighborhoods", "perplexty": "perplexity", "dens_lambda": "density_weight"}
    for name, ours in meant.items():
        with pytest.raises(TypeError, match=f"DRSNE has no parameter '{name}'. Did you mean '{ours}'"):
            DRSNE(**{name: 3})
    with pytest.raises(TypeError, match=r"no parameter 'zzz'. It has .*perplexity"):
        DenSNE(zzz=1)
    with pytest.raises(TypeError, match="DenSNE has no parameter 'density_neighbors'") as raised:
        DenSNE(density_neighbors=3)
    assert "mean 'density_neighbors'" not in str(raised.value)  # which only DRSNE has
    with pytest.raises(ValueError, match=r"no parameter 'perplexty'. Did you mean 'perplexity'"):
        DRSNE().set_params(perplexty=3)
    assert DRSNE().set_params(perplexity=3.0).perplexity == 3.0
    for metric, ours in (("cosin", "cosine"), ("Euclidean", "euclidean")):
        with pytest.raises(ValueError, match=f"got '{metric}'. Did you mean '{ours}'"):
            DRSNE(metric=metric).fit(X)


def test_connectivities_are_not_taken_for_distances(X):
    near = neighbors.knn(X, 12)
    rows = np.repeat(np.arange(len(X)), 12)
    weights = np.exp(-(near.distances - near.distances[:, :1]))  # 1 at the nearest, as in UMAP's graph
    connectivities = sp.csr_matrix((weights.ravel(), (rows, near.indices.ravel())), shape=(len(X), len(X)))
    distances = sp.csr_matrix((near.distances.ravel(), (rows, near.indices.ravel())), shape=(len(X), len(X)))
    settings = QUICK | {"perplexity": 4.0, "metric": "precomputed"}
    with pytest.warns(UserWarning, match="looks like similarities"):
        DRSNE(**settings).fit(connectivities)
    DRSNE(**settings).fit(distances)  # warnings are errors
    with pytest.warns(UserWarning, match="neighbors looks like a graph of similarities"):
        DRSNE(**QUICK | {"perplexity": 4.0}, neighbors=connectivities).fit(X)


def test_full_matrices_that_are_no_distances(X):
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    settings = QUICK | {"metric": "precomputed"}
    DRSNE(**settings).fit(np.sqrt(square))
    with pytest.raises(ValueError, match=r"zeros on its diagonal .*not similarities"):
        DRSNE(**settings).fit(np.exp(-square))
    uneven = np.sqrt(square) * np.linspace(1, 2, len(X))
    with pytest.warns(UserWarning, match="not symmetric"):
        DRSNE(**settings).fit(uneven)


def test_a_graph_that_is_too_small_says_how_to_build_it(X):
    near = neighbors.knn(X, 15)
    with pytest.warns(UserWarning, match=r"perplexity from 20 to 5, because the graph has only 15 neighbours") as seen:
        model = DRSNE(**QUICK | {"perplexity": 20.0}, neighbors=near).fit(X)
    assert "n_neighbors=61" in str(seen[0].message)
    assert model.affinities_.shape == (80, 80)
    graph = sp.csr_matrix((near.distances.ravel(), near.indices.ravel(), np.arange(0, 1201, 15)), shape=(80, 80))
    sizes = {"perplexity": 10.0, "density_neighbors": 20}
    with pytest.warns(UserWarning, match=r"perplexity from 10 to 5 and density_neighbors from 20 to 15") as seen:
        DRSNE(metric="precomputed", **QUICK | sizes).fit(graph)
    assert len(seen) == 1


def test_the_rule_for_the_perplexity_does_not_jump(X):
    """Just above the largest perplexity, the map is that of the largest one."""
    most = (len(X) - 1) / 3
    allowed = DRSNE(**QUICK | {"perplexity": most}).fit(X)
    with pytest.warns(UserWarning, match="Lowered perplexity"):
        lowered = DRSNE(**QUICK | {"perplexity": most + 0.1}).fit(X)
    np.testing.assert_array_equal(lowered.embedding_, allowed.embedding_)


def test_verbose_two_logs_every_step(X, caplog):
    DRSNE(**QUICK, verbose=1).fit(X)
    assert not caplog.records
    for fit in (DRSNE(**QUICK, verbose=2).fit, functools.partial(density_path, weights=[0, 1], **QUICK, verbose=2)):
        caplog.clear()
        fit(X)
        assert logging.getLogger("drsne").level == logging.NOTSET
        messages = [record.getMessage() for record in caplog.records]
        for word in ("neighbours of each of 80 samples", "affinities", "Engine", "iterations", "Losses"):
            assert any(word in message for message in messages), word


def test_verbose_two_is_seen_without_any_setup(X):
    code = (
        "import numpy as np, drsne; X = np.random.default_rng(0).normal(size=(40, 3));"
        "drsne.DRSNE(perplexity=5, density_neighbors=5, max_iter=4, verbose=2).fit(X);"
        "import logging; print(logging.getLogger('drsne').handlers)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "drsne: Found 15 neighbours of each of 40 samples" in done.stderr
    assert done.stdout.strip() == "[]"


def test_a_broken_kernel_cache_costs_a_compilation_and_no_more(tmp_path):
    # One kernel is enough, because all of them are compiled by the same decorator.
    code = (
        "import numpy as np; from drsne.backends.numba.kernels.steps import shift;"
        "from drsne.backends.numba.kernels._turns import whole;"
        "Y = np.ones((3, 2)); shift(Y, np.array([0.5, 2.0]), whole(3));"
        "print(Y.sum(), sum(shift.compiled.stats.cache_hits.values()))"
    )

    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
        )

    assert run().stdout.strip() == "-1.5 0"
    assert run().stdout.strip() == "-1.5 1"
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    done = run()
    assert done.stdout.strip() == "-1.5 0", done.stderr


@pytest.mark.parametrize(("scale", "of"), [(1e-310, DRSNE), (1e-160, DenSNE)])
def test_data_whose_precisions_overflow_are_refused(X, scale, of):
    model = of(perplexity=5.0, max_iter=12, random_state=0)
    for data in (X * scale, sp.csr_matrix(X * scale)):
        with pytest.raises(ValueError, match=r"largest distance is .*Rescale X"):
            model.fit(data)
    assert np.isfinite(model.fit(X * scale / np.abs(X * scale).max()).precisions_).all()


@pytest.mark.filterwarnings("ignore:perplexity=5 is out of reach")
def test_rows_that_are_nearly_equal_may_have_infinite_precisions(X):
    X = X.copy()
    X[:30] = 1e-160 * np.random.default_rng(0).normal(size=(30, 6))
    model = DRSNE(**QUICK).fit(X)
    assert np.isinf(model.precisions_[:30]).any()
    assert np.isfinite(model.precisions_[30:]).all()
    assert np.isfinite(model.embedding_).all()


def test_sparse_data_of_any_scale_are_taken_as_dense_ones_are():
    X = np.random.default_rng(0).integers(0, 5, (60, 6)).astype(float) * 1e300
    dense, sparse = (DRSNE(**QUICK).fit(data) for data in (X, sp.csr_matrix(X)))
    assert sparse.kl_divergence_ == pytest.approx(dense.kl_divergence_, rel=0.05)
    assert np.isfinite(sparse.embedding_).all()


def test_a_start_beyond_single_precision_is_refused_for_such_data(X):
    start = np.random.default_rng(0).normal(size=(len(X), 2)) * 1e300
    with pytest.raises(ValueError, match="init must be within the range of float32"):
        DRSNE(**QUICK, init=start).fit(X.astype(np.float32))


def test_views_of_anndata_arrays_are_arrays(X):
    """A slice of an AnnData object has arrays of a subclass that anndata defines."""

    class ArrayView(np.ndarray):
        __module__ = "anndata._core.views"

    np.testing.assert_array_equal(DRSNE(**QUICK).fit_transform(X.view(ArrayView)), DRSNE(**QUICK).fit_transform(X))


def test_a_generator_is_a_source_of_random_numbers(X):
    def fitted(generator):
        return DRSNE(**QUICK | {"init": "random", "random_state": generator}).fit_transform(X)

    generator = np.random.default_rng(3)
    first, second = fitted(generator), fitted(generator)
    np.testing.assert_array_equal(fitted(np.random.default_rng(3)), first)
    assert not np.array_equal(first, second)
    one, other = (metrics.stress(X, first, max_samples=40, random_state=np.random.default_rng(0)) for _ in range(2))
    assert one == other


def test_what_is_not_taken_for_similarities():
    """All neighbours on a lattice have the same distance, and no similarity is above 1."""
    from drsne.neighbors.graph import looks_like_similarities

    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    D = np.linalg.norm(grid[:, None] - grid[None], axis=2)
    assert not looks_like_similarities(sp.csr_matrix(np.where(D <= 1.0, D, 0.0)))
    graph = sp.csr_matrix(np.tile([1.0, 0.5, 0.25], (30, 1)))
    assert looks_like_similarities(graph)
    graph.data[1] = 1.5
    assert not looks_like_similarities(graph)


@in_one_test(
    ("data", "kind", "words"),
    [
        ("data.csv", TypeError, "X must be .*data.csv.*load it first"),
        (AnnData(), TypeError, "X must be .*AnnData.*X_pca"),
        ({"a": [1.0]}, TypeError, "got a dict"),
        (iter([[1.0, 2.0]]), TypeError, "Pass a list of rows"),
        (np.zeros(5, [("a", float), ("b", float)]), ValueError, "structured array"),
        (sp.csr_matrix([[np.nan, 1.0], [1.0, 0.0], [2.0, 2.0]]), ValueError, "NaN in 1 of 5 stored values"),
    ],
)
def test_other_objects_are_named(data, kind, words):
    with pytest.raises(kind, match=words):
        DRSNE().fit(data)


def test_fits_in_several_threads_leave_the_logger_as_it_was(X):
    from concurrent.futures import ThreadPoolExecutor

    logger = logging.getLogger("drsne")
    before = logger.level, list(logger.handlers)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda seed: DRSNE(**QUICK | {"random_state": seed}, verbose=2).fit(X), range(6)))
    assert (logger.level, list(logger.handlers)) == before
