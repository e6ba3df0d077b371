"""Data flow one way: which module may import which, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import drsne

ROOT = Path(drsne.__file__).parent
# Lower layers first. A module imports only from layers below its own, or from its own folder. "backends" is the
# protocol and the formulas, "backends.numba" what implements it; engines sum the repulsion on a backend.
LAYERS = (
    {"checks", "precision", "progress", "logs", "markdown", "io.__init__", "io.writing"},
    {"registry", "backends"},
    {"backends.numba", "backends.torch"},
    {"engines", "neighbors"},
    {"affinities", "anomaly", "initialization", "metrics", "pca"},
    {"pl"},
    {"objectives"},
    {"optimization"},
    {"placement"},
    {"io.models"},
    {"presets"},
    {"estimators"},
    {"graph", "concentration", "objective", "optimize", "path"},  # names from before, which import what has moved
    {"tl"},
    {"io"},
    {"explorer"},
    {"distributed"},
    {"cli"},
    {"__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Within these folders, too, a file imports only from files above it in the list.
ORDER = {
    "objectives": (
        "masses", "concentration", "contrast", "added_row", "kernel", "kl", "neighborhoods", "problem", "densne",
        "drsne",
    ),
    "optimization": ("optimizers", "schedule", "loop"),
    "neighbors": (
        "graph",
        "given",
        "exact",
        "descent",
        "inverted_file",
        "precomputed",
        "small",
        "search",
        "tiles",
        "equal_rows",
        "queries",
    ),
    "io": ("writing", "models", "values", "sources", "text", "formats", "tables"),
    "placement": ("reference", "place", "lazy"),
    "estimators": (
        "parameters", "memory", "preparation", "path", "base", "densne", "drsne", "density_path", "memory_estimate",
        "detector", "load",
    ),
    "distributed": (
        "cluster", "work", "sources", "spool", "statistics", "landmarks", "concentration", "landmark_map", "placing",
        "scores", "settings", "stages", "pipeline",
    ),
    "tl": ("representation", "graph", "objects", "fitting", "cells", "new_cells"),
}  # fmt: skip


def modules():
    return [path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"]


def owner_of(parts):
    """Return the layer's name for the parts of a module's name."""
    return ".".join(parts[:2]) if ".".join(parts[:2]) in LEVEL else parts[0]


def owner(path):
    return owner_of(path.relative_to(ROOT).with_suffix("").parts)


def imports(path):
    """Yield the parts of the names of all modules of drsne that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "drsne":
            parts = tuple(node.module.split(".")[1:])
            for alias in node.names:
                if not parts:
                    yield tuple(drsne._HOME.get(alias.name, f"drsne.{alias.name}").split(".")[1:])
                else:
                    yield (*parts, alias.name) if ROOT.joinpath(*parts).is_dir() else parts
        elif isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("drsne."))


def test_every_module_has_a_layer():
    assert {owner(path) for path in modules()} == set(LEVEL)


def test_imports_go_down():
    wrong = [
        f"{path.relative_to(ROOT)} imports {'.'.join(name)}"
        for path in modules()
        for name in imports(path)
        if owner_of(name) != owner(path) and LEVEL[owner_of(name)] >= LEVEL[owner(path)]
    ]
    assert wrong == []


def test_imports_go_down_within_a_folder():
    wrong = []
    for folder, order in ORDER.items():
        files = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
        assert files == set(order), folder
        for path in (ROOT / folder).glob("*.py"):
            for name in imports(path):
                inside = name[0] == folder and len(name) > 1 and path.stem != "__init__"
                if inside and order.index(name[1]) >= order.index(path.stem):
                    wrong.append(f"{folder}/{path.name} imports {name[1]}")
    assert wrong == []


def test_nothing_grades_itself():
    forbidden = {"engines", "objectives", "optimization", "estimators"}
    graders = [path for folder in ("metrics", "anomaly") for path in (ROOT / folder).glob("*.py")]
    wrong = [path.name for path in graders if forbidden & {owner_of(name) for name in imports(path)}]
    assert wrong == []


def test_the_reference_backend_needs_no_compiler():
    """What is read to learn what a backend does must not depend on another one."""
    for file in ("__init__.py", "arrays.py", "numpy.py", "steps.py"):
        assert {owner_of(name) for name in imports(ROOT / "backends" / file)} <= {"backends"}


def test_objectives_and_the_loop_know_no_backend_but_the_protocol():
    for folder in ("objectives", "optimization"):
        for path in (ROOT / folder).glob("*.py"):
            used = {owner_of(name) for name in imports(path)}
            assert not used & {"backends.numba", "backends.torch"}, path.name


def test_a_kernel_calls_only_its_own_file():
    """numba's cache on disk does not notice an edit in another file, except in those that _compile names."""
    kernels = ROOT / "backends" / "numba" / "kernels"
    wrong = [
        f"{path.name} imports {'.'.join(name)}"
        for path in kernels.glob("*.py")
        for name in imports(path)
        if name[:3] != ("backends", "numba", "kernels") or name[3] not in ("_board", "_compile", "_turns")
    ]
    assert wrong == []
