"""The results in the repository: complete, and the page and the documents say what the rows say."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev

import pytest
from page import Page

from drsne_paper import methods, report, studies

ROOT = Path(__file__).parents[2]
PAPER = json.loads((ROOT / "paper/src/drsne_paper/paper.json").read_text())
STUDIES = [name for name in studies.names() if (ROOT / "paper" / "results" / name / "rows.jsonl").exists()]


@cache
def the_page():
    return Page((ROOT / "paper" / "results" / "report.html").read_text(encoding="utf-8"))


def tables():
    """Of the committed page, by heading."""
    return the_page().tables


def page_words():
    return "".join(the_page().words)


@cache
def rows_of(study):
    """Return the committed rows that belong to a study, by key, without the code that reads them."""
    lines = (ROOT / "paper" / "results" / study / "rows.jsonl").read_text().splitlines()
    wanted = {key for part in studies.load(study).parts() for key in part.all_keys()}
    found = {row["key"]: row for row in map(json.loads, lines)}
    return [row for key, row in found.items() if key in wanted]


def as_printed(values):
    """A mean as it is printed."""
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


@pytest.mark.parametrize("study", STUDIES)
def test_nothing_is_left_to_run(study):
    """The command adds no row to those that are committed, none of which failed."""
    rows = rows_of(study)
    assert {row["key"] for row in rows} == {key for part in studies.load(study).parts() for key in part.all_keys()}
    assert [row["error"] for row in rows if row["error"]] == []


@pytest.mark.parametrize("study", STUDIES)
def test_the_tables_beside_the_rows_are_theirs(study):
    from drsne_paper.document import markdown

    folder, known = ROOT / "paper" / "results" / study, studies.load(study)
    made = markdown(known.blocks(*known.load_results(folder), folder))
    assert (folder / "table.md").read_text(encoding="utf-8") == made, "table.md is stale: drsne reproduce renews it"


def test_the_page_is_that_of_the_rows():
    made = report.page(ROOT / "paper" / "results", max_mb=100)
    page = (ROOT / "paper" / "results" / "report.html").read_text(encoding="utf-8")
    assert page == made, "paper/report.html is stale: renew it with drsne report"
    assert len(page.encode()) < 5e6


def test_the_documents_table_is_that_of_the_rows():
    document = ROOT / "docs" / "reproduction.md"
    assert report.claims_table(ROOT / "paper" / "results") in document.read_text(encoding="utf-8"), (
        "docs/reproduction.md is not of the committed rows: drsne report --docs docs/reproduction.md"
    )


@pytest.mark.parametrize(
    "dataset", ["digits", "fashion_mnist", "mnist", "gaussians50", "pbmc3k", "shuttle", "controlled_clusters", "helix"]
)
def test_the_main_table(dataset):
    """Recompute every cell on the page: for each seed the largest CC among maps above the threshold."""
    from drsne_paper.studies.main import DATASETS

    title, threshold = DATASETS[dataset]
    header, *body = tables()[str(title)]
    rows = [row for row in rows_of("main") if row["dataset"] == dataset]
    lines, seen = {line[0]: line for line in body}, 0
    for method in {row["method"] for row in rows}:
        line = lines[methods.find(method).title]
        some = [row for row in rows if row["method"] == method]
        chosen = []
        for seed in sorted({row["seed"] for row in some}):
            allowed = [row["metrics"] for row in some if row["seed"] == seed]
            allowed = [scores for scores in allowed if scores["trustworthiness"] >= threshold]
            chosen += [max(allowed, key=lambda scores: scores["concentration_correlation"])] if allowed else []
        for name, score in (
            ("TW", "trustworthiness"),
            ("CC", "concentration_correlation"),
            ("rho_S", "density_rank_correlation"),
        ):
            place = header.index(name)
            assert line[place] == (as_printed([scores[score] for scores in chosen]) if chosen else "-"), (method, name)
            if chosen and line[place + 1] != "-":
                theirs = float(line[place + 1].split()[0])
                mean = fmean(scores[score] for scores in chosen)
                assert float(line[place + 2]) == pytest.approx(mean - theirs, abs=1.1e-3)
            seen += 1
    assert seen == 3 * len(lines)


def check(line, header, name, values, paper=None):
    """A cell of the page against numbers of the rows and, where it has one, its difference from the paper."""
    place = header.index(name)
    assert line[place].removesuffix(" *") == as_printed(values), (line, name)
    if paper is not None:
        assert float(line[place + 1].split()[0]) == pytest.approx(paper, abs=6e-4)
        assert float(line[place + 2]) == pytest.approx(fmean(values) - paper, abs=6e-4)


def k_of(row, score):
    return dict(map(tuple, row["scores"]))[score]


ABLATIONS = {  # heading: its table in the paper, the rows that belong to it, what a row of the page stands for
    "Lambda, as published": (
        "lambda",
        lambda row, p: (p["k"], p["perplexity"], p["perplexity_search"]) == (299, 30, "doubling"),
        lambda row: row["value"],
    ),
    "Lambda, controlled": (
        None,
        lambda row, p: (p["k"], p["perplexity_search"]) == (299, "bracketed") and "every_pair" not in p,
        lambda row: row["value"],
    ),
    "Principal components, as published": (
        "pca",
        lambda row, p: (p["k"], p["perplexity"], p["perplexity_search"]) == (29, 30, "doubling"),
        lambda row: row["data"]["n_components"],
    ),
    "Principal components, controlled": (
        None,
        lambda row, p: row.get("against", {}).get("n_components") == 140,
        lambda row: row["data"]["n_components"],
    ),
    "Neighbours k, as published": (
        "k",
        lambda row, p: (
            p["perplexity_search"] == "doubling"
            and p["perplexity"] == p["k"] + 1 == k_of(row, "trustworthiness")
            and k_of(row, "concentration_correlation") == p["k"]
        ),
        lambda row: row["params"]["k"] + 1,
    ),
    "Neighbours k, controlled": (None, lambda row, p: p.get("every_pair", False), lambda row: row["params"]["k"] + 1),
}
SHORT = {
    "TW": "trustworthiness",
    "Cont": "continuity",
    "CC": "concentration_correlation",
    "rho_S": "density_rank_correlation",
    "Sil": "silhouette",
    "Stress": "stress",
}


def test_the_ablation_tables():
    """Recompute every mean and difference, and how many cells are near the paper's."""
    bounds = {"TW": 0.015, "Cont": 0.02, "CC": 0.02, "Stress": 0.1}
    rows = [row for row in rows_of("ablations") if row["method"] == "drsne_code"]
    near, cells = {}, {}
    for heading, (table, belongs, stands_for) in ABLATIONS.items():
        header, *body = tables()[heading]
        found = [row for row in rows if belongs(row, row["params"])]
        assert [float(line[0]) for line in body] == sorted({stands_for(row) for row in found})
        near[table], cells[table] = 0, 0
        for line in body:
            some = {row["seed"]: row for row in found if stands_for(row) == float(line[0])}
            assert sorted(some) == [42, 43, 44]
            for name, score in SHORT.items():
                values = [row["metrics"][score] for row in some.values()]
                paper = PAPER["ablations"][table][line[0]].get(score) if table else None
                paper = paper[0] if paper else None
                check(line, header, name, values, paper)
                if table and name in bounds:
                    allowed = bounds[name] * (paper if name == "Stress" else 1)
                    within = abs(fmean(values) - paper) <= allowed
                    assert line[header.index(name)].endswith(" *") != within
                    near[table], cells[table] = near[table] + within, cells[table] + 1
    del near[None], cells[None]
    words = page_words()
    for table, title in (("lambda", "lambda"), ("pca", "principal components"), ("k", "neighbours k")):
        assert f"{title}: {near[table]} of {cells[table]} cells within bounds" in words
    total = f"all three: {sum(near.values())} of {sum(cells.values())} cells within bounds"
    assert total in words
    assert sum(near.values()) >= 0.8 * sum(cells.values())


