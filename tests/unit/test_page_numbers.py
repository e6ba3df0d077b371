"""Numbers about results on the pages: each is computed from committed rows, or read from a report that has no rows.

To add a number to a page, add its sentence to ``CLAIMS``, with ``{}`` for each number. The tests fail if either the
page or the rows change, and if a section in ``COMPLETE`` has a number that is not in any claim or table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

import pytest
from committed import (
    CC,
    CLIPS,
    CONT,
    MILLION,
    RHO30,
    ROOT,
    TW,
    above,
    altered,
    bench,
    cell,
    checked_errors,
    clip_price,
    comparison_table,
    contrast,
    gpu,
    gpu_memory,
    gpu_table,
    iterations,
    large,
    largest_errors,
    largest_run,
    less_time,
    loss,
    matched,
    memory,
    memory_of_a_million,
    new_rows_table,
    number,
    outliers_table,
    page,
    placed_off,
    placing_times,
    preset_differences,
    quality,
    readme_table,
    rows,
    rules_table,
    search,
    seconds,
    small_weight,
    threads,
    times_table,
    worst_set,
)


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


class Claim(NamedTuple):
    """A sentence on a page, and a function that returns its numbers as they are printed."""

    page: str
    text: str
    numbers: Callable[[], tuple[str, ...]]


README, COMPARISON, CHOOSING = "README.md", "docs/comparison.md", "docs/choosing.md"
ENGINES, SCALING, MODELS = "docs/engines.md", "docs/scaling.md", "docs/models.md"
CLAIMS = [
    Claim(
        README,
        "lowers trustworthiness by at most {} ({}) and continuity by at most {}.",
        lambda: (loss(TW), worst_set(TW), loss(CONT)),
    ),
    Claim(
        README,
        "Its concentration correlation is higher on {} of them, and on {} with a weight of 3.",
        lambda: (above("drsne", CC), above("drsne_strong", CC)),
    ),
    Claim(README, "In all {} cases, at least one of our maps", lambda: (number(matched()[0][0]),)),
    Claim(
        README,
        "this holds in {} cases, and for our default map alone in {}.",
        lambda: (number(matched()[3][0]), number(matched()[4][0])),
    ),
    Claim(README, "it holds in {} cases. This last count", lambda: (matched()[0][1],)),
    Claim(README, "with the former end, it is {}.", lambda: (number(matched()[2][1]),)),
    Claim(
        README,
        "(70,000 points, 50 components) takes {} seconds, which is {} times as long as a plain t-SNE fit. "
        "UMAP takes {} seconds, PaCMAP {} and densMAP {}.",
        lambda: (
            seconds("drsne", 70_000),
            f"{float(seconds('drsne', 70_000)) / float(seconds('drsne_plain', 70_000)):.1f}",
            *(seconds(name, 70_000) for name in ("umap", "pacmap", "densmap")),
        ),
    ),
    Claim(
        README,
        "A million points take {} minutes and {} GB of memory. With 16 cores of another machine, they take {} seconds.",
        lambda: (
            f"{float(seconds('drsne', MILLION)) / 60:.0f}",
            str(
                max(
                    row["peak_gb"] for row in bench("speed")._rows(2, 2, -1) if row["n"] == MILLION and "peak_gb" in row
                )
            ),
            seconds("drsne", MILLION, 16, 16),
        ),
    ),
    Claim(
        README,
        "density term takes {} seconds for the 70,000 images of MNIST, and {} seconds for a million and {} "
        "seconds for ten million",
        lambda: (f"{gpu(70_000):.1f}", f"{gpu(MILLION):.0f}", f"{gpu(10 * MILLION):.0f}"),
    ),
    Claim(
        COMPARISON,
        "loses little trustworthiness compared with t-SNE, at most {} ({}).",
        lambda: (loss(TW), worst_set(TW)),
    ),
    Claim(
        COMPARISON,
        "the higher one on {} of the twelve data sets. Its trustworthiness is lower on all of them. With "
        "a weight of 3, DR-SNE has the higher concentration correlation on {}.",
        lambda: (str(12 - int(above("drsne", CC))), above("drsne_strong", CC)),
    ),
    Claim(
        COMPARISON,
        "With 280,000 rows of Covertype (two of 16 cores), our default takes {} s, PaCMAP {}, UMAP {}, "
        "openTSNE {} and densMAP {}. With a million rows, our default takes {} s and UMAP {}, and PaCMAP and densMAP "
        "{}.",
        lambda: (
            *(seconds(name, 280_000, 16, threads=2) for name in ("drsne", "pacmap", "umap", "opentsne", "densmap")),
            *(seconds(name, MILLION, 16, threads=2) for name in ("drsne", "umap", "densmap")),
        ),
    ),
    Claim(
        COMPARISON,
        "At 70,000 rows, UMAP takes {} % less time and PaCMAP {} % less.",
        lambda: (less_time("umap"), less_time("pacmap")),
    ),
    Claim(ENGINES, "the estimate is {} GB, and a default fit needed {} GB", memory_of_a_million),
    Claim(SCALING, "{} GB for a million points with 50 features, where a fit needed {} GB", memory_of_a_million),
    Claim(
        README,
        "differs by at most {} from that of the authors' code at the four weights that we compared, and "
        "trustworthiness by {} to {}, most at the largest weight.",
        preset_differences,
    ),
    Claim(COMPARISON, "a million points took {} s with drsne", lambda: (f"{gpu(MILLION):.0f}",)),
    Claim(
        COMPARISON, "and took {} s with our search", lambda: (f"{gpu(MILLION, 'peer on NVIDIA H200, umap_given'):.0f}",)
    ),
    Claim(
        CHOOSING,
        "lowers trustworthiness by at most {} and continuity by at most {} on any",
        lambda: (loss(TW), loss(CONT)),
    ),
    Claim(CHOOSING, "The default path takes {} iterations", lambda: (iterations(1e9),)),
    Claim(CHOOSING, "up to a weight of 70, which takes {} iterations", lambda: (iterations(70),)),
    Claim(
        ENGINES,
        "up to {} % with the fixed kernel and up to {} % with the adaptive kernel",
        lambda: (f"{largest_errors(slice(1, 4)):.1f}", f"{largest_errors(slice(4, 6)):.1f}"),
    ),
    Claim(
        ENGINES,
        "this search takes {} s on two cores with a recall of {}, and the exact search about {} s",
        lambda: search("noise20", 4),
    ),
    Claim(
        ENGINES,
        "For 100 dimensions, it takes {} s with a recall of {}, and the exact search about {} s.",
        lambda: search("noise100", 3),
    ),
    Claim(
        ENGINES,
        "the exact search takes {} s and the approximate search takes {} s (`benchmarks/results/search.md`)",
        lambda: tuple(f"{float(cell('search', '70,000', column)):.1f}" for column in (1, 2)),
    ),
    Claim(
        ENGINES,
        "is {} times as fast with four threads as with one, and {} times as fast with 16",
        lambda: tuple(f"{threads(1) / threads(count):.1f}" for count in (4, 16)),
    ),
    Claim(
        ENGINES,
        "take {} to {} ms of every iteration, which is at most {} of an iteration with 1,000 points, {} "
        "with 2,000 and {} with 5,000",
        lambda: (
            *(f"{float(cell('overhead', n, 3)):.2f}" for n in ("1,000", "5,000")),
            *(cell("overhead", n, 4) for n in ("1,000", "2,000", "5,000")),
        ),
    ),
    Claim(
        SCALING,
        "| 1,000 to 20,000 | `DRSNE(n_jobs=-1)` | {} to {} s on two cores, {} to {} s on 16 cores |",
        lambda: (
            f"{float(seconds('drsne', 1000)):.0f}",
            seconds("drsne", 20_000),
            f"{float(seconds('drsne', 1000, 16, 16)):.1f}",
            f"{float(seconds('drsne', 20_000, 16, 16)):.0f}",
        ),
    ),
    Claim(
        SCALING,
        "| {} s on two cores, {} s on 16 cores, {} s on the GPU |",
        lambda: (seconds("drsne", 70_000), seconds("drsne", 70_000, 16, 16), f"{gpu(70_000):.1f}"),
    ),
    Claim(
        SCALING,
        "| {} to {} minutes on two cores, {} s on 16 cores, {} s on the GPU |",
        lambda: (
            *(f"{float(seconds('drsne', MILLION, of, threads=t)) / 60:.0f}" for of, t in ((16, 2), (2, -1))),
            seconds("drsne", MILLION, 16, 16),
            f"{gpu(MILLION):.0f}",
        ),
    ),
    Claim(SCALING, "`distributed.fit` | {} s on the GPU |", lambda: (f"{gpu(10 * MILLION):.0f}",)),
    Claim(
        SCALING,
        "| {} minutes for 20 million rows with 16 workers and a GPU |",
        lambda: (f"{large('cluster', 20 * MILLION, 16)['seconds']['total'] / 60:.0f}",),
    ),
    Claim(
        SCALING,
        "a million rows of uniform noise take {} s with 20 columns and {} s with 50",
        lambda: tuple(f"{gpu(MILLION, 'search on NVIDIA H200', data=data):.1f}" for data in ("uniform20", "uniform50")),
    ),
    Claim(SCALING, "(Digits) therefore still takes {} s", lambda: (f"{gpu(1797, 'scores on cuda'):.1f}",)),
    Claim(
        SCALING,
        "took {} s instead of {} s. If most of the rows have copies",
        lambda: tuple(f"{gpu(MILLION, f'case {case} on NVIDIA H200'):.1f}" for case in ("copies", "usual")),
    ),
    Claim(
        SCALING,
        "Without Triton, a fit of 70,000 points took {} s instead of {} s.",
        lambda: tuple(f"{gpu(70_000, f'case {case} on NVIDIA H200'):.1f}" for case in ("plain", "usual")),
    ),
    Claim(
        SCALING,
        "and took {} minutes: {} minutes for the stage `output`, {} minutes for `concentration`, and {} "
        "seconds each for `landmarks` and `landmark_map`. No worker used more than {} MB.",
        largest_run,
    ),
    Claim(
        SCALING,
        "On two cores, 4 million rows took {} minutes with two workers, which had a limit of 1 GB each and "
        "used at most {} MB. A run in one process with two threads took {} minutes",
        lambda: (
            f"{large('cluster', 4 * MILLION, 2)['seconds']['total'] / 60:.0f}",
            str(memory(large("cluster", 4 * MILLION, 2))),
            f"{large('one', 4 * MILLION)['seconds']['total'] / 60:.0f}",
        ),
    ),
    Claim(
        SCALING,
        "Without other programs, 300,000 rows took {} minutes.",
        lambda: (f"{large('cluster', 300_000, 2)['seconds']['total'] / 60:.1f}",),
    ),
    Claim(
        SCALING,
        "the concentration correlation is {} lower with landmarks, and the density rank correlation is {} lower.",
        lambda: tuple(f"{-large('direct', 300_000)['differences'][score]:.3f}" for score in (CC, RHO30)),
    ),
    Claim(
        SCALING,
        "the remaining bias was at most {}, and the root mean square error of the log concentrations was {} to {}",
        checked_errors,
    ),
    Claim(
        MODELS,
        "TW, continuity, rho30 and rho5 differ by at most {} from those of the fit of all rows, and CC by at most {}.",
        lambda: (placed_off("TW", "Cont", "rho30", "rho5"), placed_off("CC")),
    ),
    Claim(MODELS, "one row takes {} ms, and 10,000 rows take {} s", placing_times),
    Claim(
        "docs/faq.md",
        "the first fit of Digits takes {} s with an empty cache and {} s in a new process",
        lambda: tuple(f"{float(cell('startup', f'{kind} first fit', 1).split()[0]):.1f}" for kind in ("cold", "warm")),
    ),
    Claim("docs/faq.md", "on words, it reaches {}.", lambda: (f"{quality()['drsne']['words20k'][RHO30]:.2f}"[1:],)),
    Claim(
        "docs/guide.md",
        "a contrast of 2 gives a trustworthiness of {} and a density rank correlation (30 "
        "neighbours) of {}. The automatic contrast of {} gives {} and {}",
        lambda: (
            f"{contrast('words20k', 0.0, TW):.3f}"[1:],
            f"{contrast('words20k', 0.0, RHO30):.2f}"[1:],
            f"{contrast('words20k', None, 'contrast'):.1f}",
            f"{contrast('words20k', None, TW):.3f}"[1:],
            f"{contrast('words20k', None, RHO30):.2f}"[1:],
        ),
    ),
    Claim(
        "docs/gallery.md",
        "is {} for plain t-SNE and {} for DR-SNE",
        lambda: tuple(
            f"{quality()[method]['controlled_clusters']['fragmentation']:.3f}"[1:]
            for method in ("drsne_plain", "drsne")
        ),
    ),
    Claim(
        "docs/theory.md",
        "the trustworthiness is {} at a weight of 0, {} at 0.03 and {} at 0.1",
        lambda: tuple(small_weight(weight, TW) for weight in ("0", "0.03", "0.1")),
    ),
    Claim(
        "docs/theory.md",
        "The density rank correlations (30 neighbours) of these maps are {}, {} and {}.",
        lambda: tuple(small_weight(weight, "rho30") for weight in ("0", "0.03", "0.1")),
    ),
    Claim(
        "docs/theory.md",
        "up to {} times as large as its 1-99 % range in the study of the kernel. If the target is "
        "clipped at 0.5 %, the ratio of the two ranges is {} or less. At 1 %, it is {}, and at 2 %, it is {}.",
        lambda: tuple(cell("kernel", name, 8) for name in CLIPS),
    ),
    Claim("docs/theory.md", "Each of the last two steps lowers CC by {}.", lambda: (clip_price(),)),
    Claim(
        "docs/theory.md",
        "a higher mean density score ({} instead of {})",
        lambda: tuple(cell("contrast_choice", name, 1)[1:] for name in ("T = 0.7, kernel half", "T = 0.5, kernel all")),
    ),
    Claim(
        "docs/theory.md",
        "is {} on Digits and {} on the Helix",
        lambda: tuple(f"{altered()[name]['pearson']:.3f}"[1:] for name in ("digits", "helix")),
    ),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.text[:50]}")
def test_a_sentence_has_the_numbers_of_the_rows(claim):
    assert claim.text.format(*claim.numbers()) in page(claim.page)


TABLES = {
    "scores in the README": (README, readme_table),
    "scores": (COMPARISON, comparison_table),
    "matched settings": (COMPARISON, rules_table),
    "times": (COMPARISON, times_table),
    "choosing": (CHOOSING, lambda: [make() for make in bench("choosing").TABLES]),
    "parts of a fit on a GPU": (SCALING, gpu_table),
    "memory of a GPU": (SCALING, gpu_memory),
    "new rows": (MODELS, new_rows_table),
    "outliers": (MODELS, outliers_table),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_the_rows(name):
    where, make = TABLES[name]
    for line in make():
        assert " ".join(line.split()) in page(where)


def test_scores_of_the_gpu_differ_by_no_more_than_the_page_says():
    def means(device: str, data: str) -> list[float]:
        found = [row for row in rows("gpu") if (row["device"], row["data"]) == (device, data)]
        return [fmean(row[score] for row in found) for score in (TW, CONT, "cc", "rho30", "rho5")]

    def largest(device: str, sets: tuple[str, ...]) -> float:
        pairs = [(means("scores on cuda", name), means(device, name)) for name in sets]
        return max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))

    text = page(SCALING)
    limits = [float(limit) for limit in re.findall(r"no score differs by more than (0\.\d+)", text)]
    large = ("mnist", "fashion_mnist")
    found = largest("scores on cpu", ("digits", *large)), largest("scores on cpu, exact neighbours", large)
    for limit, value in zip(limits, found, strict=True):
        assert limit - 0.001 < value <= limit + 0.0005


def test_sections_of_results_have_no_other_numbers():
    """A number with a decimal point or a unit is part of a claim, a table, or what was asked for."""
    for where, begin, end in COMPLETE:
        text = page(where)
        section = text[text.index(begin) : text.index(end)]
        for claim in CLAIMS:
            if claim.page == where:
                section = section.replace(claim.text.format(*claim.numbers()), "")
        for table_page, make in TABLES.values():
            if table_page == where:
                for line in make():
                    section = section.replace(" ".join(line.split()), "")
        for given in GIVEN:
            section = section.replace(given, "")
        assert re.findall(r"\d*\.\d+|\d[\d,]* (?:s|seconds|minutes|GB|%|cases|of \d+)\b", section) == []


# Numbers in these sections that are no results.
GIVEN = ("0.3 to 10",)
COMPLETE = (
    (README, "## Results", "The first fit spends"),
    (COMPARISON, "## Scores", "## Features"),
)
