"""The paper's presets: against a rewrite of the authors' loop, and each quirk pinned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from authors_loop import AuthorsLoop
from covering import in_one_test

from drsne import DRSNE, Momentum
from drsne.optimize.defaults import default_schedule
from drsne.presets import paper

N, K, LAM, WARMUP = 300, 29, 0.01, 10


@pytest.fixture(scope="module")
def X(digits):
    return digits[:N]


def shortened(settings, steps):
    """The preset with the warm-up cut to ten iterations and ``steps`` in all."""
    first, second = settings["schedule"].phases
    phases = (replace(first, n_iter=WARMUP), replace(second, n_iter=steps - WARMUP))
    return {**settings, "schedule": replace(settings["schedule"], phases=phases)}


@pytest.mark.parametrize("search", ["bracketed", "doubling"])
def test_code_follows_the_authors_loop(X, search):
    loop = AuthorsLoop(X, LAM, K, WARMUP, doubling=search == "doubling")
    settings = shortened(paper(N, LAM, K, perplexity_search=search), 40)
    model = DRSNE(**settings, random_state=3).fit(X)
    np.testing.assert_allclose(model.affinities_.toarray(), loop.P, rtol=1e-9, atol=1e-16)
    np.testing.assert_allclose(model.input_concentration_, loop.target, rtol=1e-10, atol=1e-12)
    expected = loop.run(40, seed=3)
    assert np.linalg.norm(model.embedding_ - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("iteration", [0, WARMUP])
def test_code_has_the_authors_gradient_at_a_finished_map(X, iteration, monkeypatch):
    from drsne.estimators import base

    kept = {}
    minimize = base.minimize

    def keeping(problem, *arguments, **options):
        kept["problem"] = problem
        return minimize(problem, *arguments, **options)

    monkeypatch.setattr(base, "minimize", keeping)
    Y = DRSNE(**paper(N, LAM, K, max_iter=300), random_state=0).fit(X).embedding_
    loop = AuthorsLoop(X, LAM, K, WARMUP)
    phase = paper(N, LAM, K)["schedule"].phases[0 if iteration < WARMUP else 1]
    ours = kept["problem"].evaluate(Y, density=phase.density_factor(0), pairs=phase.pairs).gradient / N**2
    expected = loop.gradient(Y, iteration)
    assert np.linalg.norm(ours - expected) <= 1e-10 * np.linalg.norm(expected)


def test_text_is_the_paper_as_written():
    settings = paper(1000, 0.01, 300, variant="text")
    assert settings["density_weight"] == pytest.approx(10.0)  # the printed lambda times n
    objective, (warmup, main) = settings["objective"], settings["schedule"].phases
    assert objective.support == "directed"
    assert objective.normalizer == "attached"
    assert objective.affinity_smoothing == 0.0
    assert objective.calibration.shift
    assert warmup.exaggeration == 4.0
    assert warmup.pairs == "objective"
    assert main.clip == 1000.0
    assert main.optimizer.eps == pytest.approx(1e-5)
    assert settings["init"] == "random"


@in_one_test(
    ("change", "message"),
    [
        ({"variant": "letter"}, "variant must be one of 'code', 'text'; got 'letter'"),
        ({"variant": "text", "perplexity_search": "doubling"}, "perplexity_search must .*'doubling'.*variant='code'"),
        ({"lam": -1.0}, "lam must be a finite number of at least 0; got -1.0"),
        ({"k": 0}, "k must be an integer of at least 1; got 0"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        paper(**{"n_samples": 100, "lam": 0.1, "k": 5, **change})


def default(**changes):
    plain = {
        "max_iter": 100,
        "n_iter_exaggeration": 30,
        "early_exaggeration": 12.0,
        "learning_rate": "auto",
        "density": True,
    }
    return default_schedule(10_000, **{**plain, **changes})


def test_default_schedule_is_tsne_first():
    schedule = default()
    assert schedule.n_iter == 100
    assert [phase.density for phase in schedule.phases] == [False, False, True]
    assert [phase.exaggeration for phase in schedule.phases] == [12.0, 1.0, 1.0]
    assert isinstance(schedule.phases[0].optimizer, Momentum)
    assert schedule.phases[-1].decay == "cosine"
    # scikit-learn's rate is per unit of the gradient of the loss, ours of n times the loss
    assert schedule.phases[0].optimizer.rate * 10_000 == pytest.approx(10_000 / 12 / 4)
    assert default(learning_rate=200.0).phases[0].optimizer.rate * 10_000 == pytest.approx(200.0)


def test_default_schedule_fits_few_iterations():
    for total in (1, 2, 3, 10):
        assert default(max_iter=total, n_iter_exaggeration=250).n_iter == total
    assert [phase.n_iter for phase in default(max_iter=500, n_iter_exaggeration=250).phases] == [125, 125, 250]
    plain = default(density=False)
    assert plain.n_iter == 100
    assert all(isinstance(phase.optimizer, Momentum) and not phase.density for phase in plain.phases)
