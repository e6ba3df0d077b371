"""Rows, the runner, the constrained choice and tables."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from drsne.anomaly import detectors
from drsne_paper import Rows, Study, choose, methods, published, run, tables
from drsne_paper.document import markdown
from drsne_paper.methods import Method, Run, Workspace, each
from drsne_paper.methods._drsne import along_a_path
from drsne_paper.rows import key
from drsne_paper.runner import rows_of_study
from drsne_paper.scoring import MAIN, scores
from drsne_paper.study import Selection, check_names


def small(name):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(4.0 * g, 0.25 * 4.0**g, (40, 6)) for g in range(3)])
    return SimpleNamespace(X=X, y=np.repeat([0, 1, 2], 40), source=f"made for {name}")


def study(**changes):
    given = {
        "name": "test",
        "datasets": ("one", "two"),
        "methods": ("pca", "tsne"),
        "seeds": (0, 1),
        "scores": MAIN,
        "data": small,
        "grids": {"tsne": (5, 10)},
    }
    return Study(**(given | changes))


def test_a_study_runs_once(tmp_path):
    rows = Rows(tmp_path / "deep" / "rows.jsonl")
    made = run(study(), rows, verbose=0, maps=tmp_path / "maps")
    assert len(made) == 2 * (1 + 2 * 2)  # PCA has no seed
    assert {row["error"] for row in made} == {None}
    assert all(set(row["metrics"]) == {name for name, _ in MAIN} for row in made)
    assert {row["source"] for row in made} == {"made for one", "made for two"}
    assert all(np.load(tmp_path / "maps" / f"{row['key']}.npy").shape == (120, 2) for row in made)
    assert all(row["seconds"]["optimization"] >= 0 and row["versions"]["numpy"] for row in made)
    before = rows.path.read_bytes()
    assert run(study(), rows, verbose=0) == made
    assert rows.path.read_bytes() == before


def test_a_killed_study_goes_on(tmp_path, monkeypatch):
    """What had finished is kept, a row cut off in the middle is made again, and nothing is made twice."""
    rows, made = Rows(tmp_path / "rows.jsonl"), []
    usual = methods.load("tsne").maps

    def until_the_third(workspace, values, seed):
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append((values, seed))
        yield from usual(workspace, values, seed)

    dying = Method(
        title="t-SNE", parameter="perplexity", grid=(5, 10), maps=until_the_third, settings={"init": "random"}
    )
    find = methods.find
    monkeypatch.setattr(methods, "find", lambda name: dying if name == "tsne" else find(name))
    with pytest.raises(KeyboardInterrupt):
        run(study(), rows, verbose=0)
    kept = rows.read()
    assert len(kept) == 4  # PCA and three of t-SNE
    monkeypatch.setattr(methods, "find", find)
    with rows.path.open("a") as file:
        file.write('{"key": "cut o')
    with pytest.warns(UserWarning, match="which was cut off"):
        after = run(study(), rows, verbose=0)
    assert len(after) == 10
    assert rows.read()[:4] == kept
    assert len({row["key"] for row in rows.read()}) == len(rows.read()) == 10


def test_a_failed_run_is_a_row(tmp_path, monkeypatch):
    def sometimes(X, value, seed):
        if value == 10:
            raise RuntimeError("no luck")
        return X[:, :2] if value == 5 else np.full((len(X), 2), np.nan)

    failing = Method(title="t-SNE", parameter="perplexity", grid=(5, 10, 20), maps=each(sometimes))
    monkeypatch.setattr(methods, "find", lambda name: failing)
    few = study(methods=("tsne",), seeds=(0,), datasets=("one",), grids={})
    rows = Rows(tmp_path / "rows.jsonl")
    found = {row["value"]: row["error"] for row in run(few, rows, verbose=0)}
    assert found[5] is None
    assert found[10].startswith("RuntimeError: no luck (test_experiments.py, line")
    assert "not finite" in found[20]
    assert len(run(few, rows, verbose=0)) == len(rows.read()) == 3  # not made again
    monkeypatch.setattr(
        methods,
        "find",
        lambda name: Method(title="", parameter="perplexity", grid=(5, 10, 20), maps=each(lambda X, *_: X[:, :2])),
    )
    again = run(few, rows, verbose=0, retry=True)
    assert [row["error"] for row in again] == [None] * 3
    assert len(rows.read()) == 5


def test_data_that_are_not_available_are_skipped(tmp_path):
    """There is a warning and no row, so that the next start tries again; the other data sets are run."""

    def half(name):
        if name == "two":
            raise OSError("two cannot be reached")
        return small(name)

    rows = Rows(tmp_path / "rows.jsonl")
    with pytest.warns(UserWarning, match="Skipped the data set two: two cannot be reached"):
        found = run(study(data=half), rows, verbose=0)
    assert {row["dataset"] for row in found} == {"one"}
    assert {row["error"] for row in found} == {None}
    with pytest.warns(UserWarning, match="Skipped the data set two"):  # nothing else is left to do
        assert run(study(data=half), rows, verbose=0) == found
    assert rows.read() == found
    with pytest.raises(OSError, match="two cannot be reached"):  # nothing to show
        run(study(data=half, datasets=("two",)), rows, verbose=0)
    assert len(run(study(), rows, verbose=0)) == 2 * len(found)


def test_a_full_disk_leaves_whole_rows(tmp_path, monkeypatch):
    rows = Rows(tmp_path / "rows.jsonl")
    rows.append([{"key": "a"}])

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"rows.jsonl: No space left on device. Finished rows are kept"):
            rows.append([{"key": "b"}])
    assert rows.read() == [{"key": "a"}]
    rows.append([{"key": "c"}])
    assert [row["key"] for row in rows.read()] == ["a", "c"]


def test_damage_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\nnonsense\n{"key": "b"}\n')
    with pytest.raises(ValueError, match="line 2 is not JSON"):
        Rows(path).read()
    for wrong in ("[1, 2]", "null", '{"value": 3}'):
        path.write_text(f'{{"key": "a"}}\n{wrong}\n')
        with pytest.raises(ValueError, match=r"rows.jsonl is damaged: line 2 is not a row"):
            Rows(path).read()
    path.write_bytes(b'{"key": "\xff"}\n')
    with pytest.raises(ValueError, match=r"rows.jsonl is damaged: .*0xff"):
        Rows(path).read()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"key": "b", "metrics": null}', "has a field .metrics. that is not a mapping"),
        ('{"key": "b", "seconds": [1]}', "has a field .seconds. that is not a mapping"),
        ('{"key": ["b"]}', "its key is not a string"),
        ('{"key": "b", "value": ' + 100_000 * "[" + 100_000 * "]" + "}", "is nested too deeply"),
    ],
)
def test_rows_of_a_wrong_form_are_an_error(line, reason, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"key": "a"}}\n{line}\n')
    with pytest.raises(ValueError, match=rf"rows.jsonl is damaged: line 2 .*{reason}. Remove that line"):
        Rows(path).read()
    path.write_text(f'{{"key": "a"}}\n{line}')
    if "nested" not in reason:  # such a line looks like one that was cut off
        Rows(path).append([{"key": "c"}])
        assert path.read_text().endswith('{"key": "c"}\n')


def test_a_second_process_is_refused(tmp_path):
    """Two processes would compute every row twice."""
    rows = Rows(tmp_path / "rows.jsonl")
    with rows.exclusive():
        with pytest.raises(BlockingIOError, match=r"rows.jsonl is in use: .*another folder"):
            run(study(methods=("pca",)), Rows(rows.path), verbose=0)
        assert not rows.path.exists()
    assert len(run(study(methods=("pca",)), rows, verbose=0)) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_the_lock_of_a_dead_process_does_not_count(tmp_path):
    rows = Rows(tmp_path / "rows.jsonl")
    (tmp_path / "rows.jsonl.lock").write_text("process 1")
    assert len(run(study(methods=("pca",)), rows, verbose=0)) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_rows_of_another_version_are_announced_once(tmp_path):
    rows = Rows(tmp_path / "rows.jsonl")
    made = run(study(methods=("pca",)), rows, verbose=0)
    rows.path.unlink()
    rows.append([made[0] | {"versions": {"drsne": "0.0.7"}}, made[1] | {"versions": {}}])
    with pytest.warns(UserWarning, match=r"Some of the 2 rows were computed by .*: 1 by drsne 0\.0\.7\.") as caught:
        assert len(run(study(methods=("pca",)), rows, verbose=0)) == 2
    assert len(caught) == 1


SLOW_STUDY = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from drsne_paper import Rows, Study, run
from drsne_paper.methods import Method, each

def slow(X, value, seed):
    Path(sys.argv[1], f"started{value}").write_text(str(__import__("os").getpid()))
    time.sleep(600)

def data(name):
    return SimpleNamespace(X=np.zeros((10, 2)), y=None, source="")

method = Method(title="", parameter="weight", grid=(1, 2), maps=each(slow))
study = Study(name="slow", datasets=("one",), methods=("slow",), seeds=(0,), scores=(), data=data,
              variants={"slow": method})
run(study, Rows(Path(sys.argv[1], "rows.jsonl")), jobs=2, verbose=0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_workers_end_with_their_parent(tmp_path):
    """A study that is killed leaves no process behind that computes for minutes."""
    process = subprocess.Popen([sys.executable, "-c", SLOW_STUDY, str(tmp_path)], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(started := list(tmp_path.glob("started*"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    workers = [int(path.read_text()) for path in started]
    assert len(workers) == 2
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_alive, workers))


def is_alive(pid):
    """Return whether a process runs; one that has ended but was not collected by its parent does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_row_that_lacks_something_is_an_error():
    one = study(datasets=("one",), methods=("pca",))
    identity = one.identity("one", "pca", None, 0)
    row = {"key": key(identity), **identity, "value": None, "error": None, "seconds": {}}
    whole = row | {"metrics": dict.fromkeys([name for name, _ in MAIN], 0.5)}
    assert rows_of_study(one, [whole]) == [whole]
    assert rows_of_study(one, [whole | {"error": "ValueError: no", "metrics": {}}])
    with pytest.raises(ValueError, match=f"key '{row['key']}' has no metrics. Remove its line"):
        rows_of_study(one, [row])
    with pytest.raises(ValueError, match="has no trustworthiness"):
        rows_of_study(one, [row | {"metrics": {"concentration_correlation": 0.5, "density_rank_correlation": 0.5}}])
    for damage in (None, math.nan, "0.5"):
        with pytest.raises(ValueError, match="has no trustworthiness"):
            rows_of_study(one, [row | {"metrics": whole["metrics"] | {"trustworthiness": damage}}])
    ranked = study(datasets=("one",), methods=("pca",), scores=(("anomaly", None),))
    identity = ranked.identity("one", "pca", None, 0)
    found = {f"{score}_{name}": 0.5 for name in detectors() for score in ("auprc", "auroc")}
    row |= {"key": key(identity), **identity, "metrics": found}
    assert rows_of_study(ranked, [row]) == [row]
    del found["auprc_knn"]
    with pytest.raises(ValueError, match=r"has no auprc_knn\. Remove its line"):
        rows_of_study(ranked, [row])


