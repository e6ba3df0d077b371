"""What importing the package, its help and its lists load."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import drsne


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


HEAVY = {
    "numba", "llvmlite", "scipy", "sklearn", "pandas", "torch", "matplotlib", "joblib", "tqdm", "h5py", "dask",
    "distributed", "scanpy",
}  # fmt: skip
LISTS = """
from drsne import anomaly, cli, engines

lists = {"engines": engines.names(), "cli": list(cli.COMMANDS), "anomaly": anomaly.detectors()}
assert {"exact", "fft", "tree"} <= set(lists["engines"]) and {"embed", "evaluate", "explore"} <= set(lists["cli"])
for package, names in lists.items():
    assert names == sorted(names), names
    assert not [name for name in names if f"drsne.{package}.{name}" in sys.modules], package
"""
LIGHT = {
    "help": ("from drsne import cli; cli.main(['--help'])", True),
    "version": ("import drsne; assert drsne.__version__; from drsne import cli; cli.main(['--version'])", True),
    "lists": (LISTS, False),  # the types in the signatures of engines and detectors are numpy's
}


WORK = """
import sys, drsne, drsne.tl
from importlib.util import find_spec

heavy = {"matplotlib", "torch", "dask", "distributed", "anndata", "scanpy"}
X = [[0.0, 1], [1, 0], [2, 5], [3, 3], [0, 4], [7, 7], [8, 2]]
Y = drsne.DRSNE(perplexity=2, density_neighbors=2, max_iter=4).fit_transform(X)
drsne.metrics.evaluate(X, Y)
print(Y.shape, sorted(heavy & set(sys.modules)))
if find_spec("matplotlib"):
    drsne.pl.compare({"a": Y})._repr_png_()
    assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.parametrize("kind", LIGHT)
def test_help_and_lists_load_no_heavy_package(kind):
    code, without_numpy = LIGHT[kind]
    heavy = HEAVY | ({"numpy"} if without_numpy else set())
    check = (
        "import atexit, sys; before = set(sys.modules); "
        "atexit.register(lambda: print('LOADED', sorted("
        f"{{name.split('.')[0] for name in set(sys.modules) - before}} & {heavy!r}), file=sys.stderr))\n{code}"
    )
    done = run(check)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "LOADED []"


def test_public_names_are_there():
    for name in drsne.__all__:
        assert getattr(drsne, name) is not None
    assert set(drsne.__all__) <= set(dir(drsne))
    with pytest.raises(AttributeError, match="TSNE"):
        drsne.TSNE  # noqa: B018


def test_the_stub_has_the_public_names():
    """Type checkers read the stub, and Python reads the tables beside it."""
    stub = ast.parse(Path(drsne.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    found = {(node.module, alias.name) for node in imported for alias in node.names}
    tables = {(module, name) for module, names in drsne._NAMES.items() for name in names}
    assert found == tables | {(None, name) for name in drsne._MODULES}


def test_works_from_a_zip_file(tmp_path):
    """Nothing looks for files beside the source."""
    folder = Path(drsne.__file__).parent
    with zipfile.ZipFile(tmp_path / "drsne.zip", "w") as archive:
        for path in [*folder.rglob("*.py"), *folder.rglob("*.pyi")]:
            archive.write(path, path.relative_to(folder.parent))
    code = "import drsne; print(drsne.__file__, drsne.Schedule.__name__, drsne.presets.__name__)"
    done = run(code, PYTHONPATH=os.pathsep.join([str(tmp_path / "drsne.zip"), *sys.path]))
    assert done.stdout.split() == [str(tmp_path / "drsne.zip" / "drsne" / "__init__.py"), "Schedule", "drsne.presets"]


def test_work_needs_no_cache_and_loads_no_package_without_need(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("a file, not a folder")
    done = run(WORK, NUMBA_CACHE_DIR=str(nowhere / "below"))
    assert done.stdout.strip() == "(7, 2) []", done.stderr