def test_the_exponent_table():
    from drsne_paper.studies._exponent import SETTINGS

    settings = {title: list(setting) for setting, title in SETTINGS.items()}
    header, *body = tables()["The exponent and the mean"]
    rows = [row for row in rows_of("ablations") if row["method"] == "exponents"]
    assert len(body) == len({tuple(row["value"]) for row in rows}) == 10
    for line in body:
        some = [row["metrics"] for row in rows if row["value"] == [*settings[line[1]], float(line[0])]]
        assert len(some) == int(line[3]) == 3
        for name, score in SHORT.items():
            check(line, header, name, [scores[score] for scores in some])


def test_the_trade_off_tables():
    from drsne_paper.studies.tradeoff import DATASETS

    names = {title: name for name, title in DATASETS.items()}
    headings = {
        "DR-SNE (the paper's code, as published)": "drsne_code",
        "DR-SNE (ours, fixed kernel, k = 30)": "drsne",
        "DR-SNE (ours, fixed kernel, k = 299)": "drsne_wide",
    }
    for heading, method in headings.items():
        header, *body = tables()[heading]
        rows = [row for row in rows_of("tradeoff") if row["method"] == method]
        assert len(body) == len({(row["dataset"], row["value"]) for row in rows}) >= 30
        for line in body:
            dataset, lam = names[line[0]], float(line[1])
            some = [row for row in rows if row["dataset"] == dataset and row["value"] == pytest.approx(lam, rel=1e-4)]
            assert sorted(row["seed"] for row in some) == [42, 43, 44, 45, 46]
            paper = PAPER["tradeoff"].get(dataset, {}).get(line[1]) if method == "drsne_code" else None
            for place, name in enumerate(("TW", "CC")):
                values = [row["metrics"][SHORT[name]] for row in some]
                check(line, header, name, values, paper[place] if paper else None)


