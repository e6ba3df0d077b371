"""Studies of the paper beside the main comparison: what they run, and what they make of their rows."""

from __future__ import annotations

import json
import math
import re
import warnings

import numpy as np
import pytest

from drsne import density_path
from drsne.terms.contrast import local_dimension
from drsne_paper import Rows, published, studies
from drsne_paper.document import DIFFERENCE, Figure, Heading, Table, Text, markdown
from drsne_paper.methods import Run, Workspace
from drsne_paper.methods._drsne import FIXED_WEIGHTS, along_a_path, fixed_kernel, of_the_paper
from drsne_paper.pages import html
from drsne_paper.rows import key
from drsne_paper.studies import _anomaly_runs, _exponent, ablations, anomaly, runtime, tradeoff
from drsne_paper.study import Selection
from drsne_paper.tables import signed

NAMES = [name for name in studies.names() if name != "theory"]  # which has no names to select


def made(part, score, *, seconds=None, details=None):
    """Rows of all runs of a study, with scores and seconds by a rule."""
    rows = []
    for dataset, method, seed in part.groups():
        for value in part.values(method):
            identity = part.identity(dataset, method, value, seed)
            row = {"key": key(identity), "study": part.name, **identity, "value": value, "error": None}
            row |= {"metrics": score(row), "seconds": seconds(row) if seconds else {"optimization": 1.0}}
            rows.append(row | ({"details": details} if details else {}))
    return json.loads(json.dumps(rows))


def tables_of(blocks):
    """Tables by the heading before them."""
    out, last = {}, None
    for block in blocks:
        if isinstance(block, Heading):
            last = block.text
        elif isinstance(block, Table):
            out[last] = block
    return out


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_parts_are_data(name, quick):
    """Every run has a key of its own within its part, and what it is can be written as JSON."""
    for part in studies.load(name).parts(Selection(quick=quick)):
        seen = []
        for dataset, method, seed in part.groups():
            for value in part.values(method):
                identity = part.identity(dataset, method, value, seed)
                assert json.loads(json.dumps(identity))["method"] == method
                seen.append(key(identity))
        assert len(seen) == len(set(seen)) > 0
        assert set(seen) == part.all_keys()


@pytest.mark.parametrize("name", NAMES)
def test_unknown_names(name):
    with pytest.raises(ValueError, match=r"datasets must be one of .*; got 'digitz'"):
        studies.load(name).parts(Selection(datasets=["digitz"]))
    with pytest.raises(ValueError, match=r"methods must be one of .*; got 'tnse'"):
        studies.load(name).parts(Selection(methods=["tnse"]))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_tell_yet(name, tmp_path):
    """A study without rows has a title and no table."""
    known = studies.load(name)
    blocks = known.blocks(*known.load_results(tmp_path), tmp_path)
    assert isinstance(blocks[0], Heading)
    assert not any(isinstance(block, Table) for block in blocks)
    assert not list(tmp_path.iterdir())


def test_ablations_are_those_of_the_paper():
    published_k = [ablations.part(line) for line in ablations.TABLES["k", "published"].values()]
    assert len(published_k) == 9
    for part in published_k:  # three things change at once
        settings = part.variants["drsne_code"].settings
        scores = dict(part.scores)
        assert settings["perplexity"] == settings["k"] + 1 == scores["trustworthiness"] == scores["continuity"]
        assert scores["concentration_correlation"] == settings["k"]
        assert settings["perplexity_search"] == "doubling"
    controlled_k = [ablations.part(line) for line in ablations.TABLES["k", "controlled"].values()]
    for part in controlled_k:  # one thing: the KL term is not over the density neighbours
        assert part.variants["drsne_code"].settings["every_pair"]
        assert dict(part.scores)["trustworthiness"] == 10
        assert part.variants["drsne_code"].settings["perplexity"] == 30
        assert part.variants["drsne_code"].settings["perplexity_search"] == "bracketed"
    assert {part.data_params["cluster_neighbors"] for part in (*published_k, *controlled_k)} == {15}  # other labels
    assert {line.against for line in ablations.TABLES["pca", "controlled"].values()} == {140}
    assert {line.against for line in ablations.TABLES["pca", "published"].values()} == {None}
    assert [line.concentration for line in ablations.PROGRESSIONS["k"].values()] == [9, 49, 249]
    lambdas = [ablations.part(line) for line in ablations.TABLES["lambda", "published"].values()]
    assert {tuple(part.data_params.values()) for part in lambdas} == {(30, 300)}
    assert [part.variants["drsne_code"].grid[0] for part in lambdas] == [0, 0.001, 0.005, 0.01, 0.05, 0.1]
    assert {part.seeds for part in ablations.STUDY.parts()} == {(42, 43, 44), (42,)}


