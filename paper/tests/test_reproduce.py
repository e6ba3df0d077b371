"""The command line: lists, the quick comparison, what happens when it is killed, and its errors."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from drsne import cli
from drsne_paper import Rows, methods, studies
from drsne_paper.datasets._registry import find
from drsne_paper.studies import main as study_module

QUICK = ["reproduce", "main", "--quick", "--jobs", "1"]
FEW = ["--datasets", "controlled_clusters", "--methods", "pca", "drsne_both", "--seeds", "0"]


def test_lists(capsys, tmp_path):
    assert cli.main(["datasets", "--data-home", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    from drsne_paper import datasets

    assert all(f"| {name} " in listed for name in datasets.names())
    assert cli.main(["methods"]) == 0
    listed = capsys.readouterr().out
    assert all(f"| {name} " in listed for name in methods.names())
    assert all(methods.find(name).title in listed for name in methods.names())
    assert cli.main(["methods", "--grids"]) == 0
    assert "perplexity: 3, 5, 10" in capsys.readouterr().out


def test_methods_that_lack_a_package_say_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    assert cli.main(["methods"]) == 0
    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()[2:]}
    assert "pip install './paper[peers]'" in lines["umap"]
    assert "ready" in lines["pca"]


def test_quick_comparison(capsys, tmp_path):
    assert cli.main([*QUICK, *FEW, "--folder", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "### Controlled Clusters" in out
    assert "main:" in err  # progress
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"rows.jsonl", "maps", "maps.npz", "table.md", "table.tex", "table.csv", "figure_main.png"}
    assert (tmp_path / "table.md").read_text() in out
    rows = Rows(tmp_path / "rows.jsonl").read()
    assert {row["method"] for row in rows} == {"pca", "drsne_both"}
    assert {row["error"] for row in rows} == {None}
    before = (tmp_path / "rows.jsonl").read_bytes()
    for file in (tmp_path / "maps").iterdir():
        file.unlink()
    picture = (tmp_path / "figure_main.png").read_bytes()
    assert cli.main([*QUICK, *FEW, "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "rows.jsonl").read_bytes() == before
    assert len((tmp_path / "figure_main.png").read_bytes()) > 0.9 * len(picture)  # drawn from the maps that were packed


def test_a_killed_process_keeps_its_rows(tmp_path):
    """Killed outright in the middle; started again it adds what was missing."""
    command = [sys.executable, "-m", "drsne", *QUICK, "--datasets", "helix", "--methods", "tsne", "--seeds", "0"]
    command += ["--folder", str(tmp_path)]
    file = tmp_path / "rows.jsonl"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (file.exists() and file.read_bytes().count(b"\n")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = Rows(file).read()
    assert len(kept) == 1
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "### Helix" in done.stdout
    rows = Rows(file).read()
    assert rows[: len(kept)] == kept
    assert len(rows) == len({row["key"] for row in rows}) == 2


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (
            ["--datasets", "hellix"],
            "datasets must be one of 'controlled_clusters', 'digits', 'gaussians50', 'helix'; got 'hellix'",
            1,
        ),
        (["--methods", "tnse"], "Did you mean 'tsne'?", 1),
        (["--jobs", "0"], "--jobs must be an integer of at least 1; got 0", 2),
    ],
)
def test_errors_are_one_line(arguments, message, code, capsys, tmp_path):
    assert cli.main([*QUICK, "--folder", str(tmp_path), *arguments]) == code
    err = capsys.readouterr().err
    assert err.startswith("drsne: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_said_before_anything_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    assert cli.main(["reproduce", "main", "--methods", "umap", "--folder", str(tmp_path)]) == 1
    assert "pip install './paper[peers]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def two_sets(monkeypatch, tmp_path):
    """The main study on 120 points each of Digits and Shuttle; arguments of the command, and the data home."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DRSNE_DATA_HOME", str(home))
    monkeypatch.setattr(study_module, "GRIDS", {"tsne": (5, 10)})
    usual = study_module.recipes.paper

    def few(name):
        data = usual(name)
        return replace(data, X=data.X[:120], y=data.y[:120])

    monkeypatch.setattr(study_module.recipes, "paper", few)
    command = ["reproduce", "main", "--methods", "pca", "tsne", "--seeds", "0", "--jobs", "1"]
    return [*command, "--datasets", "digits", "shuttle", "--folder", str(tmp_path / "out")], home