def test_what_takes_much_memory_is_let_go():
    workspace, made = Workspace(np.zeros((5, 2))), []
    for key_ in ("a", "b", "a", "c", "a", "b"):
        assert workspace.cached_recent(key_, lambda key_=key_: made.append(key_) or key_) == key_
    assert made == ["a", "b", "c", "b"]  # the two asked for last are kept


def test_a_lowered_setting_is_an_error_row(tmp_path):
    """A row is a result of what it says."""
    many = Method(title="many", maps=along_a_path(density_neighbors=119, perplexity=300, max_iter=20), grid=(2.0,))
    one = study(datasets=("one",), methods=("many",), seeds=(0,), grids={}, variants={"many": many})
    (row,) = run(one, Rows(tmp_path / "rows.jsonl"), verbose=0)
    assert "perplexity must be at most 39.6667 for 120 points; got 300" in row["error"]


def test_maps_may_be_scored_against_other_data(tmp_path):
    def data(name, *, columns):
        whole = small(name)
        return SimpleNamespace(X=whole.X[:, :columns], y=whole.y, source="")

    given = {"datasets": ("one",), "methods": ("high_d",), "seeds": (0,), "grids": {}, "data": data}
    given["data_params"] = {"columns": 1}
    own, other = (
        run(study(**given, against=against), Rows(tmp_path / "rows.jsonl"), verbose=0)[0]
        for against in (None, {"columns": 6})
    )
    assert own["key"] != other["key"]
    assert own["metrics"]["trustworthiness"] == 1.0 > other["metrics"]["trustworthiness"]
    assert other["data"] == {"columns": 1}
    assert other["against"] == {"columns": 6}


