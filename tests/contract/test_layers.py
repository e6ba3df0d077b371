"""Data flows one way: who may import whom, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import drsne

ROOT = Path(drsne.__file__).parent
# Lower layers first; a module imports only from layers below its own (or from its own package).
LAYERS = (
    {"_checks", "_rounding", "progress", "kernels"},
    {"parallel"},
    {"arrangement", "search"},
    {"cells", "ready"},
    {"engines", "map_neighbors"},
    {"graph"},
    {
        "affinities",
        "anomaly",
        "concentration",
        "datasets",
        "initialization",
        "metrics",
        "pairs",
        "pl",
        "reduction",
    },
    {"objective", "radii"},
    {"correlation", "optimize"},
    {"presets", "_parameters", "_stages"},
    {"memory", "path"},
    {"_base"},
    {"_densne", "_estimator"},
    {"experiments"},
    {"cli"},
    {"__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules():
    return [path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"]


def owner(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def home(name):
    """The module behind a name of the package itself."""
    return drsne._HOME.get(name, f"drsne.{name}").split(".")[1]


def imports(path):
    """Top-level parts of drsne that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "drsne":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [home(alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("drsne."):
                    yield alias.name.split(".")[1]


def test_every_module_has_a_layer():
    assert {owner(path) for path in modules()} == set(LEVEL)


def test_imports_go_down():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules()
        for name in imports(path)
        if name != owner(path) and LEVEL[name] >= LEVEL[owner(path)]
    ]
    assert wrong == []


def test_nothing_grades_itself():
    forbidden = {"engines", "objective", "optimize", "_estimator"}
    graders = [path for folder in ("metrics", "anomaly") for path in (ROOT / folder).glob("*.py")]
    wrong = [path.name for path in graders if forbidden & set(imports(path))]
    assert wrong == []


def test_data_know_no_method():
    wrong = {
        path.name: set(imports(path)) - {"datasets", "_checks", "progress"} for path in (ROOT / "datasets").glob("*.py")
    }
    assert {name: names for name, names in wrong.items() if names} == {}


def test_a_kernel_calls_only_its_own_file():
    wrong = [
        f"{path.name} imports {name}"
        for path in (ROOT / "kernels").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("drsne")
        for name in [node.module]
        if name != "drsne.backends.numba.kernels._compile"
    ]
    assert wrong == []
