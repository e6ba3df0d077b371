"""Messages about optional packages that are not installed: one line with the package and how to install it."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from covering import each_value
from problems import path_of

import drsne
from drsne import cli
from drsne.cli import demo
from drsne.io import tables

Y = np.random.default_rng(0).normal(size=(60, 2))
PATH = path_of([Y], [0.0])
CALLS = [
    (lambda: drsne.pl.embedding(Y), "matplotlib", "plot"),
    (lambda: drsne.pl.density(Y), "matplotlib", "plot"),
    (lambda: drsne.pl.compare({"a": Y}), "matplotlib", "plot"),
    (lambda: drsne.pl.reliability(Y, Y[:, 0]), "matplotlib", "plot"),
    (lambda: drsne.pl.fragmentation(Y, Y), "matplotlib", "plot"),
    (lambda: drsne.pl.trade_off(PATH), "matplotlib", "plot"),
    (lambda: PATH.plot(chosen=0, criterion="density"), "matplotlib", "plot"),
    (lambda: drsne.pl.new_figure((3, 3)), "matplotlib", "plot"),
    (PATH.to_frame, "pandas", "frame"),
    (lambda: drsne.tl.drsne(Y), "anndata", "anndata"),
    (lambda: drsne.tl.fit(Y), "anndata", "anndata"),
    (lambda: drsne.tl.transform(Y, None), "anndata", "anndata"),
]


def test_functions(monkeypatch):
    for call, package, extra in CALLS:
        with monkeypatch.context() as context:
            context.setitem(sys.modules, package, None)  # as if it were not installed
            with pytest.raises(ImportError, match=rf"^[^\n]* needs? {package}: pip install 'drsne\[{extra}\]'\.$"):
                call()


FILES = {"csv": "pandas", "parquet": "pyarrow", "feather": "pyarrow", "h5ad": "h5py", "npz": "pandas"}


@each_value({"ending": FILES, "command": ["embed", "evaluate", "explore", "path"]})
def test_files(monkeypatch, tmp_path, capsys, ending, command):
    monkeypatch.chdir(tmp_path)
    name, package = f"x.{ending}", FILES[ending]
    if ending == "npz":
        np.savez(name, a=Y[:, 0], b=Y[:, 1])
    else:
        (tmp_path / name).write_bytes((tables.FORMATS[ending].magic or b"a,b\n1,2\n") + b"3,4\n" * 20)
    monkeypatch.setitem(sys.modules, package, None)
    output = [name] if command == "evaluate" else ["-o", "o.html" if command == "explore" else "o.npy"]
    assert cli.main([command, name, *output]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    extra = "anndata" if ending == "h5ad" else "files"
    assert err.endswith(f" need {package}: pip install 'drsne[{extra}]'.\n")
    assert err.count("\n") == 1


def test_the_demo_leaves_out_its_picture(monkeypatch, tmp_path, capsys):
    def few_digits(return_X_y):
        return np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 10

    monkeypatch.setattr("sklearn.datasets.load_digits", few_digits)
    monkeypatch.setattr(
        demo, "find_spec", lambda name: None if name == "matplotlib" else importlib.util.find_spec(name)
    )
    assert cli.main(["demo", "--folder", str(tmp_path / "demo")]) == 0
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"digits.csv", "digits.html"}
    assert "Plots need matplotlib: pip install 'drsne[plot]'." in capsys.readouterr().err
