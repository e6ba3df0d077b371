"""The theory study: its claims hold, it is computed once, and it notices what is wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from drsne import cli
from drsne.terms import concentration as objective
from drsne.terms.contrast import local_dimension
from drsne_paper import Rows, studies
from drsne_paper.document import markdown
from drsne_paper.methods import Workspace
from drsne_paper.rows import key
from drsne_paper.studies import theory
from drsne_paper.studies._theory_sections import RANKED
from drsne_paper.study import Selection
from drsne_paper.theory import Finding, Sizes, amplification, density
from drsne_paper.theory.problems import load

SMALL = Sizes(digits=150, generated=400, small=20)
FIGURES = ("figure_invariance.png", "figure_amplification.png", "figure_density.png")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(theory, "QUICK_SIZES", SMALL)


def quick():
    return theory.STUDY.parts(Selection(quick=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The quick study as it is."""
    folder = tmp_path_factory.mktemp("theory")
    return folder, theory.STUDY.reproduce(quick(), folder, verbose=0)


def find(name, dataset="digits"):
    return next(check for check in theory.CHECKS if (check.name, check.dataset) == (name, dataset))


def measured(name):
    check = find(name)
    data = load(check.dataset, n_samples=getattr(SMALL, check.size), **check.data)
    return check.measure(Workspace(data.X))


def test_every_claim_holds(made):
    folder, text = made
    rows = Rows(folder / "rows.jsonl").read()
    found = theory.results(quick(), rows)
    assert [one.check for one in found] == list(theory.CHECKS)
    assert [one.check.name for one in found if not one.details["holds"]] == []
    assert f"{len(rows)} of {len(rows)} claims hold." in text
    assert "does not hold" not in text
    for row in rows:
        assert row["versions"]
        assert row["seconds"]["check"] >= 0
        assert np.isfinite([row["details"]["number"], row["details"]["bound"]]).all()


def test_a_second_run_adds_no_row(made):
    folder, text = made
    before = (folder / "rows.jsonl").read_bytes()
    for name in FIGURES:
        (folder / name).unlink()
    assert theory.STUDY.reproduce(quick(), folder, verbose=0) == text
    assert (folder / "rows.jsonl").read_bytes() == before
    assert all(0 < (folder / name).stat().st_size < 150_000 for name in FIGURES)  # drawn from the rows


def test_text_is_made_from_the_rows(made, tmp_path):
    folder, text = made
    parts, rows = theory.STUDY.load_results(folder, quick=True)
    assert markdown(theory.STUDY.blocks(parts, rows, folder)) == text == (folder / "table.md").read_text()
    nothing = theory.STUDY.blocks(*theory.STUDY.load_results(tmp_path), tmp_path)
    assert "No check has been computed yet" in markdown(nothing)


def test_rewording_a_check_keeps_its_row(made, monkeypatch):
    """Texts are presentation: neither keys nor verdicts depend on them."""
    folder, _ = made
    texts = {"title": "another title", "claim": "another claim", "where": "elsewhere"}
    monkeypatch.setattr(theory, "CHECKS", tuple(replace(check, **texts) for check in theory.CHECKS))
    parts, rows = theory.STUDY.load_results(folder, quick=True)
    assert len(theory.results(parts, rows)) == len(theory.CHECKS)
    assert "another claim" in markdown(theory.STUDY.blocks(parts, rows, folder))


def test_rows_of_other_checks_do_not_count(made, tmp_path):
    folder, _ = made
    rows = Rows(folder / "rows.jsonl").read()
    Rows(tmp_path / "rows.jsonl").append([rows[0] | {"key": "0" * 12}, *rows])
    assert theory.STUDY.load_results(tmp_path, quick=True)[1] == rows


