"""Numbers about results as they are printed on pages, computed from committed rows or read from reports."""

from __future__ import annotations

import importlib
import json
import re
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TW, CONT, CC = "trustworthiness", "continuity", "concentration_correlation"
RHO30, RHO5 = "density_rank_correlation", "local_density_rank_correlation"
MILLION = 1_000_000
SIX = (TW, CONT, CC, RHO30, RHO5, "fragmentation")

WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def short(value: float, digits: int = 3) -> str:
    """Return a number below one as on the pages, such as ``.964``."""
    return f"{value:.{digits}f}".removeprefix("0")


def bench(name: str) -> Any:
    """Return a module of the folder benchmarks."""
    return importlib.import_module(name)


@cache
def page(name: str) -> str:
    """Return the text of a page, or that between the cells of code of a notebook, with single spaces."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".ipynb"):
        text = "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
    return " ".join(text.split())


def numbers(text: str) -> set[str]:
    """Return the numbers with a decimal point or a unit, without spaces."""
    units = r"(?<![\w.])\.?\d[\d,.]*\d? (?:s|ms|seconds|minutes|[kMG]B|bytes|%|cases|of \d+)(?!\w)"
    return {found.replace(" ", "") for found in re.findall(units + r"|(?<![\d.])\d*\.\d+", text)}


@cache
def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of results, the last one of each key."""
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return list({row["key"]: row for row in map(json.loads, lines)}.values())


@cache
def quality() -> dict[str, dict[str, dict[str, float]]]:
    """Return the mean scores of methods at default settings, by method and data set, for the sets of the means."""
    methods, report = bench("quality_methods"), bench("quality_report")
    points = report.means(report.rows_of_study(methods.studies(), methods.rows().read()))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for p in points:
        if p.dataset in bench("data").MEAN_OVER and p.value == methods.DEFAULTS.get(p.method, ""):
            found.setdefault(p.method, {})[p.dataset] = p.scores
    return found


def mean(method: str, score: str) -> float:
    return fmean(scores[score] for scores in quality()[method].values())


def loss(score: str) -> str:
    """Return the largest loss of the default against plain t-SNE on one data set."""
    ours, plain = quality()["drsne"], quality()["drsne_plain"]
    return f"{max(plain[name][score] - ours[name][score] for name in ours):.4f}"


def worst_set(score: str) -> str:
    ours, plain = quality()["drsne"], quality()["drsne_plain"]
    return bench("data").EXTENDED[max(ours, key=lambda name: plain[name][score] - ours[name][score])]


def above(method: str, score: str) -> str:
    """Return on how many sets a map of ours is above densMAP."""
    ours, other = quality()[method], quality()["densmap"]
    return str(sum(ours[name][score] > other[name][score] for name in ours))


@cache
def matched() -> list[list[str]]:
    """Return the cells of the table of counts by other rules, one line for each rule."""
    methods, report = bench("quality_methods"), bench("quality_report")
    results = report.rows_of_study(methods.studies(), methods.rows().read())
    points = report.means(results)
    text = report.by_other_rules(report.comparisons(points), points, results)
    return [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in text.splitlines()[2:]]


def seconds(method: str, n: int, of_cores: int = 2, cores: int = 2, threads: int = -1) -> str:
    """Return the median time of whole fits, with two digits."""
    speed = bench("speed")
    here = speed._rows(cores, of_cores, threads)
    value = median(speed.times(here, method, n))
    text = f"{value:.2f}" if value < 0.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
    stopped = 2 * speed._n_stopped(here, method, n) >= len(speed.times(here, method, n))
    return f"> {text}" if stopped else text


def less_time(method: str) -> str:
    """Return by how many per cent a method is faster than our default at 70,000 rows."""
    speed = bench("speed")
    here = speed._rows(2, 2, -1)
    ours, other = (median(speed.times(here, name, 70_000)) for name in ("drsne", method))
    return f"{100 * (1 - other / ours):.0f}"


def gigabytes_of_a_million() -> float:
    """Return the most memory that a default fit of a million points used."""
    return max(row["peak_gb"] for row in bench("speed")._rows(2, 2, -1) if row["n"] == MILLION and "peak_gb" in row)


def memory_of_a_million() -> tuple[str, str]:
    """Return the estimated and the measured gigabytes of a default fit of a million points."""
    import drsne

    return f"{drsne.memory_estimate(MILLION, 50) / 1e9:.1f}", f"{gigabytes_of_a_million():.1f}"


def preset_differences() -> tuple[str, str, str]:
    """Return the largest difference of CC from the authors' code, and the range of those of trustworthiness."""
    ours = [line for line in table_lines("preset") if len(line) > 4 and line[1] == "preset"]
    tw, cc = ([abs(float(line[at].split("(")[1].strip(" )"))) for line in ours] for at in (3, 5))
    assert tw[-1] == max(tw)
    return f"{max(cc):.3f}", f"{min(tw):.3f}", f"{max(tw):.3f}"


