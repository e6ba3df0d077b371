"""Every method of the comparison, picked up by its file: one map for each value, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from drsne.experiments import methods
from drsne.experiments.methods import Ready


@pytest.fixture(scope="module")
def ready():
    rng = np.random.default_rng(0)
    return Ready(np.vstack([rng.normal(4.0 * g, 0.25 * 4.0**g, (60, 5)) for g in range(3)]))


@pytest.fixture(params=methods.names())
def method(request):
    try:
        return methods.load(request.param)
    except ImportError as error:
        pytest.skip(str(error))


def test_maps(method, ready):
    values = [value for value in method.grid if value is None or value <= 50][:2]
    runs = list(method.maps(ready, values, 0))
    assert [run.value for run in runs] == values
    for run in runs:
        assert run.embedding.shape in ((180, 2), ready.X.shape)
        assert run.embedding.dtype == np.float64
        assert np.isfinite(run.embedding).all()
        assert run.seconds["optimization"] >= 0
    again = list(method.maps(ready, values, 0))
    for one, two in zip(runs, again, strict=True):
        np.testing.assert_array_equal(one.embedding, two.embedding)
    other = list(method.maps(ready, values, 1))
    assert np.array_equal(other[0].embedding, runs[0].embedding) == (not method.seeded)


def test_what_is_recorded(method):
    assert method.title
    assert (method.parameter is None) == (method.grid == (None,))
    assert list(method.grid) == sorted(set(method.grid), key=lambda value: value or 0)
    assert method.parameter not in method.settings


@pytest.mark.parametrize(("name", "variant"), [("drsne_code", "code"), ("drsne_text", "text")])
def test_presets_are_the_estimator(name, variant, ready, monkeypatch):
    """Affinities that are shared over a grid change nothing."""
    from drsne import DRSNE
    from drsne.experiments.methods._drsne import PAPER_NEIGHBORS, of_the_paper
    from drsne.presets import paper

    run = next(of_the_paper(variant, max_iter=80)(ready, [0.01], 3))
    settings = paper(180, 0.01, PAPER_NEIGHBORS, variant=variant, max_iter=80)
    np.testing.assert_allclose(run.embedding, DRSNE(**settings, random_state=3).fit_transform(ready.X), rtol=1e-9)


def test_densne_is_the_estimator(ready):
    from drsne import DenSNE
    from drsne.experiments.methods.densne import maps
    from drsne.presets import densne

    run = next(maps(ready, [0.5], 3, max_iter=80))
    settings = densne(180, 0.5, max_iter=80)
    np.testing.assert_allclose(run.embedding, DenSNE(**settings, random_state=3).fit_transform(ready.X), rtol=1e-9)


@pytest.mark.parametrize("name", ["drsne_code", "densne"])
def test_what_comes_before_the_density_term_is_shared(name, ready, monkeypatch):
    """Maps of a second weight are the same, bit for bit, as without what the first left behind, and cost less."""
    from drsne.experiments.methods import _drsne
    from drsne.experiments.methods.densne import maps

    make = _drsne.of_the_paper("code", max_iter=80) if name == "drsne_code" else (lambda *a: maps(*a, max_iter=80))
    calls = []

    class Counted(_drsne.Remembered):
        def __init__(self, problem, n_iter):
            class Counts:
                backend, start = problem.backend, problem.start

                def evaluate(self, Y, **options):
                    calls.append(options["iteration"])
                    return problem.evaluate(Y, **options)

            super().__init__(Counts(), n_iter)

    monkeypatch.setattr(_drsne, "Remembered", Counted)
    shared = Ready(ready.X)
    first, second = make(shared, [0.01, 0.5], 3)
    plain = 50 if name == "drsne_code" else 39
    assert calls.count(0) == calls.count(plain - 1) == 1
    assert calls.count(plain) == 2
    for run in (first, second):
        np.testing.assert_array_equal(run.embedding, next(make(Ready(ready.X), [run.value], 3)).embedding)
    assert not np.array_equal(first.embedding, second.embedding)
    other = next(make(shared, [0.5], 4))  # another start
    np.testing.assert_array_equal(other.embedding, next(make(Ready(ready.X), [0.5], 4)).embedding)


def test_an_unknown_method_and_a_missing_package(monkeypatch):
    with pytest.raises(ValueError, match="method must be one of"):
        methods.load("tnse")
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"method 'umap' needs umap: pip install 'drsne\[experiments\]', or leave it"):
        methods.load("umap")
    assert "umap" in methods.names()  # listing needs nothing