def test_a_setting_is_found_again_in_its_rows():
    lines = [
        line for lines in (*ablations.TABLES.values(), *ablations.PROGRESSIONS.values()) for line in lines.values()
    ]
    assert len(set(lines)) == len(lines)
    for line in lines:
        assert {ablations.Setting.of(row) for row in made(ablations.part(line), lambda row: {})} == {line}


@pytest.mark.parametrize(
    ("table", "values"), [("lambda", [0, 0.01, 0.1]), ("pca", [20, 50, 100]), ("k", [10, 50, 250])]
)
def test_figures_of_ablations_are_in_the_order_of_the_values(table, values):
    drawn = [line for lines in ablations.PROGRESSIONS.values() for line in lines.values()]
    rows = [row for line in drawn for row in made(ablations.part(line, seeds=[42]), lambda row: {})]
    for row in rows:
        row["metrics"] = dict.fromkeys(dict(row["scores"]), 0.5)
    found = ablations.progression(table, rows[::-1])
    of = {
        "lambda": lambda row: row["value"],
        "pca": lambda row: row["data"]["n_components"],
        "k": lambda row: row["params"]["k"] + 1,
    }
    assert [of[table](row) for row in found] == values


def test_ablations_count_cells_within_bounds():
    """Rows that are the paper's numbers are within bounds; those off by more are starred and counted out."""
    parts = ablations.STUDY.parts()
    lines = ablations.TABLES["lambda", ablations.PUBLISHED]

    def paper(row):
        value = row["params"].get("lam", 0.01)
        return {name: published.ablation("lambda", value, name)[0] for name, _ in row["scores"]}

    rows = [row for line in lines.values() for row in made(ablations.part(line), paper)]
    for row in rows:
        row["metrics"]["density_rank_correlation"] = 0.5
    header, body, count = ablations._table("lambda", lines, rows, compared=True)
    assert count == (24, 24)
    assert len(body) == 6
    assert {row[header.index("diff.")] for row in body} == {"+0.000"}
    for row in rows:
        if row["params"]["lam"] == 0.01:
            row["metrics"]["stress"] *= 1.2
            row["metrics"]["trustworthiness"] += 0.01
    _, body, count = ablations._table("lambda", lines, rows, compared=True)
    assert count == (23, 24)
    assert body[3][header.index("Stress")].endswith("*")
    assert not body[3][header.index("TW")].endswith("*")
    page_text = markdown(ablations.STUDY.blocks(parts, rows, None))
    assert "lambda: 23 of 24 cells within bounds (96%)" in page_text


def test_dimension_of_data_that_have_one():
    rng = np.random.default_rng(0)
    for d in (1, 2, 4):
        X = rng.uniform(size=(2000, d)) @ rng.normal(size=(d, 8))
        assert local_dimension(Workspace(X).neighbors(30)[0].distances).value == pytest.approx(d, rel=0.12)


def test_exponents_are_compared_at_equal_strength(monkeypatch):
    seen = []

    class Model:
        def __init__(self, **given):
            seen.append(given)

        def fit_transform(self, X):
            return X[:, :2]

    monkeypatch.setattr("drsne.DRSNE", Model, raising=False)
    X = np.random.default_rng(0).normal(size=(200, 5))
    values = [(*setting, 2.0) for setting in _exponent.SETTINGS]
    assert [run.value for run in _exponent.maps(Workspace(X), values, 0)] == values
    for given in seen:
        assert given["density_weight"] * given["objective"].embedding_exponent ** 2 == pytest.approx(2.0)
    assert [given["objective"].normalizer for given in seen].count("detached") == 1
    assert seen[-1]["objective"].input_exponent == pytest.approx(5.0, rel=0.3)
    assert seen[-1]["objective"].embedding_exponent == 2.0


