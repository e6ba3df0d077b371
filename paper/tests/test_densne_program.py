"""The settings and the tree of den-SNE's program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from covering import in_one_test
from densne_program import Program

from drsne import DRSNE, DenSNE, Momentum, metrics
from drsne_paper._private import NumbaBackend, Workers
from drsne_paper.coarse import CoarseEngine
from drsne_paper.presets import densne

RNG = np.random.default_rng(0)
MAPS = {
    "start": 1e-4 * RNG.normal(size=(1500, 2)),
    "groups": RNG.uniform(-50.0, 50.0, (12, 2))[RNG.integers(12, size=2500)] + 4.0 * RNG.normal(size=(2500, 2)),
    "an outlier": np.vstack([RNG.normal(size=(700, 2)), [[1e6, 0.0]]]),
    "duplicates": RNG.normal(size=(40, 2))[RNG.integers(40, size=1000)],
    "a line": np.pad(RNG.normal(size=(600, 1)), ((0, 0), (0, 1))),
    "one place": np.full((50, 2), 3.0),
}


def sums(Y, smoothing):
    away = Y[:, None] - Y[None]
    w = 1.0 / (1.0 + smoothing + (away**2).sum(axis=2))
    np.fill_diagonal(w, 0.0)
    return w.sum(), (w[..., None] ** 2 * away).sum(axis=1)


@in_one_test("name", list(MAPS))
def test_the_tree_is_near_the_sums_over_all_pairs_and_exact_for_theta_zero(name):
    Y, (partition, forces) = MAPS[name], sums(MAPS[name], 1e-3)
    size = np.linalg.norm(forces)
    for theta, of_forces, of_partition in ((0.5, *CoarseEngine.tolerance), (0.0, 1e-12, 1e-12)):
        found = [CoarseEngine(NumbaBackend(Workers(n)), theta=theta).repulsion(Y, 1e-3) for n in (1, 2)]
        np.testing.assert_array_equal(*(each for _, each in found))
        assert found[0][0] == found[1][0] == pytest.approx(partition, rel=of_partition)
        assert np.linalg.norm(found[0][1] - forces) <= of_forces * size + 1e-20


def test_what_the_tree_refuses(blobs):
    for change, message in (
        ({"n_components": 3}, "engine='coarse' does not support n_components=3"),
        ({"backend": "torch"}, "engine='coarse' does not support backend='torch'|torch"),
        ({"engine_options": {"theta": -1.0}}, "theta"),
    ):
        with pytest.raises((ValueError, ImportError), match=message):
            DenSNE(**densne(120) | change).fit(blobs)
    with pytest.raises(ValueError, match="adaptive kernel"):
        DRSNE(engine="coarse").fit(blobs)


@pytest.mark.filterwarnings("ignore:perplexity=:UserWarning")
def test_strange_data_have_finite_maps():
    X = np.random.default_rng(0).normal(size=(40, 3))
    for data in (X, 1e200 * X, 1e-120 * X, 0.0 * X, np.vstack([X[:39], 1e90 * X[:1]]), X[:4], X[[0] * 39 + [1]]):
        settings = densne(len(data), perplexity=(len(data) - 1) / 3, max_iter=100)
        assert np.isfinite(DenSNE(**settings, random_state=0).fit_transform(data)).all()


def test_preset_follows_the_program():
    """Step by step: 40 iterations on 150 points, the momentum switched at 20, the density term on from 16."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) * np.exp(0.7 * rng.normal(size=(150, 1)))
    settings = densne(150, 0.5, perplexity=10.0, max_iter=40, density_fraction=0.6) | {"engine": "exact"}
    plain, dense = settings["schedule"].phases
    late = replace(dense.optimizer, momentum=0.8)
    phases = (plain, replace(dense, n_iter=5), replace(dense, n_iter=20, optimizer=late))
    assert [phase.n_iter for phase in phases] == [15, 5, 20]
    settings["schedule"] = replace(settings["schedule"], phases=phases)
    program = Program(X, 0.5, 10.0)
    m = DenSNE(**settings, random_state=3).fit(X)
    np.testing.assert_allclose(m.affinities_.toarray(), program.P, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(m.input_log_radii_, program.log_radii, atol=1e-4)
    # The same affinities and target from here on: both searches stop short of the very perplexity.
    program.P = m.affinities_.toarray()
    program.R = (m.input_log_radii_ - m.input_log_radii_.mean()) / m.input_log_radii_.std(ddof=1)
    expected = program.run(1e-4 * np.random.RandomState(3).randn(150, 2), 40, 0.6, switch=20)
    assert np.ptp(expected) > 3.0  # it went somewhere
    assert np.linalg.norm(m.embedding_ - expected) <= 1e-6 * np.linalg.norm(expected)


def test_preset_is_the_programs_settings():
    settings = densne(1000, 0.5)
    first, second, third = settings["schedule"].phases
    assert [phase.n_iter for phase in (first, second, third)] == [250, 149, 401]
    assert [phase.density for phase in (first, second, third)] == [False, False, True]
    assert [phase.optimizer.momentum for phase in (first, second, third)] == [0.5, 0.8, 0.8]
    assert [phase.carry for phase in (first, second, third)] == [False, True, True]
    assert all(phase.exaggeration == 1.0 and phase.decay == "constant" for phase in settings["schedule"].phases)
    assert first.optimizer == Momentum(rate=0.05, momentum=0.5, gains=True, min_gain=0.01, grow_from_rest=True)
    assert settings["schedule"].center
    assert (settings["density_weight"], settings["variance_shift"], settings["init"]) == (0.5, 0.1, "random")
    own = densne(1000, start="own", max_iter=1000, density_fraction=0.3)["schedule"].phases
    assert [(p.n_iter, p.exaggeration, p.density) for p in own] == [
        (250, 12.0, False),
        (449, 1.0, False),
        (301, 1.0, True),
    ]
    early = densne(1000, start="own", max_iter=300, density_fraction=0.5)["schedule"].phases
    assert [(p.n_iter, p.exaggeration, p.density) for p in early] == [
        (149, 12.0, False),
        (101, 12.0, True),
        (50, 1.0, True),
    ]
    assert [p.n_iter for p in densne(1000, max_iter=100, density_fraction=1.0)["schedule"].phases] == [100]


@in_one_test(
    ("change", "message"),
    [
        ({"n_samples": 2}, "n_samples must be an integer of at least 3; got 2"),
        ({"lam": -1.0}, "lam must be a finite number of at least 0; got -1.0"),
        ({"perplexity": 0.5}, "perplexity must be a finite number of at least 1; got 0.5"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"density_fraction": 1.5}, "density_fraction must be at most 1; got 1.5"),
        ({"start": "random"}, "start must be one of 'given', 'own'; got 'random'"),
    ],
)
def test_wrong_presets_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        densne(**{"n_samples": 100, **change})


def test_densne_preset_is_near_den_snes_program(digits):
    """lambda = .5, given start: the program (hhcho/densvis at d65bb31, distances mended) has, as a mean of three seeds,
    TW .980, rho_S .889, CC .736, rho .871; benchmarks/results/densne.md has the whole comparison."""
    settings = {**densne(len(digits), 0.5), "precision": "single"}  # half the time
    model = DenSNE(**settings, random_state=0, n_jobs=-1).fit(digits)
    Y = model.embedding_
    assert metrics.trustworthiness(digits, Y) == pytest.approx(0.980, abs=0.01)
    assert metrics.density_rank_correlation(digits, Y, 30) == pytest.approx(0.889, abs=0.025)
    assert metrics.concentration_correlation(digits, Y, 29) == pytest.approx(0.736, abs=0.06)
    assert model.correlation_ == pytest.approx(0.871, abs=0.015)
