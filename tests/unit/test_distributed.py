"""Maps of data in partitions: the same rows, the same order, resumed after every interruption."""

from __future__ import annotations

import errno
import json
import shutil
import sys

import numpy as np
import pytest
from covering import each_value
from scipy.sparse import csr_matrix

pq = pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
import pandas as pd  # noqa: E402
from on_partitions import QUICK, SIZES, contents, rows, write  # noqa: E402

import drsne  # noqa: E402
from drsne import DRSNE  # noqa: E402
from drsne.backends.numba.threads import Workers  # noqa: E402
from drsne.distributed import concentration, landmarks, placing, sources, stages, statistics  # noqa: E402
from drsne.distributed.concentration import Nearest, tiles  # noqa: E402
from drsne.distributed.landmark_map import CORRECTING, MEASURING  # noqa: E402
from drsne.distributed.landmarks import Coverage, Law  # noqa: E402
from drsne.distributed.work import Work  # noqa: E402
from drsne.placement.rows import radii as placed_radii  # noqa: E402


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a folder with data, their map and its work folder, the result and the rows."""
    folder = tmp_path_factory.mktemp("distributed")
    X = write(folder / "data")
    return folder, drsne.distributed.fit(folder / "data", folder / "map", **QUICK), X


def test_every_row_is_there_once_in_order(finished):
    _, found, X = finished
    names = [f"part.{number}.parquet" for number in range(len(SIZES))]
    assert sorted(contents(found.output)) == names
    parts = [pd.read_parquet(found.output / name) for name in names]
    assert tuple(map(len, parts)) == SIZES
    assert list(parts[0].columns) == ["drsne1", "drsne2", "concentration_data", "concentration_map", "novelty"]
    table, model = pd.concat(parts), drsne.load(found.model_file)
    np.testing.assert_array_equal(table[["drsne1", "drsne2"]], model.transform(X.astype(np.float64)))
    np.testing.assert_array_equal(table["concentration_data"], model.new_concentration(X))
    np.testing.assert_array_equal(table["novelty"], model.novelty(X))


def test_landmarks_keep_their_places_and_concentrations(finished):
    folder, found, X = finished
    work = Work(folder / "map.work")
    chosen = work.load(work.path(landmarks.STAGE))
    first = np.concatenate([[0], np.cumsum(SIZES)])
    where = first[chosen["parts"]] + chosen["rows"]
    assert len(np.unique(where)) == QUICK["n_landmarks"]
    np.testing.assert_array_equal(X[where], chosen["X"])
    assert chosen["masses"].sum() == pytest.approx(len(X))
    table, model = pd.read_parquet(found.output), drsne.load(found.model_file)
    np.testing.assert_array_equal(table[["drsne1", "drsne2"]].to_numpy()[where], model.embedding_)
    np.testing.assert_array_equal(table["concentration_map"].to_numpy()[where], model.concentration_)


def test_concentrations_are_those_of_the_whole_data(finished):
    folder, found, X = finished
    work = Work(folder / "map.work")
    queries = work.load(work.path(concentration.QUERIES))["X"].astype(np.float64)
    distances = np.sqrt(((queries[:, None] - X[None].astype(np.float64)) ** 2).sum(axis=2))
    expected = np.sort(distances, axis=1)[:, :11]
    np.testing.assert_allclose(work.load(work.path(concentration.STAGE))["distances"], expected, rtol=1e-12)
    model = drsne.load(found.model_file)
    radii = concentration.radii(work, small_groups=True)[: QUICK["n_landmarks"]]
    correlation = np.corrcoef(np.log(radii), model.input_concentration_)[0, 1]
    assert correlation < -0.9999
    accuracy = found.scores["concentration"]
    assert accuracy["checked_rows"] > 0
    assert abs(accuracy["bias"]) < 0.1
    assert accuracy["root_mean_square_error"] < 0.25


def test_estimated_radii_have_no_bias_on_the_rows_that_correct_them(finished):
    folder, found, _ = finished
    work, model = Work(folder / "map.work"), drsne.load(found.model_file)
    n = QUICK["n_landmarks"]
    rows = work.load(work.path(concentration.QUERIES))["X"][n:]
    exact = concentration.radii(work, small_groups=True)[n:]
    with model._placer() as placer:
        estimated, new = placed_radii(model._reference, rows, placer)
    errors = np.log(estimated / exact)
    half = errors[CORRECTING][new[CORRECTING]]
    assert len(half) > 10
    assert abs(half.mean()) < 1e-12
    other = errors[MEASURING][new[MEASURING]]
    assert found.scores["concentration"]["checked_rows"] == len(other)
    assert found.scores["concentration"]["bias"] == pytest.approx(
        -other.mean(), abs=1e-3
    )  # a small length is added to radii


def test_scores_are_stored(finished):
    folder, found, X = finished
    assert json.loads((folder / "map.work" / "scores.json").read_text()) == found.scores
    assert found.scores["rows"] == len(X)
    assert len(found.scores["scores"]) == 5
    assert all(np.isfinite(value) for value in found.scores["scores"].values())
    assert set(found.seconds) >= {"statistics", "landmarks", "concentration", "landmark_map", "output", "scores"}


def test_statistics(finished):
    folder, _, X = finished
    work = Work(folder / "map.work")
    found = work.load(work.path(statistics.STAGE))
    assert int(found["count"]) == len(X)
    np.testing.assert_allclose(found["mean"], X.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(found["variance"], X.var(axis=0, dtype=np.float64), rtol=1e-12)


STAGES = {
    "statistics": (statistics, "summarize"),
    "landmarks": (landmarks, "draw"),
    "concentration": (concentration, "search"),
    "landmark_map": (stages.landmark_map, "fit"),
    "output": (placing, "place"),
    "scores": (stages.scores, "score"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupted_run_continues(finished, tmp_path, monkeypatch, stage):
    folder, found, _ = finished
    module, name = STAGES[stage]
    original, calls = getattr(module, name), []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3 or stage in ("landmark_map", "scores"):
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(module, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    calls.clear()

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(module, name, counted)
    again = drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    assert len(calls) == (1 if stage in ("landmark_map", "scores") else len(SIZES) - 2)
    assert contents(again.output) == contents(found.output)
    assert again.scores == found.scores
    calls.clear()
    drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    assert calls == []


def test_other_settings_and_other_data_are_refused(finished, tmp_path):
    folder, _, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for other in ({"n_landmarks": 151}, {"random_state": 1}, {"model": DRSNE(perplexity=11)}, {"columns": ["a", "b"]}):
        with pytest.raises(ValueError, match=r"other settings.*Repeat the call"):
            drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **{**QUICK, **other})
    X = rows(250, 77)
    pd.DataFrame(X, columns=list("abcde")).to_parquet(tmp_path / "data" / "part.3.parquet", index=False)
    with pytest.raises(ValueError, match=r"other data \(part.3.parquet has changed\)"):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    (tmp_path / "data" / "part.3.parquet").unlink()
    with pytest.raises(ValueError, match=r"other data \(5 partitions instead of 4\)"):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)


def test_a_damaged_file_keeps_what_is_finished(tmp_path):
    write(tmp_path / "data")
    path = tmp_path / "data" / "part.3.parquet"
    good = path.read_bytes()
    path.write_bytes(good[:200] + bytes(b ^ 0xFF for b in good[200:2000]) + good[2000:])
    with pytest.raises(ValueError, match=r"part\.3\.parquet.*(damaged|finite)"):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    work = Work(tmp_path / "map.work")
    assert work.missing(statistics.STAGE, len(SIZES)) == [3, 4]
    path.write_bytes(good[:100])
    with pytest.raises(ValueError, match=r"part\.3\.parquet is damaged or not a Parquet file"):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)


@pytest.mark.parametrize("kind", ["another type", "text", "no column", "missing", "infinite"])
def test_columns_that_differ(tmp_path, kind):
    write(tmp_path / "data")
    path = tmp_path / "data" / "part.3.parquet"
    table = pd.read_parquet(path)
    if kind == "another type":
        table["c"] = table["c"].astype(np.float64)
    elif kind == "text":
        table["c"] = "x"
    elif kind == "no column":
        del table["c"]
    else:
        table.loc[7, "c"] = np.nan if kind == "missing" else np.inf
    table.to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"'c'.*(part\.3\.parquet)|part\.3\.parquet.*'c'") as error:
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert "\n" not in str(error.value)


def test_columns_can_be_chosen(tmp_path):
    write(tmp_path / "data", (200, 100))
    for path in (tmp_path / "data").iterdir():
        pd.read_parquet(path).assign(name="x").to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"'name'.*must hold numbers.*columns="):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    found = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", columns=["a", "c"], **QUICK)
    assert list(drsne.load(found.model_file)._reference.training.rows.shape) == [150, 2]


def test_the_index_of_a_data_frame_is_not_data(finished, tmp_path):
    folder, _, _ = finished
    files = [folder / "data" / f"part.{number}.parquet" for number in (0, 3)]
    (tmp_path / "data").mkdir()
    for path in files:
        table = pd.read_parquet(path)
        table.index = pd.Index(np.arange(len(table))[::-1] * 1000)
        table.to_parquet(tmp_path / "data" / path.name)
    found = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert contents(found.output) == contents(drsne.distributed.fit(files, tmp_path / "other", **QUICK).output)
    pd.DataFrame(index=[3, 1, 2]).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="at least one column of numbers"):
        drsne.distributed.fit([tmp_path / "empty.parquet"], tmp_path / "third", **QUICK)


def test_a_full_disk(finished, tmp_path, monkeypatch):
    folder, found, _ = finished
    original, written = pq.ParquetWriter.write_table, []

    def full(self, table, *arguments, **named):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(table)
        return original(self, table, *arguments, **named)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match=r"part\.3\.parquet.*disk is full.*call fit again"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    assert sorted(contents(tmp_path / "map")) == [f"part.{number}.parquet" for number in range(3)]
    monkeypatch.undo()
    assert contents(drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK).output) == contents(found.output)


def test_a_full_disk_in_the_work_folder(finished, tmp_path, monkeypatch):
    folder, _, _ = finished

    def full(*arguments, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match=r"statistics.*disk is full"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)


def test_outputs_that_would_lose_files(finished, tmp_path):
    folder, _, _ = finished
    with pytest.raises(ValueError, match="must not be the folder of the data"):
        drsne.distributed.fit(folder / "data", folder / "data", **QUICK)
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "other.txt").write_text("x")
    with pytest.raises(ValueError, match="new or empty folder"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    with pytest.raises(ValueError, match="must be a folder"):
        drsne.distributed.fit(folder / "data", tmp_path / "map" / "other.txt", **QUICK)


@pytest.mark.parametrize("kind", ["no work folder", "an emptied work folder", "no manifest", "no manifest, no output"])
def test_results_of_a_run_that_is_not_known(finished, tmp_path, kind):
    """Results without the manifest of their run are never mixed with those of another one."""
    folder, _, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / ("map" if kind.endswith("no output") else "data"))
    if "manifest" in kind:
        (tmp_path / "map.work" / "manifest.json").unlink()
    else:
        (tmp_path / "map" / "part.1.parquet").unlink()
        shutil.rmtree(tmp_path / "map.work")
        if kind == "an emptied work folder":
            (tmp_path / "map.work").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"output must be a new or empty folder.*Remove both folders.*another output"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK, random_state=1)
    assert sorted(tmp_path.rglob("*")) == before
    for name in ("map", "map.work"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK, random_state=1)


def test_models_that_are_not_supported(finished, tmp_path):
    folder, _, _ = finished
    for model in (DRSNE(metric="precomputed"), DRSNE(pca_components=2), DRSNE(init=np.zeros((3, 2)))):
        with pytest.raises(ValueError, match="model must have"):
            drsne.distributed.fit(folder / "data", tmp_path / "map", **{**QUICK, "model": model})
    with pytest.raises(TypeError, match="model must be a DRSNE"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **{**QUICK, "model": "tsne"})


def test_a_list_of_files_in_its_own_order(finished, tmp_path):
    folder, _, _ = finished
    files = [folder / "data" / f"part.{number}.parquet" for number in (3, 0)]
    found = drsne.distributed.fit(files, tmp_path / "map", **QUICK)
    assert [len(pd.read_parquet(found.output / path.name)) for path in files] == [250, 300]
    with pytest.raises(ValueError, match="different names"):
        drsne.distributed.fit([files[0], files[0]], tmp_path / "other", **QUICK)
    with pytest.raises(FileNotFoundError, match="not a file"):
        drsne.distributed.fit([folder / "nothing.parquet"], tmp_path / "other", **QUICK)


def test_files_are_in_natural_order(tmp_path):
    for name in ("part.10.parquet", "part.9.parquet", "_metadata.parquet", ".part.1.parquet", "readme.txt"):
        (tmp_path / name).write_text("")
    assert [path.name for path in sources.parquet_files(tmp_path)] == ["part.9.parquet", "part.10.parquet"]


def test_file_names_with_other_digits(tmp_path):
    names = ["²1.parquet", "x٣.parquet", "x2.parquet", "x10.parquet"]
    for name in names:
        (tmp_path / name).write_text("")
    found = [path.name for path in sources.parquet_files(tmp_path)]
    assert sorted(found) == sorted(names)
    assert found.index("x2.parquet") < found.index("x10.parquet")


@pytest.mark.parametrize("columns", ["abc", [], ["a", "a"], [1, 2]])
def test_columns_that_are_not_names(finished, tmp_path, columns):
    folder, _, _ = finished
    with pytest.raises((TypeError, ValueError), match="columns must be"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK, columns=columns)


def test_an_output_that_is_the_working_directory(finished, tmp_path, monkeypatch):
    folder, found, _ = finished
    (tmp_path / "map").mkdir()
    monkeypatch.chdir(tmp_path / "map")
    again = drsne.distributed.fit(folder / "data", ".", **QUICK)
    assert (tmp_path / "map.work").is_dir()
    monkeypatch.chdir(folder)
    assert contents(again.output) == contents(found.output)
    with pytest.raises(ValueError, match="folder with a name"):
        drsne.distributed.fit(folder / "data", "/", **QUICK)


def test_equal_weights_without_coverage(finished, tmp_path):
    folder, _, _ = finished
    found = drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK, coverage=0)
    work = Work(tmp_path / "map.work")
    assert np.ptp(work.load(work.path(landmarks.STAGE))["masses"]) == 0.0
    assert drsne.load(found.model_file)._reference.training.masses is None


def test_rows_that_are_all_landmarks(tmp_path):
    X = write(tmp_path / "data", (60, 60))
    with pytest.warns(UserWarning, match="All 120 rows are landmarks"):
        found = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    model = drsne.load(found.model_file)
    direct = DRSNE(perplexity=10, density_neighbors=10, max_iter=60, random_state=0).fit(X)
    np.testing.assert_allclose(model.input_concentration_, direct.input_concentration_, atol=1e-9)
    np.testing.assert_array_equal(pd.read_parquet(found.output)[["drsne1", "drsne2"]], model.embedding_)


def test_masses_are_unbiased(tmp_path):
    """The masses of the landmarks of a group add up to the number of its rows, on average over seeds."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 3)), 60 + 20 * rng.normal(size=(30, 3))]).astype(np.float32)
    (tmp_path / "data").mkdir()
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "data" / "0.parquet", index=False)
    (part,) = sources.parquet_parts(tmp_path / "data", None)
    totals, counts = [], []
    for seed in range(20):
        work = Work(tmp_path / str(seed))
        work.missing(statistics.STAGE, 1)
        statistics.summarize(part, 0, work, seed, statistics.share_for(200, len(X)))
        statistics.merge(work, 1, 200)
        work.missing(landmarks.STAGE, 1)
        law = Law("euclidean", 2.0)
        landmarks.draw(part, 0, work, seed, law, landmarks.bound(work, law, 100), None)
        assert landmarks.merge(work, 1, 100)
        found = work.load(work.path(landmarks.STAGE))
        rare = found["rows"] >= 3000
        totals.append(found["masses"][rare].sum())
        counts.append(rare.sum())
    assert np.mean(counts) > 3 * 100 * 30 / 3030  # a uniform sample would have one of them
    assert abs(np.mean(totals) - 30) < 4 * np.std(totals) / np.sqrt(len(totals))