def gpu(n: int, device: str = "NVIDIA H200", field: str = "total_s", **wanted: Any) -> float:
    """Return the median of a field of the rows of a GPU."""
    wanted |= {"n": n, "device": device}
    return median(row[field] for row in rows("gpu") if all(row.get(key) == value for key, value in wanted.items()))


def gpu_part(part: str, n: int) -> str:
    """Return the seconds of a part of the last fit of this size."""
    (value,) = [row["parts"][part] for row in rows("gpu") if row["n"] == n and row["device"] == "NVIDIA H200"][-1:]
    return f"{value:.2g}"


def large(what: str, n: int, workers: int = 0) -> dict[str, Any]:
    """Return a row of the runs with data larger than memory."""
    (row,) = [r for r in rows("distributed") if (r["what"], r["rows"], r["workers"]) == (what, n, workers)]
    return row


def contrast(dataset: str, limit: float | None, field: str) -> float:
    """Return a mean over the held-out seeds of the study of the contrast, at a weight of 1."""
    wanted = {"contrast": limit, "weight": 1.0}
    found = [r for r in rows("contrast") if (r["dataset"], r["method"]) == (dataset, "held_out")]
    return fmean(
        {**r["metrics"], **r["details"]}[field] for r in found if all(r["params"][k] == v for k, v in wanted.items())
    )


def placed() -> list[dict[str, Any]]:
    return [row for row in rows("new_rows") if row["method"] == "drsne"]


def placed_off(*scores: str) -> str:
    off = [abs(row["placed"][score] - row["joint"][score]) for row in placed() for score in scores]
    return f"{max(off):.3f}".removeprefix("0")