def test_names_and_keys():
    identities = [(check.name, check.dataset, tuple(check.data.items())) for check in theory.CHECKS]
    assert len(set(identities)) == len(theory.CHECKS)
    keys = set()
    for check in theory.CHECKS:
        for sizes in (theory.FULL_SIZES, SMALL):
            part = theory._part([check], sizes)
            keys.add(key(part.identity(part.datasets[0], check.name, None, 0)))
    assert len(keys) == 2 * len(theory.CHECKS)
    assert not any("|" in check.title + check.claim + check.where for check in theory.CHECKS)  # would split a cell
    assert set(theory._CURVES) <= {check.name for check in theory.CHECKS}


@pytest.mark.parametrize("name", ["map_scaled", "map_scaled_absolute_epsilon"])
def test_a_profile_without_its_mean_is_noticed(name, monkeypatch):
    """What is not normalised changes with scale; what is only a constant stays under translation."""
    usual = objective.profile

    def without_mean(radii, exponent, smoothing, masses=None):
        found = usual(radii, exponent, smoothing)
        return found._replace(log=-exponent * np.log(found.radius))

    assert measured(name).holds
    monkeypatch.setattr(objective, "profile", without_mean)
    broken = measured(name)
    assert not broken.holds
    assert broken.number == pytest.approx(math.log(1e3), rel=1e-3)
    assert measured("map_moved").holds


def test_a_detached_mean_where_it_should_be_attached_is_noticed(monkeypatch):
    usual = objective.loss_and_slope
    monkeypatch.setattr(
        objective, "loss_and_slope", lambda *given, attached, masses=None: usual(*given, attached=False)
    )
    assert not measured("scale_attached").holds
    assert not measured("gradient_exact").holds
    assert measured("scale_detached").holds


def test_a_loss_that_ignores_amplification_is_noticed(monkeypatch):
    monkeypatch.setattr(amplification, "loss_and_slope", lambda *_, **__: (0.0, None))
    assert not measured(amplification.CLOSED_FORM).holds
    assert not measured(amplification.ZERO).holds


def test_ranks_of_something_else_are_noticed(monkeypatch):
    monkeypatch.setattr(density, "density_rank_correlation", lambda X, Y, k: 0.0)
    assert not measured(density.DENSITY_RANKS).holds


def test_a_claim_that_does_not_hold_is_reported_and_can_be_repeated(small, monkeypatch, tmp_path):
    check = find(density.DENSITY_RANKS)
    numbers = dict.fromkeys(RANKED, 0.0)
    wrong = Finding(number=math.nan, bound=1.0, numbers=numbers)
    assert not wrong.holds
    monkeypatch.setattr(theory, "CHECKS", (replace(check, measure=lambda workspace: wrong),))
    assert "**does not hold**" in theory.STUDY.reproduce(quick(), tmp_path, verbose=0)
    monkeypatch.setattr(theory, "CHECKS", (check,))
    assert "0 of 1 claims hold." in theory.STUDY.reproduce(quick(), tmp_path, verbose=0)
    assert "1 of 1 claims hold." in theory.STUDY.reproduce(quick(), tmp_path, verbose=0, retry=True)
    assert [row["details"]["holds"] for row in Rows(tmp_path / "rows.jsonl").read()] == [False, True]


def test_a_check_that_raises_is_a_failed_row(small, monkeypatch, tmp_path):
    def broken(workspace):
        raise FloatingPointError("no luck")

    monkeypatch.setattr(theory, "CHECKS", (replace(find(density.DENSITY_RANKS), measure=broken),))
    text = theory.STUDY.reproduce(quick(), tmp_path, verbose=0)
    assert "FloatingPointError: no luck" in text


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
    assert "Theory as checks that can be run" in capsys.readouterr().out


def test_dimension():
    from drsne.neighbors.search import knn

    X = np.random.default_rng(0).uniform(size=(2000, 3)) @ np.random.default_rng(1).normal(size=(3, 10))
    assert local_dimension(knn(X, 30).distances).value == pytest.approx(3.0, rel=0.1)
