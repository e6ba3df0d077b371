"""Updates: known rows stay near their old places, new rows join their groups."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from covering import each_value, in_one_test

from drsne import DRSNE, DenSNE, Objective
from drsne.backends.numba.threads import Workers
from drsne.preparation import Settings, prepared
from drsne.terms.pull import OldPlaces, Pull

SHORT = {"perplexity": 10, "density_neighbors": 10, "max_iter": 200, "random_state": 0}
RNG = np.random.default_rng(0)
GROUP = RNG.integers(3, size=200)
X = 9 * RNG.normal(size=(3, 5))[GROUP] + RNG.normal(size=(200, 5)) * np.array([0.3, 1, 2])[GROUP, None]
OLD = np.arange(150)
NEW = np.concatenate([np.arange(20, 150), np.arange(150, 200)])  # rows that remain, and new ones
PREVIOUS = np.where(NEW < 150, NEW, -1)


@pytest.fixture(scope="module")
def model():
    return DRSNE(**SHORT).fit(X[OLD])


def moved(model, stiffness):
    after = copy.deepcopy(model).update(X[NEW], PREVIOUS, stiffness)
    known = PREVIOUS >= 0
    return np.linalg.norm(after.embedding_[known] - model.embedding_[PREVIOUS[known]], axis=1), after


def test_a_stiffer_pull_keeps_known_rows_nearer(model):
    (loose, _), (usual, after), (stiff, _) = moved(model, 0.0), moved(model, 1.0), moved(model, 100.0)
    assert np.median(stiff) < np.median(usual) < np.median(loose)
    assert np.median(stiff) < 0.002 * np.ptp(model.embedding_)
    centres = [after.embedding_[:130][GROUP[NEW[:130]] == g].mean(axis=0) for g in range(3)]
    own = np.array([np.argmin([np.linalg.norm(y - c) for c in centres]) for y in after.embedding_[130:]])
    assert (own == GROUP[NEW[130:]]).mean() > 0.9
    assert after.embedding_.shape == (180, 2)
    assert np.array_equal(after.transform(X[NEW]), after.embedding_)


def test_the_gradient_of_the_pull():
    settings, objective = Settings(perplexity=5, density_neighbors=5, random_state=0), Objective(precision="double")
    with Workers(1) as workers:
        problem = prepared(settings, X[:30], [objective], 1.0, workers)[objective]
        Y = RNG.normal(size=(30, 2))
        without = problem.evaluate(Y).gradient
        strength = np.where(np.arange(30) % 3, RNG.uniform(0.1, 2, 30), 0.0)
        places = RNG.normal(size=(30, 2))
        problem.add(Pull(places=places, strength=strength))
        found = problem.evaluate(Y, losses=True)

    def pull(Y):
        return (strength * ((Y - places) ** 2).sum(axis=1)).mean()

    assert found.losses["pull"] == pytest.approx(pull(Y))
    for i in (0, 1, 2):
        step = np.zeros_like(Y)
        step[i, 1] = 1e-6
        slope = 30 * (pull(Y + step) - pull(Y - step)) / 2e-6
        assert (found.gradient - without)[i, 1] == pytest.approx(slope, abs=1e-6)


def test_the_pull_is_measured_in_distances_to_neighbours():
    old, rows = RNG.normal(size=(40, 2)), np.r_[np.arange(5, 20), -1, -1]
    found = OldPlaces.of(old, rows, 4, 3.0)
    radii = np.sort(np.linalg.norm(old[:, None] - old, axis=2), axis=1)[:, 1:5].mean(axis=1)
    np.testing.assert_allclose(found.strength, [*(3.0 / radii[5:20] ** 2), 0.0, 0.0])
    np.testing.assert_array_equal(found.places, [*old[5:20], [np.nan] * 2, [np.nan] * 2])
    assert found.unit == pytest.approx(np.median(radii))


def test_large_maps_reorder_the_pull(monkeypatch):
    from drsne.terms import problem

    rows, reordered = np.random.default_rng(1).normal(size=(400, 3)), []
    monkeypatch.setattr(problem, "LARGE_MAP", 300)
    usual = problem.Problem.reorder
    monkeypatch.setattr(problem.Problem, "reorder", lambda *given: reordered.append(1) or usual(*given))
    model = DRSNE(perplexity=10, max_iter=20, random_state=0).fit(rows)
    before = model.embedding_.copy()
    reordered.clear()
    model.update(rows, np.arange(400), stiffness=1e4)
    assert reordered
    assert np.abs(model.embedding_ - before).max() < 0.05 * np.ptp(before)


def test_other_estimators_and_automatic_weights():
    densne = DenSNE(perplexity=10, max_iter=100, random_state=0).fit(X[OLD])
    before = densne.embedding_.copy()
    densne.update(X[NEW], PREVIOUS, 100.0)
    assert np.abs(densne.embedding_[:130] - before[20:]).max() < 0.1 * np.ptp(before)
    chosen = DRSNE(density_weight="auto", **{**SHORT, "max_iter": 60}).fit(X[OLD])
    weight = chosen.density_weight_
    assert chosen.update(X[NEW], PREVIOUS).density_weight_ == weight


@pytest.mark.parametrize("settings", [{}, {"density_weight": 0.0}], ids=["default", "plain"])
def test_a_new_isolated_group_spreads(settings):
    model = DRSNE(**SHORT, **settings).fit(X[OLD])
    group = RNG.normal(size=(40, 5)) + 500
    after = model.update(np.concatenate([X[OLD], group]), np.concatenate([OLD, np.full(40, -1)]))
    spread = after.embedding_[150:].std(axis=0)
    assert spread.min() > 0.02 * np.ptp(after.embedding_)


@each_value({"weight": [0.0, 1.0], "stiffness": [100.0, 1e4, 1e6]})
def test_a_stiff_pull_does_not_overshoot(weight, stiffness):
    model = DRSNE(**SHORT, density_weight=weight).fit(X[OLD])
    before = model.embedding_.copy()
    model.update(X[OLD], OLD, stiffness)
    near = np.sort(np.linalg.norm(before[:, None] - before, axis=2), axis=1)[:, 1:11].mean(axis=1)
    assert (np.linalg.norm(model.embedding_ - before, axis=1) / near).max() < 0.2


def test_parameters_of_an_update():
    model = DRSNE(**SHORT, init=np.random.default_rng(0).normal(size=(150, 2))).fit(X[OLD])
    assert model.update(X[NEW], PREVIOUS).embedding_.shape == (180, 2)
    model.set_params(density_weight=5.0).update(X[NEW], np.arange(180))
    assert model.density_weight_ == 5.0
    with pytest.raises(ValueError, match="n_components must stay 2"):
        model.set_params(n_components=3).update(X[NEW], np.arange(180))
    weighted = DRSNE(**SHORT).fit(X, sample_weight=np.full(200, 2.0))
    with pytest.raises(ValueError, match="sample_weight cannot be updated"):
        weighted.update(X, np.arange(200))
    whole = DRSNE(**SHORT).fit(X)
    with pytest.raises(ValueError, match="one integer"):
        whole.update(X[:, :3], [0])
    with pytest.raises(ValueError, match="stiffness"):
        whole.update(X, np.arange(200), -1.0)
    with pytest.raises(ValueError, match="not fitted"):
        DRSNE().update(X, np.full(200, -1))
    assert np.array_equal(whole.transform(X), whole.embedding_)


def test_renamed_columns_give_the_error_of_transform():
    model = DRSNE(**SHORT).fit(pd.DataFrame(X[OLD], columns=list("abcde")))
    for names in ("vwxyz", "edcba", "abcdf"):
        before, renamed = model.embedding_, pd.DataFrame(X[NEW], columns=list(names))
        with pytest.raises(ValueError, match="feature names should match") as expected:
            model.transform(renamed)
        with pytest.raises(ValueError, match="feature names should match") as found:
            model.update(renamed, PREVIOUS)
        assert str(found.value) == str(expected.value)
    assert np.array_equal(model.transform(pd.DataFrame(X[OLD], columns=list("abcde"))), before)


def test_columns_that_an_update_can_change():
    model = DRSNE(**SHORT).fit(pd.DataFrame(X[OLD], columns=list("abcde")))
    more = pd.DataFrame(np.column_stack([X[NEW], X[NEW, :1]]), columns=list("uvwxyz"))
    assert model.update(more, PREVIOUS).feature_names_in_.tolist() == list("uvwxyz")
    D = pd.DataFrame(np.linalg.norm(X[:, None] - X, axis=2)).rename(columns="row {}".format)
    distances = DRSNE(metric="precomputed", **SHORT).fit(D.iloc[:100, :100])
    later = D.iloc[50:150, 50:150]  # the columns of distances are rows of the data
    assert distances.update(later, np.r_[50:100, [-1] * 50]).feature_names_in_.tolist() == later.columns.tolist()


@in_one_test(
    ("rows", "message"),
    [
        (PREVIOUS[:-1], "one integer for each"),
        (PREVIOUS.astype(float), "one integer for each"),
        (np.where(PREVIOUS == 30, 150, PREVIOUS), "between -1 and 149"),
        (np.where(PREVIOUS == 30, -2, PREVIOUS), "between -1 and 149"),
        (np.where(PREVIOUS == 30, 31, PREVIOUS), "at most once"),
        (np.full(180, -1), "at least one row"),
    ],
)
def test_wrong_numbers_of_rows(model, rows, message):
    with pytest.raises(ValueError, match=message):
        copy.deepcopy(model).update(X[NEW], rows)
