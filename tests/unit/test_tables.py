"""Tables: what is detected in text, which columns are data, all formats, sizes, and checks of outputs."""

from __future__ import annotations

import datetime
import gzip
import os
import shlex
import threading
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value, in_one_test

from drsne.io.writing import replacing

pd = pytest.importorskip("pandas", reason="tables are read with pandas")

from drsne.cli._maps import read_map  # noqa: E402
from drsne.estimators import memory  # noqa: E402
from drsne.io import tables  # noqa: E402
from drsne.io.tables import TableError, check_columns, check_output, row_names  # noqa: E402

X = np.random.default_rng(0).normal(size=(12, 3))
DATES = np.array(["2020-01-31", "NaT", "2021-02-28", "2022-12-24"], dtype="datetime64[ns]")


@pytest.fixture
def read(tmp_path):
    """Read a table that is given as text, bytes or a data frame, which becomes a Parquet file."""

    def read(content, name="x.csv", **options):
        if isinstance(content, pd.DataFrame):
            pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
            name = "x.parquet"
            content.to_parquet(tmp_path / name)
        elif content is not None:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tables.read(tmp_path / name, **options)

    return read


# What is detected in text.


@each_value({"names": [["0", "1", "2"], ["1", "2", "3"], ["a", "b", "c"], ["1a", "2b", "3c"]], "index": [False, True]})
def test_a_header_is_found(read, names, index):
    table = read(pd.DataFrame(X, columns=names).to_csv(index=index))
    assert table.columns == names
    np.testing.assert_array_equal(table.X, X)
    assert (table.index is not None) == index


@each_value(
    {
        "header": [True, False],
        "separator, decimal": [(each, sign) for each in ",\t;| " for sign in ".," if each != sign],
    }
)
def test_the_separator_and_the_decimal_sign_are_found(read, separator, header, decimal):
    frame = pd.DataFrame(X.round(3), columns=list("abc"))
    table = read(frame.to_csv(index=False, header=header, decimal=decimal, sep=separator))
    np.testing.assert_array_equal(table.X, X.round(3))
    assert table.columns == (list("abc") if header else ["x1", "x2", "x3"])


@in_one_test(
    ("text", "shape", "others"),
    [
        ("1,5;2,5;3,5\n" * 4, (4, 3), []),
        ("1,5;2;3,5\n4;5,5;6\n" * 4, (8, 3), []),
        ("name;value;size\nred, large;1,5;2\nblue, small;2,5;3\n", (2, 2), ["name"]),
        ("sample\ta\tb\nSample 1\t5.2\t3.1\nSample 2\t1.2\t2.1\n", (2, 2), ["sample"]),
        ("sample,a\nSample 1,5\nSample 2,7\n", (2, 1), ["sample"]),
        ("9, 2, 3\n4, 5, 6\n7, 8, 9\n", (3, 3), []),
        ("a b\nr1 1,5 2,5\nr2 3,5 4,5\n", (2, 2), []),
        ("1\t\t3\n4\t\t6\n", (2, 2), ["x2"]),
        ("1,2,a\n3,4,b\n5,9,a\n", (3, 2), ["x3"]),  # the first row is no header
    ],
)
def test_what_could_be_mistaken(read, text, shape, others):
    table = read(text, drop=["x2"] if "\t\t" in text else [])
    assert table.X.shape == shape
    assert list(table.others) == others


def test_headers_that_the_user_or_a_comment_names(read, tmp_path):
    text = "2001,2002\n1,2\n3,4\n5,6\n"
    assert read(text).X.shape == (4, 2)
    assert read(text, header=True).columns == ["2001", "2002"]
    np.savetxt(tmp_path / "x.txt", X, header="a b c")
    table = read(None, "x.txt")
    assert table.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(table.X, X)
    assert read(None, "x.txt", header=False).columns == ["x1", "x2", "x3"]
    assert read("# made on Monday\n#id,a,b\n1,2,3\n4,5,7\n").columns == ["id", "a", "b"]
    assert read("# two words\n9,2,3\n4,5,7\n").columns == ["x1", "x2", "x3"]


