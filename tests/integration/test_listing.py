"""Listing what a registry holds imports nothing of it: each list is made in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

CODE = """
import json, sys
from importlib import import_module

package = import_module(sys.argv[1])
names = package.names()
loaded = [name for name in names if f"{package.__name__}.{name}" in sys.modules]
print(json.dumps({"names": names, "loaded": loaded, "modules": sorted({name.split(".")[0] for name in sys.modules})}))
"""
HEAVY = {"torch", "matplotlib", "pandas", "h5py", "scanpy", "umap", "pacmap"}


def listing(package):
    command = [sys.executable, "-W", "error", "-c", CODE, package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("package", "some"),
    [
        ("drsne.engines", {"exact", "fft", "tree"}),
        ("drsne.cli", {"embed", "evaluate", "explore"}),
    ],
)
def test_listing_loads_none(package, some):
    found = listing(package)
    assert some <= set(found["names"])
    assert found["names"] == sorted(found["names"])
    assert found["loaded"] == []
    assert HEAVY & set(found["modules"]) == set()


def test_listing_engines_compiles_nothing():
    assert {"numba", "llvmlite", "sklearn"} & set(listing("drsne.engines")["modules"]) == set()