def test_weights_do_not_depend_on_the_scale_of_a_group():
    X = rows(2000).astype(np.float64)
    with Workers() as workers:
        weights = Coverage(X[:500], Law("euclidean", 2.0), workers).weights(X[500:], workers)
        assert np.mean(weights > 1.0) < 0.2
        assert Coverage(X[:500], Law("euclidean", 2.0), workers).weights(X[:1] + 1e3, workers) == [100.0]


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_nearest_rows_over_blocks(offset):
    X = rows(1500).astype(np.float64) + offset
    Q, reach = X[::5], np.full(300, np.inf)
    found = Nearest(Q, 7, reach)
    for start in range(0, 1500, 400):
        found.add(X[start : start + 400])
    expected = np.sort(np.sqrt(((Q[:, None] - X[None]) ** 2).sum(axis=2)), axis=1)[:, :7]
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12)
    bounded = Nearest(Q, 7, expected[:, -1])
    for start in range(0, 1500, 100):
        bounded.add(X[start : start + 100])
    np.testing.assert_array_equal(bounded.distances, found.distances)


def test_tiles_hold_every_row_once():
    X = rows(1000).astype(np.float64)
    found = list(tiles(X, 64))
    assert max(map(len, found)) <= 64
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(1000))


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'drsne\[dask\]'"):
        drsne.distributed.fit(tmp_path, tmp_path / "map")