@cache
def table_lines(report: str) -> list[list[str]]:
    """Return the cells of all lines of tables of a report."""
    text = (RESULTS / f"{report}.md").read_text(encoding="utf-8")
    return [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def cell(report: str, row: str, column: int) -> str:
    """Return a cell of a report, in the first line of a table that begins with these cells."""
    return next(line for line in table_lines(report) if " ".join(line).startswith(row))[column]


def engine_errors(column: int) -> tuple[list[float], list[float]]:
    """Return the bounds of an engine and its largest errors in maps and fits: of forces and of the sum, in per cent."""
    lines = [line for line in table_lines("engine_bounds") if re.match(r"\d.*e-\d+ / ", line[min(5, len(line) - 1)])]
    bound, *errors = ([100 * float(error) for error in line[column].split()[:3:2]] for line in lines)
    return bound, [max(values) for values in zip(*errors, strict=True)]


def engine_row(column: int) -> str:
    """Return the usual and the largest errors of an engine as in the table of engines."""
    bound, (force, partition) = engine_errors(column)
    beyond = f", {partition:.2g} %" if partition > bound[1] else ""
    return f"usually {bound[0]:.2g} %, {bound[1]:.2g} %; up to {force:.1f} %{beyond} on hard maps"


def page_megabytes(n_rows: int, n_maps: int = 1, n_columns: int = 0) -> float:
    """Return the size of a page of the explorer."""
    from drsne import explorer

    rng = np.random.default_rng(0)
    maps = {str(i): rng.normal(size=(n_rows, 2)) for i in range(n_maps)}
    columns = {f"column {i}": rng.normal(size=n_rows).astype(np.float32) for i in range(n_columns)}
    return len(explorer.page(maps, labels=rng.integers(0, 8, n_rows).astype(str), columns=columns).html) / 1e6


def expected_seconds(n: float, landmarks: int, workers: int, columns: int = 50) -> dict[str, float]:
    """Return the seconds of the stages by the formulas of the page on large data, if the data form clusters."""
    sample = max(5000, landmarks / 4)
    work = {"landmarks": n * sample * columns / 2e10, "concentration": n * landmarks * columns / 2e10}
    return {stage: seconds / workers for stage, seconds in {**work, "output": n * 0.0004}.items()}


def small_weight(weight: str, score: str) -> str:
    (row,) = [r for r in rows("path_end") if (r["dataset"], r["seed"]) == ("mnist", 0)]
    return f"{row['maps'][weight][score]:.4f}".removeprefix("0")


def iterations(most: float) -> str:
    from drsne.estimators.path import WEIGHTS
    from drsne.optimize.defaults import path_schedules

    weights = [weight for weight in WEIGHTS if weight <= most]
    early, last = sum(w <= 0.1 for w in weights) - 1, sum(w > 70 for w in weights)
    schedules = path_schedules(1000, max_iter="auto", adaptive=True, n_iter_exaggeration=250, early_exaggeration=12.0,
                               learning_rate="auto")  # fmt: skip
    return f"{schedules.n_iter(early, len(weights) - 1 - early - last, last):,}"


def times_default(most: float) -> int:
    """Return how many times as many iterations as a default fit a path takes."""
    return round(int(iterations(most).replace(",", "")) / 700)


def search(data: str, digits: int) -> tuple[str, ...]:
    """Return the time and the recall of the refined search of 400,000 rows, and the time of the exact search."""
    found = {r["method"]: r for r in rows("search_noise") if (r["data"], r["n"]) == (data, 400_000)}
    ours, exact = found["drsne, approximate"], found["drsne, exact"]
    return f"{ours['wall']:.0f}", f"{ours['recall']:.{digits}f}"[1:], f"{exact['wall']:.0f}"


def search_seconds(data: str, n: int, way: str) -> float:
    wanted = (data, n, f"drsne, {way}")
    return next(r["wall"] for r in rows("search_noise") if (r["data"], r["n"], r["method"]) == wanted)


def threads(count: int) -> float:
    (row,) = [row for row in rows("threads") if (row["data"], row["threads"]) == ("mnist", count)]
    return row["seconds"]["total"]


def memory(row: dict[str, Any]) -> int:
    return max(max(each) for each in row["megabytes_per_worker"].values())


def largest_run() -> tuple[str, ...]:
    row = large("cluster", 20 * MILLION, 16)
    taken = row["seconds"]
    landmarks, of_map = (f"{taken[stage]:.0f}" for stage in ("landmarks", "landmark_map"))
    assert landmarks == of_map
    minutes = f"{taken['total'] / 60:.0f}", f"{taken['output'] / 60:.1f}", f"{taken['concentration'] / 60:.1f}"
    return *minutes, landmarks, str(memory(row))


def checked_errors() -> tuple[str, ...]:
    found = [row["found"]["concentration"] for row in rows("distributed") if "found" in row]
    errors = [each["root_mean_square_error"] for each in found]
    return f"{max(abs(each['bias']) for each in found):.3f}", f"{min(errors):.2f}", f"{max(errors):.2f}"


def readme_table() -> list[str]:
    names = ("drsne", "drsne_strong", "drsne_plain", "densmap", "scalemap", "umap", "pacmap", "densne")
    return [" | ".join(f"{mean(name, score):.3f}" for score in SIX) + " |" for name in names]


def comparison_table() -> list[str]:
    """Return the lines of scores, with the best of each column in bold."""
    names = ("drsne", "drsne_strong", "drsne_plain", "sklearn_tsne", "umap", "pacmap", "scalemap", "densmap", "densne")
    shown = {score: [f"{mean(name, score):.3f}"[1:] for name in names] for score in SIX}
    best = {score: (min if score == "fragmentation" else max)(cells) for score, cells in shown.items()}
    cells = {score: [f"**{c}**" if c == best[score] else c for c in shown[score]] for score in SIX}
    return [" | ".join(line) + " |" for line in zip(*cells.values(), strict=True)]


def times_table() -> list[str]:
    names = ("drsne", "drsne_plain", "pacmap", "umap", "densmap", "scalemap", "opentsne", "sklearn")
    sizes = (1000, 5000, 10_000, 20_000, 70_000)
    return ["| " + " | ".join(seconds(name, n) for n in sizes) + " |" for name in names]


def gpu_table() -> list[str]:
    sizes = (70_000, 280_000, MILLION, 10 * MILLION)
    parts = ("neighbours", "affinities", "initial map", "t-SNE", "with density")
    lines = [" | ".join(gpu_part(part, n) for n in sizes) for part in parts]
    whole = [f"{gpu(n):.1f}" if n < 10 * MILLION else f"{gpu(n):.0f}" for n in sizes]
    return [f"| {line} |" for line in (*lines, " | ".join(whole))]


def gpu_memory() -> list[str]:
    import drsne

    lines = []
    for n, d in ((70_000, 50), (280_000, 10), (MILLION, 50), (10 * MILLION, 50)):
        estimate, peak = drsne.memory_estimate(n, d, device="cuda") / 1e9, gpu(n, field="peak_gb")
        digits = 0 if n > MILLION else 1
        lines.append(f"| {n:,} | {d} | {estimate:.{digits}f} GB | {peak:.{digits}f} GB |")
    return lines


def new_rows_table() -> list[str]:
    lines, titles = [], bench("data").EXTENDED
    for name in dict.fromkeys(row["data"] for row in placed()):
        found = [row for row in placed() if row["data"] == name]
        pairs = [
            " / ".join(f"{fmean(row[kind][score] for row in found):.3f}"[1:] for kind in ("placed", "joint"))
            for score in ("TW", "Cont", "CC", "rho30", "rho5")
        ]
        far, shared = (fmean(row[key] for row in found) for key in ("distance", "distance_of_training_rows"))
        moved = f"{far:.3f} ({shared:.3f})".replace("0.", ".")
        lines.append(f"| {titles[name]} | {' | '.join(pairs)} | {moved} |")
    return lines


def outliers_table() -> list[str]:
    lines = []
    for name in dict.fromkeys(row["data"] for row in rows("outliers")):
        found = [row for row in rows("outliers") if row["data"] == name]
        means = [fmean(v for row in found for v in row["auprc"][way].values()) for way in ("data", "map", "both")]
        lines.append(" | ".join(f"{value:.3f}"[1:] for value in (*means, found[0]["share"])) + " |")
    return lines