@in_one_test(
    "text",
    [
        "a b\nr1 1 2\nr2 3 5\n",  # as R writes it
        ",a,b\nr1,1,2\nr2,3,5\n",
        ",a,b\nr1,1,2,\nr2,3,5,\n",
        ",a,b,\nr1,1,2,\nr2,3,5,\n",
        "a,b\n1,2,\n3,5,\n",
        "a,b,\n1,2,\n3,5,\n",
        "1,2,\n3,5,\n",
    ],
)
def test_names_of_rows_and_separators_at_the_end(read, text):
    table = read(text)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 5]])
    assert table.columns == (["a", "b"] if "a" in text else ["x1", "x2"])
    assert (table.index is None) == ("r1" not in text)
    assert table.index is None or list(table.index) == ["r1", "r2"]


@in_one_test(
    ("text", "message"),
    [
        ("a,b\n1,2,3,4\n5,6,7,8\n", r"line 2 has 4 fields, but line 1 has 2"),
        (",a,b\nr1,1,2,3\nr2,4,5,6\n", r"line 2 has 4 fields, but line 1 has 3"),
        ("title\na,b,c\n1,2,3\n", r"line 2 has 3 fields, but line 1 has 1"),
        ("a,b\n" + "1,2,\n" * 150 + "1,2,3\n", r"line 152 has 3 fields"),
        ("a b\n" + "r 1 NA\n" * 3, r"missing values: 3 in 'b'"),
        ("a,b\n1,5\noops,1\n2,3\n", r"line 3, column 'a': 'oops' is not a number"),
        ("a;b\n" + "1,5;1\n" + "oops;1\n" + "1,5;1\n" * 38, r"line 3, column 'a': 'oops' is not a number"),
        ("# c\na,b\n\n" + "1,1\n" * 9 + "oops,1\n", r"line 13, column 'a': 'oops' is not a number"),
    ],
)
def test_lines_that_are_wrong(read, text, message):
    with pytest.raises(TableError, match=message):
        read(text)


def test_wide_and_compressed_text(read, tmp_path):
    names = [f"a_long_name_of_a_column_{place}" for place in range(4_000)]
    values = np.arange(8_000).reshape(2, 4_000) + 0.5
    text = pd.DataFrame(values, columns=names).to_csv(index=False, sep=";", decimal=",")
    for table in (read(text, drop=names[1:]), read(gzip.compress(text.encode()), "x.csv.gz", drop=names[1:])):
        np.testing.assert_array_equal(table.X, values[:, :1])
    for encoding in ("utf-16", "utf-8-sig", "cp1252"):
        table = read("gr\u00f6\u00dfe;b\n1,5;2\n3,5;7\n".encode(encoding))
        assert table.columns == ["gr\u00f6\u00dfe", "b"]


# Which columns are data.


def test_columns_of_text(read):
    table = read("a,b\n" + "1,1\nx,2\ny,4\nz,7\n" * 5)
    assert table.columns == ["b"]
    assert any("text column: 'a'" in note for note in table.notes)
    table = read("a,b\nTrue,1\n,2\nFalse,5\n", skip_missing=True)  # booleans with gaps are numbers
    np.testing.assert_array_equal(table.X, [[1, 1], [0, 5]])


