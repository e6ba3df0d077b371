"""Messages about optional packages that are not installed: one line with the package and how to install it."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import drsne
from drsne import cli
from drsne.cli import demo
from drsne.io import tables

Y = np.random.default_rng(0).normal(size=(60, 2))
PATH = drsne.DensityPath(
    weights=np.zeros(1),
    embeddings=[Y],
    metrics={},
    kl_divergence=np.zeros(1),
    concentration_loss=np.zeros(1),
    baseline=1.0,
)


@pytest.fixture
def without(monkeypatch):
    """Make packages look as if they were not installed."""

    def without(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return without


CALLS = {
    "embedding": (lambda: drsne.pl.embedding(Y), "matplotlib", "plot"),
    "density": (lambda: drsne.pl.density(Y), "matplotlib", "plot"),
    "compare": (lambda: drsne.pl.compare({"a": Y}), "matplotlib", "plot"),
    "reliability": (lambda: drsne.pl.reliability(Y, Y[:, 0]), "matplotlib", "plot"),
    "fragmentation": (lambda: drsne.pl.fragmentation(Y, Y), "matplotlib", "plot"),
    "trade_off": (lambda: drsne.pl.trade_off(PATH), "matplotlib", "plot"),
    "path.plot": (lambda: PATH.plot(chosen=0, criterion="density"), "matplotlib", "plot"),
    "new_figure": (lambda: drsne.pl.new_figure((3, 3)), "matplotlib", "plot"),
    "path.to_frame": (PATH.to_frame, "pandas", "frame"),
    "tl.drsne": (lambda: drsne.tl.drsne(Y), "anndata", "anndata"),
    "tl.fit": (lambda: drsne.tl.fit(Y), "anndata", "anndata"),
    "tl.transform": (lambda: drsne.tl.transform(Y, None), "anndata", "anndata"),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(without, name):
    call, package, extra = CALLS[name]
    without(package)
    with pytest.raises(ImportError, match=rf"^[^\n]* needs? {package}: pip install 'drsne\[{extra}\]'\.$"):
        call()


FILES = {"csv": "pandas", "parquet": "pyarrow", "feather": "pyarrow", "h5ad": "h5py", "npz": "pandas"}


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("command", ["embed", "evaluate", "explore", "path"])
def test_files(without, monkeypatch, tmp_path, capsys, ending, command):
    monkeypatch.chdir(tmp_path)
    name, package = f"x.{ending}", FILES[ending]
    if ending == "npz":
        np.savez(name, a=Y[:, 0], b=Y[:, 1])
    else:
        (tmp_path / name).write_bytes((tables.FORMATS[ending].magic or b"a,b\n1,2\n") + b"3,4\n" * 20)
    without(package)
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
