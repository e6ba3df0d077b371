"""The examples of CONTRIBUTING for the paper: each is one file, whose name is listed, and is used once."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from drsne import cli
from drsne_paper import datasets, methods
from drsne_paper.datasets import _registry

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"`paper/src/drsne_paper/(\S+\.py)`:\n\n```python\n(.*?)```", TEXT, re.DOTALL))


@pytest.fixture
def added(monkeypatch, tmp_path):
    """The examples as modules of their packages, with their names in the registries."""
    registries = {"methods": methods.REGISTRY, "datasets": _registry.REGISTRY}
    assert sorted(EXAMPLES) == ["datasets/moons.py", "methods/kernel_pca.py"]
    for path, code in EXAMPLES.items():
        folder, name = Path(path).parent.name, Path(path).stem
        (tmp_path / folder).mkdir()
        (tmp_path / path).write_text(code, encoding="utf-8")
        package, registry = import_module(f"drsne_paper.{folder}"), registries[folder]
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / folder)])
        monkeypatch.setattr(registry, "_names", (*registry.names(), name))


def test_method(added, tmp_path, capsys):
    assert cli.main(["methods"]) == 0
    assert "| kernel_pca " in capsys.readouterr().out
    asked = ["--quick", "--datasets", "helix", "--methods", "kernel_pca", "pca", "--seeds", "0", "--jobs", "1"]
    assert cli.main(["reproduce", "main", *asked, "--folder", str(tmp_path / "out")]) == 0
    assert "kernel PCA" in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["error"] for row in rows} == {None}
    assert [row["value"] for row in rows if row["method"] == "kernel_pca"] == [0.001, 0.01, 0.1]


def test_dataset(added, tmp_path, capsys):
    assert cli.main(["datasets", "--data-home", str(tmp_path / "data")]) == 0
    assert "| moons " in capsys.readouterr().out
    assert datasets.load("moons", n_samples=60).X.shape == (60, 2)
