"""Data that drsne.distributed refuses, reads with care, or reads after a repair."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
from on_partitions import SIZES, contents, counted, fit, rows, write  # noqa: E402

import drsne  # noqa: E402
from drsne.distributed import landmarks, sources  # noqa: E402


def inverted(path):
    """Damage a file, and return its bytes before that."""
    good = path.read_bytes()
    path.write_bytes(good[:200] + bytes(byte ^ 0xFF for byte in good[200:2000]) + good[2000:])
    return good


@pytest.mark.parametrize("group", [16_384, 2_000_000])
def test_the_memory_of_blocks_does_not_grow_with_the_file(tmp_path, group):
    path = tmp_path / "0.parquet"
    values = np.random.default_rng(0).normal(size=2_000_000).astype(np.float32)
    pq.write_table(pa.table({"a": values}), path, row_group_size=group, use_dictionary=False)
    (part,) = sources.parquet_parts([path], None)
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in part.blocks())
    assert most < 0.25 * path.stat().st_size


COLUMN = r"'c' of .*part\.1\.parquet must"
CHANGED = {  # new contents of the second file, and the message about it
    "another type": (lambda table: table.astype({"c": np.float64}), f"{COLUMN} have the type float"),
    "text": (lambda table: table.assign(c="x"), f"{COLUMN} have the type float.*got .*string"),
    "no column": (lambda table: table.drop(columns="c"), r"part\.1\.parquet must have the column 'c'"),
    "missing": (lambda table: table.assign(c=np.float32(np.nan)), f"{COLUMN} be finite.*drop their rows.*folder"),
    "infinite": (lambda table: table.assign(c=np.float32(np.inf)), f"{COLUMN} be finite"),
    "more columns": (
        lambda table: table.assign(f=1.0, g=2.0),
        r"got 'f', 'g' in .*part\.1\.parquet.*part\.0\.parquet.*columns=\[",
    ),
}


def test_columns_that_differ(tmp_path):
    data, path = tmp_path / "data", tmp_path / "data" / "part.1.parquet"
    write(data, (100, 100))
    table = pd.read_parquet(path)
    for kind, (change, message) in CHANGED.items():
        change(table).to_parquet(path, index=False)
        with pytest.raises(ValueError, match=message) as error:
            fit(data, tmp_path / kind)
        assert "\n" not in str(error.value), kind


def test_columns_can_be_chosen(tmp_path):
    data = tmp_path / "data"
    write(data, (200, 100))
    for path in data.iterdir():
        pd.read_parquet(path).assign(name="x", b=np.float32(np.nan)).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"'name'.*must hold numbers.*columns="):
        fit(data, tmp_path / "map")
    with pytest.raises(ValueError, match=r"'b' .* must be finite.*other columns or files, remove"):
        fit(data, tmp_path / "map", columns=["a", "b"])
    with pytest.raises(ValueError, match="other settings"):
        fit(data, tmp_path / "map", columns=["a", "c"])
    shutil.rmtree(tmp_path / "map.work")
    found = fit(data, tmp_path / "map", columns=["a", "c"])
    assert list(drsne.load(found.model_file)._reference.training.rows.shape) == [150, 2]


SIZED = {  # values in the third column of the second file
    -1e200: r"largest values .* -1e\+200 in column 'c' of .*part\.1\.parquet.*damaged.*multiply",
    1e-300: r"largest values of source must be between.*got values up to 1e-300",
}


@pytest.mark.parametrize("kind", ["same names", "folders of values", "a folder as a file", "a broken link", *SIZED])
def test_files_that_are_refused(tmp_path, kind):
    data, message = tmp_path / "data", r"must have its Parquet files in one folder.*(k=1|x\.parquet).*different names"
    write(data, (100, 100))
    if kind == "same names":
        pq.write_table(pa.table([pa.array([1.0, 2.0])] * 3, names=["a", "b", "a"]), data / "0.parquet")
        message = r"0\.parquet must have one column 'a'; got 2"
    elif kind == "folders of values":
        (data / "k=1").mkdir()
        (data / "part.1.parquet").rename(data / "k=1" / "0.PARQUET")
        (data / "part.0.parquet").unlink()
    elif kind == "a folder as a file":
        (data / "x.parquet").mkdir()
    elif kind == "a broken link":
        (data / "x.parquet").symlink_to(tmp_path / "nowhere")
        message = r"x\.parquet must exist and be visible"
    else:
        message = SIZED[kind]
        for path in data.iterdir():
            table = pd.read_parquet(path).astype(np.float64) * 0.0
            table.loc[7, "c"] = kind
            table.to_parquet(path, index=False)
            if kind == -1e200 and path.name == "part.0.parquet":
                (table * 0.0).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=message) as error:
        fit(data, tmp_path / "map")
    assert "\n" not in str(error.value)


def test_sources_that_are_not_data(tmp_path):
    write(tmp_path / "data", (60, 60))
    path = tmp_path / "data" / "part.0.parquet"
    for source, error, message in (
        (rows(20), TypeError, r"source must be a folder.*got ndarray"),
        (tmp_path / "nothing", FileNotFoundError, "is neither"),
        ([tmp_path / "nothing.parquet"], FileNotFoundError, "not a file"),
        ([path, path], ValueError, "different names"),
    ):
        with pytest.raises(error, match=message):
            fit(source, tmp_path / "map")


def test_files_are_in_natural_order(tmp_path):
    for name in ("x10.Pq", "x9.PARQUET", "_metadata.parquet", ".x1.parquet", "readme.txt", "²1.pq", "x٣.parquet"):
        (tmp_path / name).write_text("")
    found = [path.name for path in sources.parquet_files(tmp_path)]
    assert found.index("x9.PARQUET") < found.index("x10.Pq")
    assert sorted(found) == ["x10.Pq", "x9.PARQUET", "x٣.parquet", "²1.pq"]


def test_checksums_of_pages_are_compared(tmp_path):
    data, path = tmp_path / "data", tmp_path / "data" / "part.1.parquet"
    write(data, (100, 100))
    table = pq.read_table(path)
    pq.write_table(table, path, write_page_checksum=True, use_dictionary=False, compression="none")
    good, value = path.read_bytes(), table["c"].to_numpy()[50:51]
    path.write_bytes(good.replace(value.tobytes(), (value + 1).tobytes()))
    assert pq.read_table(path)["c"][50].as_py() == value[0] + 1  # nothing else shows the damage
    with pytest.raises(ValueError, match=r"part\.1\.parquet is damaged .*CRC checksum"):
        fit(data, tmp_path / "map")
    path.write_bytes(good)
    assert len(contents(fit(data, tmp_path / "map").output)) == 2


def test_large_values_of_a_dask_array(tmp_path):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    X = rows(200).astype(np.float64)
    for value, message in (
        (1e200, r"got 1e\+200 in column 2 of block 1 of"),
        (np.nan, r"Block 1 of .* must be finite"),
    ):
        X[150, 2] = value
        with pytest.raises(ValueError, match=f"{message}.*[Rr]emove the folder"):
            fit(da.from_array(X, (100, 5), name="x"), tmp_path / "map")
        shutil.rmtree(tmp_path / "map.work")
    X[150, 2] = 1.0
    assert fit(da.from_array(X, (100, 5), name="x"), tmp_path / "map").scores["rows"] == 200


@pytest.mark.parametrize("kind", ["columns", "rows"])
def test_blocks_of_a_dask_array_with_another_shape(tmp_path, kind):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")

    def cut(block):
        return block[1:] if kind == "rows" else block[:, :3] if len(block) < 70 else block

    lazy = da.from_array(rows(200), (70, 5)).map_blocks(cut, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    with pytest.raises(ValueError, match=r"Block [02] of the Dask array must have the shape"):
        fit(lazy, tmp_path / "map")


def test_duplicates_give_no_warning(tmp_path):
    X = np.concatenate([np.ones((300, 5), np.float32), rows(20)])
    pd.DataFrame(X, columns=list("abcde")).to_parquet(tmp_path / "0.parquet", index=False)
    with pytest.warns(UserWarning, match="duplicates"):  # of the fit; all other warnings are errors
        found = fit([tmp_path / "0.parquet"], tmp_path / "map")
    Y = pd.read_parquet(found.output).to_numpy()
    assert np.isfinite(Y).all()
    np.testing.assert_array_equal(Y[:300], np.tile(Y[:1], (300, 1)))  # equal rows have equal results


@pytest.mark.parametrize("kind", ["value", "rows", "damaged"])
def test_a_file_can_be_repaired_where_the_message_says_so(tmp_path, monkeypatch, kind):
    """The partitions that are finished are kept, unless the number of rows changes, on which samples depend."""
    data, path = tmp_path / "data", tmp_path / "data" / "part.3.parquet"
    write(data)
    if kind == "damaged":
        good = inverted(path)
    else:
        good, table = path.read_bytes(), pd.read_parquet(path)
        table.loc[7, "c"] = np.nan
        table.to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"part\.3\.parquet.*call fit again"):
        fit(data, tmp_path / "map")
    if kind == "damaged":
        path.write_bytes(good[:100])
        with pytest.raises(ValueError, match=r"part\.3\.parquet is damaged or not a Parquet file"):
            fit(data, tmp_path / "map")
    if kind == "rows":
        pd.read_parquet(path).dropna().to_parquet(path, index=False)
    else:
        path.write_bytes(good)
    calls = counted(monkeypatch, landmarks, "summarize")
    found = fit(data, tmp_path / "map")
    assert [number for _, number, *_ in calls] == (list(range(5)) if kind == "rows" else [3, 4])
    assert found.scores["rows"] == sum(SIZES) - (kind == "rows")
    assert contents(fit(data, tmp_path / "other").output) == contents(found.output)


def test_a_change_in_the_middle_of_a_file_is_noticed(tmp_path):
    """The size, the end and the time of the last write stay the same. A file that is only touched has not changed."""
    path = tmp_path / "part.0.parquet"
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(8_000, 3)), columns=list("abc"))
    table.to_parquet(path, index=False)
    found = fit([path], tmp_path / "map")
    before, size = contents(found.output), path.stat().st_size
    os.utime(path, (1, 1))
    assert contents(fit([path], tmp_path / "map").output) == before
    end = path.read_bytes()[-65_536:]
    table["a"] = np.r_[rng.permutation(table["a"][:5_000]), table["a"][5_000:]]
    before = path.stat()
    table.to_parquet(path, index=False)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (size, before.st_mtime_ns, before.st_ino)
    assert path.read_bytes()[-65_536:] == end
    with pytest.raises(ValueError, match=r"other data \(part\.0\.parquet has changed\)"):
        fit([path], tmp_path / "map")
