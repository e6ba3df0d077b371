"""New rows in Dask arrays and data frames."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from covering import each_value, in_one_test

da = pytest.importorskip("dask.array", reason="places lazy rows")
dd = pytest.importorskip("dask.dataframe", reason="places lazy rows")
import pandas as pd  # noqa: E402
import sklearn  # noqa: E402
from sklearn.base import clone  # noqa: E402

from drsne import DRSNE, DenSNE  # noqa: E402

X = np.random.default_rng(0).normal(size=(60, 4))
NEW = np.random.default_rng(1).normal(size=(50, 4))
SHORT = {"perplexity": 8, "density_neighbors": 8, "max_iter": 50, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return DRSNE(**SHORT).fit(X)


@pytest.fixture(scope="module")
def of_frames():
    return DRSNE(**SHORT).fit(pd.DataFrame(X, columns=list("abcd")))


@each_value({"dtype": [np.float64, np.float32], "chunks": [(20, 4), ((7, 0, 43), (1, 3)), (50, 2)]})
def test_arrays(model, chunks, dtype):
    new = NEW.astype(dtype)
    lazy = da.from_array(new, chunks)
    places = model.transform(lazy)
    assert places.chunks == (lazy.chunks[0], (2,))
    assert places.dtype == dtype
    computed = places.compute(scheduler="sync")
    assert computed.dtype == dtype
    np.testing.assert_array_equal(computed, model.transform(new))
    for method in ("novelty", "new_concentration"):
        found = getattr(model, method)(lazy)
        assert found.chunks == (lazy.chunks[0],)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.compute(scheduler="sync"), getattr(model, method)(new))


def fails(block):
    if len(block):
        raise AssertionError("computed")
    return block


def test_nothing_is_computed_before(model, of_frames):
    lazy = da.from_array(NEW, (20, 4))
    model.transform(lazy.map_blocks(fails, dtype=np.float64, meta=np.empty((0, 0))))
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(model.transform(NEW), pd.DataFrame)
        model.transform(lazy.map_blocks(fails, dtype=np.float64, meta=np.empty((0, 0))))
        places = model.transform(lazy)
        computed = places.compute(scheduler="sync")
    assert places.chunks == ((20, 20, 10), (2,))
    np.testing.assert_array_equal(computed, model.transform(NEW))
    table = pd.DataFrame(NEW, columns=list("abcd"))
    named = clone(of_frames).fit(pd.DataFrame(X, columns=list("abcd"))).set_output(transform="pandas")
    places = named.transform(dd.from_pandas(table, npartitions=3))
    pd.testing.assert_frame_equal(places.compute(scheduler="sync"), named.transform(table))


def test_data_frames(of_frames):
    table = pd.DataFrame(NEW, columns=list("abcd"), index=np.arange(50) * 2)
    lazy = dd.from_pandas(table, npartitions=3)
    places = of_frames.transform(lazy)
    assert list(places.columns) == ["drsne0", "drsne1"]
    assert places.npartitions == 3
    assert places.divisions == lazy.divisions
    expected = pd.DataFrame(of_frames.transform(table), table.index, ["drsne0", "drsne1"])
    pd.testing.assert_frame_equal(places.compute(scheduler="sync"), expected)
    assert (places.dtypes == expected.dtypes).all()
    novelty = of_frames.novelty(lazy).compute(scheduler="sync")
    pd.testing.assert_series_equal(novelty, pd.Series(of_frames.novelty(table), table.index, name="novelty"))
    with pytest.raises(ValueError, match="feature names"):
        of_frames.transform(lazy.rename(columns={"a": "z"}))


@in_one_test("other", ["float32", "float16", "int8", "int64", "bool", "Float32", "float32[pyarrow]"])
def test_types_of_data_frames_with_mixed_columns(of_frames, other):
    if "pyarrow" in other and find_spec("pyarrow") is None:
        return
    table = pd.DataFrame(NEW.round(), columns=list("abcd")).astype("float32").astype({"b": other})
    places, expected = of_frames.transform(dd.from_pandas(table, npartitions=2)), of_frames.transform(table)
    computed = places.compute(scheduler="sync")
    np.testing.assert_array_equal(computed, expected)
    assert set(places.dtypes) == set(computed.dtypes) == {expected.dtype}


def test_other_columns_are_refused_at_once(model):
    with pytest.raises(ValueError, match=r"two dimensions .* got 1 dimensions"):
        model.transform(da.from_array(NEW[:, 0]))
    with pytest.raises(ValueError, match="4 columns of the training data; got"):
        model.transform(da.from_array(NEW[:, :3]))


def test_densne():
    model = DenSNE(perplexity=8, max_iter=50, random_state=0).fit(X)
    lazy = da.from_array(NEW, (20, 4))
    np.testing.assert_array_equal(model.transform(lazy).compute(scheduler="sync"), model.transform(NEW))
    log_radii = model.new_log_radii(lazy)
    assert log_radii.chunks == (lazy.chunks[0],)
    np.testing.assert_array_equal(log_radii.compute(scheduler="sync"), model.new_log_radii(NEW))


def test_the_model_is_one_object_of_the_graph(model):
    places = model.transform(da.from_array(NEW, (5, 4)))
    graph = dict(places.__dask_optimize__(places.__dask_graph__(), places.__dask_keys__()))
    assert sum("DRSNE" in str(key) for key in graph) == 1
    assert model.transform(da.from_array(NEW, (5, 4))).name == places.name