DETECTORS = {"kNN": "knn", "LOF": "lof", "IF": "isolation_forest", "Cent": "centroid"}


def by_setting(dataset, method):
    """AUPRC of the seeds of every setting, by detector."""
    out = {}
    for row in rows_of("anomaly"):
        if (row["dataset"], row["method"]) == (dataset, method):
            setting = tuple(row["value"]) if isinstance(row["value"], list) else row["value"]
            for name in DETECTORS.values():
                out.setdefault(setting, {}).setdefault(name, []).append(row["metrics"][f"auprc_{name}"])
    return out


def in_the_paper(dataset, method, section, name, *, whole=False):
    column = "drsne" if method == "drsne_code" else method
    found = [PAPER[part].get(dataset, {}).get(column, {}).get(section, {}).get(name) for part in _CORRECTED_FIRST]
    return next((cell if whole else cell[0] for cell in found if cell), None)


_CORRECTED_FIRST = ("anomaly_corrected", "anomaly")


def best_of(found, name, by=None):
    """Values of a detector at the setting that is the best for it, or for another."""
    return max(found.values(), key=lambda scores: fmean(scores[by or name]))[name]


def setting_of(dataset, method, section, name):
    """The setting behind a cell of the paper's tables; None for the data themselves."""
    found = PAPER["anomaly"][dataset]["drsne" if method == "drsne_code" else method]
    if method == "high_d":
        return None
    return tuple(found["settings_best"][name] if section == "best" else found["settings_oracle_if"])


@pytest.mark.parametrize("dataset", ["thyroid", "cifar10", "shuttle", "pbmc3k", "fashion_mnist", "spiral"])
def test_the_anomaly_tables(dataset):
    """Oracle choices of every method, recomputed from the rows."""
    from drsne_paper.studies.anomaly import DATASETS, STUDY

    (part,) = [part for part in STUDY.parts() if part.datasets == (dataset,)]
    for section, label in (("best", "best"), ("oracle_if", "oracle-IF")):
        header, *body = tables()[f"{DATASETS[dataset]}: {label}"]
        lines = {line[0]: line for line in body}
        shown = [method for method in part.methods if method != "drsne_auto"]
        assert set(lines) == {part.method(method).title for method in shown}
        for method in shown:
            line, found = lines[part.method(method).title], by_setting(dataset, method)
            assert int(line[header.index("seeds")]) == (1 if method == "high_d" else 3)
            if method == "drsne":
                assert len(found) == 33
            for short, name in DETECTORS.items():
                by = name if section == "best" else "isolation_forest"
                values = best_of(found, name, by)
                paper = in_the_paper(dataset, method, section, name)
                if paper is None or max(found, key=lambda one: fmean(found[one][by])) == setting_of(
                    dataset, method, section, name
                ):
                    check(line, header, short, values, paper)
                else:
                    check(line, header, short, values)
                    assert line[header.index(short) + 2] == "other setting"


