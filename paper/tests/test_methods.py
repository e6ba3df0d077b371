"""Every method of the comparison, picked up by its file: one map for each value, the same for the same seed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from drsne_paper import methods
from drsne_paper.methods import Workspace


@pytest.fixture(scope="module")
def workspace():
    rng = np.random.default_rng(0)
    return Workspace(np.vstack([rng.normal(4.0 * g, 0.25 * 4.0**g, (60, 5)) for g in range(3)]))


COMPILED = {"umap", "densmap", "scalemap", "pacmap"}  # methods that compile for a minute or two on first use


@pytest.fixture(params=methods.names())
def method(request):
    if request.param in COMPILED and not os.environ.get("DRSNE_PEERS"):
        pytest.skip("compiles for a minute or two; set DRSNE_PEERS=1 to test it")
    try:
        return methods.load(request.param)
    except ImportError as error:
        pytest.skip(str(error))


def test_maps(method, workspace):
    values = [value for value in method.grid if value is None or value <= 50][:2]
    runs = list(method.maps(workspace, values, 0))
    assert [run.value for run in runs] == values
    for run in runs:
        assert run.embedding.shape in ((180, 2), workspace.X.shape)
        assert run.embedding.dtype == np.float64
        assert np.isfinite(run.embedding).all()
        assert run.seconds["optimization"] >= 0
    again = list(method.maps(workspace, values, 0))
    for one, two in zip(runs, again, strict=True):
        np.testing.assert_array_equal(one.embedding, two.embedding)
    other = list(method.maps(workspace, values, 1))
    assert np.array_equal(other[0].embedding, runs[0].embedding) == (not method.seeded)


def test_what_is_recorded(method):
    assert method.title
    assert (method.parameter is None) == (method.grid == (None,))
    assert list(method.grid) == sorted(set(method.grid), key=lambda value: value or 0)
    assert method.parameter not in method.settings


@pytest.mark.parametrize(("name", "variant"), [("drsne_code", "code"), ("drsne_text", "text")])
def test_presets_are_the_estimator(name, variant, workspace, monkeypatch):
    """Affinities that are shared over a grid change nothing."""
    from drsne import DRSNE
    from drsne.presets import paper
    from drsne_paper.methods._drsne import PAPER_NEIGHBORS, of_the_paper

    run = next(of_the_paper(variant, max_iter=80)(workspace, [0.01], 3))
    settings = paper(180, 0.01, PAPER_NEIGHBORS, variant=variant, max_iter=80)
    np.testing.assert_allclose(run.embedding, DRSNE(**settings, random_state=3).fit_transform(workspace.X), rtol=1e-9)


def test_densne_is_the_estimator(workspace):
    from drsne import DenSNE
    from drsne_paper.methods.densne import maps
    from drsne_paper.presets import densne

    run = next(maps(workspace, [0.5], 3, max_iter=80))
    settings = densne(180, 0.5, max_iter=80)
    np.testing.assert_allclose(run.embedding, DenSNE(**settings, random_state=3).fit_transform(workspace.X), rtol=1e-9)


@pytest.mark.parametrize("name", ["drsne_code", "densne"])
def test_what_comes_before_the_density_term_is_shared(name, workspace, monkeypatch):
    """Maps of a second weight are the same, bit for bit, as without what the first left behind, and cost less."""
    from drsne_paper.methods import _drsne
    from drsne_paper.methods.densne import maps

    make = _drsne.of_the_paper("code", max_iter=80) if name == "drsne_code" else (lambda *a: maps(*a, max_iter=80))
    calls = []

    class Counted(_drsne.RememberedProblem):
        def __init__(self, problem, n_iter):
            class Counts:
                backend, start, names = problem.backend, problem.start, problem.names
                reordered_every, reorder = problem.reordered_every, problem.reorder

                def evaluate(self, Y, **options):
                    calls.append(options["iteration"])
                    return problem.evaluate(Y, **options)

            super().__init__(Counts(), n_iter)

    monkeypatch.setattr(_drsne, "RememberedProblem", Counted)
    shared = Workspace(workspace.X)
    first, second = make(shared, [0.01, 0.5], 3)
    plain = 50 if name == "drsne_code" else 39
    assert calls.count(0) == calls.count(plain - 1) == 1
    assert calls.count(plain) == 2
    for run in (first, second):
        np.testing.assert_array_equal(run.embedding, next(make(Workspace(workspace.X), [run.value], 3)).embedding)
    assert not np.array_equal(first.embedding, second.embedding)
    other = next(make(shared, [0.5], 4))  # another start
    np.testing.assert_array_equal(other.embedding, next(make(Workspace(workspace.X), [0.5], 4)).embedding)


def test_recorded_settings_are_those_of_the_package():
    """Method files repeat a few constants, so that listing methods does not import the estimators."""
    from drsne.estimators import path
    from drsne.optimize import defaults
    from drsne_paper.methods import _drsne

    rate = defaults.PATH_RATE
    assert {"path_step": defaults.PATH_STEPS / defaults.FIXED_ITERATIONS, "path_rate": rate} == _drsne.STEPS
    assert {
        "iterations": defaults.ITERATIONS,
        "momentum": defaults.MOMENTUM,
        "path_iterations": defaults.PATH_STEPS,
        "path_rate": rate,
    } == _drsne.ADAPTIVE_STEPS
    assert set(_drsne.PATH_WEIGHTS) <= set(path.AUTO_WEIGHTS)


@pytest.mark.parametrize("settings", [{"perplexity": 26}, {"perplexity": 10, "density_neighbors": 80}])
def test_too_few_points_are_an_error_exactly_if_the_estimator_would_lower_a_setting(settings):
    from drsne import DRSNE

    X = np.random.default_rng(0).normal(size=(81, 3))
    Workspace(X).require(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DRSNE(max_iter=5, random_state=0, **{"density_neighbors": 5, **settings}).fit(X)
    more = {name: value + 1 for name, value in settings.items() if value > 10}
    with pytest.raises(ValueError, match="must be at most"):
        Workspace(X).require(**more)
    with pytest.warns(UserWarning, match="Lowered"):
        DRSNE(max_iter=5, random_state=0, **{"density_neighbors": 5, "perplexity": 10, **more}).fit(X)


LISTING = """
import sys
from drsne import cli
from drsne_paper import claims, methods, studies

assert cli.main(["methods"]) == 0
assert claims.names() and methods.names() and studies.names()
heavy = {"numba", "scipy", "sklearn", "pandas", "torch", "umap", "matplotlib"}
print("loaded:", sorted(heavy & set(sys.modules)))
"""


def test_listing_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded: []\n")


def test_an_unknown_method_and_a_missing_package(monkeypatch):
    with pytest.raises(ValueError, match="method must be one of"):
        methods.load("tnse")
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"method 'umap' needs umap: pip install '\./paper\[peers\]', or leave it"):
        methods.load("umap")
    assert "umap" in methods.names()  # listing needs nothing
