"""The worked examples of CONTRIBUTING: a method and a data set, each one file, picked up by listing, CLI and study."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from drsne import cli, datasets
from drsne.experiments import Rows, methods

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(path):
    """The printed file."""
    found = re.search(rf"`src/drsne/{re.escape(path)}`:\n\n```python\n(.*?)```", TEXT, re.DOTALL)
    assert found, f"CONTRIBUTING has no {path}"
    return found[1]


@pytest.fixture
def added(tmp_path, monkeypatch):
    for package, name in ((methods, "kernel_pca"), (datasets, "moons")):
        path = "experiments/methods" if package is methods else "datasets"
        folder = tmp_path / path
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(example(f"{path}/{name}.py"))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}", raising=False)
    yield tmp_path
    for name in ("drsne.experiments.methods.kernel_pca", "drsne.datasets.moons"):
        sys.modules.pop(name, None)


def test_both_are_picked_up(added, capsys):
    assert cli.main(["methods"]) == 0
    assert "| kernel_pca " in capsys.readouterr().out
    assert cli.main(["datasets"]) == 0
    assert "| moons " in capsys.readouterr().out
    assert datasets.load("moons", n_samples=50).X.shape == (50, 2)
    folder = added / "out"
    asked = ["--datasets", "moons", "--methods", "kernel_pca", "pca", "--folder", str(folder), "--jobs", "1"]
    from drsne.experiments.studies import main as study_module

    usual = study_module.paper_data
    try:
        study_module.paper_data = lambda name: datasets.load(name, n_samples=150)
        assert cli.main(["reproduce", "main", *asked]) == 0
    finally:
        study_module.paper_data = usual
    assert "| kernel PCA " in capsys.readouterr().out
    rows = Rows(folder / "rows.jsonl").read()
    assert {row["error"] for row in rows} == {None}
    assert [row["value"] for row in rows if row["method"] == "kernel_pca"] == [0.001, 0.01, 0.1]
