"""The documentation: its code and its notebooks run, and the page on the command line names every option."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from drsne import cli

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
LARGEST = 650_000  # bytes of a committed notebook

COMMANDS = ("embed", "transform", "evaluate", "path", "explore", "demo", "doctor")
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def module(name):
    """Return a program of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, DOCS / name)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def pictures(notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    return [output for output in outputs if "image/png" in output.get("data", {})]


@pytest.mark.rotating(5)
@each_notebook
def test_a_notebook_runs(path, tmp_path):
    pytest.importorskip("nbclient", reason="notebooks are executed with nbclient")
    pytest.importorskip("ipykernel", reason="notebooks are executed with ipykernel")
    done = subprocess.run(
        [sys.executable, DOCS / "tutorials" / "run.py", path.stem, "--folder", tmp_path],
        env={**os.environ, "DRSNE_TUTORIAL_POINTS": "2000"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    if "Skipped" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr[-3000:]
    made = json.loads((tmp_path / path.name).read_text(encoding="utf-8"))
    assert all(output["output_type"] != "error" for cell in code_cells(made) for output in cell["outputs"])
    assert pictures(made)


@each_notebook
def test_what_is_committed_is_complete_and_tidy(path):
    nbformat = pytest.importorskip("nbformat", reason="notebooks are read with nbformat")
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))  # executed once, in order
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)
    assert all("execution" not in cell.metadata for cell in notebook.cells)
    assert len(pictures(notebook)) >= 2
    assert all("alt" in cell.metadata for cell in cells if pictures({"cells": [cell]}))
    assert module("tutorials/run.py").absolute_paths(notebook) == []
    assert path.stat().st_size < LARGEST


@each_notebook
def test_a_page_shows_all_outputs_and_loads_nothing(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text, attached = module("notebook_hook.py").page_of(notebook, path.stem)
    shown = [name for name in attached if name.endswith(".png")]
    assert len(shown) == len(pictures(notebook))
    assert all(f"{path.stem}_files/{name}" in text for name in attached)
    assert "<script" not in text
    assert "srcdoc" not in text


def test_paths_of_the_machine_and_progress_are_noticed():
    nbformat = pytest.importorskip("nbformat", reason="notebooks are read with nbformat")
    run = module("tutorials/run.py")
    bar = "DR-SNE: compiling ...\rDR-SNE |##   | 20/700  00:01, 00:02 left\n"
    stream = nbformat.v4.new_output("stream", name="stderr", text=f"\x1b[32mRead 5 rows.\x1b[0m\n{bar}")
    cell = nbformat.v4.new_code_cell("fit()", outputs=[stream], metadata={"execution": {"iopub": "now"}})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    run.tidy(notebook)
    assert cell.outputs[0].text == "Read 5 rows.\n"
    assert "execution" not in cell.metadata
    cell.outputs[0].text = "saved to /home/someone/map.html"
    with pytest.raises(ValueError, match="absolute"):
        run.tidy(notebook)


@pytest.mark.parametrize("page", ["start.md", "faq.md", "index.md"])
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    """Blocks of other languages, such as console, are skipped."""
    for name in ("matplotlib", "pandas", "anndata"):
        pytest.importorskip(name, reason="the pages use it")
    monkeypatch.chdir(tmp_path)
    names, text = {"__name__": "__main__"}, (DOCS / page).read_text(encoding="utf-8")
    found = list(re.finditer(r"```python\n(.*?)```", text, re.S))
    assert found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small examples lower the perplexity
        for block in found:
            lines_before = text[: block.start()].count("\n") + 1
            exec(compile("\n" * lines_before + block[1], str(DOCS / page), "exec"), names)


def test_the_page_on_the_command_line_has_every_command_and_option():
    def mentioned(text):
        return set(re.findall(r"--[a-z][a-z-]*", text))

    text, known = (DOCS / "command_line.md").read_text(encoding="utf-8"), {"--debug", "--help", "--version"}
    for command in COMMANDS:
        assert f"drsne {command}" in text
        parser = argparse.ArgumentParser(add_help=False)
        cli.load(command).arguments(parser)
        known |= {word for action in parser._actions for word in action.option_strings if word.startswith("--")}
    assert known - {"--help", "--version"} <= mentioned(text) <= known