def test_the_trade_off_has_a_sample_for_every_seed():
    (part,) = tradeoff.STUDY.parts(Selection(quick=True))
    assert part.resampled
    one, two = (part.load("digits", seed).X for seed in (42, 43))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(one, part.load("digits", 42).X)
    jobs = part.jobs(set())
    assert [job.seed for job in jobs if job.dataset == "digits"] == sorted(
        job.seed for job in jobs if job.dataset == "digits"
    )  # what has the same data comes together


def test_the_trade_off_is_compared_with_the_authors():
    parts = tradeoff.STUDY.parts()

    def score(row):
        trust, conc = published.tradeoff(row["dataset"], row["value"])
        return {"trustworthiness": trust + 0.01 * (row["seed"] - 44), "concentration_correlation": conc}

    rows = [row for row in made(parts[0], score) if row["method"] == "drsne_code"]
    found = tables_of(tradeoff.STUDY.blocks(parts, rows, None))
    table = found["DR-SNE (the paper's code, as published)"]
    assert len(table.body) == 30
    assert {row[5] for row in table.body} == {"+0.000"}
    assert {row[2] for row in table.body} == {"5"}
    assert table.body[0][3].endswith("± 0.016")  # ddof 1
    assert len(found) == 1


def anomaly_rows(score):
    parts = anomaly.STUDY.parts(Selection(datasets=["thyroid"]))
    return parts, [row | {"anomalies": 291} for row in made(parts[0], score, details={"density_weight": 7.0})]


def test_anomaly_grids():
    parts = {part.datasets[0]: part for part in anomaly.STUDY.parts()}
    assert set(parts) == {"thyroid", "cifar10", "shuttle", "pbmc3k", "fashion_mnist", "spiral"}
    for name, part in parts.items():
        assert len(part.values("drsne")) == 33
        assert part.seeds == (0, 1, 2)
        for method in ("drsne_code", "densne", "densmap", "pacmap", "umap", "tsne"):
            assert set(published.anomaly_settings(name, method)) <= set(part.values(method))
            assert part.values(method)
    assert parts["fashion_mnist"].variants["drsne_code"].settings["max_iter"] == 600
    assert parts["spiral"].variants["drsne_code"].settings["max_iter"] == 600
    assert parts["thyroid"].variants["drsne_code"].settings["max_iter"] == 1200


def test_oracles_take_the_largest_mean():
    """IF grows with lambda, kNN falls: the best are at opposite ends, oracle-IF reports kNN where IF is best."""

    def score(row):
        lam = row["value"][0] if row["method"] == "drsne" else 0.0
        rule = {"knn": 0.5 - 0.1 * lam, "lof": 0.2, "isolation_forest": 0.1 + 0.3 * lam, "centroid": 0.3}
        return {f"auprc_{name}": value + 0.01 * row["seed"] for name, value in rule.items()}

    parts, rows = anomaly_rows(score)
    found = tables_of(anomaly.STUDY.blocks(parts, rows, None))
    best = {row[0]: row for row in found["Thyroid: best"].body}
    single = {row[0]: row for row in found["Thyroid: oracle-IF"].body}
    ours = best["DR-SNE (ours, fixed kernel)"]
    assert ours[13:] == ["3", "33 of 33", "kNN 0/40, LOF 0/40, IF 1/40, Cent 0/40"]
    assert ours[1] == "0.510 ± 0.010"  # kNN at lambda = 0
    assert ours[7] == "0.410 ± 0.010"  # IF at lambda = 1
    assert single["DR-SNE (ours, fixed kernel)"][15:] == [
        "1/40",
        "1/80",
    ]  # the smaller k of equal ones; the paper has another
    assert single["DR-SNE (ours, fixed kernel)"][1] == "0.410 ± 0.010"  # kNN there
    header, free = found["Without labels"].header, found["Without labels"].body[0]
    theirs = np.mean([published.anomaly("thyroid", "drsne", "best", d)[0] for d in anomaly.TITLES])
    assert [free[0], *free[-2:]] == ["Thyroid", "291", "291 of 3771"]
    assert free[header.index("no labels (ours)")] == "0.285 ± 0.010"
    assert free[header.index("lambda chosen")] == "7, 7, 7"
    assert free[header.index("paper's best DR-SNE")] == f"{theirs:.3f}"
    assert free[header.index("paper's best DR-SNE") + 1] == f"{0.285 - theirs:+.3f}"
    assert found["Over lambda"].body == [["Thyroid", "0.110 ± 0.010", "0.410 ± 0.010", "1", "0.096", "0.118", "1"]]
    page_text = markdown(anomaly.STUDY.blocks(parts, rows, None))
    assert "DR-SNE (the paper's code) (lam, k) 0.005/300" in page_text  # reduced grids are listed
    assert "this package's DR-SNE with k = 80" in page_text