def test_without_dask(finished, monkeypatch, tmp_path):
    folder, _, _ = finished
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"needs distributed: pip install 'drsne\[dask\]'"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK, client="tcp://127.0.0.1:1")


def test_dask_arrays(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    X = rows(500)
    lazy = da.from_array(X, ((200, 0, 300), (2, 3)), name="data-1")
    original, calls = placing.place, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(placing, "place", interrupted)
    with pytest.raises(KeyboardInterrupt):
        drsne.distributed.fit(lazy, tmp_path / "map", **QUICK)
    monkeypatch.undo()
    found = drsne.distributed.fit(lazy, tmp_path / "map", **QUICK)
    assert sorted(contents(found.output)) == [f"part-0000{number}.parquet" for number in range(3)]
    table, model = pd.read_parquet(found.output), drsne.load(found.model_file)
    np.testing.assert_array_equal(table[["drsne1", "drsne2"]], model.transform(X.astype(np.float64)))
    assert not list((tmp_path / "map.work").rglob("*.npy"))
    assert drsne.distributed.fit(lazy, tmp_path / "map", **QUICK).scores == found.scores
    with pytest.raises(ValueError, match="another Dask array"):
        drsne.distributed.fit(lazy + 1, tmp_path / "map", **QUICK)
    broken = X.copy()
    broken[450, 2] = np.nan
    with pytest.raises(ValueError, match="Block 1 of the Dask array must be finite"):
        drsne.distributed.fit(da.from_array(broken, (300, 5)), tmp_path / "other", **QUICK)


def test_dask_arrays_without_columns_or_with_names(tmp_path):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    lazy = da.from_array(rows(50), (20, 5))
    with pytest.raises(ValueError, match="columns must be None for a Dask array"):
        drsne.distributed.fit(lazy, tmp_path / "map", **QUICK, columns=["a"])
    with pytest.raises(ValueError, match="at least one column"):
        drsne.distributed.fit(lazy[:, :0], tmp_path / "map", **QUICK)


def test_dask_arrays_of_sparse_and_masked_blocks(tmp_path):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    lazy = da.from_array(np.where(rows(300) > 0, rows(300), 0), (100, 5))
    dense = drsne.distributed.fit(lazy, tmp_path / "dense", **QUICK)
    sparse = drsne.distributed.fit(lazy.map_blocks(csr_matrix, dtype=lazy.dtype), tmp_path / "sparse", **QUICK)
    assert contents(sparse.output) == contents(dense.output)
    with pytest.raises(ValueError, match="Block 0 of the Dask array must have no masked values"):
        drsne.distributed.fit(da.ma.masked_greater(lazy, 5.0), tmp_path / "masked", **QUICK)


@pytest.mark.parametrize("wrong", [{"client": 3}, {"verbose": "x"}, {"verbose": -1}])
def test_arguments_are_checked_before_the_run_starts(finished, tmp_path, wrong):
    folder, _, _ = finished
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))} must be"):
        drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK | wrong)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("coverage", [0.0, 2.0])