def test_a_column_that_counts_the_rows_is_noted(read, tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.insert(0, "id", np.arange(12) + 1)
    assert any("--drop id" in note for note in read(frame.to_csv(index=False)).notes)
    assert not any("counts" in note for note in read(frame.to_csv(index=False), drop=["id"]).notes)
    falling = np.arange(6, dtype=np.uint8)[::-1]
    counting = np.arange(6, dtype=np.uint8) + 250  # the last differences are those of 0 to 5 modulo 256
    np.save(tmp_path / "x.npy", np.column_stack((falling, counting)))
    assert any("'x2' counts the rows" in note for note in read(None, "x.npy").notes)
    np.save(tmp_path / "y.npy", np.array([[253], [254], [255], [0], [1], [2]], dtype=np.uint8))
    assert not any("counts" in note for note in read(None, "y.npy").notes)


def test_advice_can_be_pasted(read):
    names = ["my column", "it's", "a,b", "c", "d", "e", "f"]
    text = pd.DataFrame([[np.nan] * 7 + [1.0], [1.0] * 8], columns=[*names, "good"]).to_csv(index=False)
    with pytest.raises(TableError) as caught:
        read(text)
    words = shlex.split(str(caught.value).partition("--drop ")[2])
    assert words[0].rstrip(",") == 'my column,it\'s,"a,b",c,d,e,f'


def test_missing_values_of_pandas(read):
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": X[:4, 0]})
    frame["text"] = pd.array(["x", None, "y", "z"], dtype="string")
    frame["flag"] = pd.array([True, None, False, True], dtype="boolean")
    table = read(frame, skip_missing=True, label="text")
    assert table.columns == ["a", "b", "flag"]
    np.testing.assert_array_equal(table.X[:, 0], [1, 3, 4])
    assert list(table.label) == ["x", "y", "z"]
    with pytest.raises(TableError, match="1 in 'a', 1 in 'flag'"):
        read(frame)
    np.testing.assert_array_equal(read(frame[["b", "a"]], label="a").label, [1, np.nan, 3, 4])


def test_numbers_in_columns_of_objects(read):
    frame = pd.DataFrame({"price": [Decimal("1.50"), None, Decimal("3"), Decimal("4")], "b": X[:4, 0]})
    frame["flag"] = pd.Series([True, None, False, True], dtype=object)
    frame["day"] = [datetime.date(2020, 1, day + 1) for day in range(4)]
    frame["when"] = pd.date_range("2020-01-01", periods=4)
    frame["kind"] = pd.Categorical(["1", "2", "1", "2"])
    frame["code"] = ["1", "2", "1", "4"]
    table = read(frame, skip_missing=True)
    assert table.columns == ["price", "b", "flag", "code"]
    np.testing.assert_array_equal(table.X[:, 0], [1.5, 3, 4])
    assert any("3 text columns: 'day', 'when', 'kind'" in note for note in table.notes)
    assert any("stored as text: 'code'" in note and "--drop code" in note for note in table.notes)


# Other formats, and streams.


@each_value({"dtype": [bool, np.uint8, np.uint64, np.int32, np.float16, np.float32], "ending": ["npy", "npz"]})
def test_all_types_of_numbers_are_read(read, tmp_path, dtype, ending):
    values = np.array([[9, 1], [8, 0], [7, 1], [6, 0], [5, 1], [4, 1]]).astype(dtype)
    path = tmp_path / f"x.{ending}"
    np.save(path, values) if ending == "npy" else np.savez(path, X=values)
    table = read(None, path.name)
    assert table.X.dtype == (dtype if np.dtype(dtype).kind == "f" else np.float64)
    np.testing.assert_array_equal(table.X, values.astype(np.float64))


def test_sparse_matrices(read, tmp_path):
    matrix = sp.random(20, 8, density=0.3, random_state=0)
    for kind in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / "x.npz", matrix.asformat(kind))
        table = read(None, "x.npz")
        assert sp.issparse(table.X)
        np.testing.assert_array_equal(table.X.toarray(), matrix.toarray())
    table = read(None, "x.npz", drop=["x1"], label="x2")
    np.testing.assert_array_equal(table.X.toarray(), matrix.toarray()[:, 2:])
    np.testing.assert_array_equal(table.label, matrix.toarray()[:, 1])
    sp.save_npz(tmp_path / "x.npz", sp.csr_matrix(np.array([[0, np.nan, 1], [2, 0, 3], [0, 5, 0], [1, 1, 1]])))
    with pytest.raises(TableError, match="missing values: 1 in 'x2'"):
        read(None, "x.npz")
    table = read(None, "x.npz", skip_missing=True)
    assert list(table.rows) == [1, 2, 3]
    assert table.n_rows == 4
    parts = {"indices": [0, 9], "indptr": [0, 1, 2], "data": [1.0, 2.0], "shape": (2, 3), "format": b"csr"}
    np.savez(tmp_path / "x.npz", **{name: np.array(value) for name, value in parts.items()})
    with pytest.raises(TableError, match="damaged"):
        read(None, "x.npz")