def test_differences_are_of_the_same_setting():
    """The oracle tables print a difference only if the setting chosen here is the paper's."""
    single, best = (published.anomaly_selected("thyroid", "densne", section) for section in ("oracle_if", "best"))
    assert set(single.values()) == {(5.0, 0.0)}
    assert len(set(best.values())) > 1

    def score(row):
        chosen = row["method"] == "densne" and tuple(row["value"]) == (5.0, 0.0)
        return {f"auprc_{name}": (0.6 if chosen else 0.5) + 0.01 * row["seed"] for name in anomaly.TITLES}

    parts, rows = anomaly_rows(score)
    found = tables_of(anomaly.STUDY.blocks(parts, rows, None))
    line = next(line for line in found["Thyroid: oracle-IF"].body if line[0] == "DenSNE")
    paper = published.anomaly("thyroid", "densne", "oracle_if", "knn")[0]
    assert line[3] == f"{0.61 - paper:+.3f}"
    assert line[-2:] == ["5/0", "5/0"]
    line = next(line for line in found["Thyroid: best"].body if line[0] == "DenSNE")
    marks = {name: line[3 * place + 3] for place, name in enumerate(anomaly.TITLES)}
    assert {name for name, mark in marks.items() if mark == "other setting"} == {
        name for name, setting in best.items() if setting != (5.0, 0.0)
    }
    plain = next(line for line in found["Thyroid: oracle-IF"].body if line[0] == "HIGH-D")
    assert "other setting" not in plain  # the data have no setting


def test_agreement_at_the_settings_of_the_paper_is_counted():
    """A cell counts if our mean is within the printed standard deviation of the printed mean."""

    def score(row):
        out = {}
        for name in anomaly.TITLES:
            mean, std = published.anomaly("thyroid", row["method"], "oracle_if", name)
            off = 1.1 if row["method"] == "umap" and name == "lof" else 0.9
            out[f"auprc_{name}"] = 0.1 if math.isnan(mean) else mean + off * std
        return out

    parts, rows = anomaly_rows(score)
    page_text = markdown(anomaly.STUDY.blocks(parts, rows, None)).split("## At the paper's settings: oracle-IF")[1]
    assert "- DR-SNE (the paper's code): 4 of 4\n" in page_text
    assert "- UMAP: 3 of 4\n" in page_text
    assert "- the peers together: 19 of 20\n" in page_text


def test_a_choice_without_labels_that_failed_is_a_line_all_the_same():
    parts, rows = anomaly_rows(lambda row: {f"auprc_{name}": 0.1 for name in anomaly.TITLES})
    for row in rows:
        if row["method"] == "drsne_auto":
            row["error"] = "ValueError: no"
    free = tables_of(anomaly.STUDY.blocks(parts, rows, None))["Without labels"].body[0]
    assert free[:2] == ["Thyroid", "-"]
    assert free[-3] == "0"


def test_a_sweep_of_some_settings(tmp_path):
    """Figure and tables are made whatever runs have rows."""
    parts, rows = anomaly_rows(lambda row: {f"auprc_{name}": 0.1 + 0.01 * row["seed"] for name in anomaly.TITLES})
    for kept in (lambda v: v[1] != 80, lambda v: v[0] == 0, lambda v: v not in [(0.0, 80), (1.0, 80)], lambda v: False):
        some = [row for row in rows if row["method"] != "drsne" or kept(tuple(row["value"]))]
        anomaly.STUDY.draw(parts, some, tmp_path)
        assert anomaly.STUDY.blocks(parts, some, tmp_path)


