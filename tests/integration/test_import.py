"""What importing the package, its help and its lists load."""

from __future__ import annotations

import os
import subprocess
import sys

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

lists = {"engines": engines.names(), "cli": cli.names(), "anomaly": anomaly.detectors()}
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


def test_a_fit_loads_neither_matplotlib_nor_torch_nor_dask():
    code = (
        "import sys, drsne; "
        "X = [[0., 1], [1, 0], [2, 5], [3, 3], [0, 4], [7, 7], [8, 2]]; "
        "drsne.DRSNE(perplexity=2, density_neighbors=2, max_iter=4).fit(X); "
        "print(sorted({'matplotlib', 'torch', 'dask', 'distributed'} & set(sys.modules)))"
    )
    done = run(code)
    assert done.stdout.strip() == "[]", done.stderr


def test_public_names_are_there():
    for name in drsne.__all__:
        assert getattr(drsne, name) is not None
    assert set(drsne.__all__) <= set(dir(drsne))
    with pytest.raises(AttributeError, match="no attribute 'TSNE'"):
        drsne.TSNE  # noqa: B018


def test_works_where_no_cache_can_be_written(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("a file, not a folder")
    code = (
        "import drsne; m = drsne.DRSNE(perplexity=2, density_neighbors=2, max_iter=4); "
        "print(m.fit_transform([[0., 1], [1, 0], [2, 5], [3, 3], [0, 4], [7, 7], [8, 2]]).shape)"
    )
    done = run(code, NUMBA_CACHE_DIR=str(nowhere / "below"))
    assert done.stdout.strip() == "(7, 2)", done.stderr