def test_the_page_has_the_seeds_that_have_rows(tmp_path):
    from drsne_paper.studies import tradeoff

    asked = Selection(quick=True, datasets=["digits"], methods=["drsne"], seeds=[7])
    (part,) = tradeoff.STUDY.parts(asked)
    identity = part.identity("digits", "drsne", part.values("drsne")[0], 7)
    row = {"key": key(identity), **identity, "value": 0.0, "error": None, "seconds": {}}
    row |= {"metrics": {name: 0.5 for name, _ in part.scores}}
    Rows(tmp_path / "rows.jsonl").append([row])
    (shown,), rows = tradeoff.STUDY.load_results(tmp_path, quick=True)
    assert [row["seed"] for row in rows] == [7]
    assert 7 in shown.seeds


def test_keys_stand_for_what_was_run():
    few = study()
    one = few.identity("one", "tsne", 5, 0)
    assert key(one) == key(dict(reversed(one.items())))
    others = [
        few.identity("two", "tsne", 5, 0),
        few.identity("one", "tsne", 10, 0),
        few.identity("one", "tsne", 5, 1),
        few.identity("one", "pca", None, 0),
        study(scores=(("trustworthiness", 5),)).identity("one", "tsne", 5, 0),
    ]
    assert len({key(one), *map(key, others)}) == 6