def test_quick_runs_are_not_held_against_the_paper():
    parts = anomaly.STUDY.parts(Selection(quick=True))
    rows = made(
        parts[0], lambda row: {f"auprc_{name}": 0.1 for name in anomaly.TITLES}, details={"density_weight": 7.0}
    )
    blocks = anomaly.STUDY.blocks(parts, rows, None)
    assert [line[4:] for line in tables_of(blocks)["Over lambda"].body] == [["-", "-", "-"]]
    words = " ".join(block.text for block in blocks if isinstance(block, Text))
    assert "few points" in words
    assert "whole grid" not in words.split("Over lambda")[0].split("Diamonds")[0]


def test_settings_without_all_seeds_are_left_out():
    _, rows = anomaly_rows(
        lambda row: {f"auprc_{name}": 0.9 if row["value"] == (1.0, 300) else 0.1 for name in anomaly.TITLES}
    )
    rows = [row for row in rows if not (row["value"] == [1.0, 300] and row["seed"] == 2)]
    found = anomaly.results(rows, "thyroid", "drsne")
    assert len(found) == 32
    assert (1.0, 300) not in found


def test_printed_errors_are_those_of_the_files():
    assert published.anomaly("pbmc3k", "umap", "oracle_if", "centroid")[0] == pytest.approx(0.1744)  # printed: .570
    assert published.anomaly("thyroid", "drsne_code", "best", "isolation_forest")[0] == pytest.approx(0.1181)
    assert all(math.isnan(value) for value in published.anomaly("spiral", "drsne", "best", "knn"))


def test_a_path_gives_the_printed_lambdas(monkeypatch):
    """Weights are lambda times n; those between are walked and not returned."""
    walked = []

    def path(X, weights, **given):
        walked.append((list(weights), given["density_neighbors"]))

        class Path(list):
            pass

        found = Path(range(len(weights)))
        found.weights = np.array(weights)
        found.embeddings = [np.full((len(X), 2), weight) for weight in weights]
        return found

    monkeypatch.setattr("drsne.density_path", path, raising=False)
    workspace = Workspace(np.random.default_rng(0).normal(size=(100, 3)))
    values = [(lam, k) for k in (10, 20) for lam in (0.0, 0.01, 1.0)]
    runs = list(_anomaly_runs.paths(workspace, values, 0))
    assert [run.value for run in runs] == values
    assert [run.embedding[0, 0] for run in runs] == pytest.approx([0, 1, 100] * 2)
    assert [neighbors for _, neighbors in walked] == [10, 20]
    assert len(walked[0][0]) == 3 + len(_anomaly_runs.BETWEEN)


def test_a_path_has_the_neighbours_that_it_says():
    """More than the 90 that are found at first, which would else be taken in their place."""
    workspace = Workspace(np.random.default_rng(0).normal(size=(260, 3)))
    few, many = (next(along_a_path(density_neighbors=k, max_iter=60)(workspace, [2.0], 0)).embedding for k in (90, 200))
    assert not np.allclose(few, many)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = density_path(workspace.X, [2.0], density_neighbors=200, max_iter=60, random_state=0).embeddings[0]
    np.testing.assert_allclose(many, wanted)


def test_a_path_that_fails_leaves_those_with_another_k(monkeypatch):
    def walk(**given):
        def maps(workspace, values, seed):
            if given["density_neighbors"] == 10:
                raise FloatingPointError("no")
            stop = 2 if given["density_neighbors"] == 20 else None
            yield from (Run(value, np.zeros((len(workspace.X), 2)), {}) for value in values[:stop])

        return maps

    monkeypatch.setattr(_anomaly_runs, "along_a_path", walk)
    values = [(lam, k) for k in (10, 20, 30) for lam in (0.0, 0.01, 1.0)]
    runs, reached = _anomaly_runs.paths(Workspace(np.zeros((50, 2))), values, 0), []
    with pytest.raises(ArithmeticError, match=r"k = 20 ended after lambda = 0.01"):
        reached.extend(run.value for run in runs)
    assert reached == [(0.0, 20), (0.01, 20), (0.0, 30), (0.01, 30), (1.0, 30)]


