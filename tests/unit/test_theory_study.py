"""The theory study: it holds, is made once, tells from its rows, and notices what is wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from drsne import cli
from drsne.experiments import Rows, studies
from drsne.experiments.checks import Finding, Size, amplification, density, gradients, invariance
from drsne.experiments.dimension import dimension
from drsne.experiments.document import markdown
from drsne.experiments.studies import theory
from drsne.experiments.study import Asked
from drsne.objectives import drsne as objective

SMALL = Size(digits=150, generated=400, small=20)
FIGURES = ("figure_invariance.png", "figure_amplification.png", "figure_density.png")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(theory, "QUICK_SIZE", SMALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The quick study as it is."""
    folder = tmp_path_factory.mktemp("theory")
    text = theory.STUDY.reproduce(theory.STUDY.parts(Asked(quick=True)), folder, verbose=0)
    return folder, text


def find(module, name):
    return next(check for check in module.CHECKS if check.name == name)


def test_every_claim_holds(made):
    folder, text = made
    rows = Rows(folder / "rows.jsonl").read()
    assert [row["check"] for row in rows] == [check.name for check in theory.CHECKS]
    assert [row["check"] for row in rows if not row["passed"]] == []
    assert f"{len(rows)} of {len(rows)} claims hold." in text
    assert "does not hold" not in text
    for row in rows:
        assert all(row[name] for name in ("claim", "where", "versions"))
        assert row["seconds"]["check"] >= 0
        assert np.isfinite([row["number"], row["bound"]]).all()


def test_a_second_run_adds_no_row(made):
    folder, text = made
    before = (folder / "rows.jsonl").read_bytes()
    for name in FIGURES:
        (folder / name).unlink()
    assert theory.STUDY.reproduce((theory.QUICK,), folder, verbose=0) == text
    assert (folder / "rows.jsonl").read_bytes() == before
    assert all(0 < (folder / name).stat().st_size < 150_000 for name in FIGURES)  # drawn from the rows


def test_told_from_the_rows_alone(made, tmp_path):
    folder, text = made
    told = markdown(theory.STUDY.blocks(*theory.STUDY.kept(folder, quick=True), folder))
    assert told == text == (folder / "table.md").read_text()
    assert "No check has been made yet" in markdown(theory.STUDY.blocks(*theory.STUDY.kept(tmp_path), tmp_path))


def test_checks_of_another_wording_do_not_count(made, tmp_path):
    folder, _ = made
    rows = Rows(folder / "rows.jsonl").read()
    Rows(tmp_path / "rows.jsonl").append([rows[0] | {"key": "0" * 12, "passed": False}, *rows])
    assert theory.STUDY.kept(tmp_path, quick=True)[1] == rows


def test_names_and_keys():
    assert len({(check.group, check.name) for check in theory.CHECKS}) == len(theory.CHECKS)
    keys = {theory._key(check, size) for check in theory.CHECKS for size in (theory.FULL, SMALL)}
    assert len(keys) == 2 * len(theory.CHECKS)
    assert not any("|" in check.name + check.claim + check.where for check in theory.CHECKS)  # would split a cell
    names = {check.name for check in theory.CHECKS}
    assert {*theory._CURVES.values(), *theory._AMPLIFIED, *theory._PANELS} <= names


@pytest.mark.parametrize("name", ["map scaled", "map scaled, absolute epsilon"])
def test_a_profile_without_its_mean_is_noticed(name, monkeypatch):
    """What is not normalised changes with scale; what is only a constant stays under translation."""
    usual = objective.profile

    def without_mean(radii, exponent, smoothing):
        found = usual(radii, exponent, smoothing)
        return found._replace(log=-exponent * np.log(found.radius))

    assert find(invariance, name).measure(SMALL).passed
    monkeypatch.setattr(objective, "profile", without_mean)
    broken = find(invariance, name).measure(SMALL)
    assert not broken.passed
    assert broken.number == pytest.approx(math.log(1e3), rel=1e-3)
    assert find(invariance, "map moved").measure(SMALL).passed


def test_a_detached_mean_where_it_should_be_attached_is_noticed(monkeypatch):
    usual = objective.loss_and_slope
    monkeypatch.setattr(objective, "loss_and_slope", lambda *given, attached: usual(*given, attached=False))
    assert not find(gradients, "mean attached, no epsilon").measure(SMALL).passed
    assert not find(gradients, "no epsilon").measure(SMALL).passed
    assert find(gradients, "mean detached").measure(SMALL).passed


def test_an_amplified_loss_that_is_blind_is_noticed(monkeypatch):
    monkeypatch.setattr(amplification, "loss_and_slope", lambda *_, **__: (0.0, None))
    assert not find(amplification, "closed form, Digits").measure(SMALL).passed
    assert not find(amplification, "zero at 1 alone, Digits").measure(SMALL).passed


def test_ranks_of_something_else_are_noticed(monkeypatch):
    monkeypatch.setattr(density, "density_rank_correlation", lambda X, Y, k: 0.0)
    assert not find(density, "exponents D and d, Digits").measure(SMALL).passed


def test_what_does_not_hold_is_said_and_made_again_when_asked(small, monkeypatch, tmp_path):
    check = find(density, "exponents D and d, Digits")
    wrong = Finding(number=math.nan, bound=1.0, numbers={"metric": 0.0})
    assert not wrong.passed
    monkeypatch.setattr(theory, "CHECKS", (replace(check, measure=lambda size: wrong),))
    assert "**does not hold**" in theory.STUDY.reproduce((theory.QUICK,), tmp_path, verbose=0)
    monkeypatch.setattr(theory, "CHECKS", (check,))
    assert "0 of 1 claims hold." in theory.STUDY.reproduce((theory.QUICK,), tmp_path, verbose=0)
    assert "1 of 1 claims hold." in theory.STUDY.reproduce((theory.QUICK,), tmp_path, verbose=0, retry=True)
    assert [row["passed"] for row in Rows(tmp_path / "rows.jsonl").read()] == [False, True]


@pytest.mark.parametrize("option", ["--datasets", "--methods", "--seeds"])
def test_nothing_to_choose_among(option, capsys, tmp_path):
    assert cli.main(["reproduce", "theory", option, "1", "--folder", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    name = option.removeprefix("--")
    assert err.startswith(f"drsne: {name} must not be given with theory")
    assert f"got 1. Leave {name} out" in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_all_with_seeds_leaves_theory_its_own(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(studies, "names", lambda: ["theory"])
    monkeypatch.setattr(theory, "CHECKS", ())
    assert cli.main(["reproduce", "all", "--seeds", "0", "--quick", "--folder", str(tmp_path)]) == 0
    assert "Theory as runnable checks" in capsys.readouterr().out


def test_dimension():
    from drsne.neighbors.search import knn

    X = np.random.default_rng(0).uniform(size=(2000, 3)) @ np.random.default_rng(1).normal(size=(3, 10))
    assert dimension(knn(X, 30).distances) == pytest.approx(3.0, rel=0.1)
