"""What the paper imports from drsne, and what it declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import drsne_paper

ROOT = Path(drsne_paper.__file__).parent
PUBLIC = {"drsne", "drsne.anomaly", "drsne.metrics", "drsne.pl", "drsne.presets", "drsne.cli"}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "umap": "umap-learn", "scaleMAP": "scalemap"}


def imports():
    """Yield the file, the module and the names of every absolute import."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name, []) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield path, node.module, [alias.name for alias in node.names]


def test_private_names_of_drsne_are_imported_in_one_module():
    wrong = [
        f"{path.relative_to(ROOT)} imports {names} from {module}"
        for path, module, names in imports()
        if module.split(".")[0] == "drsne" and path.name != "_private.py"
        if module not in PUBLIC or any(name.startswith("_") for name in names)
    ]
    assert wrong == []


def test_data_sets_know_neither_methods_nor_studies():
    allowed = ("drsne_paper.datasets", "drsne_paper.registry", "drsne_paper")
    wrong = [
        f"{path.name} imports {module}"
        for path, module, names in imports()
        if path.is_relative_to(ROOT / "datasets") and module.split(".")[0] in ("drsne", "drsne_paper")
        if (not module.startswith(allowed[0]) and module not in allowed)
        or (module == "drsne_paper" and names != ["checks"])
    ]
    assert wrong == []


def test_imports_are_declared():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (requirement for extra in project["optional-dependencies"].values() for requirement in extra)
    known = {re.split(r"[\[<>=!~; ]", requirement)[0].lower() for requirement in (*project["dependencies"], *extras)}
    packages = {module.split(".")[0] for _, module, _ in imports()} - set(sys.stdlib_module_names) - {"drsne_paper"}
    others = {"matplotlib", "scalemap"}  # of drsne[plot], and of a benchmark
    assert {DISTRIBUTIONS.get(package, package).lower() for package in packages} - known == others
