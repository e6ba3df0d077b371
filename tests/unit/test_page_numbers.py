"""Numbers about results on the pages: each is computed from committed rows, or read from a report that has no rows.

To add a number to a page, add its sentence to ``SENTENCES``. The tests fail if either the page or the rows change, and
if a page has a number that is neither in a sentence or table nor in ``OTHERS``.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from statistics import fmean

import committed as its
import pytest
from committed import CC, CONT, MILLION, RHO30, ROOT, TW, gpu, large, page, seconds

import drsne
from drsne.backends.numba import KIND as NUMBA
from drsne.estimators.path import WEIGHTS
from drsne.neighbors import descent
from drsne.neighbors import inverted_file as lists
from drsne.placement.rows import NOVEL


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
    for cached in (its.rows, its.quality, its.matched):
        cached.cache_clear()


def of_readme() -> Iterator[str]:
    tw, cont = its.loss(TW), its.loss(CONT)
    yield f"lowers trustworthiness by at most {tw} ({its.worst_set(TW)}) and continuity by at most {cont}."
    ours, strong = its.above("drsne", CC), its.above("drsne_strong", CC)
    yield f"Its concentration correlation is higher on {ours} of them, and on {strong} with a weight of 3."
    cases = [[cell.split()[0] for cell in line] for line in its.matched()]
    yield f"{int(cases[0][0]) // 8} settings on each of the eight data sets of the paper. In all {cases[0][0]} cases,"
    yield f"this holds in {cases[3][0]} cases, and for our default map alone in {cases[4][0]}."
    yield f"it holds in {its.matched()[0][1]} cases. This last count"
    yield f"with the former end, it is {cases[2][1]}."
    drsne, plain, umap, pacmap, densmap = (
        seconds(name, 70_000) for name in ("drsne", "drsne_plain", "umap", "pacmap", "densmap")
    )
    yield (
        f"(70,000 points, 50 components) takes {drsne} seconds, which is {float(drsne) / float(plain):.1f} "
        "times as long "
        f"as a plain t-SNE fit. UMAP takes {umap} seconds, PaCMAP {pacmap} and densMAP {densmap}."
    )
    yield (
        f"A million points take {float(seconds('drsne', MILLION)) / 60:.0f} minutes and "
        f"{its.gigabytes_of_a_million()} GB of "
        f"memory. With 16 cores of another machine, they take {seconds('drsne', MILLION, 16, 16)} seconds."
    )
    yield (
        f"density term takes {gpu(70_000):.1f} seconds for the 70,000 images of MNIST, and "
        f"{gpu(MILLION):.0f} seconds for a "
        f"million and {gpu(10 * MILLION):.0f} seconds for ten million"
    )
    cc, *tw = its.preset_differences()
    yield (
        f"differs by at most {cc} from that of the authors' code at the four weights that we compared, and "
        f"trustworthiness by {tw[0]} to {tw[1]}, most at the largest weight."
    )


def of_comparison() -> Iterator[str]:
    yield f"loses little trustworthiness compared with t-SNE, at most {its.loss(TW)} ({its.worst_set(TW)})."
    yield (
        f"the higher one on {12 - int(its.above('drsne', CC))} of the twelve data sets. Its trustworthiness "
        "is lower on all "
        "of them. With a weight of 3, DR-SNE has the higher concentration correlation on "
        f"{its.above('drsne_strong', CC)}."
    )
    names = ("drsne", "pacmap", "umap", "opentsne", "densmap")
    ours, pacmap, umap, opentsne, densmap = (seconds(name, 280_000, 16, threads=2) for name in names)
    million = [seconds(name, MILLION, 16, threads=2) for name in ("drsne", "umap", "densmap")]
    yield (
        f"With 280,000 rows of Covertype (two of 16 cores), our default takes {ours} s, PaCMAP {pacmap}, UMAP {umap}, "
        f"openTSNE {opentsne} and densMAP {densmap}. With a million rows, our default takes {million[0]} s and UMAP "
        f"{million[1]}, and PaCMAP and densMAP {million[2]}."
    )
    yield f"At 70,000 rows, UMAP takes {its.less_time('umap')} % less time and PaCMAP {its.less_time('pacmap')} % less."
    (matched,) = re.findall(r"ended the path at 280. It matched (\d+) settings", page("benchmarks/results/quality.md"))
    yield f"with which {matched} of all 256 settings were matched"
    (versions,) = re.findall(r"Versions: drsne [\d.]+, (.*?)\.? ## Default", page("benchmarks/results/quality.md"))
    listed = re.findall(r"statements about other packages hold for (.*?)\. We", page(COMPARISON))[0].replace(
        " and ", ", "
    )
    assert set(versions.split(", ")) == set(listed.split(", ")) - {"openTSNE 1.0.4"}
    (torchdr,) = {row["version"] for row in its.rows("gpu") if row.get("package") == "torchdr"}
    yield f"The UMAP of TorchDR {torchdr} ran out of memory"
    yield f"a million points took {gpu(MILLION):.0f} s with drsne"
    yield f"and took {gpu(MILLION, 'peer on NVIDIA H200, umap_given'):.0f} s with our search"


def of_choosing() -> Iterator[str]:
    yield f"lowers trustworthiness by at most {its.loss(TW)} and continuity by at most {its.loss(CONT)} on any"
    yield f"The default path takes {its.iterations(1e9)} iterations"
    yield f"up to a weight of 70, which takes {its.iterations(70)} iterations"


def of_engines() -> Iterator[str]:
    estimate, needed = its.memory_of_a_million()
    yield f"the estimate is {estimate} GB, and a default fit needed {needed} GB"
    fixed, adaptive = (max(its.engine_errors(at)[1][0] for at in columns) for columns in ((2, 3, 4), (5, 6)))
    yield f"up to {fixed:.1f} % with the fixed kernel and up to {adaptive:.1f} % with the adaptive kernel"
    for name, column in (
        ('`fft`, `accuracy="normal"` | $n + M \\log M$, $M$ mesh nodes | 1, 2', 2),
        ('`fft`, `accuracy="high"` | the same, with a larger $M$ | 1, 2', 3),
        ("`tree`, `theta=0.45` | $n \\log n$ | 1 to 3", 4),
        ("`fft` or `tree`, adaptive kernel | $n \\log n$ | 1 to 3", 5),
        ('the same, `accuracy="high"` | $n \\log n$ | 1 to 3', 6),
    ):
        yield f"{name} | {its.engine_row(column)} |"
    for column in (2, 3, 4):
        (_, bound), (_, partition) = its.engine_errors(column)
        assert partition <= bound
    yield f"its bound with the fixed kernel, and reached {its.engine_errors(5)[1][1]:.1f} % with the adaptive kernel."
    allowed, ordinary, outliers = (
        [100 * float(error) for error in its.cell("engine_bounds", name, column).split()[:3:2]]
        for name, column in (("bound", 1), ("ordinary", 5), ("outliers", 5))
    )
    yield f"a test allows {allowed[0]:.2f} %, {allowed[1]:.3f} %"
    yield f"the errors of the tree were at most {ordinary[0]:.1f} % (forces) and {ordinary[1]:.2f} % (partition sum)"
    n_maps = its.cell("engine_bounds", "outliers", 5).split("of ")[1].rstrip(")")
    yield f"For one of {n_maps} maps with outliers, the error of the forces was {outliers[0]:.1f} %."
    fixed, adaptive = NUMBA.crossover
    yield f"sums over all pairs for up to {fixed[2]:,} points ({fixed[1]:,} in one dimension)."
    yield f"up to {adaptive[2]:,} points in two dimensions and for up to {adaptive[1]:,} points in one and three"
    yield f"exact search for fewer than {lists.APPROXIMATE_FROM:,} rows and an approximate search for"
    yield f"recall of {its.short(lists._VERY_GOOD_RECALL, 2)} and at most {lists.PROBES}."
    yield f"measures its recall on {lists._CHECKED} rows"
    yield f"If the recall is below {100 * lists._GOOD_RECALL:.0f} %, the neighbours are refined"
    yield f"Each row keeps {descent._LONGER} k neighbours"
    yield f"until the recall is {100 * lists._REFINED_RECALL:.1f} %"
    yield f"If the recall is still below {100 * lists._LEAST_RECALL:.0f} %, all rows"
    for data in ("noise20", "noise100"):
        exact, ours = (its.search_seconds(data, 100_000, way) for way in ("exact", "approximate"))
        assert ours == pytest.approx(exact, rel=0.1), "the page says that both are about as fast"
    ours, recall, exact = its.search("noise20", 4)
    yield f"this search takes {ours} s on two cores with a recall of {recall}, and the exact search about {exact} s"
    ours, recall, exact = its.search("noise100", 3)
    yield f"For 100 dimensions, it takes {ours} s with a recall of {recall}, and the exact search about {exact} s."
    exact, ours = (float(its.cell("search", "70,000", column)) for column in (1, 2))
    yield f"exact search takes {exact:.1f} s and the approximate search takes {ours:.1f} s (`benchmarks/"
    four, sixteen = (its.threads(1) / its.threads(count) for count in (4, 16))
    yield f"is {four:.1f} times as fast with four threads as with one, and {sixteen:.1f} times as fast with 16"
    low, high = (float(its.cell("overhead", n, 3)) for n in ("1,000", "5,000"))
    shares = [its.cell("overhead", n, 4) for n in ("1,000", "2,000", "5,000")]
    yield (
        f"take {low:.2f} to {high:.2f} ms of every iteration, which is at most {shares[0]} of an iteration with 1,000 "
        f"points, {shares[1]} with 2,000 and {shares[2]} with 5,000"
    )


def of_scaling() -> Iterator[str]:
    estimate, needed = its.memory_of_a_million()
    yield f"{estimate} GB for a million points with 50 features, where a fit needed {needed} GB"
    two, sixteen = ([float(seconds("drsne", n, *cores)) for n in (1000, 20_000)] for cores in ((2, 2), (16, 16)))
    yield (
        f"| 1,000 to 20,000 | `DRSNE(n_jobs=-1)` | {two[0]:.0f} to {two[1]:.0f} s on two cores, {sixteen[0]:.1f} to "
        f"{sixteen[1]:.0f} s on 16 cores |"
    )
    mnist = seconds("drsne", 70_000), seconds("drsne", 70_000, 16, 16)
    yield f"| {mnist[0]} s on two cores, {mnist[1]} s on 16 cores, {gpu(70_000):.1f} s on the GPU |"
    minutes = [float(seconds("drsne", MILLION, of, threads=t)) / 60 for of, t in ((16, 2), (2, -1))]
    yield (
        f"| {minutes[0]:.0f} to {minutes[1]:.0f} minutes on two cores, {seconds('drsne', MILLION, 16, 16)} "
        "s on 16 cores, "
        f"{gpu(MILLION):.0f} s on the GPU |"
    )
    yield f"`distributed.fit` | {gpu(10 * MILLION):.0f} s on the GPU |"
    total, output, concentration, stage, most = its.largest_run()
    yield f"| {total} minutes for 20 million rows with 16 workers and a GPU |"
    yield (
        f"and took {total} minutes: {output} minutes for the stage `output`, {concentration} minutes for "
        "`concentration`, "
        f"and {stage} seconds each for `landmarks` and `landmark_map`. No worker used more than {most} MB."
    )
    noise = [gpu(MILLION, "search on NVIDIA H200", data=data) for data in ("uniform20", "uniform50")]
    yield f"a million rows of uniform noise take {noise[0]:.1f} s with 20 columns and {noise[1]:.1f} s with 50"
    yield f"(Digits) therefore still takes {gpu(1797, 'scores on cuda'):.1f} s"
    pairs = max(row["pairs"] for row in its.rows("gpu") if row["n"] == 10 * MILLION and "pairs" in row)
    yield f"The affinities of ten million points take about {its.WORDS[round(8 * pairs / 1e9)]} gigabytes."
    fits = [row for row in its.rows("distributed") if "landmark_map" in row.get("seconds", {})]
    on_cpu = [row["seconds"]["landmark_map"] for row in fits if row["device"] is None]
    (on_gpu,) = [row["seconds"]["landmark_map"] for row in fits if row["device"] is not None]
    yield (
        f"{min(on_cpu):.0f} to {max(on_cpu):.0f} s for 20,000 landmarks on two cores, and {on_gpu:.0f} s with an H200"
    )
    largest = max(its.memory(row) for row in its.rows("distributed") if row["workers"])
    yield f"In our runs, a worker used up to {largest} MB"
    yield "| N x S x D / 2e10, where the sample has S = max(5,000, n / 4) rows"
    yield "| N x n x D / 2e10, if the data form clusters | "
    yield "| N x 0.0004, and up to"
    for stage, expected in its.expected_seconds(20 * MILLION, 20_000, 16).items():
        assert large("cluster", 20 * MILLION, 16)["seconds"][stage] == pytest.approx(expected, rel=0.15)
    for name, n, landmarks, workers in (("100 million", 1e8, 20_000, 16), ("1 billion", 1e9, 50_000, 256)):
        needed = sum(its.expected_seconds(n, landmarks, workers).values()) + max(on_cpu) * landmarks / 20_000
        yield f"| {name} | {landmarks:,} | {workers}, with 2 GB each | about {10 * round(needed / 600)} minutes |"
    copies, usual = (gpu(MILLION, f"case {case} on NVIDIA H200") for case in ("copies", "usual"))
    yield f"took {copies:.1f} s instead of {usual:.1f} s. If most of the rows have copies"
    plain, usual = (gpu(70_000, f"case {case} on NVIDIA H200") for case in ("plain", "usual"))
    yield f"Without Triton, a fit of 70,000 points took {plain:.1f} s instead of {usual:.1f} s."
    cluster, one = large("cluster", 4 * MILLION, 2), large("one", 4 * MILLION)
    yield (
        f"On two cores, 4 million rows took {cluster['seconds']['total'] / 60:.0f} minutes with two "
        "workers, which had a "
        f"limit of 1 GB each and used at most {its.memory(cluster)} MB. A run in one process with two threads took "
        f"{one['seconds']['total'] / 60:.0f} minutes"
    )
    alone = large("cluster", 300_000, 2)["seconds"]["total"] / 60
    yield f"Without other programs, 300,000 rows took {alone:.1f} minutes."
    cc, rho = (-large("direct", 300_000)["differences"][score] for score in (CC, RHO30))
    yield (
        f"the concentration correlation is {cc:.3f} lower with landmarks, and the density rank correlation is "
        f"{rho:.3f} lower."
    )
    differences = large("direct", 300_000)["differences"]
    assert all(abs(value) < 0.001 for score, value in differences.items() if score not in (CC, RHO30))
    yield "The others differ by less than 0.001."
    bias, low, high = its.checked_errors()
    yield (
        f"the remaining bias was at most {bias}, and the root mean square error of the log concentrations was {low} to "
        f"{high}, which is {float(low) * 100:.0f} to {float(high) * 100:.0f} % of the concentration"
    )


def of_models() -> Iterator[str]:
    most, cc = its.placed_off("TW", "Cont", "rho30", "rho5"), its.placed_off("CC")
    yield (
        f"TW, continuity, rho30 and rho5 differ by at most {most} from those of the fit of all rows, and CC by "
        f"at most {cc}."
    )
    (times,) = [row["seconds"] for row in its.rows("new_rows_times") if row["method"] == "drsne"]
    better = [float(line[3]) > float(line[4]) for line in its.table_lines("reliability")[2:]]
    chosen = [line[0] in ("Digits", "Fashion-MNIST", "PBMC", "Shuttle") for line in its.table_lines("reliability")[2:]]
    yield f"Ours is better on {its.WORDS[sum(better)]} of the {its.WORDS[len(better)]} data sets"
    others = sum(b for b, of_choice in zip(better, chosen, strict=True) if not of_choice)
    yield f"on four of these data sets; on the other four, it is better on {its.WORDS[others]}."
    low, high = NOVEL
    yield f"A novelty of up to about {low} is typical of the training data. From {low} to {high:.0f}, treat"
    yield f"one row takes {1e3 * times['one']:.1f} ms, and 10,000 rows take {times['many']:.1f} s"


def of_faq() -> Iterator[str]:
    cold, warm = (float(its.cell("startup", f"{kind} first fit", 1).split()[0]) for kind in ("cold", "warm"))
    yield f"the first fit of Digits takes {cold:.1f} s with an empty cache and {warm:.1f} s in a new process"
    yield f"It takes {its.WORDS[its.times_default(70)]} times as many iterations as a default fit"
    yield f"need about {drsne.memory_estimate(MILLION, 50) / 1e9:.0f} GB"
    assert sum(scores[RHO30] >= 0.9 for scores in its.quality()["drsne"].values()) > 6, "most of our test data sets"
    words = its.quality()["drsne"]["words20k"][RHO30]
    yield f"on words, it reaches {f'{words:.2f}'[1:]}."


def of_guide() -> Iterator[str]:
    two, chosen = (
        (f"{its.contrast('words20k', limit, TW):.3f}"[1:], f"{its.contrast('words20k', limit, RHO30):.2f}"[1:])
        for limit in (0.0, None)
    )
    yield (
        f"a contrast of 2 gives a trustworthiness of {two[0]} and a density rank correlation (30 "
        f"neighbours) of {two[1]}. "
        f"The automatic contrast of {its.contrast('words20k', None, 'contrast'):.1f} gives {chosen[0]} and {chosen[1]}"
    )

    defaults = {name: parameter.default for name, parameter in inspect.signature(drsne.DRSNE).parameters.items()}
    for name in ("density_weight", "neighborhoods", "density_neighbors", "perplexity", "kernel", "metric"):
        default = defaults[name]
        symbol = " ($k$)" if name == "density_neighbors" else ""
        yield f"| `{name}`{symbol} | " + (f'`"{default}"` |' if isinstance(default, str) else f"{default:g} |")
    yield f"`max_trustworthiness_drop` ({its.short(defaults['max_trustworthiness_drop'], 2)})"
    yield f'Use `"auto"` if you have the time for {its.WORDS[its.times_default(70)]} fits'


def of_anndata() -> Iterator[str]:
    yield f"Up to about {NOVEL[0]} is typical of the old cells. From {NOVEL[0]} to {NOVEL[1]:.0f}, treat the position"


def of_million_points() -> Iterator[str]:
    minutes = [float(seconds("drsne", MILLION, of, threads=t)) / 60 for of, t in ((16, 2), (2, -1))]
    yield (
        f"took {minutes[0]:.0f} to {minutes[1]:.0f} minutes and needed {its.memory_of_a_million()[1]} GB of memory "
        f"in our measurements. With 16 cores, it took {float(seconds('drsne', MILLION, 16, 16)) / 60:.0f} minutes."
    )


def of_command_line() -> Iterator[str]:
    yield f"to choose one in about {its.WORDS[its.times_default(70)]} times the time"
    assert (len(WEIGHTS), WEIGHTS[-1]) == (19, 1120)
    yield f"with weights from 0 to 1120, which takes almost {its.WORDS[its.times_default(1e9)]} times as many"


def of_reading() -> Iterator[str]:
    contrast = its.contrast("pbmc_cells", None, "contrast")
    dimension = float(its.cell("contrast_choice", "pbmc_cells", 2))
    times = 2 ** (2 * contrast / dimension)
    yield f"{times:.1f} times on PBMC cells (contrast {contrast:.0f}, local dimension {dimension:.0f})."


def of_scores() -> Iterator[str]:
    text = page("benchmarks/results/fragmentation.md")
    found = [float(value) for value in re.findall(r"(0\.\d+) \(\w+, 18 maps\)", text)]
    assert len(found) == 2
    assert min(found) > 0.9
    yield "the rank correlation between the score and the true number of pieces is above .9"
    yield f"is cut in two, the score is only {its.short(float(its.cell('fragmentation', 'score 0.000', -1)), 2)},"


def of_explorer() -> Iterator[str]:
    empty, rows = its.page_megabytes(5), 20_000
    one, maps, columns = (its.page_megabytes(rows, *shape) for shape in ((1,), (3,), (1, 2)))
    of_map, of_column = (1e6 * (more - one) / 2 / rows for more in (maps, columns))
    yield f"An empty page has about {empty:.1f} MB. Every map adds about {of_map:.0f} bytes per row"
    yield f"every column of numbers {of_column:.0f} bytes"
    large, million = (empty + n * (one - empty) / rows for n in (200_000, MILLION))
    yield f"labels of 200,000 rows has {large:.1f} MB. With a million rows, it has {million:.0f} MB"


def of_gallery() -> Iterator[str]:
    scores = [its.quality()[method]["controlled_clusters"]["fragmentation"] for method in ("drsne_plain", "drsne")]
    plain, ours = (f"{score:.3f}"[1:] for score in scores)
    yield f"is {plain} for plain t-SNE and {ours} for DR-SNE"


def of_theory() -> Iterator[str]:
    tw, rho = ([its.small_weight(weight, score) for weight in ("0", "0.03", "0.1")] for score in (TW, "rho30"))
    yield f"the trustworthiness is {tw[0]} at a weight of 0, {tw[1]} at 0.03 and {tw[2]} at 0.1"
    yield f"The density rank correlations (30 neighbours) of these maps are {rho[0]}, {rho[1]} and {rho[2]}."
    clips = ("both, 1, no clip", "both, 1, clip 0.5 %", "**both, 1**", "both, 1, clip 2 %")
    spans = [its.cell("kernel", name, 8) for name in clips]
    before, now, more = (float(its.cell("kernel", name, 3)) for name in clips[1:])
    yield (
        f"up to {spans[0]} times as large as its 1-99 % range in the study of the kernel. If the target is "
        "clipped at 0.5 %, "
        f"the ratio of the two ranges is {spans[1]} or less. At 1 %, it is {spans[2]}, and at 2 %, it is {spans[3]}."
    )
    assert f"{before - now:.3f}" == f"{now - more:.3f}"
    yield f"Each of the last two steps lowers CC by {f'{before - now:.3f}'[1:]}."
    half, whole = (its.cell("contrast_choice", name, 1)[1:] for name in ("T = 0.7, kernel half", "T = 0.5, kernel all"))
    yield f"a higher mean density score ({half} instead of {whole})"
    spreads = [float(its.cell("contrast_choice", name, 1)) for name in ("words, rare", "4eq", "controlled_clusters")]
    yield f"$s$ is often between {spreads[0]:.2f} and {spreads[1]:.1f}."
    yield f"($s = {spreads[2]:.2f}$ on Clusters)"
    yield f"it is {float(its.cell('contrast_choice', 'ball', 2)):.0f} for 3,000 points of a Gaussian in 30 dimensions."
    chance = (2 * 3 / (4 * 30 * 2**2)) ** 0.5  # equation (40a) on a plane
    yield f"On a plane with $k = 30$, the standard deviation is {chance:.2f}, and a little more"
    (part,) = re.findall(r"(\d+) % from the outward force", page("benchmarks/results/densne.md"))
    yield f"this reduces the outward force by {part} %."
    accurate = [line for line in its.table_lines("densne") if "our preset, accurate" in line]
    kl, rho = ([float(line[at].split("(")[1].strip("+)* out,")) for line in accurate] for at in (7, 4))
    weights = [index % 4 for index in range(12)]  # lambda 0, .1, .5 and 1, for three data sets
    more = [-change for change, at in zip(kl, weights, strict=True) if at < 3]
    yield f"is {its.short(min(more), 2)} to {its.short(max(more), 1)} larger than that of maps made with accurate"
    yield f"program's maps is up to {its.short(-min(rho[:8]))} higher"
    altered = json.loads((its.RESULTS / "densne_check.json").read_text(encoding="utf-8"))["distances_altered"]
    digits, helix = (f"{altered[name]['pearson']:.3f}"[1:] for name in ("digits", "helix"))
    yield f"is {digits} on Digits and {helix} on the Helix"


README, COMPARISON, SCALING, MODELS = "README.md", "docs/comparison.md", "docs/scaling.md", "docs/models.md"
SENTENCES = {
    README: of_readme,
    COMPARISON: of_comparison,
    "docs/choosing.md": of_choosing,
    "docs/engines.md": of_engines,
    SCALING: of_scaling,
    MODELS: of_models,
    "docs/faq.md": of_faq,
    "docs/anndata.md": of_anndata,
    "docs/tutorials/million_points.ipynb": of_million_points,
    "docs/command_line.md": of_command_line,
    "docs/reading.md": of_reading,
    "docs/scores.md": of_scores,
    "docs/explorer.md": of_explorer,
    "docs/guide.md": of_guide,
    "docs/gallery.md": of_gallery,
    "docs/theory.md": of_theory,
}
TABLES = {
    "scores in the README": (README, its.readme_table),
    "scores": (COMPARISON, its.comparison_table),
    "matched settings": (COMPARISON, lambda: [f"| {line[0]} | {line[1]} |" for line in its.matched()]),
    "times": (COMPARISON, its.times_table),
    "choosing": ("docs/choosing.md", lambda: [make() for make in its.bench("choosing").TABLES]),
    "parts of a fit on a GPU": (SCALING, its.gpu_table),
    "memory of a GPU": (SCALING, its.gpu_memory),
    "new rows": (MODELS, its.new_rows_table),
    "outliers": (MODELS, its.outliers_table),
}


@cache
def sentences(where: str) -> tuple[str, ...]:
    return tuple(SENTENCES[where]()) if where in SENTENCES else ()


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences_have_the_numbers_of_the_rows(name):
    assert [sentence for sentence in sentences(name) if sentence not in page(name)] == []


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_the_rows(name):
    where, make = TABLES[name]
    assert [line for line in make() if " ".join(line.split()) not in page(where)] == []


def test_scores_of_the_gpu_differ_by_no_more_than_the_page_says():
    def means(device: str, data: str) -> list[float]:
        found = [row for row in its.rows("gpu") if (row["device"], row["data"]) == (device, data)]
        return [fmean(row[score] for row in found) for score in (TW, CONT, "cc", "rho30", "rho5")]

    def largest(device: str, sets: tuple[str, ...]) -> float:
        pairs = [(means("scores on cuda", name), means(device, name)) for name in sets]
        return max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))

    limits = [float(limit) for limit in re.findall(r"no score differs by more than (0\.\d+)", page(SCALING))]
    images = ("mnist", "fashion_mnist")
    found = largest("scores on cpu", ("digits", *images)), largest("scores on cpu, exact neighbours", images)
    for limit, value in zip(limits, found, strict=True):
        assert limit - 0.001 < value <= limit + 0.0005


# The other numbers with a decimal point or a unit: definitions, defaults, advice, versions, and what follows from them
OTHERS = {
    README: "3.11 0.3 0.01 1%",
    "docs/architecture.md": "0.7",
    "docs/choosing.md": "0.3 0.03 0.05 0.1 30% 50% .01",
    "docs/command_line.md": "0.3 .01 90%",
    COMPARISON: "1.9 1.0 0.5 0.9 0.1 0.3 2.0",
    "docs/datasets.md": "5%",
    "docs/engines.md": "0.5 1.6",
    "docs/explorer.md": "1% 99%",
    "docs/faq.md": ".85 .01 .9 0.69",
    "docs/gallery.md": "0.2 0.5 0.8 1.4",
    "docs/glossary.md": "1% 99%",
    "docs/guide.md": "0.69 1% 99% 0.3 0.1 0.7 70% .01",
    "docs/index.md": "3.11 60seconds",
    MODELS: "10% 90% 64bytes 0.5 0.2 2410.16608",
    "docs/reading.md": "0.69 .9 2506.08725",
    SCALING: (
        "2.11 80GB 2.9 0.003 0.002 0.99 0.95 12bytes 0.5% 20% 1.5 100MB 1GB 250bytes 5MB 125MB 20of20 200GB 48GB 40GB "
        "25GB 0.01 11MB"
    ),
    "docs/scores.md": ".017 .3 .9 .002",
    "docs/start.md": "3.11 60seconds",
    "docs/theory.md": (
        "10% 0.005 9.0 .8 .999 1% 99% 30% 0.7 0.8 0.4 0.25 1.16 0.1 .0001 0.3 0.5 0.5% 99.5% 2301.13732 2605.30597 1.5 "
        "2.25 .01"
    ),
}


def test_pages_have_no_other_numbers():
    """A number with a decimal point or a unit is part of a sentence or of a table above, or is listed here."""
    for path in (ROOT / README, *sorted((ROOT / "docs").glob("*.md"))):
        where = path.relative_to(ROOT).as_posix()
        if where == "docs/reproduction.md":  # paper/tests/test_reproduction_numbers.py
            continue
        text = re.sub(r"```.*?```|\$\$.*?\$\$|\]\([^)]*\)", "", page(where))  # without code, equations and links
        lines = [" ".join(line.split()) for on, make in TABLES.values() if on == where for line in make()]
        for known in sorted((*sentences(where), *lines), key=len, reverse=True):
            text = text.replace(re.sub(r"\]\([^)]*\)", "", known), "")
        assert its.numbers(text) == set(OTHERS.get(where, "").split()), where
