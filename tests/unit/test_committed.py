"""The results in the repository: complete, and the page and the documents say what the rows say."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

import pytest
from page import Page

from drsne.experiments import methods, report, studies

ROOT = Path(__file__).parents[2]
PAPER = json.loads((ROOT / "src/drsne/experiments/paper.json").read_text())
STUDIES = [name for name in studies.names() if (ROOT / "paper" / name / "rows.jsonl").exists()]
COMPLETE = ("main",)  # studies whose runs are all made


@cache
def tables():
    """Of the committed page, by heading."""
    return Page((ROOT / "paper" / "report.html").read_text(encoding="utf-8")).tables


@cache
def rows_of(study):
    """The committed rows that belong to a study, by key, without a word of the code that reads them."""
    lines = (ROOT / "paper" / study / "rows.jsonl").read_text().splitlines()
    wanted = {key for part in studies.load(study).parts() for key in part.all_keys()}
    found = {row["key"]: row for row in map(json.loads, lines)}
    return [row for key, row in found.items() if key in wanted]


def told(values):
    """A mean as it is printed."""
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


@pytest.mark.parametrize("study", COMPLETE)
def test_nothing_is_left_to_run(study):
    """The command adds no row to those that are committed, none of which failed."""
    rows = rows_of(study)
    assert {row["key"] for row in rows} == {key for part in studies.load(study).parts() for key in part.all_keys()}
    assert [row["error"] for row in rows if row["error"]] == []


def test_theory_is_complete():
    from drsne.experiments.studies import theory

    assert len(theory.STUDY.kept(ROOT / "paper" / "theory")[1]) == len(theory.CHECKS)


def test_the_page_is_that_of_the_rows():
    made = report.page(ROOT / "paper", max_mb=100)
    page = (ROOT / "paper" / "report.html").read_text(encoding="utf-8")
    assert page == made, "paper/report.html is stale: renew it with drsne report"
    assert len(page.encode()) < 5e6


def test_the_documents_table_is_that_of_the_rows():
    document = ROOT / "docs" / "reproduction.md"
    assert report.claims_table(ROOT / "paper") in document.read_text(encoding="utf-8"), (
        "docs/reproduction.md is not of the committed rows: drsne report --docs docs/reproduction.md"
    )


@pytest.mark.skipif("main" not in STUDIES, reason="no rows of main")
@pytest.mark.parametrize(
    "dataset", ["digits", "fashion_mnist", "mnist", "gaussians50", "pbmc3k", "shuttle", "controlled_clusters", "helix"]
)
def test_the_main_table(dataset):
    """Every cell on the page, found anew: for each seed the largest CC among maps that are trusty enough."""
    from drsne.experiments.studies.main import DATASETS

    title, least = DATASETS[dataset]
    header, *body = tables()[title]
    rows = [row for row in rows_of("main") if row["dataset"] == dataset]
    lines, seen = {line[0]: line for line in body}, 0
    for method in {row["method"] for row in rows}:
        line = lines[methods.find(method).title]
        some = [row for row in rows if row["method"] == method]
        chosen = []
        for seed in sorted({row["seed"] for row in some}):
            trusty = [row["metrics"] for row in some if row["seed"] == seed]
            trusty = [scores for scores in trusty if scores["trustworthiness"] >= least]
            chosen += [max(trusty, key=lambda scores: scores["concentration_correlation"])] if trusty else []
        for name, score in (
            ("TW", "trustworthiness"),
            ("CC", "concentration_correlation"),
            ("rho_S", "density_rank_correlation"),
        ):
            place = header.index(name)
            assert line[place] == (told([scores[score] for scores in chosen]) if chosen else "-"), (method, name)
            if chosen and line[place + 1] != "-":
                theirs = float(line[place + 1].split()[0])
                mean = fmean(scores[score] for scores in chosen)
                assert float(line[place + 2]) == pytest.approx(mean - theirs, abs=1.1e-3)
            seen += 1
    assert seen == 3 * len(lines)
