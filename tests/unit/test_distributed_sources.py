"""Data that drsne.distributed refuses, reads with care, or reads after a repair."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
from on_partitions import QUICK, SIZES, contents, rows, write  # noqa: E402

import drsne  # noqa: E402
from drsne import DRSNE  # noqa: E402
from drsne.distributed import sources, statistics  # noqa: E402


@pytest.mark.parametrize("group", [16_384, 2_000_000])
def test_the_memory_of_blocks_does_not_grow_with_the_file(tmp_path, group):
    path = tmp_path / "0.parquet"
    values = np.random.default_rng(0).normal(size=2_000_000).astype(np.float32)
    pq.write_table(pa.table({"a": values}), path, row_group_size=group, use_dictionary=False)
    (part,) = sources.parquet_parts([path], None)
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in part.blocks())
    assert most < 0.25 * path.stat().st_size


KINDS = {
    "columns with the same name": r"0\.parquet must have one column 'a'; got 2",
    "more columns in a later file": r"got 'f', 'g' in .*part\.1\.parquet.*part\.0\.parquet.*columns=\[",
    "folders of values": r"must have its Parquet files in one folder.*k=1.*different names",
    "a folder with the name of a file": r"must have its Parquet files in one folder.*x\.parquet",
    "a broken link": r"x\.parquet must exist and be visible",
    "values whose squares overflow": r"largest values .*e\+20. in column '.' of .*\.parquet.*damaged.*multiply",
    "one value whose square overflows": r"largest values .* -1e\+200 in column 'c' of .*part\.1\.parquet",
    "values whose squares underflow": r"largest values of source must be between.*got values up to .*e-299",
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_refused(tmp_path, kind):
    data = tmp_path / "data"
    write(data, (100, 100))
    if kind == "columns with the same name":
        pq.write_table(pa.table([pa.array([1.0, 2.0])] * 3, names=["a", "b", "a"]), data / "0.parquet")
    elif kind == "more columns in a later file":
        table = pd.read_parquet(data / "part.1.parquet")
        table.assign(f=1.0, g=2.0).to_parquet(data / "part.1.parquet", index=False)
    elif kind == "folders of values":
        for number in range(2):
            (data / f"k={number}").mkdir()
            (data / f"part.{number}.parquet").rename(data / f"k={number}" / "0.parquet")
        (data / "k=0" / "0.parquet").unlink()
    elif kind == "a folder with the name of a file":
        (data / "x.parquet").mkdir()
    elif kind == "a broken link":
        (data / "x.parquet").symlink_to(tmp_path / "nowhere")
    elif kind == "one value whose square overflows":
        for path in data.iterdir():
            table = pd.read_parquet(path).astype(np.float64)
            table.loc[7, "c"] = -1e200 if path.name == "part.1.parquet" else 1.0
            table.to_parquet(path, index=False)
    else:
        for path in data.iterdir():
            size = 1e200 if "over" in kind else 1e-300
            (pd.read_parquet(path).astype(np.float64) * size).to_parquet(path, index=False)
    with pytest.raises(ValueError, match=KINDS[kind]) as error:
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    assert "\n" not in str(error.value)


def test_checksums_of_pages_are_compared(tmp_path):
    data, path = tmp_path / "data", tmp_path / "data" / "part.1.parquet"
    write(data, (100, 100))
    table = pq.read_table(path)
    pq.write_table(table, path, write_page_checksum=True, use_dictionary=False, compression="none")
    good, value = path.read_bytes(), table["c"].to_numpy()[50:51]
    damaged = good.replace(value.tobytes(), (value + 1).tobytes())
    path.write_bytes(damaged)
    assert pq.read_table(path)["c"][50].as_py() == value[0] + 1  # nothing else shows the damage
    with pytest.raises(ValueError, match=r"part\.1\.parquet is damaged .*CRC checksum"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    path.write_bytes(good)
    assert len(contents(drsne.distributed.fit(data, tmp_path / "map", **QUICK | {"n_landmarks": 150}).output)) == 2


def test_large_values_of_a_dask_array(tmp_path):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    X = rows(200).astype(np.float64)
    X[150, 2] = 1e200
    with pytest.raises(ValueError, match=r"got 1e\+200 in column 2 of block 1 of the Dask array.*remove the folder"):
        drsne.distributed.fit(da.from_array(X, (100, 5), name="x"), tmp_path / "map", **QUICK)
    shutil.rmtree(tmp_path / "map.work")
    X[150, 2] = 1.0
    found = drsne.distributed.fit(da.from_array(X, (100, 5), name="x"), tmp_path / "map", **QUICK)
    assert found.scores["rows"] == 200


def test_endings_in_capital_letters(tmp_path):
    for name in ("a.PARQUET", "b.parquet", "c.Pq", "d.txt"):
        (tmp_path / name).write_text("")
    assert [path.name for path in sources.parquet_files(tmp_path)] == ["a.PARQUET", "b.parquet", "c.Pq"]
    (tmp_path / "inner" / "k=0").mkdir(parents=True)
    (tmp_path / "a.PARQUET").rename(tmp_path / "inner" / "k=0" / "a.PARQUET")
    with pytest.raises(ValueError, match="must have its Parquet files in one folder"):
        sources.parquet_files(tmp_path / "inner")


def test_other_columns_after_missing_values(tmp_path):
    """The message says what can be changed in the same run, and what cannot."""
    data, path = tmp_path / "data", tmp_path / "data" / "part.1.parquet"
    write(data, (100, 100))
    pd.read_parquet(path).assign(c=np.float32(np.nan)).to_parquet(path, index=False)
    said = r"'c' of .*part\.1\.parquet must be finite.*drop their rows, and call.*other columns or files, remove"
    with pytest.raises(ValueError, match=said):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    with pytest.raises(ValueError, match="other settings"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK, columns=["a", "b"])
    shutil.rmtree(tmp_path / "map.work")
    assert drsne.distributed.fit(data, tmp_path / "map", **QUICK, columns=["a", "b"]).scores["rows"] == 200


def test_duplicates_give_no_warning(tmp_path):
    (tmp_path / "data").mkdir()
    X = np.concatenate([np.ones((300, 5), np.float32), rows(20)])
    pd.DataFrame(X, columns=list("abcde")).to_parquet(tmp_path / "data" / "0.parquet", index=False)
    with pytest.warns(UserWarning, match="duplicates"):  # of the fit; all other warnings are errors
        found = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    Y = pd.read_parquet(found.output).to_numpy()
    assert np.isfinite(Y).all()
    np.testing.assert_array_equal(Y[:300], np.tile(Y[:1], (300, 1)))  # equal rows have equal results


def test_scores_that_are_not_defined(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    pd.DataFrame(np.ones((200, 3)), columns=list("abc")).to_parquet(data / "0.parquet", index=False)
    with pytest.warns(UserWarning, match="duplicates"):
        found = drsne.distributed.fit(data, tmp_path / "map", **QUICK | {"verbose": 1})
    text = (tmp_path / "map.work" / "scores.json").read_text()
    assert "NaN" not in text
    assert json.loads(text) == found.scores
    assert found.scores["scores"]["concentration_correlation"] is None
    assert "concentration correlation: not defined" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["value", "rows", "damaged"])
def test_a_file_can_be_repaired_where_the_message_says_so(tmp_path, kind):
    data, path = tmp_path / "data", tmp_path / "data" / "part.3.parquet"
    write(data)
    good = path.read_bytes()
    if kind == "damaged":
        path.write_bytes(good[:200] + bytes(byte ^ 0xFF for byte in good[200:2000]) + good[2000:])
    else:
        table = pd.read_parquet(path)
        table.loc[7, "c"] = np.nan
        table.to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"part\.3\.parquet.*call fit again"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    if kind == "rows":
        pd.read_parquet(path).dropna().to_parquet(path, index=False)
    else:
        path.write_bytes(good)
    found = drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    assert found.scores["rows"] == sum(SIZES) - (kind == "rows")
    again = drsne.distributed.fit(data, tmp_path / "other", **QUICK)
    assert contents(again.output) == contents(found.output)


def test_a_file_cannot_be_changed_after_the_first_stage(tmp_path):
    """Not even if the results of the first stage are missing, because those of later stages are of the earlier file."""
    data, path = tmp_path / "data", tmp_path / "data" / "part.3.parquet"
    write(data)
    drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    (tmp_path / "map.work" / "statistics.npz").unlink()
    table = pd.read_parquet(path)
    table.loc[7, "c"] += 1
    table.to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"other data \(part\.3\.parquet has changed\)"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)


def test_a_change_in_the_middle_of_a_file_is_noticed(tmp_path):
    """The size and the end of the file stay the same. A file that is only copied or touched has not changed."""
    data, path = tmp_path / "data", tmp_path / "data" / "part.0.parquet"
    data.mkdir()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30_000, 3)), columns=list("abc"))
    table.to_parquet(path, index=False)
    found = drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    before, size = contents(found.output), path.stat().st_size
    os.utime(path, (1, 1))
    assert contents(drsne.distributed.fit(data, tmp_path / "map", **QUICK).output) == before
    end = path.read_bytes()[-65_536:]
    table["a"] = np.r_[rng.permutation(table["a"][:20_000]), table["a"][20_000:]]
    table.to_parquet(path, index=False)
    assert (path.stat().st_size, path.read_bytes()[-65_536:]) == (size, end)
    with pytest.raises(ValueError, match=r"other data \(part\.0\.parquet has changed\)"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)


def test_partitions_that_are_finished_are_read_once(tmp_path, monkeypatch):
    data, path = tmp_path / "data", tmp_path / "data" / "part.3.parquet"
    write(data)
    good = path.read_bytes()
    pd.read_parquet(path).assign(c=np.float32(np.nan)).to_parquet(path, index=False)
    with pytest.raises(ValueError, match="call fit again"):
        drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    path.write_bytes(good)
    original, calls = statistics.summarize, []

    def counted(part, number, *arguments):
        calls.append(number)
        return original(part, number, *arguments)

    monkeypatch.setattr(statistics, "summarize", counted)
    drsne.distributed.fit(data, tmp_path / "map", **QUICK)
    assert calls == [3, 4]


def test_numbers_of_other_types_are_the_same_settings(tmp_path):
    write(tmp_path / "data", (60, 60))
    found = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK | {"n_landmarks": 50})
    model = DRSNE(perplexity=np.float64(10), density_neighbors=np.int64(10), max_iter=60, random_state=0)
    again = drsne.distributed.fit(
        tmp_path / "data", tmp_path / "map", **QUICK | {"n_landmarks": np.int32(50), "model": model}
    )
    assert again.scores == found.scores


def test_an_output_that_is_not_a_name(tmp_path):
    write(tmp_path / "data", (60, 60))
    with pytest.raises(TypeError, match="output must be a folder; got None"):
        drsne.distributed.fit(tmp_path / "data", None, **QUICK)


@pytest.mark.parametrize("kind", ["columns", "columns of one block", "rows"])
def test_blocks_of_a_dask_array_with_another_shape(tmp_path, kind):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")

    def cut(block):
        if kind == "rows":
            return block[1:]
        return block[:, :3] if kind == "columns" or len(block) < 70 else block

    lazy = da.from_array(rows(200), (70, 5)).map_blocks(cut, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    with pytest.raises(ValueError, match=r"Block [02] of the Dask array must have the shape"):
        drsne.distributed.fit(lazy, tmp_path / "map", **QUICK)