def test_paths_are_one_run(tmp_path):
    few = study(methods=("drsne",), datasets=("one",), seeds=(0,), grids={"drsne": (1.0, 5.0)})
    assert [job.values for job in few.jobs(set())] == [(1.0, 5.0)]
    found = run(few, Rows(tmp_path / "rows.jsonl"), verbose=0)
    assert [row["value"] for row in found] == [1.0, 5.0]
    there = {found[0]["key"]}
    assert [job.values for job in few.jobs(there)] == [(1.0, 5.0)]  # the path starts at its start
    longer = study(methods=("drsne",), datasets=("one",), seeds=(0,), grids={"drsne": (1.0, 2.0, 5.0)})
    assert rows_of_study(longer, found) == []  # another path: other maps


def test_shared_search_is_made_once():
    calls = []
    workspace = Workspace(small("one").X)
    assert (
        workspace.cached("a", lambda: calls.append(1) or 3) == workspace.cached("a", lambda: calls.append(1) or 4) == 3
    )
    assert calls == [1]
    assert workspace.neighbors(5)[0] is workspace.neighbors(5)[0]
    assert workspace.neighbors(500)[0].indices.shape == (120, 119)


def test_scores_are_those_of_metrics():
    from drsne import metrics

    data = small("one")
    Y = data.X[:, :2]
    wanted = (*MAIN, ("continuity", 10), ("stress", None), ("silhouette", None))
    found = scores(Workspace(data.X), Y, wanted, data.y)
    assert found["trustworthiness"] == pytest.approx(metrics.trustworthiness(data.X, Y, 10))
    assert found["concentration_correlation"] == pytest.approx(metrics.concentration_correlation(data.X, Y, 29))
    assert found["density_rank_correlation"] == pytest.approx(metrics.density_rank_correlation(data.X, Y, 30))
    assert found["continuity"] == pytest.approx(metrics.continuity(data.X, Y, 10))
    assert found["stress"] == pytest.approx(metrics.stress(data.X, Y))
    assert found["silhouette"] == pytest.approx(metrics.silhouette(Y, data.y))


def row(value, seed, trust, cc, error=None):
    scores = {"trustworthiness": trust, "concentration_correlation": cc}
    return {"value": value, "seed": seed, "metrics": scores, "error": error}


def test_the_constrained_choice():
    rows = [
        row(1, 0, 0.99, 0.5), row(2, 0, 0.96, 0.7), row(3, 0, 0.94, 0.9),
        row(1, 1, 0.97, 0.6), row(2, 1, 0.94, 0.8), row(3, 1, 0.90, 0.9),
        row(1, 2, 0.93, 0.6), row(2, 2, 0.92, 0.8), row(3, 2, 0.99, 0.9, error="failed"),
    ]  # fmt: skip
    found = choose(rows, 0.95)
    assert [chosen["value"] for chosen in found.rows] == [2, 1]
    assert found.edges == (False, True)
    assert (found.n_seeds, found.n_values) == (3, 3)
    assert found.mean("concentration_correlation") == pytest.approx(0.65)
    assert found.std("concentration_correlation") == pytest.approx(0.1 / math.sqrt(2))  # ddof 1
    nothing = choose(rows, 0.999)
    assert nothing.rows == ()
    assert math.isnan(nothing.mean("trustworthiness"))
    assert math.isnan(choose(rows[:3], 0.95).std("trustworthiness"))