def test_a_choice_without_labels_is_that_of_a_path():
    X = np.random.default_rng(0).normal(size=(150, 4)) ** 3
    (run,) = _anomaly_runs.automatic(Workspace(X), ["input"], 0)
    path = density_path(X, FIXED_WEIGHTS, objective=fixed_kernel("input"), random_state=0)
    chosen = path.select(max_trustworthiness_drop=_anomaly_runs.AUTO_DROP)
    assert run.details["density_weight"] == path.weights[chosen]
    np.testing.assert_allclose(run.embedding, path.embeddings[chosen])


def test_every_pair_of_the_kl_term():
    """Without a density term a map then does not depend on the density neighbours, with the code's support it does."""
    workspace = Workspace(np.random.default_rng(0).normal(size=(95, 3)))
    for every_pair in (True, False):
        few, many = (
            next(of_the_paper("code", k=k, max_iter=80, every_pair=every_pair)(workspace, [0.0], 0)).embedding
            for k in (5, 30)
        )
        assert np.allclose(few, many) == every_pair


DETAILS = {"threads": 2, "machine": "fast", "load": 0.3}


def test_run_times_and_exponents():
    parts = runtime.STUDY.parts()

    def time(row):
        n = row["data"]["n_samples"]
        power = 2.0 if row["method"].startswith("exact") else 1.0
        return {"total": (n / 1000) ** power * (0.5 if row["seed"] == 0 else 1.0)}  # a median is not moved by one

    rows = [row for part in parts for row in made(part, lambda row: {}, seconds=time, details=DETAILS)]
    seconds = runtime.seconds(rows)
    assert {n: len(values) for n, values in seconds["exact_one"].items()} == {
        1000: 7, 3000: 7, 5000: 7, 7000: 7, 9000: 7, 11000: 3, 13000: 3,
    }  # fmt: skip
    assert max(seconds["fft_all"]) == 70000
    page_text = markdown(runtime.STUDY.blocks(parts, rows, None))
    assert "- our exact engine, one thread: 2.00" in page_text
    assert "- our fft engine, all threads: 1.00" in page_text
    assert "the paper's own program was not timed" in page_text
    assert "the paper's published times: 2.08, from all sizes 1.99" in page_text
    assert "All threads: 2 (fast). Before the runs the machine had a load of 0.3 to 0.3" in page_text
    assert "| 13000 " in page_text
    assert "743.7" in page_text
    assert runtime.fitted({3000: 9.0, 6000: 36.0, 12000: 144.0}) == pytest.approx(2.0)
    assert runtime.fitted({3000: 9.0}) is None
    assert runtime.STUDY.sequential
    failed = [row | {"error": "MemoryError: no room"} for row in rows]
    assert "MemoryError: no room" in markdown(runtime.STUDY.blocks(parts, failed, None))


def test_timed_fits_are_whole(tmp_path):
    """A quick study of run time, from nothing: every row has the seconds of a whole fit."""
    parts = runtime.STUDY.parts(Selection(quick=True, methods=["fft_one"], seeds=[0]))
    text = runtime.STUDY.reproduce(parts, tmp_path, verbose=0)
    rows = Rows(tmp_path / "rows.jsonl").read()
    assert [row["seconds"]["total"] > 0 for row in rows] == [True, True]
    assert {row["details"]["threads"] for row in rows} == {1}
    assert (tmp_path / "figure_runtime.png").stat().st_size > 1000
    assert (tmp_path / "table.md").read_text() == text
    assert not (tmp_path / "maps").exists()


def test_blocks_as_html(tmp_path):
    blocks = [
        Heading("A & b"),
        Table(["name", DIFFERENCE], [["`x` < 1", signed(0.05)], ["y", signed(-0.2)], ["z", "-"]]),
        Figure("none.png", "a picture"),
    ]
    text = html(blocks, tmp_path)
    assert '<h2 id="a-b">A &amp; b</h2>' in text
    assert '<th scope="row"><code>x</code> &lt; 1</th>' in text
    assert re.search(r'<td class="[^"]*above[^"]*" style="--strength:0.50">\+0.050</td>', text)
    assert re.search(r'<td class="[^"]*below[^"]*" style="--strength:1.00">-0.200</td>', text)
    assert re.search(r"<td[^>]*>-</td>", text)
    assert "There is no picture yet: a picture" in text
    (tmp_path / "none.png").write_bytes(b"png")
    assert 'src="data:image/png;base64,cG5n"' in html(blocks, tmp_path)
    assert "![a picture](none.png)" in markdown(blocks)