def test_fewer_landmarks_than_the_model_needs(finished, tmp_path, coverage):
    folder, _, _ = finished
    settings = QUICK | {"model": DRSNE(max_iter=60), "n_landmarks": 25, "coverage": coverage}
    with pytest.warns(UserWarning, match="Lowered .*density_neighbors from 30 to .*larger n_landmarks") as caught:
        drsne.distributed.fit(folder / "data", tmp_path / "map", **settings)
    assert not any("sample_weight" in str(each.message) for each in caught)


def test_sources_that_are_not_data(tmp_path):
    with pytest.raises(TypeError, match=r"source must be a folder.*got ndarray"):
        drsne.distributed.fit(rows(20), tmp_path / "map", **QUICK)
    with pytest.raises(FileNotFoundError, match="is neither"):
        drsne.distributed.fit(tmp_path / "nothing", tmp_path / "map", **QUICK)


KINDS = {
    "cosine": {"metric": "cosine"},
    "manhattan": {"metric": "manhattan"},
    "three dimensions": {"n_components": 3},
    "plain t-SNE": {"density_weight": 0},
    "neighbours in the map": {"neighborhoods": "embedding"},
    "fixed kernel": {"kernel": "fixed"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_other_models(finished, tmp_path, kind):
    folder, _, X = finished
    model = DRSNE(perplexity=10, density_neighbors=10, max_iter=60, **KINDS[kind])
    found = drsne.distributed.fit(folder / "data", tmp_path / "map", **{**QUICK, "model": model})
    table, fitted = pd.read_parquet(found.output), drsne.load(found.model_file)
    assert np.isfinite(table.to_numpy()).all()
    d = model.n_components
    np.testing.assert_array_equal(table.to_numpy()[:, :d], fitted.transform(X.astype(np.float64)))
    assert abs(found.scores["concentration"]["bias"]) < 0.1
    # Concentrations of the map are in the unit of the landmarks: their means over similar rows are similar.
    work = Work(tmp_path / "map.work")
    masses = work.load(work.path(landmarks.STAGE))["masses"]
    assert abs(table["concentration_map"].mean() - np.average(fitted.concentration_, weights=masses)) < 0.5


def test_rows_are_placed_on_the_processor_if_landmarks_were_fitted_by_pytorch(finished, tmp_path):
    pytest.importorskip("torch", reason="fits the landmarks")
    folder, _, X = finished
    model = DRSNE(perplexity=10, density_neighbors=10, max_iter=60, backend="torch", device="cpu")
    found = drsne.distributed.fit(folder / "data", tmp_path / "map", **{**QUICK, "model": model})
    table, fitted = pd.read_parquet(found.output), drsne.load(found.model_file)
    assert fitted.backend == "torch"
    assert np.ptp(fitted._reference.training.masses) > 0.0
    expected = fitted.set_params(backend="numba", device=None).transform(X.astype(np.float64))
    np.testing.assert_array_equal(table.to_numpy()[:, :2], expected)


DAMAGED = {  # files, and what has to be removed so that they are read again
    "statistics.npz": ("landmarks.npz", "model.drsne"),
    "statistics/000001.npz": ("statistics.npz",),
    "landmarks/000003.npz": ("landmarks.npz",),
    "landmarks.npz": ("model.drsne",),
    "queries.npz": ("concentration.npz",),
    "concentration.npz": ("model.drsne",),
    "model.drsne": ("scores.json",),
}


@each_value({"name": DAMAGED, "share": [0.0, 0.5, 0.99]})
def test_a_damaged_file_of_the_work_folder(finished, tmp_path, name, share):
    folder, found, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "map.work" / name
    good = path.read_bytes()
    for other in DAMAGED[name]:
        (tmp_path / "map.work" / other).unlink()
    path.write_bytes(good[: int(share * len(good))])
    with pytest.raises(ValueError, match=r"is damaged .*Remove it and call fit again") as error:
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert str(error.value).startswith(str(path))
    path.unlink()
    again = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert contents(again.output) == contents(found.output)


def test_data_that_are_removed_while_rows_are_placed(finished, tmp_path, monkeypatch):
    folder, _, _ = finished
    shutil.copytree(folder / "data", tmp_path / "data")
    original, path = placing.place, tmp_path / "data" / "part.3.parquet"

    def removes(part, *arguments):
        path.unlink(missing_ok=True)
        return original(part, *arguments)

    monkeypatch.setattr(placing, "place", removes)
    with pytest.raises(ValueError, match=r"data.part\.3\.parquet must exist and be visible to all workers"):
        drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)


def test_a_damaged_block_of_a_dask_array(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    lazy = da.from_array(rows(300), (100, 5))
    monkeypatch.setattr(landmarks, "draw", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        drsne.distributed.fit(lazy, tmp_path / "map", **QUICK)
    monkeypatch.undo()
    path = tmp_path / "map.work" / "input" / "part-00001.npy"
    path.with_name(f".{path.name}.x7.npy").write_bytes(b"what a killed worker left")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"part-00001\.npy is damaged .*Remove it"):
        drsne.distributed.fit(lazy, tmp_path / "map", **QUICK)
    path.unlink()
    assert drsne.distributed.fit(lazy, tmp_path / "map", **QUICK).scores["rows"] == 300
    assert not list(path.parent.iterdir())


def test_a_new_run_in_the_folder_of_another_one(finished, tmp_path):
    """Nothing that a process remembers of a run is used for other data at the same path."""
    folder, found, _ = finished
    write(tmp_path / "data", (200, 350))
    drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    shutil.rmtree(tmp_path / "map")
    shutil.rmtree(tmp_path / "map.work")
    again = drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    assert contents(again.output) == contents(found.output)


@pytest.mark.parametrize("kind", ["truncated", "empty", "fewer rows", "other values", "a changed byte"])
def test_a_damaged_file_of_the_output_is_written_again(finished, tmp_path, kind):
    folder, found, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "map" / "part.3.parquet"
    good = path.read_bytes()
    if kind == "fewer rows":
        pd.read_parquet(path)[:-1].to_parquet(path, index=False)
    elif kind == "other values":
        pd.read_parquet(path)[::-1].to_parquet(path, index=False)
    elif kind == "a changed byte":
        path.write_bytes(good[:200] + bytes([good[200] ^ 1]) + good[201:])
    else:
        path.write_bytes(good[: 1000 if kind == "truncated" else 0])
    with pytest.warns(UserWarning, match=r"damaged or were changed .*part\.3\.parquet"):
        again = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert contents(again.output) == contents(found.output)


@pytest.mark.parametrize("lost", ["map/part.3.parquet", "map.work/output/000003.json"])
def test_a_file_of_the_output_that_is_lost_is_written_again(finished, tmp_path, monkeypatch, lost):
    folder, found, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / lost).unlink()
    original, calls = placing.place, []

    def counted(part, *arguments):
        calls.append(part.name)
        return original(part, *arguments)

    monkeypatch.setattr(placing, "place", counted)
    again = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert contents(again.output) == contents(found.output)
    assert calls == ["part.3.parquet"]


def test_files_with_hidden_names_in_a_list(finished, tmp_path):
    folder, _, _ = finished
    files = [tmp_path / name for name in (".hidden.parquet", "shown.pq")]
    for path, number in zip(files, (0, 3), strict=True):
        shutil.copy(folder / "data" / f"part.{number}.parquet", path)
    drsne.distributed.fit(files, tmp_path / "map", **QUICK)
    (tmp_path / "map" / ".shown.pq.x7.pq").write_bytes(b"PAR1")
    (tmp_path / "map.work" / ".queries.npz.x7.npz").write_bytes(b"PK")
    found = drsne.distributed.fit(files, tmp_path / "map", **QUICK)
    assert sorted(contents(found.output)) == [".hidden.parquet", "shown.pq"]
    assert not list((tmp_path / "map.work").glob(".*"))


def test_a_second_call_at_the_same_time_is_refused(finished, tmp_path, monkeypatch):
    folder, found, _ = finished
    original, refused = placing.place, []

    def twice(*arguments):
        with pytest.raises(BlockingIOError, match="in use by another call") as error:
            drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
        refused.append(error)
        return original(*arguments)

    monkeypatch.setattr(placing, "place", twice)
    again = drsne.distributed.fit(folder / "data", tmp_path / "map", **QUICK)
    assert len(refused) == len(SIZES)
    assert contents(again.output) == contents(found.output)


def test_what_a_killed_worker_left_is_removed(finished, tmp_path):
    folder, found, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "map" / ".part.1.parquet.x7.parquet").write_bytes(b"PAR1")
    for name in (".manifest.json.x7.json", ".model.drsne.x7.drsne", "landmarks/.000001.npz.x7.npz"):
        (tmp_path / "map.work" / name).write_bytes(b"")
    again = drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK)
    assert contents(again.output) == contents(found.output)
    assert not list((tmp_path / "map.work").rglob(".*"))


def test_every_stage_shows_its_progress(tmp_path, capsys):
    write(tmp_path / "data", (150, 100))
    drsne.distributed.fit(tmp_path / "data", tmp_path / "map", **QUICK | {"verbose": 1})
    out, err = capsys.readouterr()
    for label in ("statistics", "landmarks", "concentration", "DR-SNE", "places", "scores"):
        assert f"{label}: " in err
        assert f"\n{label} |" in err
    assert "250 rows, 150 landmarks" in out
