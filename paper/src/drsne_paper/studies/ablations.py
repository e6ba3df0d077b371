"""The paper's ablations on PBMC, as published and controlled, and our own ablation of the exponent and the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drsne_paper import figures, published, tables
from drsne_paper.datasets import recipes
from drsne_paper.document import DIFFERENCE, PAPER, Block, Bullets, Cell, Figure, Heading, Table, Text
from drsne_paper.methods import Method
from drsne_paper.methods._drsne import of_the_paper
from drsne_paper.rows import Row
from drsne_paper.runner import rows_of_study
from drsne_paper.studies import PaperStudy
from drsne_paper.studies._exponent import EXPONENT, METHOD, exponent_blocks
from drsne_paper.study import EVERYTHING, Selection, Study, check_names

SEEDS = (42, 43, 44)
LAMBDAS = (0.0, 0.001, 0.005, 0.01, 0.05, 0.1)
COMPONENTS = (10, 20, 40, 60, 80, 100, 120, 140)
NEIGHBORS = (10, 50, 100, 150, 200, 250, 300, 350, 400)  # counting the point itself, as the authors do
MAX_ITER = 600
LAM = 0.01  # the lambda in tables that vary another parameter
# The largest difference from the paper that still counts as close. It is relative for the stress, and absolute for the
# other scores.
BOUNDS = {"trustworthiness": 0.015, "continuity": 0.02, "concentration_correlation": 0.02, "stress": 0.1}
SHOWN = (
    "trustworthiness",
    "continuity",
    "concentration_correlation",
    "density_rank_correlation",
    "silhouette",
    "stress",
)
PUBLISHED, CONTROLLED = "published", "controlled"  # the two ways to run a table
WAYS = {PUBLISHED: "as published", CONTROLLED: "controlled"}
WIDE, NEAR = 300, 15  # neighbours in the clustered graph: if lambda varies, and otherwise
QUICK_SAMPLES = 400


class Setting(NamedTuple):
    """One line of a table: a value of the varied parameter, and all other settings that change with it."""

    components: int = 30
    clusters: int = NEAR  # number of neighbours in the graph whose clusters are the labels
    k: int = 30  # number of neighbours, including the point itself
    lam: float = LAM
    perplexity: float = 30.0
    search: str = "bracketed"
    scale: int = 10  # number of neighbours for trustworthiness and continuity
    concentration: int = 29  # number of neighbours for the concentration correlation
    against: int | None = None  # components of the data that maps are scored against; None for the embedded data
    every_pair: bool = False  # whether the KL term uses all pairs, not only density neighbours as in the code

    @classmethod
    def of(cls, row: Row) -> Setting:
        """Return the setting of a row. A run that two tables share has one row."""
        scales, params, data = dict(row["scores"]), row["params"], row["data"]
        return cls(
            components=data["n_components"],
            clusters=data["cluster_neighbors"],
            k=params["k"] + 1,
            lam=params["lam"],
            perplexity=params["perplexity"],
            search=params["perplexity_search"],
            scale=scales["trustworthiness"],
            concentration=scales["concentration_correlation"],
            against=row["against"]["n_components"] if row.get("against") else None,
            every_pair=params.get("every_pair", False),
        )


def _tables() -> dict[tuple[str, str], dict[float, Setting]]:
    """Return the setting of every value, for each table and each way to run it."""
    out: dict[tuple[str, str], dict[float, Setting]] = {}
    for way, search in ((PUBLISHED, "doubling"), (CONTROLLED, "bracketed")):
        out["lambda", way] = {
            lam: Setting(lam=lam, search=search, k=300, concentration=299, clusters=WIDE) for lam in LAMBDAS
        }
    out["pca", PUBLISHED] = {p: Setting(components=p, search="doubling") for p in COMPONENTS}
    out["pca", CONTROLLED] = {p: Setting(components=p, against=max(COMPONENTS)) for p in COMPONENTS}
    out["k", PUBLISHED] = {
        k: Setting(k=k, search="doubling", perplexity=k, scale=k, concentration=k - 1) for k in NEIGHBORS
    }
    out["k", CONTROLLED] = {k: Setting(k=k, every_pair=True) for k in NEIGHBORS}
    return out


TABLES = _tables()
# The settings of the authors' figures, which show progressions of maps (one seed, converged perplexity).
PROGRESSIONS: dict[str, dict[float, Setting]] = {
    "lambda": {lam: Setting(lam=lam, clusters=WIDE) for lam in (0.0, 0.01, 0.1)},
    "pca": {p: Setting(components=p) for p in (20, 50, 100)},
    "k": {k: Setting(components=50, k=k, concentration=k - 1) for k in (10, 50, 250)},
}
EXPONENT_SETTING = Setting(clusters=WIDE)
TITLES = {"lambda": "lambda", "pca": "principal components", "k": "neighbours k"}


def pbmc_data(name: str, *, n_components: int, cluster_neighbors: int) -> Any:
    """Return PBMC with this many principal components, and this many neighbours in the graph of its clusters."""
    # The authors cluster a graph of 300 neighbours over 20 components when they vary lambda.
    wide: dict[str, Any] = {"graph_neighbors": WIDE, "graph_components": 20}
    graph = wide if cluster_neighbors == WIDE else {"graph_method": "gauss"}
    return recipes.pbmc(labels="louvain", n_components=n_components, **graph)


def quick_data(name: str, *, n_components: int, cluster_neighbors: int) -> Any:
    """Return some points of the 4 Gaussians, in place of PBMC, which needs a file."""
    from drsne_paper import datasets

    data = datasets.load("gaussians50", n_samples=QUICK_SAMPLES)
    return replace(data, X=recipes.pca(recipes.standardise(data.X), min(n_components, 50)))


def _data_params(components: int, clusters: int = NEAR) -> dict[str, int]:
    return {"n_components": components, "cluster_neighbors": clusters}


def _scores(setting: Setting) -> tuple[tuple[str, int | None], ...]:
    return (
        ("trustworthiness", setting.scale),
        ("continuity", setting.scale),
        ("concentration_correlation", setting.concentration),
        ("density_rank_correlation", 30),
        ("silhouette", None),
        ("stress", None),
    )


def part(setting: Setting, *, quick: bool = False, seeds: Sequence[int] = SEEDS) -> Study:
    """Return the runs of one line."""
    max_iter = 100 if quick else MAX_ITER
    numbers = {"max_iter": max_iter, "perplexity_search": setting.search}
    method = Method(
        title="DR-SNE (the paper's code)",
        parameter="lam",
        grid=(setting.lam,),
        maps=of_the_paper(
            "code", k=setting.k - 1, perplexity=setting.perplexity, every_pair=setting.every_pair, **numbers
        ),
        settings={"variant": "code", "k": setting.k - 1, "perplexity": float(setting.perplexity), **numbers}
        | ({"every_pair": True} if setting.every_pair else {}),
    )
    return Study(
        name="ablations",
        datasets=("pbmc3k",),
        data_params=_data_params(setting.components, setting.clusters),
        against=None if setting.against is None else _data_params(setting.against),
        methods=("drsne_code",),
        seeds=tuple(seeds),
        scores=_scores(setting),
        data=quick_data if quick else pbmc_data,
        sample="quick" if quick else "",
        variants={"drsne_code": method},
    )


class Ablations(PaperStudy):
    """What ``drsne reproduce ablations`` runs and writes."""

    name = "ablations"
    description = "lambda, principal components and k on PBMC, as published and one factor at a time; the exponent"

    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return the runs of all tables and figures."""
        check_names("datasets", selection.datasets, ("pbmc3k",))
        methods = check_names("methods", selection.methods, ("drsne_code", EXPONENT))
        seeds = selection.seeds_or(SEEDS, quick=SEEDS[:1])
        drawn_seed = SEEDS[0] if SEEDS[0] in seeds else seeds[0]
        out = []
        if "drsne_code" in methods:
            for lines in TABLES.values():
                some = list(lines.values())[: 2 if selection.quick else None]
                out += [part(line, quick=selection.quick, seeds=seeds) for line in some]
            for drawn in PROGRESSIONS.values():
                out += [part(line, quick=selection.quick, seeds=[drawn_seed]) for line in drawn.values()]
        if EXPONENT in methods:
            line = part(EXPONENT_SETTING, quick=selection.quick, seeds=seeds)
            out.append(replace(line, methods=(EXPONENT,), variants={EXPONENT: METHOD}))
        # Runs on the same data follow each other, so that they share results.
        return tuple(sorted(out, key=lambda study: tuple(study.data_params.values())))

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the progressions of maps."""
        for table in PROGRESSIONS:
            drawn = progression(table, rows)
            file = {row["key"]: folder / "maps" / f"{row['key']}.npy" for row in drawn}
            if not drawn or not all(path.exists() for path in file.values()):
                continue
            data = parts[0].data
            panels = [
                figures.Panel(
                    np.load(file[row["key"]]),
                    _labels(data, tuple(row["data"].items())),
                    _panel(table, Setting.of(row)),
                    _caption(row["metrics"]),
                )
                for row in drawn
            ]
            figure = figures.row_of_maps(panels)
            figures.save(figure, folder / f"figure_{table}.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return the tables with the paper's numbers, the counts of cells that are near them, and the figures."""
        out: list[Block] = [Heading("Ablations on PBMC", 1), Text(_INTRODUCTION)]
        compared = all(study.data is pbmc_data for study in parts)
        near: list[str] = []
        total = np.zeros(2, dtype=int)
        for (table, way), lines in TABLES.items():
            header, body, count = _table(table, lines, rows, compared=compared and way == PUBLISHED)
            if body:
                title = f"{TITLES[table]}, {WAYS[way]}".capitalize()
                caption = f"Scores over {TITLES[table]} on PBMC, {WAYS[way]}: mean ± standard deviation over seeds"
                out += [Heading(title), Text(_EXPLANATIONS[table, way]), Table(header, body, caption)]
            if count[1]:
                near.append(f"{TITLES[table]}: {_share(*count)}")
                total += count
            if way == CONTROLLED:
                title = f"Maps of PBMC by {TITLES[table]}, coloured by Louvain cluster: {_DRAWN[table]}"
                out.append(Figure(f"figure_{table}.png", title))
                out += _figure_scores(table, rows) if compared else []
        if near:
            bounds = ", ".join(f"{tables.SHORT[name]} {bound:g}" for name, bound in BOUNDS.items())
            out[2:2] = [
                Text(
                    f"The tables as published are compared with the paper. Bounds of the differences: {bounds} (for "
                    "the stress: of its value). A cell beyond them is marked with a star."
                ),
                Bullets([*near, f"all three: {_share(*total)}"] if len(near) > 1 else near),
            ]
        of_ours = [study for study in parts if study.methods == (EXPONENT,)]
        return out + exponent_blocks(rows_of_study(of_ours, rows), SHOWN) + tables.failures(rows)


