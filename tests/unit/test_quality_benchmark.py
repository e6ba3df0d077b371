"""The rule and the storage of benchmarks/quality.py, which decide what its report claims."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCORES = (
    "trustworthiness_10",
    "concentration_correlation_29",
    "density_rank_correlation_30",
    "density_rank_correlation_5",
)


@pytest.fixture
def study(monkeypatch, tmp_path):
    """The modules of the study, with rows in a temporary folder. Their short names are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    import quality
    import quality_report
    import quality_rows

    monkeypatch.setattr(quality_rows, "ROWS", tmp_path / "quality.jsonl")
    yield SimpleNamespace(run=quality, report=quality_report, rows=quality_rows)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(FOLDER)):
            del sys.modules[name]


def _row(method="umap", params=None, seed=3, scores=None):
    row = {"set": "Digits", "method": method, "params": params or {}, "seed": seed}
    return row if scores is None else {**row, "scores": dict(zip(SCORES, scores, strict=True))}


def test_a_setting_is_matched_only_by_one_map_that_is_as_good_on_all_scores(study):
    def point(*scores):
        return study.report.Point("Digits", "drsne_path", {}, dict(zip(SCORES, scores, strict=True)))

    rival = point(0.9, 0.8, 0.7, 0.6)
    assert study.report.nearest(rival, [rival])[1]  # equal is as good
    assert study.report.nearest(rival, [point(0.5, 0.9, 0.9, 0.9), point(0.95, 0.81, 0.7, 0.6)])[1]
    one_short = [point(0.95, 0.9, 0.9, 0.59), point(0.89, 0.9, 0.9, 0.9)]  # together they would match
    nearest, matched = study.report.nearest(rival, one_short)
    assert not matched
    assert nearest is one_short[0]  # .01 of rho5 is a smaller step than .01 of trustworthiness


def test_an_undefined_score_never_counts_as_good(study):
    missing = study.report.Point("Digits", "drsne_path", {}, {"trustworthiness_10": float("nan")})
    rival = study.report.Point("Digits", "densmap", {}, dict.fromkeys(SCORES, -0.5))
    assert not study.report.nearest(rival, [missing])[1]
    assert study.report.nearest(missing, [rival])[1]


def test_means_need_all_seeds_and_a_known_setting(study):
    rows = [_row(seed=seed, scores=(0.1 * seed, 0, 0, 0)) for seed in (3, 4, 5)]
    (point,) = study.report.means([*rows, _row(seed=0, scores=(9, 9, 9, 9))])
    assert point.scores["trustworthiness_10"] == pytest.approx(0.4)
    assert study.report.means(rows[:2]) == []
    assert study.report.means([{**row, "params": {"n_neighbors": 5}} for row in rows]) == []


def test_maps_come_back_with_their_fields(study, tmp_path):
    maps = study.rows.Maps(tmp_path / "maps")
    rows = [_row(params={"dens_lambda": value}, method="densmap") for value in (0.1, 0.5)]
    for row in rows:
        maps.save(row, np.full((4, 2), row["params"]["dens_lambda"]))
    found = {study.rows.key(row): row for row in maps.rows()}
    assert set(found) == {study.rows.key(row) for row in rows}
    np.testing.assert_allclose(maps.load(rows[1]), 0.5)
    assert len(list((tmp_path / "maps").iterdir())) == 2  # no file is left half-written


def test_scores_are_dropped_when_the_map_changes(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study.run, "SCORES", SCORES)
    maps = study.rows.Maps(tmp_path / "maps")
    maps.save(_row(), np.zeros((4, 2)))
    (fresh,) = study.run.unscored(maps, {})
    study.rows.append({**fresh, **_row(scores=(1, 1, 1, 1))})
    assert study.run.unscored(maps, study.rows.read()) == []
    maps.save(_row(), np.ones((4, 2)))
    (changed,) = study.run.unscored(maps, study.rows.read())
    assert "scores" not in changed


def test_the_last_line_of_a_key_counts(study):
    for value in (1, 2):
        study.rows.append(_row(scores=(value, 0, 0, 0)))
    (row,) = study.rows.read().values()
    assert row["scores"]["trustworthiness_10"] == 2
    study.rows.rewrite(study.rows.read().values())
    assert len(study.rows.ROWS.read_text().splitlines()) == 1


def test_every_setting_is_planned_once(study):
    options = SimpleNamespace(methods=list(study.run.METHODS), sets=["Digits", "Helix"], seeds=[3, 4], defaults=False)
    keys = [study.rows.key(row) for job in study.run.planned(options) for row in study.run.rows_of(job)]
    assert len(keys) == len(set(keys)) == 4 * sum(len(method.grid) for method in study.run.METHODS.values())
    assert all(method.default in (None, *method.grid) for method in study.run.METHODS.values())
