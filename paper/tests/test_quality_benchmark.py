"""The rule and the rows of benchmarks/quality.py, which decide what its report claims."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
_ROWS = sorted([*(FOLDER / "results").glob("*.jsonl"), *(FOLDER.parent / "paper").rglob("rows.jsonl")])
SCORES = (
    "trustworthiness",
    "concentration_correlation",
    "density_rank_correlation",
    "local_density_rank_correlation",
)


@pytest.fixture
def quality(monkeypatch):
    """The modules of the study. Their short names are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    import quality_methods
    import quality_pictures
    import quality_report

    yield SimpleNamespace(methods=quality_methods, report=quality_report, pictures=quality_pictures)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(FOLDER)):
            del sys.modules[name]


def _row(method="umap", value=None, seed=3, scores=(0, 0, 0, 0), error=None):
    row = {"dataset": "digits", "method": method, "value": value, "seed": seed, "error": error}
    return {**row, "metrics": dict(zip(SCORES, scores, strict=True))}


def test_a_setting_is_matched_only_by_one_map_that_is_as_good_on_all_scores(quality):
    def point(*scores):
        return quality.report.Point("digits", "drsne_path", 1.0, dict(zip(SCORES, scores, strict=True)))

    rival = point(0.9, 0.8, 0.7, 0.6)
    assert quality.report.nearest(rival, [rival])[1]  # equal is as good
    assert quality.report.nearest(rival, [point(0.5, 0.9, 0.9, 0.9), point(0.95, 0.81, 0.7, 0.6)])[1]
    one_short = [point(0.95, 0.9, 0.9, 0.59), point(0.89, 0.9, 0.9, 0.9)]  # together they would match
    nearest, matched = quality.report.nearest(rival, one_short)
    assert not matched
    assert nearest is one_short[0]  # .01 of rho5 is a smaller step than .01 of trustworthiness


def test_an_undefined_score_never_counts_as_good(quality):
    missing = quality.report.Point("digits", "drsne_path", 1.0, {"trustworthiness": float("nan")})
    rival = quality.report.Point("digits", "densmap", 0.1, dict.fromkeys(SCORES, -0.5))
    assert not quality.report.nearest(rival, [missing])[1]
    assert quality.report.nearest(missing, [rival])[1]


def test_means_need_all_seeds(quality):
    rows = [_row(seed=seed, scores=(0.1 * seed, 0, 0, 0)) for seed in (3, 4, 5)]
    (point,) = quality.report.means([*rows, _row(seed=0, scores=(9, 9, 9, 9))])
    assert point.scores["trustworthiness"] == pytest.approx(0.4)
    assert quality.report.means(rows[:2]) == []
    assert quality.report.means([*rows[:2], rows[2] | {"error": "ValueError: no"}]) == []


def test_every_run_has_a_committed_row(quality):
    """The report is made from rows in the format of the studies; none is missing and none failed."""
    from drsne_paper.runner import rows_of_study

    studies, methods = quality.methods.studies(), quality.methods.METHODS
    rows = rows_of_study(studies, quality.methods.rows().read())
    assert {row["key"] for row in rows} == set.union(*(study.all_keys() for study in studies))
    assert {row["error"] for row in rows} == {None}
    settings, defaults = sum(len(method.grid) for method in methods.values()), len(quality.methods.DEFAULTS)
    assert len(rows) == 3 * (8 * settings + 7 * defaults)


def test_the_report_is_that_of_the_committed_rows(quality):
    rows = quality.methods.rows().read()
    points = quality.report.means(rows)
    found = quality.report.comparisons(points)
    text = (FOLDER / "results" / "quality.md").read_text(encoding="utf-8")
    tables = [quality.report.default_table(score, points) for score in (*quality.methods.SCORES, "span", "groups")]
    tables += [quality.report.above(points), quality.report.by_other_rules(found, points, rows)]
    tables += [quality.report.counts(found), quality.report.misses(found), quality.report.everything(points)]
    tables.append(quality.report.short_counts(quality.report.above_threshold(found)))
    for table in tables:
        assert table in text, "results/quality.md is stale: python benchmarks/quality.py --report"


@pytest.mark.parametrize("file", sorted((FOLDER / "results").glob("*.jsonl")), ids=lambda file: file.stem)
def test_rows_of_all_benchmarks_have_one_format(quality, file):
    from drsne_paper import Rows

    rows = Rows(file).read()
    assert rows
    assert {row["study"] for row in rows} == {file.stem}
    assert len({row["key"] for row in rows}) == len(rows)


