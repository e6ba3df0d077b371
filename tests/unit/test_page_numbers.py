"""Numbers about results on the pages: each is computed from committed rows, or read from a report that has no rows.

To add a number to a page, add its sentence to ``CLAIMS``, with ``{}`` for each number. The tests fail if either the page
or the rows change, and if a section in ``COMPLETE`` has a number that is not in any claim or table.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TW, CONT, CC = "trustworthiness", "continuity", "concentration_correlation"
RHO30, RHO5 = "density_rank_correlation", "local_density_rank_correlation"
SIX = (TW, CONT, CC, RHO30, RHO5, "fragmentation")


def bench(name: str) -> Any:
    """Return a module of the folder benchmarks."""
    return importlib.import_module(name)


@pytest.fixture(scope="module", autouse=True)
def _modules():
    """Make the short names of benchmarks importable, and forget them afterwards."""
    before, folder = set(sys.modules), str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    yield
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
            del sys.modules[name]
    for cached in (rows, quality, matched):
        cached.cache_clear()


@cache
def page(name: str) -> str:
    """Return the text of a page with single spaces."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


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
        if p.dataset in methods.MEAN_OVER and p.value == methods.DEFAULTS.get(p.method, ""):
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


def number(cell: str) -> str:
    return cell.split()[0]


def seconds(method: str, n: int, of_cores: int = 2, cores: int = 2, threads: int = -1) -> str:
    """Return the median time of whole fits, with two digits."""
    speed = bench("speed")
    here = speed._rows(cores, of_cores, threads)
    value = median(speed.times(here, method, n))
    text = f"{value:.2f}" if value < 0.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
    stopped = 2 * speed._n_stopped(here, method, n) >= len(speed.times(here, method, n))
    return f"> {text}" if stopped else text


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


def cell(report: str, row: str, column: int) -> str:
    """Return a cell of a report, in the first line of a table that begins with these cells."""
    text = (RESULTS / f"{report}.md").read_text(encoding="utf-8")
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return next(line for line in lines if " ".join(line).startswith(row))[column]


def largest_errors(columns: slice) -> float:
    """Return the largest error of the forces in per cent, over the maps and fits of some engines."""
    text = (RESULTS / "engine_bounds.md").read_text(encoding="utf-8")
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    tested = [line for line in lines if re.match(r"\d.*e-\d+ / ", line[1]) and not line[0].startswith("bound")]
    return 100 * max(float(one.split(" / ")[0]) for line in tested for one in line[1:][columns])


def theory_seeds(weight: str, score: str) -> str:
    (row,) = [r for r in rows("path_end") if (r["dataset"], r["seed"]) == ("mnist", 0)]
    return f"{row['maps'][weight][score]:.4f}".removeprefix("0")


class Claim(NamedTuple):
    """A sentence on a page, and a function that returns its numbers as they are printed."""

    page: str
    text: str
    numbers: Callable[[], tuple[str, ...]]


def _iterations(most: float) -> str:
    from drsne.estimators.path import WEIGHTS
    from drsne.presets import path_schedules

    weights = [weight for weight in WEIGHTS if weight <= most]
    early, last = sum(w <= 0.1 for w in weights) - 1, sum(w > 70 for w in weights)
    schedules = path_schedules(1000, max_iter="auto", adaptive=True, n_iter_exaggeration=250, early_exaggeration=12.0,
                               learning_rate="auto")  # fmt: skip
    return f"{schedules.n_iter(early, len(weights) - 1 - early - last, last):,}"