def test_archives(read, tmp_path):
    np.savez(tmp_path / "x.npz", points=X, kind=np.array(["a"] * 12), meta=np.array([{}]))
    for options in ({}, {"array": "points"}):
        table = read(None, "x.npz", **options)
        np.testing.assert_array_equal(table.X, X)
        assert list(table.others) == ["kind"]
        assert any("Python objects: 'meta'" in note for note in table.notes)
    with pytest.raises(TableError, match="Python objects"):
        read(None, "x.npz", array="meta")
    np.savez(tmp_path / "y.npz", p=np.zeros(9), q=np.zeros(8))
    with pytest.raises(TableError, match="no matrix"):
        read(None, "y.npz")
    names = np.array([f"g{place}" for place in range(4_000)])
    np.savez(tmp_path / "z.npz", X=np.random.default_rng(0).normal(size=(3, 4_000)), columns=names)
    table = read(None, "z.npz", drop=names[::2].tolist())
    assert table.columns == names[1::2].tolist()
    assert table.X.shape == (3, 2000)
    (tmp_path / "x.npz").rename(tmp_path / "other.csv")
    with pytest.raises(TableError, match="--format npz"):
        read(None, "other.csv")
    np.testing.assert_array_equal(read(None, "other.csv", format="npz").X, X)
    records = np.array([(1.5, 2), (2.5, 3)], dtype=[("a", float), ("b", int)])
    np.save(tmp_path / "x.npy", records)
    assert read(None, "x.npy").columns == ["a", "b"]


def test_the_index_of_a_frame_and_of_cells(read, tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"), index=pd.Index([f"r{row}" for row in range(12)], name="cell"))
    table = read(frame)
    assert list(table.index) == list(frame.index)
    assert table.index_name == "cell"
    frame.index = pd.MultiIndex.from_product([["p", "q"], range(6)], names=["plate", "well"])
    table = read(frame)
    assert (table.index[0], table.index_name) == ("p/0", "plate/well")
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    adata = anndata.AnnData(sp.csr_matrix(np.eye(12, 4, dtype=np.float32)))
    adata.obs_names = pd.Index([f"c{row}" for row in range(12)], name="barcode")
    adata.var_names = list("abcd")
    adata.obs["kind"] = pd.Categorical(["p", None, "q"] * 4)
    adata.write_h5ad(tmp_path / "x.h5ad")
    table = read(None, "x.h5ad", label="kind", columns=["d", "a"])
    assert table.index_name == "barcode"
    np.testing.assert_array_equal(table.X.toarray(), np.eye(12, 4)[:, [3, 0]])
    assert list(table.label[[0, 2]]) == ["p", "q"]


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_a_pipe_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    text = pd.DataFrame(X).to_csv(index=False).encode()
    writer = threading.Thread(target=(tmp_path / "x.csv").write_bytes, args=(text,))
    writer.start()
    source = tables.Source(tmp_path / "x.csv")
    source.check()
    assert source.start.startswith(b"0,1,2")
    np.testing.assert_array_equal(tables.read(source).X, X)
    writer.join()


# Files that are too large for the memory.


def large_csv(path):
    with path.open("wb") as file:
        file.write(b"a,b\n" + b"1.25,2.5\n" * 8_000)
        file.truncate(10**10)  # takes no space on the disk


def large_npy(path):
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**8, 10)})


def large_parquet(path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    pd.DataFrame({name: np.zeros(2_000_000, dtype=np.int8) for name in "abc"}).to_parquet(path)


def large_h5ad(path):
    h5py = pytest.importorskip("h5py", reason="H5AD files need h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", shape=(10**7, 100), dtype="f4", chunks=(1000, 100))  # takes no space on the disk


LARGE = {
    "csv": large_csv,
    "npy": large_npy,
    "npz": lambda path: np.savez_compressed(path, X=np.zeros((300_000, 60), dtype=np.uint8)),
    "parquet": large_parquet,
    "h5ad": large_h5ad,
}


@pytest.mark.parametrize("ending", LARGE)
def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch, ending):
    path = tmp_path / f"x.{ending}"
    LARGE[ending](path)
    monkeypatch.setattr(memory, "available", lambda: 50_000_000)
    monkeypatch.setitem(tables.FORMATS, ending, tables.FORMATS[ending]._replace(read=None))
    for function in (tables.read, read_map):
        with pytest.raises(TableError, match=r"needs about \d+\.\d GB of memory to be read, but only 0\.1 GB"):
            function(tables.Source(path))


# Outputs.