def test_tables():
    cells = {
        "trustworthiness": tables.Score(0.98, 0.001, 0.97, 0.002),
        "density_rank_correlation": tables.Score(0.5, math.nan, math.nan, math.nan),
    }
    lines = [tables.Line("Digits & co", "t-SNE", "30*", "3 of 3", "5 of 10", cells)]
    text = markdown(tables.blocks(lines, list(cells)))
    assert "### Digits & co" in text
    assert "| 0.980 ± 0.001 | 0.970 ± 0.002 | +0.010 |" in text
    assert "| +0.010 | 0.500 | 30*  " in text  # a score that the paper does not have stands alone
    tex = tables.latex(lines, list(cells))
    assert r"\multicolumn{7}{l}{\textit{Digits \& co}} \\" in tex
    assert r"$0.980\pm 0.001$ & $0.970\pm 0.002$ & $+0.010$ & $0.500$ & -- & -- \\" in tex
    rows = tables.comma_separated(lines, list(cells)).splitlines()
    assert rows[1].endswith("trustworthiness,0.98,0.001,0.97,0.002,0.01")
    assert rows[2].endswith("density_rank_correlation,0.5,,,,")


def test_published_numbers():
    assert published.main("digits", "tsne", "trustworthiness") == (0.98, 0.002)
    assert published.main("digits", "drsne_code", "concentration_correlation") == (0.922, 0.029)
    assert published.main("gaussians50", "densmap", "density_rank_correlation") == (0.923, 0.003)
    assert published.main("gaussians50", "densmap", "density_rank_correlation", corrected=False) == (-0.011, 0.007)
    assert math.isnan(published.main("mnist", "tsne", "trustworthiness")[0])
    assert published.selected("pbmc3k", "drsne_code") == [0.01] * 3
    assert published.selected("helix", "drsne_code") == []
    text = json.dumps(published.everything())
    assert "maksimkazanskii/DR-SNE at bf3a87b" in text


def test_names_are_checked():
    assert check_names("methods", None, ("a", "b")) == ("a", "b")
    assert check_names("methods", ["b", "a"], ("a", "b")) == ("a", "b")
    with pytest.raises(ValueError, match=r"methods must be one of 'tsne', 'umap'; got 'tnse'. Did you mean 'tsne'\?"):
        check_names("methods", ["tnse"], ("tsne", "umap"))


def test_quick_rows_are_not_those_of_the_whole():
    from drsne_paper import studies

    for name in studies.names():
        known = studies.load(name)
        quick, whole = (
            {key for part in known.parts(Selection(quick=quick)) for key in part.all_keys()} for quick in (True, False)
        )
        assert not quick & whole


def test_a_value_is_kept_as_it_was_asked_for(tmp_path):
    """1 and 1.0 have different keys; numbers of numpy have those of Python's."""

    def maps(workspace, values, seed):
        for value in values:
            yield Run(float(value), workspace.X[:, :2], {})

    whole = Method(title="", parameter="weight", grid=(1, 2), maps=maps, together=True)
    few = study(methods=("mine",), seeds=(0, 0), datasets=("one",), variants={"mine": whole}, grids={})
    rows = Rows(tmp_path / "rows.jsonl")
    found = run(few, rows, verbose=0)
    assert [row["value"] for row in found] == [1, 2]
    assert len(rows.read()) == 2  # a seed twice is a seed
    numpy = study(methods=("mine",), variants={"mine": whole}, grids={"mine": tuple(np.arange(1, 3))})
    python = study(methods=("mine",), variants={"mine": whole}, grids={"mine": (1, 2)})
    assert numpy.all_keys() == python.all_keys()
    assert len(run(numpy, Rows(tmp_path / "more.jsonl"), verbose=0)) == 2 * 2 * 2


def test_unseeded_methods_have_one_key():
    assert study(methods=("pca",), seeds=(0, 1)).all_keys() == study(methods=("pca",), seeds=(3,)).all_keys()