STUDY = Ablations()

_INTRODUCTION = (
    "Made by `drsne reproduce ablations`: 2700 cells, seeds 42 to 44, mean ± standard deviation (ddof 1; the paper "
    "uses ddof 0, which is smaller by a factor of .82). Seconds are those of the optimisation in the fastest run, "
    "because the first run of a process compiles; the paper's are means. "
    '"As published" repeats the settings of the authors\' scripts: 600 iterations, and a search for the perplexity '
    'that doubles or halves without converging, so that every point has a different perplexity. "Controlled" lets the '
    "search converge and changes one thing at a time."
)
_EXPLANATIONS = {
    ("lambda", PUBLISHED): "30 components, 299 neighbours, nominal perplexity 30. Clusters are Louvain's on a graph of "
    "300 neighbours over 20 components.",
    ("lambda", CONTROLLED): "The same with perplexity 30.",
    ("pca", PUBLISHED): "lambda .01 and 29 neighbours (the paper's caption says 50), nominal perplexity 30. Scores are "
    "computed against the components that were embedded. Clusters are Louvain's on a graph of 15 neighbours with "
    "Gaussian weights; the authors cluster again for every seed, and we cluster once.",
    ("pca", CONTROLLED): "Only the embedded data change: perplexity 30, and every map is scored against the same 140 "
    "components and their clusters.",
    ("k", PUBLISHED): "lambda .01, 30 components. The nominal perplexity, the neighbourhood of trustworthiness, "
    "continuity and concentration correlation, and the pairs of the KL term are k as well: four things change at once. "
    "The authors' clusters are not known. These are Louvain's on a graph of 15 neighbours, whose silhouettes are close "
    "to the printed ones (those of the table of lambda are not).",
    ("k", CONTROLLED): "Only the density neighbours change: perplexity 30, the KL term over all pairs as in t-SNE, "
    "trustworthiness and continuity over 10 neighbours, concentration correlation over 29.",
}
_DRAWN = {  # the settings of the authors' figures, not of the tables
    "lambda": "30 components, 29 neighbours (the table has 299), perplexity 30, seed 42",
    "pca": "lambda .01, 29 neighbours (the paper's caption says 50), perplexity 30, seed 42",
    "k": "50 components (the paper's caption and the tables say 30), lambda .01, perplexity 30, the KL term over k "
    "neighbours, trustworthiness over 10 and concentration correlation over k - 1, seed 42",
}


