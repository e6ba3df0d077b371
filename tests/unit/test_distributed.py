"""Maps of data in partitions: the same rows, the same order, resumed after every interruption."""

from __future__ import annotations

import errno
import json
import shutil
import sys

import numpy as np
import pytest
from covering import in_one_test
from scipy.sparse import csr_matrix

pq = pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
import pandas as pd  # noqa: E402
from on_partitions import QUICK, SIZES, contents, counted, fit, rows, write  # noqa: E402

import drsne  # noqa: E402
from drsne import DRSNE  # noqa: E402
from drsne.backends.numba.threads import Workers  # noqa: E402
from drsne.distributed import concentration, landmarks, placing, sources  # noqa: E402
from drsne.distributed.concentration import Nearest, tiles  # noqa: E402
from drsne.distributed.landmarks import Coverage, Law  # noqa: E402
from drsne.distributed.placing import CORRECTING, MEASURING  # noqa: E402
from drsne.distributed.work import CONCENTRATION, LANDMARKS, QUERIES, STATISTICS, Work  # noqa: E402
from drsne.placement.rows import radii as placed_radii  # noqa: E402

LAW = Law("euclidean", 2.0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a folder with data, their map and its work folder, the result and the rows."""
    folder = tmp_path_factory.mktemp("distributed")
    X = write(folder / "data")
    return folder, fit(folder / "data", folder / "map"), X


@pytest.fixture
def copied(finished, tmp_path):
    """Return a copy of the folder of ``finished``, and the result."""
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    return tmp_path, finished[1]


def raises(calls, at=1):
    """Interrupt a counted function."""
    if len(calls) == at:
        raise KeyboardInterrupt


def test_every_row_is_there_once_in_order(finished):
    folder, found, X = finished
    names = [f"part.{number}.parquet" for number in range(len(SIZES))]
    assert sorted(contents(found.output)) == names
    parts = [pd.read_parquet(found.output / name) for name in names]
    assert tuple(map(len, parts)) == SIZES
    assert list(parts[0].columns) == ["drsne1", "drsne2", "concentration_data", "concentration_map", "novelty"]
    table, model = pd.concat(parts), drsne.load(found.model_file)
    np.testing.assert_array_equal(table[["drsne1", "drsne2"]], model.transform(X.astype(np.float64)))
    np.testing.assert_array_equal(table["concentration_data"], model.new_concentration(X))
    np.testing.assert_array_equal(table["novelty"], model.novelty(X))
    assert json.loads((folder / "map.work" / "scores.json").read_text()) == found.scores
    assert found.scores["rows"] == len(X)
    assert len(found.scores["scores"]) == 5
    assert all(np.isfinite(value) for value in found.scores["scores"].values())
    assert set(found.seconds) >= {"statistics", "landmarks", "concentration", "landmark_map", "output", "scores"}
    statistics = Work(folder / "map.work").load(folder / "map.work" / "statistics.npz")
    assert int(statistics["count"]) == len(X)
    np.testing.assert_allclose(statistics["mean"], X.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(statistics["variance"], X.var(axis=0, dtype=np.float64), rtol=1e-12)


def test_landmarks_keep_their_places_and_concentrations(finished):
    folder, found, X = finished
    work = Work(folder / "map.work")
    chosen = work.load(work.path(LANDMARKS))
    where = np.concatenate([[0], np.cumsum(SIZES)])[chosen["parts"]] + chosen["rows"]
    assert len(np.unique(where)) == QUICK["n_landmarks"]
    np.testing.assert_array_equal(X[where], chosen["X"])
    assert chosen["masses"].sum() == pytest.approx(len(X))
    table, model = pd.read_parquet(found.output), drsne.load(found.model_file)
    np.testing.assert_array_equal(table[["drsne1", "drsne2"]].to_numpy()[where], model.embedding_)
    np.testing.assert_array_equal(table["concentration_map"].to_numpy()[where], model.concentration_)


def test_concentrations_are_those_of_the_whole_data(finished):
    folder, found, X = finished
    work, model, n = Work(folder / "map.work"), drsne.load(found.model_file), QUICK["n_landmarks"]
    queries = work.load(work.path(QUERIES))["X"].astype(np.float64)
    distances = np.sqrt(((queries[:, None] - X[None].astype(np.float64)) ** 2).sum(axis=2))
    expected = np.sort(distances, axis=1)[:, :11]
    np.testing.assert_allclose(work.load(work.path(CONCENTRATION))["distances"], expected, rtol=1e-12)
    radii = concentration.radii(work, small_groups=True)
    assert np.corrcoef(np.log(radii[:n]), model.input_concentration_)[0, 1] < -0.9999
    with model._placer() as placer:
        estimated, new = placed_radii(model._reference, queries[n:], placer)
    errors = np.log(estimated / radii[n:])
    half, other = errors[CORRECTING][new[CORRECTING]], errors[MEASURING][new[MEASURING]]
    assert len(half) > 10
    assert abs(half.mean()) < 1e-12  # one half of the rows corrects the estimates, and the other measures them
    accuracy = found.scores["concentration"]
    assert accuracy["checked_rows"] == len(other)
    assert accuracy["bias"] == pytest.approx(-other.mean(), abs=1e-3)  # a small length is added to radii
    assert abs(accuracy["bias"]) < 0.1
    assert accuracy["root_mean_square_error"] < 0.25


STAGES = {
    "statistics": (landmarks, "summarize"),
    "landmarks": (landmarks, "draw"),
    "concentration": (concentration, "search"),
    "landmark_map": (placing, "fit"),
    "output": (placing, "place"),
    "scores": (placing, "score"),
}


def test_an_interrupted_run_continues(finished, tmp_path, monkeypatch):
    folder, found, _ = finished
    for stage, function in STAGES.items():
        once = stage in ("landmark_map", "scores")
        with monkeypatch.context() as patch:
            counted(patch, *function, lambda calls, at=1 if once else 3: raises(calls, at))
            with pytest.raises(KeyboardInterrupt):
                fit(folder / "data", tmp_path / "map")
        with monkeypatch.context() as patch:  # and the next stage is interrupted by the next round
            calls = counted(patch, *function)
            following = list(STAGES.values())[list(STAGES).index(stage) + 1 :][:1]
            for other in following:
                counted(patch, *other, raises)
            if following:
                with pytest.raises(KeyboardInterrupt):
                    fit(folder / "data", tmp_path / "map")
            else:
                again = fit(folder / "data", tmp_path / "map")
            assert len(calls) == (1 if once else len(SIZES) - 2), stage
    assert contents(again.output) == contents(found.output)
    assert again.scores == found.scores
    calls = [counted(monkeypatch, *function) for function in STAGES.values()]
    fit(folder / "data", tmp_path / "map")
    assert calls == [[]] * len(STAGES)


def test_other_settings_and_other_data_are_refused(copied):
    folder, found = copied
    for other in ({"n_landmarks": 151}, {"random_state": 1}, {"model": DRSNE(perplexity=11)}, {"columns": ["a", "b"]}):
        with pytest.raises(ValueError, match=r"other settings.*Repeat the call"):
            fit(folder / "data", folder / "map", **other)
    model = DRSNE(perplexity=np.float64(10), density_neighbors=np.int64(10), max_iter=60)  # equal numbers
    again = fit(folder / "data", folder / "map", n_landmarks=np.int32(150), model=model)
    assert again.scores == found.scores
    changed = folder / "data" / "part.3.parquet"
    pd.DataFrame(rows(250, 77), columns=list("abcde")).to_parquet(changed, index=False)
    with pytest.raises(ValueError, match=r"other data \(part.3.parquet has changed\)"):
        fit(folder / "data", folder / "map")
    (folder / "map.work" / "statistics.npz").unlink()  # the results of later stages are of the earlier file
    with pytest.raises(ValueError, match=r"other data \(part.3.parquet has changed\)"):
        fit(folder / "data", folder / "map")
    changed.unlink()
    with pytest.raises(ValueError, match=r"other data \(5 partitions instead of 4\)"):
        fit(folder / "data", folder / "map")


def test_the_index_of_a_data_frame_is_not_data(finished, tmp_path):
    """A list of files keeps its order, and files with hidden names are used if they are in it."""
    folder, _, _ = finished
    files = [folder / "data" / f"part.{number}.parquet" for number in (3, 0)]
    indexed = [tmp_path / ".hidden.parquet", tmp_path / "shown.pq"]
    for path, copy in zip(files, indexed, strict=True):
        table = pd.read_parquet(path)
        table.set_index(pd.Index(np.arange(len(table))[::-1] * 1000)).to_parquet(copy)
    found, other = fit(indexed, tmp_path / "map"), fit(files, tmp_path / "other")
    assert list(contents(found.output)) == [".hidden.parquet", "shown.pq"]
    assert list(contents(found.output).values()) == list(contents(other.output).values())[::-1]
    assert [len(pd.read_parquet(other.output / path.name)) for path in files] == [250, 300]
    pd.DataFrame(index=[3, 1, 2]).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="at least one column of numbers"):
        fit([tmp_path / "empty.parquet"], tmp_path / "third")


def test_a_full_disk(finished, tmp_path, monkeypatch):
    folder, found, _ = finished
    original, written = pq.ParquetWriter.write_table, []

    def full(*arguments, **named):
        if len(written) == 2 or named:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(arguments)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(OSError, match=r"statistics.*disk is full"):
            fit(folder / "data", tmp_path / "map")
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", lambda writer, table, **_: full(writer, table))
        with pytest.raises(OSError, match=r"part\.3\.parquet.*disk is full.*call fit again"):
            fit(folder / "data", tmp_path / "map")
    assert sorted(contents(tmp_path / "map")) == [f"part.{number}.parquet" for number in range(3)]
    assert contents(fit(folder / "data", tmp_path / "map").output) == contents(found.output)


def test_outputs_that_would_lose_files(finished, tmp_path, monkeypatch):
    folder, _, _ = finished
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "other.txt").write_text("x")
    for output, message in (
        (folder / "data", "must not be the folder of the data"),
        (tmp_path / "map", "new or empty folder"),
        (tmp_path / "map" / "other.txt", "must be a folder"),
        ("/", "folder with a name"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(folder / "data", output)
    with pytest.raises(TypeError, match="output must be a folder; got None"):
        fit(folder / "data", None)
    (tmp_path / "map" / "other.txt").unlink()
    monkeypatch.chdir(tmp_path / "map")
    assert len(contents(fit(folder / "data", ".").output)) == len(SIZES)
    assert (tmp_path / "map.work").is_dir()
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("kind", ["no work folder", "an emptied work folder", "no manifest", "no manifest, no output"])
def test_results_of_a_run_that_is_not_known(copied, finished, kind):
    """Results without the manifest of their run are never mixed with those of another one."""
    folder, source = copied[0], finished[0] / "data"
    shutil.rmtree(folder / ("map" if kind.endswith("no output") else "data"))
    if "manifest" in kind:
        (folder / "map.work" / "manifest.json").unlink()
    else:
        shutil.rmtree(folder / "map.work")
        if kind == "an emptied work folder":
            (folder / "map.work").mkdir()
    before = sorted(folder.rglob("*"))
    with pytest.raises(ValueError, match=r"output must be a new or empty folder.*Remove both folders.*another output"):
        fit(source, folder / "map", random_state=1)
    assert sorted(folder.rglob("*")) == before


def test_a_new_run_in_the_folder_of_another_one(finished, tmp_path):
    """Nothing that a process remembers of a run is used for other data at the same path."""
    folder, found, _ = finished
    write(tmp_path / "data", (200, 350))
    fit(tmp_path / "data", tmp_path / "map")
    for name in ("map", "map.work"):
        shutil.rmtree(tmp_path / name)
    assert contents(fit(folder / "data", tmp_path / "map").output) == contents(found.output)


@in_one_test(
    ("changes", "message"),
    [
        ({"model": DRSNE(metric="precomputed")}, "model must have"),
        ({"model": DRSNE(pca_components=2)}, "model must have"),
        ({"model": DRSNE(init=np.zeros((3, 2)))}, "model must have"),
        ({"model": "tsne"}, "model must be a DRSNE"),
        ({"columns": "abc"}, "columns must be"),
        ({"columns": []}, "columns must be"),
        ({"columns": ["a", "a"]}, "columns must be"),
        ({"columns": [1, 2]}, "columns must be"),
        ({"client": 3}, "client must be"),
        ({"verbose": "x"}, "verbose must be"),
        ({"verbose": -1}, "verbose must be"),
        ({"n_landmarks": 3}, "n_landmarks must be"),
    ],
)
def test_arguments_are_checked_before_the_run_starts(finished, tmp_path, changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(finished[0] / "data", tmp_path / "map", **changes)
    assert not list(tmp_path.iterdir())


def test_missing_packages(finished, monkeypatch, tmp_path):
    for package, changes in (("distributed", {"client": "tcp://127.0.0.1:1"}), ("pyarrow", {})):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf"needs {package}: pip install 'drsne\[dask\]'"):
            fit(finished[0] / "data", tmp_path / "map", **changes)


def test_equal_weights_without_coverage(finished, tmp_path):
    found = fit(finished[0] / "data", tmp_path / "map", coverage=0)
    work = Work(tmp_path / "map.work")
    assert np.ptp(work.load(work.path(LANDMARKS))["masses"]) == 0.0
    assert drsne.load(found.model_file)._reference.training.masses is None


def test_rows_that_are_all_landmarks(tmp_path):
    X = write(tmp_path / "data", (60, 60))
    with pytest.warns(UserWarning, match="All 120 rows are landmarks"):
        found = fit(tmp_path / "data", tmp_path / "map")
    model = drsne.load(found.model_file)
    direct = DRSNE(perplexity=10, density_neighbors=10, max_iter=60, random_state=0).fit(X)
    np.testing.assert_allclose(model.input_concentration_, direct.input_concentration_, atol=1e-9)
    np.testing.assert_array_equal(pd.read_parquet(found.output)[["drsne1", "drsne2"]], model.embedding_)


def test_masses_are_unbiased(tmp_path):
    """The masses of the landmarks of a group add up to the number of its rows, on average over seeds."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 3)), 60 + 20 * rng.normal(size=(30, 3))]).astype(np.float32)
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "0.parquet", index=False)
    (part,) = sources.parquet_parts([tmp_path / "0.parquet"], None)
    totals, counts = [], []
    for seed in range(20):
        work = Work(tmp_path / str(seed))
        work.missing(STATISTICS, 1)
        landmarks.summarize(part, 0, work, seed, 200, len(X))
        landmarks.merge_statistics(work, 1, 200)
        work.missing(LANDMARKS, 1)
        landmarks.draw(part, 0, work, seed, LAW, landmarks.bound(work, LAW, 100), None)
        assert landmarks.merge(work, 1, 100)
        found = work.load(work.path(LANDMARKS))
        rare = found["rows"] >= 3000
        totals.append(found["masses"][rare].sum())
        counts.append(rare.sum())
    assert np.mean(counts) > 3 * 100 * 30 / 3030  # a uniform sample would have one of them
    assert abs(np.mean(totals) - 30) < 4 * np.std(totals) / np.sqrt(len(totals))