def test_an_unreachable_source_leaves_its_data_out(two_sets, monkeypatch, capsys, tmp_path):
    """Told in one line; the other data run, and their rows are kept."""
    command, _ = two_sets
    monkeypatch.setenv("no_proxy", "*")
    dataset = replace(find("shuttle"), urls=("http://127.0.0.1:9/shuttle.arff",))
    monkeypatch.setattr("drsne_paper.datasets.shuttle.DATASET", dataset)
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert re.search(r"drsne: Skipped the data set shuttle: .*127\.0\.0\.1:9", err)
    assert "### Digits" in out
    assert re.search(r"Not run, or the data are not available: .*Shuttle", out)
    kept = Rows(tmp_path / "out" / "rows.jsonl").read()
    assert [(row["dataset"], row["error"]) for row in kept] == [("digits", None)] * 3
    assert cli.main([word for word in command if word != "digits"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("drsne: ")
    assert "127.0.0.1:9" in err
    assert Rows(tmp_path / "out" / "rows.jsonl").read() == kept


def test_a_wrong_checksum_leaves_its_data_out(two_sets, capsys, tmp_path):
    command, home = two_sets
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 99, (58_000, 9), dtype=np.int32), rng.integers(1, 8, 58_000, dtype=np.int8)
    np.savez(home / "shuttle.npz", X=X, y=y)
    assert cli.main(command) == 0
    assert re.search(r"Skipped the data set shuttle: .*shuttle\.npz has the wrong checksum", capsys.readouterr().err)
    assert {row["dataset"] for row in Rows(tmp_path / "out" / "rows.jsonl").read()} == {"digits"}


def test_a_full_disk_is_one_line(two_sets, monkeypatch, capsys, tmp_path):
    command, _ = two_sets
    command = [word for word in command if word != "shuttle"]
    usual, written = os.fsync, []

    def full_from_the_second(file):
        written.append(file)
        if len(written) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(file)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full_from_the_second)
        assert cli.main(command) == 1
    assert (
        "No space left on device. Finished rows are kept; free some space and start again." in capsys.readouterr().err
    )
    kept = Rows(tmp_path / "out" / "rows.jsonl").read()
    assert len(kept) == 1
    assert cli.main(command) == 0
    assert Rows(tmp_path / "out" / "rows.jsonl").read()[:1] == kept


def test_an_interrupt_is_one_line(monkeypatch, capsys, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "run", stop)
    assert cli.main([*QUICK, "--folder", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_figures_say_where_a_map_is_missing():
    from drsne_paper.figures import grid_of_maps

    Y = np.random.default_rng(0).normal(size=(50, 2))
    figure = grid_of_maps({("a", "x"): Y}, {"x": None}, [("a", "A"), ("b", "B")], [("x", "X")])
    texts = [text.get_text() for axis in figure.axes for text in axis.texts]
    assert texts == ["no map"]
    assert figure.axes[0].get_title() == "X"


def test_a_part_of_a_study_keeps_the_whole_table(two_sets, capsys, tmp_path):
    """Tables and figures are of all rows that are there, whatever was asked for last."""
    command, _ = two_sets
    command = [word for word in command if word != "shuttle"]
    assert cli.main([word for word in command if word != "pca"]) == 0
    assert cli.main([word for word in command if word != "tsne"]) == 0
    out = capsys.readouterr().out
    assert "| t-SNE " in out
    table = (tmp_path / "out" / "table.csv").read_text()
    assert "t-SNE" in table
    assert "PCA" in table
    assert cli.main([*command[:-2], "--seeds", "3", "--folder", str(tmp_path / "out")]) == 0  # a seed that is not usual
    assert "2 of 2" in (tmp_path / "out" / "table.md").read_text()


def test_without_matplotlib_there_are_tables(two_sets, monkeypatch, capsys, tmp_path):
    command, _ = two_sets
    command = [word for word in command if word not in ("shuttle", "tsne")]
    monkeypatch.setattr(studies, "find_spec", lambda name: None)
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert "Skipped the figures, which need matplotlib: pip install 'drsne[plot]'" in err
    assert "![" not in (tmp_path / "out" / "table.md").read_text()
    assert (tmp_path / "out" / "table.tex").exists()
    assert "| PCA " in out


def test_a_damaged_pack_of_maps_is_made_again(two_sets, capsys, tmp_path):
    command, _ = two_sets
    command = [word for word in command if word not in ("shuttle", "pca")]
    assert cli.main(command) == 0
    pack = tmp_path / "out" / "maps.npz"
    pack.write_bytes(pack.read_bytes()[:100])
    assert cli.main(command) == 0
    assert re.search(r"maps.npz cannot be read .* is replaced", capsys.readouterr().err)
    assert len(np.load(pack).files) == 1


@pytest.mark.parametrize("seeds", [["-1"], ["0", "-3"]])
def test_seeds_that_are_none(seeds, capsys, tmp_path):
    assert cli.main(["reproduce", "main", "--quick", "--seeds", *seeds, "--folder", str(tmp_path)]) == 2
    assert "--seeds must be" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert cli.main([*QUICK, *FEW, "--folder", str(tmp_path / "file" / "below")]) == 1
    err = capsys.readouterr().err
    assert "folder must be writable; got" in err
    assert "Choose another" in err


def test_all_goes_on_where_a_study_cannot(monkeypatch, capsys, tmp_path):
    """What one study lacks, another may not need; the end says what was left out."""
    made = []

    class Some:
        seeded = True

        def __init__(self, name):
            self.name = name

        def parts(self, selection):
            if self.name == "first":
                raise ImportError("method 'umap' needs umap: pip install './paper[peers]'")
            return ()

        displayed = parts

        def reproduce(self, parts, folder, **_):
            made.append(folder.name)
            return "a table"

    monkeypatch.setattr(studies, "names", lambda: ["first", "second"])
    monkeypatch.setattr(studies, "load", Some)
    assert cli.main(["reproduce", "all", "--folder", str(tmp_path)]) == 1
    assert made == ["second"]
    assert "Skipped first: method 'umap' needs umap" in capsys.readouterr().err
    assert cli.main(["reproduce", "first", "--folder", str(tmp_path)]) == 1
    assert "drsne: method 'umap' needs umap" in capsys.readouterr().err