def test_a_map_without_a_score_is_an_error_row(tmp_path):
    flat = Method(title="", parameter="scale", grid=(0.0, 1.0), maps=each(lambda X, value, seed: value * X[:, :2]))
    few = study(methods=("mine",), seeds=(0,), datasets=("one",), variants={"mine": flat}, grids={})
    errors = {row["value"]: row["error"] for row in run(few, Rows(tmp_path / "rows.jsonl"), verbose=0)}
    assert errors[1.0] is None
    assert "The map has no concentration_correlation" in errors[0.0]


def test_the_choice_ignores_what_has_no_score():
    rows = [row(1, 0, 0.99, math.nan), row(2, 0, 0.96, 0.5), row(3, 0, 0.96, 0.9)]
    for some in (rows, rows[::-1]):
        assert [chosen["value"] for chosen in choose(some, 0.95).rows] == [3]


def test_a_map_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    rows = Rows(tmp_path / "rows.jsonl")
    kept = run(study(methods=("pca",)), rows, verbose=0, maps=tmp_path / "maps")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match=r"Could not write .*npy: No space left on device. Finished rows are kept"):
        run(study(), rows, verbose=0, maps=tmp_path / "maps")
    assert rows.read() == kept
    monkeypatch.undo()
    assert len(run(study(), rows, verbose=0, maps=tmp_path / "maps")) == 10


def test_a_process_that_is_killed_is_reported(tmp_path):
    def dies(X, value, seed):
        if value == 2:
            os.kill(os.getpid(), 9)
        return X[:, :2]

    dying = Method(title="", parameter="weight", grid=(1, 2), maps=each(dies))
    few = study(methods=("mine",), seeds=(0,), datasets=("one",), variants={"mine": dying}, grids={})
    with pytest.raises(ChildProcessError, match=r"A process of the study was killed.*fewer --jobs"):
        run(few, Rows(tmp_path / "rows.jsonl"), verbose=0, jobs=2)


def test_two_that_write_lose_nothing(tmp_path):
    from threading import Thread

    path = tmp_path / "rows.jsonl"

    def write(name):
        for number in range(100):
            Rows(path).append([{"key": f"{name} {number}"}])

    writers = [Thread(target=write, args=(name,)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len({row["key"] for row in Rows(path).read()}) == 200


def test_a_last_row_without_its_newline_is_kept(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b"}')
    Rows(path).append([{"key": "c"}])
    assert [row["key"] for row in Rows(path).read()] == ["a", "b", "c"]


def test_values_in_words():
    assert tables.value(0.5) == "0.5"
    assert tables.value(("both", 3)) == "both 3"
    assert tables.value(None) == ""


def test_the_authors_parameters_seed_by_seed():
    """Two seeds as theirs, one off by .02 in trustworthiness."""
    from drsne_paper.studies._authors_runs import at_the_authors_parameters

    few = study(methods=("drsne_code", "tsne"), datasets=("gaussians50",))
    theirs = published.selected_scores("gaussians50", "drsne_code")
    rows = [
        {
            "dataset": "gaussians50",
            "method": "drsne_code",
            "seed": seed,
            "value": value,
            "error": None,
            "metrics": {
                "trustworthiness": theirs[seed][0] + 0.02 * (seed == 1),
                "concentration_correlation": theirs[seed][1],
            },
        }
        for seed, value in enumerate(published.selected("gaussians50", "drsne_code"))
    ]
    (line,) = at_the_authors_parameters(few, rows, str.upper)[-1].body
    assert line[:3] == ["GAUSSIANS50", "DR-SNE (the paper's code)", "3"]
    std = published.main("gaussians50", "drsne_code", "trustworthiness")[1]
    assert line[6] == f"2 of 3 ({max(0.01, std):.3f})"
    assert line[5] == "+0.007"
    assert line[10] == "3 of 3"
    rows[0]["value"] = 1.0  # not the authors' parameter
    assert at_the_authors_parameters(few, rows, str.upper)[-1].body[0][2] == "2"


def test_the_authors_figures_by_seed_have_the_printed_means():
    for dataset in ("digits", "fashion_mnist", "gaussians50", "pbmc3k"):  # Shuttle's are over five seeds
        for method in ("drsne", "densne", "tsne", "pacmap", "umap", "densmap"):
            means = np.mean(published.selected_scores(dataset, method), axis=0)
            for mean, score in zip(means, ("trustworthiness", "concentration_correlation"), strict=True):
                assert mean == pytest.approx(published.main(dataset, method, score)[0], abs=6e-4)