def test_a_name_that_cannot_be_written_is_refused(tmp_path):
    for name in ("x.h5ad", "x.xyz", "x", "x.h5ad.gz", "x.npy.gz", "x.parquet.gz"):
        with pytest.raises(TableError, match=rf"{name} must end with one of \.csv, .*\.parquet"):
            tables.write(tmp_path / name, {"a": X[:, 0]})
        (tmp_path / name).write_bytes(b"\x1f\x8b")
        with pytest.raises(TableError, match=r"must end with one of|not a H5AD file"):
            tables.read(tmp_path / name)
    check_output(tmp_path / "y.xyz", force=False)
    check_output(tmp_path / "y.html", (".html", ".htm"), force=False)


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "CSV.GZ", "parquet", "feather", "npz"])
def test_what_is_written_can_be_read(tmp_path, ending):
    if ending in ("parquet", "feather"):
        pytest.importorskip("pyarrow", reason="Parquet and Feather need pyarrow")
    columns = {"cell": np.array(list("abcdefghijkl"), dtype=object), "drsne1": X[:, 0], "allow_pickle": X[:, 1]}
    tables.write(tmp_path / f"x.{ending}", columns)
    assert ending.lower().endswith("gz") == ((tmp_path / f"x.{ending}").read_bytes()[:2] == b"\x1f\x8b")
    found = tables.read(tmp_path / f"x.{ending}")
    assert list(found.others["cell"]) == list("abcdefghijkl")
    assert found.columns == ["drsne1", "allow_pickle"]
    np.testing.assert_array_equal(found.X, X[:, :2])


def test_the_columns_of_numpy_files(tmp_path):
    columns = {"drsne1": X[:, 0].astype(np.float32), "drsne2": X[:, 1]}
    expected = np.column_stack(list(columns.values()))
    for first in ({}, {"row": np.arange(12)}, {"name": np.array(list("abcdefghijkl"))}):  # a matrix has fixed places
        tables.write(tmp_path / "x.npy", {**first, **columns, "label": np.arange(12)}, force=True)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)
    with pytest.raises(TableError, match="no columns of floating-point numbers"):
        tables.write(tmp_path / "x.npy", {"row": np.arange(12)}, force=True)
    names = ["file", "a b", "a/b", "gr\u00f6\u00dfe", "x.npy", "allow_pickle"]
    tables.write(tmp_path / "x.npz", {name: X[:, 0] + place for place, name in enumerate(names)})
    with np.load(tmp_path / "x.npz") as found:
        np.testing.assert_array_equal([found[name] for name in names], X[:, 0] + np.arange(6)[:, None])
    assert tables.read(tmp_path / "x.npz").columns == names


def test_dates_are_written_as_iso(tmp_path):
    later = DATES + np.timedelta64(90, "s")
    with_zone = pd.Series(pd.to_datetime(DATES)).dt.tz_localize("UTC").to_numpy()
    columns = {"day": DATES, "time": later, "zone": with_zone, "kind": np.array(["a", None, np.nan, pd.NA])}
    tables.write(tmp_path / "x.csv", {**columns, "spent": DATES - DATES[0]})
    found = [line.split(",") for line in (tmp_path / "x.csv").read_text().splitlines()]
    assert found[1] == ["2020-01-31", "2020-01-31T00:01:30", "2020-01-31T00:00:00+00:00", "a", "P0DT0H0M0S"]
    assert found[2] == [""] * 5
    assert found[3][0] == "2021-02-28"
    tables.write(tmp_path / "x.npz", columns)
    with np.load(tmp_path / "x.npz") as archive:
        assert archive["kind"].tolist() == ["a", "", "", ""]
        assert archive["day"].dtype.kind == "M"


def test_the_names_of_the_columns_of_an_output():
    def table_of(**changes):
        parts = {"X": X, "columns": None, "index": None, "label": None, "others": {}, "rows": np.arange(12)}
        return tables.Table(**{**parts, "n_rows": 12, **changes})

    letters, some = {"index": np.array(list("abcd"))}, {"rows": np.array([0, 1, 3, 4])}
    for changes, name in (({}, []), (some, ["row"]), (letters, ["name"]), (letters | {"index_name": "cell"}, ["cell"])):
        assert list(row_names(table_of(**changes))) == name
    made = ["drsne1", "drsne2"]
    for changes, label in (
        (letters, "name"),
        (letters | {"index_name": "drsne1"}, None),
        (some, "row"),
        ({}, "drsne1"),
    ):
        with pytest.raises(TableError, match="two columns called"):
            check_columns(table_of(**changes), label, made)
        check_columns(table_of(**{**changes, "index_name": "cell"}), "kind", made)


def test_a_file_is_replaced_only_when_it_is_complete(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["x.txt"]