def test_the_best_of_the_committed_page_are_bold():
    """The bold cells of the main tables are the largest printed means."""
    import re

    text = (ROOT / "paper" / "results" / "report.html").read_text(encoding="utf-8")
    for title in ("Digits", "PBMC", "Helix"):
        section = text.split(f">{title}</h4>")[1].split("</table>")[0]
        bold = {re.sub("<[^>]*>", "", cell) for cell in re.findall("<strong>(.*?)</strong>", section)}
        header, *body = tables()[title]
        for name in ("TW", "CC", "rho_S"):
            cells = [line[header.index(name)] for line in body if line[header.index(name)] != "-"]
            assert max(cells, key=lambda cell: float(cell.split()[0])) in bold


def test_the_choice_without_labels():
    """Its mean over detectors beside the paper's oracle and the data themselves."""
    from drsne_paper.studies.anomaly import DATASETS

    header, *body = tables()["Without labels"]
    names = {str(title): name for name, title in DATASETS.items()}
    assert [names[line[0]] for line in body] == list(DATASETS)
    for line in body:
        dataset = names[line[0]]
        chosen = by_setting(dataset, "drsne_auto")["input"]
        means = [fmean(scores[seed] for scores in chosen.values()) for seed in range(3)]
        assert line[header.index("no labels (ours)")] == as_printed(means)
        weights = {
            row["seed"]: f"{row['details']['density_weight']:g}"
            for row in rows_of("anomaly")
            if (row["dataset"], row["method"], row["value"]) == (dataset, "drsne_auto", "input")
        }
        assert line[header.index("lambda chosen")] == ", ".join(weights[seed] for seed in range(3))
        both = by_setting(dataset, "drsne_auto")["both"]
        means_of_both = [fmean(scores[seed] for scores in both.values()) for seed in range(3)]
        assert line[header.index("no labels, both")] == as_printed(means_of_both)
        ours = by_setting(dataset, "drsne")
        for name, by in (("best of ours", None), ("oracle-IF of ours", "isolation_forest")):
            reached = fmean(fmean(best_of(ours, detector, by)) for detector in DETECTORS.values())
            assert line[header.index(name)] == f"{reached:.3f}"
        plain = fmean(scores[0] for scores in by_setting(dataset, "high_d")[None].values())
        assert line[header.index("HIGH-D")] == f"{plain:.3f}"
        assert float(line[header.index("HIGH-D") + 1]) == pytest.approx(fmean(means) - plain, abs=6e-4)
        theirs = [in_the_paper(dataset, "drsne", "best", name) for name in DETECTORS.values()]
        place = header.index("paper's best DR-SNE")
        if None in theirs:
            assert line[place : place + 2] == ["-", "-"]
        else:
            assert float(line[place]) == pytest.approx(fmean(theirs), abs=6e-4)
            assert float(line[place + 1]) == pytest.approx(fmean(means) - fmean(theirs), abs=6e-4)


def test_the_choice_without_labels_in_the_document():
    header, *body = tables()["Without labels"]
    wanted = ["no labels (ours)", "no labels, both", "paper's best DR-SNE", "HIGH-D"]
    cells = [[line[header.index(name)].split()[0].removeprefix("0") for name in wanted] for line in body]
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").split("## Anomalies without labels")[1]
    lines = [line.strip("| ").split(" | ") for line in text.split("\n## ")[0].splitlines() if line.startswith("|")]
    assert [line[1:] for line in lines[2:]] == cells
    assert [line[0].split(" (")[0] for line in lines[2:]] == [line[0].split(" (")[0] for line in body]


