"""A term of one file, tests/level_term.py, and one line, ``Objective(terms=(level,))``, works everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from level_term import level

import drsne
from drsne import DRSNE, Objective, density_path

X = np.random.default_rng(0).normal(size=(150, 4))
NEW = np.random.default_rng(1).normal(size=(30, 4))
LEVELLED = Objective(embedding_weight=0.7, terms=(level,))
SHORT = {"perplexity": 10, "density_neighbors": 10, "max_iter": 150, "n_iter_exaggeration": 40, "random_state": 0}


def test_its_gradient_is_that_of_the_loss():
    problem = drsne.prepare(X[:30], Objective(precision="double", terms=(level,)), perplexity=5, density_neighbors=5)
    Y = np.random.default_rng(2).normal(size=(30, 2))
    without = drsne.prepare(X[:30], Objective(precision="double"), perplexity=5, density_neighbors=5)
    found = problem.evaluate(Y, losses=True)
    own = (found.gradient - without.evaluate(Y).gradient)[:, 0]
    step = np.zeros_like(Y)
    step[3, 0] = 1e-5
    ahead, behind = (problem.evaluate(Y + sign * step, losses=True).losses["level"] for sign in (1, -1))
    assert own[3] == pytest.approx(30 * 0.5 * (ahead - behind) / 2e-5, rel=1e-6)
    assert list(found.losses) == ["kl", "concentration", "level"]


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_it_moves_the_map_and_new_rows(backend):
    if backend == "torch":
        pytest.importorskip("torch")
    device = {"backend": backend}
    usual = DRSNE(objective=Objective(embedding_weight=0.7), **SHORT, **device).fit(X)
    moved = DRSNE(objective=LEVELLED, **SHORT, **device).fit(X)
    alike, before = (np.corrcoef(model.embedding_[:, 0], X[:, 0])[0, 1] for model in (moved, usual))
    assert alike > 0.9 > abs(before)
    assert moved.history_["level"][-1] < moved.history_["level"][0]
    nearest = ((NEW[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
    away = [np.abs(model.transform(NEW)[:, 0] - 10.0 * X[nearest, 0]) for model in (moved, usual)]
    assert np.median(away[0]) < 0.5 * np.median(away[1])
    np.testing.assert_array_equal(moved.transform(X), moved.embedding_)


def test_it_is_part_of_every_map_of_a_path():
    path = density_path(X, [0.0, 1.0, 3.0], objective=LEVELLED, **SHORT)
    assert all(np.corrcoef(Y[:, 0], X[:, 0])[0, 1] > 0.9 for Y in path.embeddings)


def test_points_in_another_order_of_memory(monkeypatch):
    from drsne.terms import problem as shared

    problem = drsne.prepare(X, LEVELLED, perplexity=10, density_neighbors=10)
    Y = np.random.default_rng(2).normal(size=(150, 2))
    expected = problem.evaluate(Y, losses=True)
    monkeypatch.setattr(shared, "LARGE_MAP", 100)
    state = problem.start()
    problem.reorder(Y, state)
    found = problem.evaluate(Y, state=state, iteration=0, losses=True)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-5, atol=1e-5)
    assert found.losses["level"] == pytest.approx(expected.losses["level"])


def test_what_is_refused(tmp_path):
    with pytest.raises(TypeError, match="terms must be a tuple"):
        Objective(terms=[level])
    with pytest.raises(ValueError, match="terms must be"):
        DRSNE(objective=LEVELLED, **SHORT).fit(X).save(tmp_path / "map.drsne")
