"""The examples of CONTRIBUTING for the library: each is one file in a copy of the package, and its name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import drsne

pytestmark = pytest.mark.slow

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"`src/drsne/(\S+\.py)`:\n\n```python\n(.*?)```", TEXT, re.DOTALL))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with the example files added; returns the folder that holds it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(Path(drsne.__file__).parent, folder / "drsne", ignore=shutil.ignore_patterns("__pycache__"))
    for path, code in EXAMPLES.items():
        new = folder / "drsne" / path
        assert new.parent.is_dir()
        assert not new.exists()
        new.write_text(code, encoding="utf-8")
    for name, old, new in (
        ("cli", "COMMANDS = (", 'COMMANDS = ("classes", '),
        ("engines", 'for name in ("exact"', 'for name in ("blockwise", "exact"'),
    ):
        listed = folder / "drsne" / name / "__init__.py"
        listed.write_text(listed.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    return folder


def python(package, *arguments):
    """Return what a fresh interpreter prints that imports the copy; loops run uncompiled, which is faster here."""
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_DISABLE_JIT": "1", "PYTHONUTF8": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, env=environment, cwd=package, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_an_example_of_each_kind():
    assert sorted(EXAMPLES) == [
        "cli/classes.py",
        "engines/blockwise.py",
    ]


def test_engine(package):
    code = """
import numpy as np
from drsne import DRSNE, engines
from drsne.backends.numpy import NumpyBackend

assert "blockwise" in engines.names()
rng = np.random.default_rng(0)
Y, scales, backend = rng.normal(size=(50, 2)), rng.uniform(0.5, 2.0, 50), NumpyBackend()
for rho in (None, scales):
    Z, F = engines.load("blockwise")(backend, block_size=7).repulsion(Y, 1e-3, rho)
    expected_Z, expected_F = backend.repulsion(Y, smoothing=1e-3, scales=rho, precision="double")
    np.testing.assert_allclose(Z, expected_Z, rtol=1e-9)
    np.testing.assert_allclose(F, expected_F, rtol=1e-9, atol=1e-12)
settings = {"perplexity": 5, "density_neighbors": 5, "max_iter": 10, "random_state": 0}
model = DRSNE(engine="blockwise", engine_options={"block_size": 7}, **settings).fit(rng.normal(size=(30, 4)))
assert np.isfinite(model.embedding_).all()
try:
    DRSNE(engine="blockwise", engine_options={"block_size": 0}, **settings).fit(np.eye(30))
except ValueError as error:
    print(error)
"""
    assert "block_size" in python(package, "-c", code)


def test_command(package):
    assert re.search(r"\bclasses\b", python(package, "-m", "drsne", "--help"))
    (package / "some.csv").write_text("kind,x\na,1\nb,2\na,3\n", encoding="utf-8")
    assert python(package, "-m", "drsne", "classes", "some.csv", "kind").splitlines() == ["a: 2 rows", "b: 1 rows"]