@pytest.mark.parametrize("file", sorted((FOLDER / "results").glob("*.md")), ids=lambda file: file.stem)
def test_a_report_without_a_program_names_the_commit_that_has_it(file):
    text = file.read_text(encoding="utf-8")
    (program,) = set(re.findall(r"Made by `python benchmarks/(\w+\.py)", text))
    assert (FOLDER / program).exists() or re.search(r"in the repository at commit [0-9a-f]{7}\.", text)


# The rows of these files, some or all, were made before the machine was recorded. Their reports say so.
WITHOUT_MACHINE = {
    "main": 1952, "ablations": 177, "anomaly": 996, "runtime": 182, "tradeoff": 750,  # docs/reproduction.md says it
    "quality": 1284, "kernel": 958, "iterations": 264, "defaults": 732, "path_end": 24, "densne": 84,
    "search_noise": 12, "search_noise_16": 17, "gpu": 31,
}  # fmt: skip


@pytest.mark.parametrize("file", _ROWS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_row_names_its_commit_and_machine(file):
    """Rows from before this was recorded have the first commit that contains them, as "at or before"."""
    commit = re.compile(r"(at or before )?[0-9a-f]{7,12}|[0-9a-f]{12}\+|sources [0-9a-f]{12}")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [row["key"] for row in rows if not commit.fullmatch(str(row.get("commit")))] == []
    assert [row["key"] for row in rows if not row.get("machine")] == []
    name = file.parent.name if file.stem == "rows" else file.stem
    missing = sum(row["machine"] == "machine not recorded" for row in rows)
    assert missing <= WITHOUT_MACHINE.get(name, 0), "new rows must have their machine"
    if missing and file.stem != "rows":
        report = FOLDER / "results" / f"{name.removesuffix('_16')}.md"
        assert "- machine not recorded: " in report.read_text(encoding="utf-8")


def test_a_report_names_the_machines_of_its_rows(quality, tmp_path, monkeypatch):
    import runner

    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    rows = runner.Results("some", "n")
    first = rows.append({"n": 1})
    assert (first["machine"], first["commit"]) == (runner.host(), runner.commit())
    rows.append({"n": 2, "machine": "another machine", "commit": "abc1234"})
    runner.write("some", "Some", "python some.py", rows=rows.read())
    text = (tmp_path / "some.md").read_text(encoding="utf-8")
    assert "- another machine: abc1234 (1)" in text
    assert f"- {runner.host()}: {runner.commit()} (1)" in text


def test_the_five_scores_are_those_of_evaluate(quality):
    import runner

    from drsne import metrics

    X = np.random.default_rng(0).normal(size=(60, 5))
    expected = metrics.evaluate(X, X[:, :2])
    expected["concentration_correlation"] = metrics.concentration_correlation(X, X[:, :2], 29)  # as in the paper
    assert runner.five_scores(X, X[:, :2]) == [expected[name] for name in runner.FIVE]


def test_the_report_of_the_contrast_is_that_of_the_committed_rows(quality):
    import contrast

    text = (FOLDER / "results" / "contrast.md").read_text(encoding="utf-8")
    assert contrast.held_out() in text


def test_defaults_are_settings_of_the_study(quality):
    methods = quality.methods
    assert all(value in methods.METHODS[name].grid for name, value in methods.DEFAULTS.items())
    few = methods.study(("helix",), tuple(methods.METHODS), (3,), only_defaults=True)
    assert few.all_keys() < methods.studies()[0].all_keys()
    assert len(few.all_keys()) == len(methods.DEFAULTS)


def test_without_maps_the_picture_is_kept(quality, tmp_path, capsys):
    for file, text in quality.pictures.default_maps([_row() | {"key": "a"}], tmp_path):
        assert (FOLDER / "results" / file).exists()
        assert "seed 3" in text
    assert "no maps" in capsys.readouterr().out


def test_data_are_those_of_the_package(quality):
    import data

    from drsne_paper.datasets import recipes

    np.testing.assert_array_equal(data.paper_data("digits").X, recipes.paper("digits").X)
    assert data.paper_data("helix").X.shape == data.paper_data("controlled_clusters").X.shape == (5000, 3)
    assert data.gaussians50(400).shape == (400, 50)