README, COMPARISON, CHOOSING = "README.md", "docs/comparison.md", "docs/choosing.md"
ENGINES, SCALING, MODELS = "docs/engines.md", "docs/scaling.md", "docs/models.md"
MILLION = 1_000_000
CLAIMS = [
    Claim(README, "lowers trustworthiness by at most {} ({}) and continuity by at most {}.",
          lambda: (loss(TW), worst_set(TW), loss(CONT))),
    Claim(README, "Its concentration correlation is higher on {} of them, and on {} with a weight of 3.",
          lambda: (above("drsne", CC), above("drsne_strong", CC))),
    Claim(README, "In all {} cases, at least one of our maps", lambda: (number(matched()[0][0]),)),
    Claim(README, "this holds in {} cases, and for our default map alone in {}.",
          lambda: (number(matched()[3][0]), number(matched()[4][0]))),
    Claim(README, "it holds in {} cases. This last count", lambda: (matched()[0][1],)),
    Claim(README, "with the former end, it is {}.", lambda: (number(matched()[2][1]),)),
    Claim(README, "(70,000 points, 50 components) takes {} seconds, which is {} times as long as a plain t-SNE fit. UMAP "
          "takes {} seconds, PaCMAP {} and densMAP {}.",
          lambda: (seconds("drsne", 70_000),
                   f"{float(seconds('drsne', 70_000)) / float(seconds('drsne_plain', 70_000)):.1f}",
                   *(seconds(name, 70_000) for name in ("umap", "pacmap", "densmap")))),
    Claim(README, "A million points take {} minutes and {} GB of memory. With 16 cores of another machine, they take {} "
          "seconds.",
          lambda: (f"{float(seconds('drsne', MILLION)) / 60:.0f}",
                   str(max(row["peak_gb"] for row in bench("speed")._rows(2, 2, -1) if row["n"] == MILLION and
                           "peak_gb" in row)),
                   seconds("drsne", MILLION, 16, 16))),
    Claim(README, "density term takes {} seconds for the 70,000 images of MNIST, and {} seconds for a million and {} "
          "seconds for ten million",
          lambda: (f"{gpu(70_000):.1f}", f"{gpu(MILLION):.0f}", f"{gpu(10 * MILLION):.0f}")),
    Claim(COMPARISON, "loses little trustworthiness compared with t-SNE, at most {} ({}).",
          lambda: (loss(TW), worst_set(TW))),
    Claim(COMPARISON, "the higher one on {} of the twelve data sets. Its trustworthiness is lower on all of them. With a "
          "weight of 3, DR-SNE has the higher concentration correlation on {}.",
          lambda: (str(12 - int(above("drsne", CC))), above("drsne_strong", CC))),
    Claim(COMPARISON, "With 280,000 rows of Covertype (two of 16 cores), our default takes {} s, PaCMAP {}, UMAP {}, "
          "openTSNE {} and densMAP {}. With a million rows, our default takes {} s and UMAP {}, and PaCMAP and densMAP "
          "{}.",
          lambda: (*(seconds(name, 280_000, 16, threads=2) for name in ("drsne", "pacmap", "umap", "opentsne",
                                                                        "densmap")),
                   *(seconds(name, MILLION, 16, threads=2) for name in ("drsne", "umap", "densmap")))),
    Claim(COMPARISON, "a million points took {} s with drsne", lambda: (f"{gpu(MILLION):.0f}",)),
    Claim(COMPARISON, "and took {} s with our search",
          lambda: (f"{gpu(MILLION, 'peer on NVIDIA H200, umap_given'):.0f}",)),
    Claim(CHOOSING, "lowers trustworthiness by at most {} and continuity by at most {} on any",
          lambda: (loss(TW), loss(CONT))),
    Claim(CHOOSING, "The default path takes {} iterations", lambda: (_iterations(1e9),)),
    Claim(CHOOSING, "up to a weight of 70, which takes {} iterations", lambda: (_iterations(70),)),
    Claim(ENGINES, "up to {} % with the fixed kernel and up to {} % with the adaptive kernel",
          lambda: (f"{largest_errors(slice(1, 4)):.1f}", f"{largest_errors(slice(4, 6)):.1f}")),
    Claim(ENGINES, "this search takes {} s on two cores with a recall of {}, and the exact search about {} s",
          lambda: search("noise20", 4)),
    Claim(ENGINES, "For 100 dimensions, it takes {} s with a recall of {}, and the exact search about {} s.",
          lambda: search("noise100", 3)),
    Claim(ENGINES, "the exact search takes {} s and the approximate search takes {} s (`benchmarks/results/search.md`)",
          lambda: tuple(f"{float(cell('search', '70,000', column)):.1f}" for column in (1, 2))),
    Claim(ENGINES, "is {} times as fast with four threads as with one, and {} times as fast with 16",
          lambda: tuple(f"{threads(1) / threads(count):.1f}" for count in (4, 16))),
    Claim(ENGINES, "take {} to {} ms of every iteration, which is at most {} of an iteration with 1,000 points, {} with "
          "2,000 and {} with 5,000",
          lambda: (*(f"{float(cell('overhead', n, 3)):.2f}" for n in ("1,000", "5,000")),
                   *(cell("overhead", n, 4) for n in ("1,000", "2,000", "5,000")))),
    Claim(SCALING, "| 1,000 to 20,000 | `DRSNE(n_jobs=-1)` | {} to {} s on two cores, {} to {} s on 16 cores |",
          lambda: (f"{float(seconds('drsne', 1000)):.0f}", seconds("drsne", 20_000),
                   f"{float(seconds('drsne', 1000, 16, 16)):.1f}",
                   f"{float(seconds('drsne', 20_000, 16, 16)):.0f}")),
    Claim(SCALING, "| {} s on two cores, {} s on 16 cores, {} s on the GPU |",
          lambda: (seconds("drsne", 70_000), seconds("drsne", 70_000, 16, 16), f"{gpu(70_000):.1f}")),
    Claim(SCALING, "| {} to {} minutes on two cores, {} s on 16 cores, {} s on the GPU |",
          lambda: (*(f"{float(seconds('drsne', MILLION, of, threads=t)) / 60:.0f}" for of, t in ((16, 2), (2, -1))),
                   seconds("drsne", MILLION, 16, 16), f"{gpu(MILLION):.0f}")),
    Claim(SCALING, "`distributed.fit` | {} s on the GPU |", lambda: (f"{gpu(10 * MILLION):.0f}",)),
    Claim(SCALING, "| {} minutes for 20 million rows with 16 workers and a GPU |",
          lambda: (f"{large('cluster', 20 * MILLION, 16)['seconds']['total'] / 60:.0f}",)),
    Claim(SCALING, "a million rows of uniform noise take {} s with 20 columns and {} s with 50",
          lambda: tuple(f"{gpu(MILLION, 'search on NVIDIA H200', data=data):.1f}" for data in ("uniform20",
                                                                                             "uniform50"))),
    Claim(SCALING, "(Digits) therefore still takes {} s", lambda: (f"{gpu(1797, 'scores on cuda'):.1f}",)),
    Claim(SCALING, "took {} s instead of {} s. If most of the rows have copies",
          lambda: tuple(f"{gpu(MILLION, f'case {case} on NVIDIA H200'):.1f}" for case in ("copies", "usual"))),
    Claim(SCALING, "Without Triton, a fit of 70,000 points took {} s instead of {} s.",
          lambda: tuple(f"{gpu(70_000, f'case {case} on NVIDIA H200'):.1f}" for case in ("plain", "usual"))),
    Claim(SCALING, "and took {} minutes: {} minutes for the stage `output`, {} minutes for `concentration`, and {} "
          "seconds each for `landmarks` and `landmark_map`. No worker used more than {} MB.",
          lambda: largest_run()),
    Claim(SCALING, "On two cores, 4 million rows took {} minutes with two workers, which had a limit of 1 GB each and "
          "used at most {} MB. A run in one process with two threads took {} minutes",
          lambda: (f"{large('cluster', 4 * MILLION, 2)['seconds']['total'] / 60:.0f}",
                   str(memory(large("cluster", 4 * MILLION, 2))),
                   f"{large('one', 4 * MILLION)['seconds']['total'] / 60:.0f}")),
    Claim(SCALING, "Without other programs, 300,000 rows took {} minutes.",
          lambda: (f"{large('cluster', 300_000, 2)['seconds']['total'] / 60:.1f}",)),
    Claim(SCALING, "the concentration correlation is {} lower with landmarks, and the density rank correlation is {} "
          "lower.",
          lambda: tuple(f"{-large('direct', 300_000)['differences'][score]:.3f}" for score in (CC, RHO30))),
    Claim(SCALING, "the remaining bias was at most {}, and the root mean square error of the log concentrations was {} "
          "to {}",
          lambda: checked_errors()),
    Claim(MODELS, "TW, continuity, rho30 and rho5 differ by at most {} from those of the fit of all rows, and CC by at "
          "most {}.",
          lambda: (placed_off(TW, CONT, RHO30, RHO5), placed_off(CC))),
    Claim(MODELS, "one row takes {} ms, and 10,000 rows take {} s", lambda: placing_times()),
    Claim("docs/faq.md", "the first fit of Digits takes {} s with an empty cache and {} s in a new process",
          lambda: tuple(f"{float(cell('startup', f'{kind} first fit', 1).split()[0]):.1f}" for kind in ("cold",
                                                                                                      "warm"))),
    Claim("docs/faq.md", "on words, it reaches {}.", lambda: (f"{quality()['drsne']['words20k'][RHO30]:.2f}"[1:],)),
    Claim("docs/guide.md", "a contrast of 2 gives a trustworthiness of {} and a density rank correlation (30 neighbours) "
          "of {}. The automatic contrast of {} gives {} and {}",
          lambda: (f"{contrast('words20k', 0.0, TW):.3f}"[1:], f"{contrast('words20k', 0.0, RHO30):.2f}"[1:],
                   f"{contrast('words20k', None, 'contrast'):.1f}", f"{contrast('words20k', None, TW):.3f}"[1:],
                   f"{contrast('words20k', None, RHO30):.2f}"[1:])),
    Claim("docs/gallery.md", "is {} for plain t-SNE and {} for DR-SNE",
          lambda: tuple(f"{quality()[method]['controlled_clusters']['fragmentation']:.3f}"[1:] for method in (
              "drsne_plain", "drsne"))),
    Claim("docs/theory.md", "the trustworthiness is {} at a weight of 0, {} at 0.03 and {} at 0.1",
          lambda: tuple(theory_seeds(weight, TW) for weight in ("0", "0.03", "0.1"))),
]  # fmt: skip


def search(data: str, digits: int) -> tuple[str, ...]:
    """Return the time and the recall of the refined search of 400,000 rows, and the time of the exact search."""
    found = {r["method"]: r for r in rows("search_noise") if (r["data"], r["n"]) == (data, 400_000)}
    ours, exact = found["drsne, approximate"], found["drsne, exact"]
    return f"{ours['wall']:.0f}", f"{ours['recall']:.{digits}f}"[1:], f"{exact['wall']:.0f}"


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


def placing_times() -> tuple[str, ...]:
    (row,) = [row for row in rows("new_rows_times") if row["method"] == "drsne"]
    return f"{1e3 * row['seconds']['one']:.1f}", f"{row['seconds']['many']:.1f}"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.text[:50]}")
def test_a_sentence_has_the_numbers_of_the_rows(claim):
    assert claim.text.format(*claim.numbers()) in page(claim.page)