def _share(near: int, cells: int) -> str:
    return f"{near} of {cells} cells within bounds ({near / cells:.0%})"


def rows_at(setting: Setting, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the paper's method at a setting, without failed runs."""
    runs = [row for row in rows if row["method"] == "drsne_code" and not row["error"]]
    return [row for row in runs if Setting.of(row) == setting]


def progression(table: str, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the maps in a figure, sorted by the varied parameter in ascending order."""
    return [row for _, setting in sorted(PROGRESSIONS[table].items()) for row in rows_at(setting, rows)]


def _figure_scores(table: str, rows: Sequence[Row]) -> list[Block]:
    """Return the scores of the maps in a figure, and the scores in the authors' files if these are known."""
    pairs = []
    for value, setting in PROGRESSIONS[table].items():
        known, ours = published.progression(table, value), rows_at(setting, rows)
        if known and ours:
            pairs.append(f"{_panel(table, setting)}: {_caption(ours[0]['metrics'])} ({_caption(known)})")
    return [Text(f"The same settings in the authors' files, in brackets: {'; '.join(pairs)}.")] if pairs else []


def _table(
    table: str, lines: dict[float, Setting], rows: Sequence[Row], *, compared: bool
) -> tuple[list[str], list[list[str]], tuple[int, int]]:
    """Return the header and body of a table, the number of cells that are near the paper's, and the number compared."""
    header = [TITLES[table], "seeds"]
    for score in SHOWN:
        header += [tables.SHORT[score]]
        if compared and score != "density_rank_correlation":
            header += [PAPER, DIFFERENCE]
    header.append("seconds")
    timed = compared and not math.isnan(published.ablation(table, 0.0, "seconds")[0])
    if timed:
        header.append("paper (another machine)")
    body, near, cells = [], 0, 0
    for value, setting in lines.items():
        runs = rows_at(setting, rows)
        if not runs:
            continue
        line = [f"{value:g}", str(len(runs))]
        for score in SHOWN:
            mean, std = tables.mean(runs, score)
            cell = tables.number(mean, std)
            line.append(cell)
            if compared and score != "density_rank_correlation":
                paper = published.ablation(table, value, score)
                difference = mean - paper[0]
                line += [tables.number(*paper), tables.signed(difference)]
                if score in BOUNDS:
                    allowed = BOUNDS[score] * (paper[0] if score == "stress" else 1.0)
                    within = abs(difference) <= allowed + 1e-9
                    near, cells = near + within, cells + 1
                    if not within and isinstance(cell, Cell):
                        line[-3] = cell.marked("*")
        line.append(f"{tables.fastest(runs):.1f}")
        if timed:
            line.append(f"{published.ablation(table, value, 'seconds')[0]:.1f}")
        body.append(line)
    return header, body, (near, cells)


@lru_cache(maxsize=8)
def _labels(data: Any, params: tuple[tuple[str, int], ...]) -> Any:
    """Return the labels of the data, or None if the data are not available."""
    try:
        return data("pbmc3k", **dict(params)).y
    except (OSError, ImportError, ValueError):
        return None


def _panel(table: str, setting: Setting) -> str:
    if table == "lambda":
        return f"lambda = {setting.lam:g}"
    return f"k = {setting.k}" if table == "k" else f"{setting.components} components"


def _caption(scores: dict[str, float]) -> str:
    return f"TW {scores['trustworthiness']:.3f}, CC {scores['concentration_correlation']:.3f}"