def test_the_sweep_over_lambda():
    """The isolation forest without a density term and at the best lambda and k."""
    from drsne_paper.studies.anomaly import DATASETS

    names = {title.short: name for name, title in DATASETS.items()}
    _, *body = tables()["Over lambda"]
    assert [names[line[0]] for line in body] == list(DATASETS)
    for line in body:
        found = by_setting(names[line[0]], "drsne")
        none = {setting: scores for setting, scores in found.items() if setting[0] == 0}
        some = {setting: scores for setting, scores in found.items() if setting[0] > 0}
        assert (len(none), len(some)) == (3, 30)
        forest = "isolation_forest"
        assert line[1:3] == [as_printed(best_of(none, forest)), as_printed(best_of(some, forest))]
        assert float(line[3]) == max(some, key=lambda setting: fmean(some[setting][forest]))[0]
        theirs = PAPER["anomaly_sweep"][names[line[0]]]
        assert [float(cell) for cell in line[4:]] == pytest.approx(theirs, abs=6e-4)


@pytest.mark.parametrize(
    ("section", "heading"),
    [("best", "At the paper's settings"), ("oracle_if", "At the paper's settings: oracle-IF")],
)
def test_the_anomaly_scores_at_the_settings_of_the_paper(section, heading):
    """Every cell, recomputed at the setting behind the paper's cell, and how many are within its deviation."""
    from drsne_paper.studies.anomaly import DATASETS, STUDY

    titles = {STUDY.parts()[0].method(name).title: name for name in STUDY.parts()[0].methods}
    header, *body = tables()[heading]
    assert len(body) == 5 * 6
    names = {title.short: name for name, title in DATASETS.items()}
    near, cells = {"drsne_code": 0, "peers": 0}, {"drsne_code": 0, "peers": 0}
    far = []  # titles of the data sets of the peers' other cells
    for line in body:
        dataset, method = names[line[0]], titles[line[1]]
        found = by_setting(dataset, method)
        for short, name in DETECTORS.items():
            values = found[setting_of(dataset, method, section, name)][name]
            paper, deviation = in_the_paper(dataset, method, section, name, whole=True)
            check(line, header, short, values, paper)
            if dataset != "cifar10":
                whose = method if method == "drsne_code" else "peers"
                near[whose] += abs(fmean(values) - paper) <= deviation
                cells[whose] += 1
                far += [line[0]] if whose == "peers" and abs(fmean(values) - paper) > deviation else []
    assert cells == {"drsne_code": 16, "peers": 80}
    text = (ROOT / "paper" / "results" / "anomaly" / "table.md").read_text(encoding="utf-8")
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    assert f"- DR-SNE (the paper's code): {near['drsne_code']} of 16\n" in part
    assert f"- the peers together: {near['peers']} of 80\n" in part
    document = " ".join((ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").split())
    assert near["drsne_code"] == 16
    assert f"{near['peers']} of 80 ({'each detector' if section == 'best' else 'oracle-IF'})" in document
    if section == "best":
        assert f"In the first table, {len(far)} cells differ from the printed value" in document
        assert (far.count("Thyroid"), far.count("PBMC")) == (10, 7)
        assert "Ten of these cells are on Thyroid." in document
        assert f"Seven of the {len(far)} cells are on PBMC." in document


def test_the_run_times():
    """Medians of seven runs, of three above 9000 points."""
    header, *body = tables()["Run time"]
    methods_of = {
        "our exact engine, one thread": "exact_one",
        "our exact engine, all threads": "exact_all",
        "our fft engine, one thread": "fft_one",
        "our fft engine, all threads": "fft_all",
    }
    seen = 0
    for line in body:
        n = int(line[0])
        for title, method in methods_of.items():
            found = [
                row["seconds"]["total"]
                for row in rows_of("runtime")
                if (row["data"]["n_samples"], row["method"]) == (n, method)
            ]
            assert len(found) == (0 if n > 13000 and "exact" in method else 7 if n <= 9000 else 3)
            assert line[header.index(title)] == (f"{median(found):.2f} ({len(found)})" if found else "-")
            seen += len(found)
    assert seen == len(rows_of("runtime"))
