"""Reading of NumPy, Parquet and H5AD files, and files that are too large for the memory."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value

pd = pytest.importorskip("pandas", reason="tables are read with pandas")

from drsne.cli._maps import read_map  # noqa: E402
from drsne.estimators import memory  # noqa: E402
from drsne.io import tables  # noqa: E402

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.fixture
def as_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")

    def read(frame, **options):
        frame.to_parquet(tmp_path / "x.parquet")
        return tables.read(tmp_path / "x.parquet", **options)

    return read


@each_value({"dtype": [bool, np.uint8, np.uint64, np.int32, np.float16, np.float32], "ending": ["npy", "npz"]})
def test_all_types_of_numbers_are_read(tmp_path, dtype, ending):
    values = np.array([[9, 1], [8, 0], [7, 1], [6, 0], [5, 1], [4, 1]]).astype(dtype)
    path = tmp_path / f"x.{ending}"
    np.save(path, values) if ending == "npy" else np.savez(path, X=values)
    table = tables.read(path)
    assert table.X.dtype == (dtype if np.dtype(dtype).kind == "f" else np.float64)
    np.testing.assert_array_equal(table.X, values.astype(np.float64))
    assert not any("counts" in note for note in table.notes)


def test_unsigned_numbers_do_not_wrap(tmp_path):
    falling = np.arange(6, dtype=np.uint8)[::-1]
    counting = np.arange(6, dtype=np.uint8) + 250  # the last differences are those of 0 to 5 modulo 256
    np.save(tmp_path / "x.npy", np.column_stack((falling, counting)))
    assert any("'x2' counts the rows" in note for note in tables.read(tmp_path / "x.npy").notes)
    np.save(tmp_path / "y.npy", np.array([[253], [254], [255], [0], [1], [2]], dtype=np.uint8))
    assert not any("counts" in note for note in tables.read(tmp_path / "y.npy").notes)


def test_a_sparse_matrix_of_scipy(tmp_path):
    matrix = sp.random(20, 8, density=0.3, random_state=0)
    for kind in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / "x.npz", matrix.asformat(kind))
        table = tables.read(tmp_path / "x.npz")
        assert sp.issparse(table.X)
        np.testing.assert_array_equal(table.X.toarray(), matrix.toarray())
    table = tables.read(tmp_path / "x.npz", drop=["x1"], label="x2")
    np.testing.assert_array_equal(table.X.toarray(), matrix.toarray()[:, 2:])
    np.testing.assert_array_equal(table.label, matrix.toarray()[:, 1])


def test_missing_values_in_a_sparse_matrix(tmp_path):
    matrix = sp.csr_matrix(np.array([[0, np.nan, 1], [2, 0, 3], [0, 5, 0], [1, 1, 1]]))
    sp.save_npz(tmp_path / "x.npz", matrix)
    with pytest.raises(tables.TableError, match="missing values: 1 in 'x2'"):
        tables.read(tmp_path / "x.npz")
    table = tables.read(tmp_path / "x.npz", skip_missing=True)
    assert list(table.rows) == [1, 2, 3]
    assert table.n_rows == 4


def test_a_damaged_sparse_matrix(tmp_path):
    parts = {"indices": [0, 9], "indptr": [0, 1, 2], "data": [1.0, 2.0], "shape": (2, 3), "format": b"csr"}
    np.savez(tmp_path / "x.npz", **{name: np.array(value) for name, value in parts.items()})
    with pytest.raises(tables.TableError, match="damaged"):
        tables.read(tmp_path / "x.npz")


def test_an_array_of_objects_is_left_out(tmp_path):
    np.savez(tmp_path / "x.npz", points=X, kind=np.array(["a"] * 12), meta=np.array([{}]))
    for options in ({}, {"array": "points"}):
        table = tables.read(tmp_path / "x.npz", **options)
        np.testing.assert_array_equal(table.X, X)
        assert list(table.others) == ["kind"]
        assert any("Python objects: 'meta'" in note for note in table.notes)
    with pytest.raises(tables.TableError, match="Python objects"):
        tables.read(tmp_path / "x.npz", array="meta")


def test_arrays_of_equal_length_are_columns(tmp_path):
    columns = {"drsne1": X[:, 0], "drsne2": X[:, 1], "kind": np.array(["a", "b"] * 6, dtype=object)}
    tables.write(tmp_path / "x.npz", columns)
    table = tables.read(tmp_path / "x.npz")
    assert table.columns == ["drsne1", "drsne2"]
    np.testing.assert_array_equal(table.X, X[:, :2])
    assert list(table.others["kind"]) == ["a", "b"] * 6
    np.savez(tmp_path / "y.npz", p=np.zeros(9), q=np.zeros(8))
    with pytest.raises(tables.TableError, match="no matrix"):
        tables.read(tmp_path / "y.npz")


def test_missing_values_of_pandas(as_parquet):
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": X[:4, 0]})
    frame["text"] = pd.array(["x", None, "y", "z"], dtype="string")
    frame["flag"] = pd.array([True, None, False, True], dtype="boolean")
    table = as_parquet(frame, skip_missing=True, label="text")
    assert table.columns == ["a", "b", "flag"]
    np.testing.assert_array_equal(table.X[:, 0], [1, 3, 4])
    assert list(table.label) == ["x", "y", "z"]
    with pytest.raises(tables.TableError, match="1 in 'a', 1 in 'flag'"):
        as_parquet(frame)
    label = as_parquet(frame[["b", "a"]], label="a").label
    np.testing.assert_array_equal(label, [1, np.nan, 3, 4])


def test_numbers_in_columns_of_objects(as_parquet):
    frame = pd.DataFrame({"price": [Decimal("1.50"), None, Decimal("3"), Decimal("4")], "b": X[:4, 0]})
    frame["flag"] = pd.Series([True, None, False, True], dtype=object)
    frame["day"] = [datetime.date(2020, 1, day + 1) for day in range(4)]
    frame["when"] = pd.date_range("2020-01-01", periods=4)
    frame["kind"] = pd.Categorical(["1", "2", "1", "2"])
    frame["code"] = ["1", "2", "1", "4"]
    table = as_parquet(frame, skip_missing=True)
    assert table.columns == ["price", "b", "flag", "code"]
    np.testing.assert_array_equal(table.X[:, 0], [1.5, 3, 4])
    assert any("3 text columns: 'day', 'when', 'kind'" in note for note in table.notes)
    assert any("stored as text: 'code'" in note and "--drop code" in note for note in table.notes)


def test_the_name_of_the_index_is_kept(as_parquet):
    frame = pd.DataFrame(X, columns=list("abc"), index=pd.Index([f"r{row}" for row in range(12)], name="cell"))
    table = as_parquet(frame)
    assert list(table.index) == list(frame.index)
    assert table.index_name == "cell"
    frame.index = pd.MultiIndex.from_product([["p", "q"], range(6)], names=["plate", "well"])
    table = as_parquet(frame)
    assert table.index[0] == "p/0"
    assert table.index_name == "plate/well"


def test_h5ad_files(tmp_path):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    adata = anndata.AnnData(sp.csr_matrix(np.eye(12, 4, dtype=np.float32)))
    adata.obs_names = [f"c{row}" for row in range(12)]
    adata.obs_names.name = "barcode"
    adata.var_names = list("abcd")
    adata.obs["kind"] = pd.Categorical(["p", None, "q"] * 4)
    adata.write_h5ad(tmp_path / "x.h5ad")
    table = tables.read(tmp_path / "x.h5ad", label="kind", columns=["d", "a"])
    assert table.index_name == "barcode"
    np.testing.assert_array_equal(table.X.toarray(), np.eye(12, 4)[:, [3, 0]])
    assert list(table.label[[0, 2]]) == ["p", "q"]


def test_many_columns_can_be_dropped(tmp_path):
    names = np.array([f"g{place}" for place in range(20_000)])
    np.savez(tmp_path / "x.npz", X=np.random.default_rng(0).normal(size=(3, 20_000)), columns=names)
    table = tables.read(tmp_path / "x.npz", drop=names[::2].tolist())
    assert table.columns == names[1::2].tolist()
    assert table.X.shape == (3, 10_000)


def large_csv(path):
    with path.open("wb") as file:
        file.write(b"a,b\n" + b"1.25,2.5\n" * 40_000)
        file.truncate(10**10)  # takes no space on the disk


def large_npy(path):
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**8, 10)}
        np.lib.format.write_array_header_1_0(file, header)


def large_npz(path):
    np.savez_compressed(path, X=np.zeros((300_000, 60), dtype=np.uint8))


def large_parquet(path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    pd.DataFrame({name: np.zeros(2_000_000, dtype=np.int8) for name in "abc"}).to_parquet(path)


def large_h5ad(path):
    h5py = pytest.importorskip("h5py", reason="H5AD files need h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", shape=(10**7, 100), dtype="f4", chunks=(1000, 100))  # takes no space on the disk


LARGE = {"csv": large_csv, "npy": large_npy, "npz": large_npz, "parquet": large_parquet, "h5ad": large_h5ad}


@pytest.mark.parametrize("ending", LARGE)
def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch, ending):
    path = tmp_path / f"x.{ending}"
    LARGE[ending](path)
    monkeypatch.setattr(memory, "available", lambda: 50_000_000)
    found = tables.FORMATS[ending]
    monkeypatch.setitem(tables.FORMATS, ending, found._replace(read=None))
    with pytest.raises(tables.TableError, match=r"needs about \d+\.\d GB of memory to be read, but only 0\.1 GB"):
        tables.read(path)
    with pytest.raises(tables.TableError, match=r"needs about \d+\.\d GB of memory to be read, but only 0\.1 GB"):
        read_map(tables.Source(path))


def test_a_file_that_fits_is_read(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr(memory, "available", lambda: None)
    assert tables.read(tmp_path / "x.npy").X.shape == X.shape


def test_an_archive_with_another_extension_is_recognised(tmp_path):
    with (tmp_path / "x.csv").open("wb") as stream:
        np.savez(stream, X=X)
    with pytest.raises(tables.TableError, match="--format npz"):
        tables.read(tmp_path / "x.csv")
    np.testing.assert_array_equal(tables.read(tmp_path / "x.csv", format="npz").X, X)