def test_weights_do_not_depend_on_the_scale_of_a_group():
    X = rows(2000).astype(np.float64)
    with Workers() as workers:
        weights = Coverage(X[:500], LAW, workers).weights(X[500:], workers)
        assert np.mean(weights > 1.0) < 0.2
        assert Coverage(X[:500], LAW, workers).weights(X[:1] + 1e3, workers) == [100.0]


@in_one_test("offset", [0.0, 1e4])
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
    groups = list(tiles(X, 64))
    assert max(map(len, groups)) <= 64
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(1500))


def test_dask_arrays(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    X = rows(500)
    lazy = da.from_array(X, ((200, 0, 300), (2, 3)), name="data-1")
    with monkeypatch.context() as patch:
        counted(patch, placing, "place", lambda calls: raises(calls, 2))
        with pytest.raises(KeyboardInterrupt):
            fit(lazy, tmp_path / "map")
    found = fit(lazy, tmp_path / "map")
    assert sorted(contents(found.output)) == [f"part-0000{number}.parquet" for number in range(3)]
    table, model = pd.read_parquet(found.output), drsne.load(found.model_file)
    np.testing.assert_array_equal(table[["drsne1", "drsne2"]], model.transform(X.astype(np.float64)))
    assert not list((tmp_path / "map.work").rglob("*.npy"))
    assert fit(lazy, tmp_path / "map").scores == found.scores
    with pytest.raises(ValueError, match="another Dask array"):
        fit(lazy + 1, tmp_path / "map")
    with pytest.raises(ValueError, match="columns must be None for a Dask array"):
        fit(lazy, tmp_path / "other", columns=["a"])
    with pytest.raises(ValueError, match="at least one column"):
        fit(lazy[:, :0], tmp_path / "other")
    sparse = lazy.map_blocks(csr_matrix, dtype=lazy.dtype).rechunk((150, 5))  # one block for each partition
    assert fit(sparse, tmp_path / "sparse").scores["rows"] == 500
    with pytest.raises(ValueError, match="Block 0 of the Dask array must have no masked values"):
        fit(da.ma.masked_greater(lazy, 5.0), tmp_path / "masked")


def test_a_damaged_block_of_a_dask_array(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array", reason="reads lazy arrays")
    lazy = da.from_array(rows(300), (100, 5))
    with monkeypatch.context() as patch:
        counted(patch, landmarks, "draw", raises)
        with pytest.raises(KeyboardInterrupt):
            fit(lazy, tmp_path / "map")
    path = tmp_path / "map.work" / "input" / "part-00001.npy"
    path.with_name(f".{path.name}.x7.npy").write_bytes(b"what a killed worker left")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"part-00001\.npy is damaged .*Remove it"):
        fit(lazy, tmp_path / "map")
    path.unlink()
    assert fit(lazy, tmp_path / "map").scores["rows"] == 300
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("coverage", [0.0, 2.0])
def test_fewer_landmarks_than_the_model_needs(finished, tmp_path, coverage):
    settings = {"model": DRSNE(max_iter=60), "n_landmarks": 25, "coverage": coverage}
    with pytest.warns(UserWarning, match="Lowered .*density_neighbors from 30 to .*larger n_landmarks") as caught:
        fit(finished[0] / "data", tmp_path / "map", **settings)
    assert not any("sample_weight" in str(each.message) for each in caught)


KINDS = {
    "another metric": {"metric": "cosine", "n_components": 3},
    "plain t-SNE": {"metric": "manhattan", "density_weight": 0},
    "neighbours in the map": {"neighborhoods": "embedding", "kernel": "fixed"},
    "PyTorch": {"backend": "torch", "device": "cpu"},  # its landmarks are placed on the processor too
}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("kind", KINDS)
def test_other_models(finished, tmp_path, kind):
    folder, _, X = finished
    if kind == "PyTorch":
        pytest.importorskip("torch", reason="fits the landmarks")
    model = DRSNE(perplexity=10, density_neighbors=10, max_iter=60, **KINDS[kind])
    found = fit(folder / "data", tmp_path / "map", model=model)
    table, fitted = pd.read_parquet(found.output), drsne.load(found.model_file)
    assert fitted.backend == model.backend
    fitted.set_params(backend="numba", device=None)
    assert np.isfinite(table.to_numpy()).all()
    places = table.to_numpy()[:, : model.n_components]
    np.testing.assert_array_equal(places, fitted.transform(X.astype(np.float64)))
    assert abs(found.scores["concentration"]["bias"]) < 0.1
    # Concentrations of the map are in the unit of the landmarks: their means over similar rows are similar.
    work = Work(tmp_path / "map.work")
    masses = work.load(work.path(LANDMARKS))["masses"]
    assert abs(table["concentration_map"].mean() - np.average(fitted.concentration_, weights=masses)) < 0.5


DAMAGED = {  # files, and what has to be removed so that they are read again
    "statistics.npz": ("landmarks.npz", "model.drsne"),
    "statistics/000001.npz": ("statistics.npz",),
    "landmarks/000003.npz": ("landmarks.npz",),
    "landmarks.npz": ("model.drsne",),
    "queries.npz": ("concentration.npz",),
    "concentration.npz": ("model.drsne",),
    "model.drsne": ("scores.json",),
}


def test_damaged_files_of_the_work_folder(copied):
    folder, found = copied
    for number, (name, others) in enumerate(DAMAGED.items()):
        path = folder / "map.work" / name
        good = path.read_bytes()
        for other in others:
            (folder / "map.work" / other).unlink()
        path.write_bytes(good[: int((0.0, 0.5, 0.99)[number % 3] * len(good))])
        with pytest.raises(ValueError, match=r"is damaged .*Remove it and call fit again") as error:
            fit(folder / "data", folder / "map")
        assert str(error.value).startswith(str(path)), name
        path.unlink()
        assert contents(fit(folder / "data", folder / "map").output) == contents(found.output), name


def test_data_that_are_removed_while_rows_are_placed(copied, monkeypatch):
    folder, _ = copied
    (folder / "map" / "part.3.parquet").unlink()
    counted(monkeypatch, placing, "place", lambda calls: (folder / "data" / "part.3.parquet").unlink())
    with pytest.raises(ValueError, match=r"data.part\.3\.parquet must exist and be visible to all workers"):
        fit(folder / "data", folder / "map")


def test_files_of_the_output_that_are_damaged_or_lost_are_written_again(copied, monkeypatch):
    folder, found = copied
    path, expected = folder / "map" / "part.3.parquet", contents(found.output)
    good = path.read_bytes()
    calls = counted(monkeypatch, placing, "place")
    for kind in ("truncated", "empty", "other values", "a changed byte"):
        if kind == "other values":
            pd.read_parquet(path)[::-1].to_parquet(path, index=False)
        elif kind == "a changed byte":
            path.write_bytes(good[:200] + bytes([good[200] ^ 1]) + good[201:])
        else:
            path.write_bytes(good[: 1000 if kind == "truncated" else 0])
        with pytest.warns(UserWarning, match=r"damaged or were changed .*part\.3\.parquet"):
            assert contents(fit(folder / "data", folder / "map").output) == expected, kind
    for lost in ("map/part.3.parquet", "map.work/output/000003.json"):
        (folder / lost).unlink()
        assert contents(fit(folder / "data", folder / "map").output) == expected, lost
    assert [part.name for part, *_ in calls] == ["part.3.parquet"] * 6


def test_a_second_call_at_the_same_time_is_refused(copied, monkeypatch):
    folder, found = copied
    (folder / "map" / "part.3.parquet").unlink()

    def again(calls):
        with pytest.raises(BlockingIOError, match="in use by another call"):
            fit(folder / "data", folder / "map")

    calls = counted(monkeypatch, placing, "place", again)
    assert contents(fit(folder / "data", folder / "map").output) == contents(found.output)
    assert len(calls) == 1


def test_what_a_killed_worker_left_is_removed(copied):
    folder, found = copied
    (folder / "map" / ".part.1.parquet.x7.parquet").write_bytes(b"PAR1")
    for name in (".manifest.json.x7.json", ".model.drsne.x7.drsne", "landmarks/.000001.npz.x7.npz"):
        (folder / "map.work" / name).write_bytes(b"")
    assert contents(fit(folder / "data", folder / "map").output) == contents(found.output)
    assert not list((folder / "map.work").rglob(".*"))


def test_every_stage_shows_its_progress_and_undefined_scores_are_none(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    pd.DataFrame(np.ones((200, 3)), columns=list("abc")).to_parquet(tmp_path / "data" / "0.parquet", index=False)
    with pytest.warns(UserWarning, match="duplicates"):  # of the fit; all other warnings are errors
        found = fit(tmp_path / "data", tmp_path / "map", verbose=1)
    text = (tmp_path / "map.work" / "scores.json").read_text()
    assert "NaN" not in text
    assert json.loads(text) == found.scores
    assert found.scores["scores"]["concentration_correlation"] is None
    out, err = capsys.readouterr()
    for label in ("statistics", "landmarks", "concentration", "DR-SNE", "places", "scores"):
        assert f"{label}: " in err
        assert f"\n{label} |" in err
    assert "200 rows, 150 landmarks" in out
    assert "concentration correlation: not defined" in out
