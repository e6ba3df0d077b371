"""Checks of outputs before any work begins, and writing of columns."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from covering import in_one_test

pd = pytest.importorskip("pandas", reason="tables are read with pandas")

from drsne.io import tables  # noqa: E402
from drsne.io.tables import TableError, check_columns, check_output, row_names  # noqa: E402

X = np.random.default_rng(0).normal(size=(4, 2))
DATES = np.array(["2020-01-31", "NaT", "2021-02-28", "2022-12-24"], dtype="datetime64[ns]")


def table_of(**changes):
    parts = {"X": X, "columns": None, "index": None, "label": None, "others": {}, "rows": np.arange(4), "n_rows": 4}
    return tables.Table(**{**parts, **changes})


def test_a_name_that_cannot_be_written_is_refused(tmp_path):
    for name in ("x.h5ad", "x.xyz", "x", "x.h5ad.gz", "x.npy.gz", "x.parquet.gz"):
        with pytest.raises(TableError, match=rf"{name} must end with one of \.csv, .*\.parquet"):
            tables.write(tmp_path / name, {"a": X[:, 0]})
        (tmp_path / name).write_bytes(b"\x1f\x8b")
        with pytest.raises(TableError, match=r"must end with one of|not a H5AD file"):
            tables.read(tmp_path / name)
    check_output(tmp_path / "y.xyz", force=False)
    check_output(tmp_path / "y.html", (".html", ".htm"), force=False)


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz", "CSV.GZ"])
def test_compressed_text_is_compressed(tmp_path, ending):
    tables.write(tmp_path / f"x.{ending}", {"a": X[:, 0], "b": X[:, 1]})
    assert (tmp_path / f"x.{ending}").read_bytes()[:2] == b"\x1f\x8b"
    np.testing.assert_array_equal(tables.read(tmp_path / f"x.{ending}").X, X)


@pytest.mark.parametrize(
    ("ending", "package"), [("parquet", "pyarrow"), ("feather", "pyarrow"), ("pq", "pandas"), ("h5ad", "anndata")]
)
def test_a_missing_package_is_reported_before_the_work(tmp_path, monkeypatch, ending, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"need {package}: pip install 'drsne\["):
        check_output(tmp_path / f"x.{ending}", (*tables.WRITABLE, ".h5ad"), force=False)
    check_output(tmp_path / "x.csv", tables.WRITABLE, force=False)


def test_the_columns_of_an_npy_file_have_their_places(tmp_path):
    columns = {"drsne1": X[:, 0].astype(np.float32), "drsne2": X[:, 1]}
    expected = np.column_stack(list(columns.values()))
    for first in ({}, {"row": np.arange(4)}, {"name": np.array(list("abcd"))}):
        tables.write(tmp_path / "x.npy", {**first, **columns, "label": np.arange(4)}, force=True)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)
    with pytest.raises(TableError, match="no columns of floating-point numbers"):
        tables.write(tmp_path / "x.npy", {"row": np.arange(4)}, force=True)


@pytest.mark.parametrize("name", ["file", "a b", "a/b", "größe", "x.npy", "allow_pickle"])
def test_a_column_of_an_npz_file_can_have_any_name(tmp_path, name):
    tables.write(tmp_path / "x.npz", {"drsne1": X[:, 0], name: X[:, 1]})
    with np.load(tmp_path / "x.npz") as found:
        np.testing.assert_array_equal(found[name], X[:, 1])
    assert tables.read(tmp_path / "x.npz").columns == ["drsne1", name]


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


def test_the_column_that_identifies_rows():
    assert row_names(table_of()) == {}
    assert list(row_names(table_of(rows=np.array([0, 1, 3, 4])))) == ["row"]
    assert list(row_names(table_of(index=np.array(list("abcd"))))) == ["name"]
    assert list(row_names(table_of(index=np.array(list("abcd")), index_name="cell"))) == ["cell"]


@in_one_test(
    ("changes", "label"),
    [
        ({"index": np.array(list("abcd"))}, "name"),
        ({"index": np.array(list("abcd")), "index_name": "drsne1"}, None),
        ({"rows": np.array([0, 1, 3, 4])}, "row"),
        ({}, "drsne1"),
    ],
)
def test_two_columns_with_one_name_are_refused(changes, label):
    made = ["drsne1", "drsne2"]
    with pytest.raises(TableError, match="two columns called"):
        check_columns(table_of(**changes), label, made)
    check_columns(table_of(**{**changes, "index_name": "cell"}), "kind", made)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "npz"])
def test_the_index_is_a_column_of_the_output(tmp_path, ending):
    if ending in ("parquet", "feather"):
        pytest.importorskip("pyarrow", reason="Parquet and Feather need pyarrow")
    table = table_of(index=np.array(list("abcd"), dtype=object), index_name="cell")
    tables.write(tmp_path / f"x.{ending}", {**row_names(table), "drsne1": X[:, 0], "drsne2": X[:, 1]})
    found = tables.read(tmp_path / f"x.{ending}")
    assert list(found.others["cell"]) == list("abcd")
    assert found.columns == ["drsne1", "drsne2"]
