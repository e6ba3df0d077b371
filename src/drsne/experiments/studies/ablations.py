"""The paper's ablations on PBMC, as published and controlled; and one of our own, of the exponent and the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drsne.datasets import recipes
from drsne.experiments import figures, published, tables
from drsne.experiments.document import DIFFERENCE, Block, Bullets, Figure, Heading, Table, Text
from drsne.experiments.methods import Method
from drsne.experiments.methods._drsne import of_the_paper
from drsne.experiments.rows import Row
from drsne.experiments.runner import of_study
from drsne.experiments.studies import PaperStudy
from drsne.experiments.studies._exponent import EXPONENT, METHOD, exponent_blocks
from drsne.experiments.study import USUAL, Asked, Study, check_names

SEEDS = (42, 43, 44)
LAMBDAS = (0.0, 0.001, 0.005, 0.01, 0.05, 0.1)
COMPONENTS = (10, 20, 40, 60, 80, 100, 120, 140)
NEIGHBORS = (10, 50, 100, 150, 200, 250, 300, 350, 400)  # with the point itself, as the authors count
MAX_ITER = 600
LAM = 0.01  # where lambda is not what varies
# How near to the paper a cell should come: a difference, for the stress a share.
BOUNDS = {"trustworthiness": 0.015, "continuity": 0.02, "concentration_correlation": 0.02, "stress": 0.1}
SHOWN = (
    "trustworthiness",
    "continuity",
    "concentration_correlation",
    "density_rank_correlation",
    "silhouette",
    "stress",
)
NEAR = ", clusters of 15 neighbours"  # ends the name of data whose clusters are not those of the table of lambda
QUICK_SAMPLES = 400


class Setting(NamedTuple):
    """One line of a table: a value of what varies, and everything else that the value brings with it."""

    components: int = 30
    k: int = 30  # with the point itself
    lam: float = LAM
    perplexity: float = 30.0
    search: str = "bracketed"
    scale: int = 10  # neighbours of trustworthiness and continuity
    concentration: int = 29  # neighbours of the concentration correlation
    against: int | None = None  # components of the data that maps are scored against; None: those that are embedded
    near_clusters: bool = False  # whether clusters are those of a graph of 15 neighbours, at 30 components too
    every_pair: bool = False  # whether the KL term is that of t-SNE, or over the density neighbours as in the code


def _tables() -> dict[tuple[str, str], dict[float, Setting]]:
    """By table and way: the setting of every value."""
    out: dict[tuple[str, str], dict[float, Setting]] = {}
    for way, search in (("as published", "doubling"), ("controlled", "bracketed")):
        out["lambda", way] = {lam: Setting(lam=lam, search=search, k=300, concentration=299) for lam in LAMBDAS}
    out["pca", "as published"] = {p: Setting(components=p, search="doubling") for p in COMPONENTS}
    out["pca", "controlled"] = {p: Setting(components=p, against=max(COMPONENTS)) for p in COMPONENTS}
    out["k", "as published"] = {
        k: Setting(k=k, search="doubling", perplexity=k, scale=k, concentration=k - 1, near_clusters=True)
        for k in NEIGHBORS
    }
    out["k", "controlled"] = {k: Setting(k=k, every_pair=True, near_clusters=True) for k in NEIGHBORS}
    return out


TABLES = _tables()
# The progressions of maps: what the authors' figures are made with (one seed, converged perplexity).
PROGRESSIONS: dict[str, dict[float, Setting]] = {
    "lambda": {lam: Setting(lam=lam) for lam in (0.0, 0.01, 0.1)},
    "pca": {p: Setting(components=p) for p in (20, 50, 100)},
    "k": {k: Setting(components=50, k=k, concentration=k - 1) for k in (10, 50, 250)},
}
TITLES = {"lambda": "lambda", "pca": "principal components", "k": "neighbours k"}


def _data_name(components: int, near_clusters: bool = False) -> str:
    return f"pbmc3k, {components} components" + (NEAR if near_clusters else "")


def pbmc_data(name: str) -> Any:
    """PBMC by the number of its principal components, "pbmc3k, 30 components", and where it matters by its clusters."""
    components = int(name.split(",")[1].split()[0])
    # The authors cluster a graph of 300 neighbours over 20 components where they vary lambda.
    lam: dict[str, Any] = {"graph_neighbors": 300, "graph_components": 20}
    graph = lam if components == 30 and not name.endswith(NEAR) else {"graph_method": "gauss"}
    return recipes.pbmc(labels="louvain", n_components=components, **graph)


def quick_data(name: str) -> Any:
    """Some of the 4 Gaussians in place of PBMC, which needs a file."""
    from dataclasses import replace

    from drsne import datasets

    data = datasets.load("gaussians50", n_samples=QUICK_SAMPLES)
    components = min(int(name.split(",")[1].split()[0]), 50)
    return replace(data, X=recipes.pca(recipes.standardise(data.X), components))


def _scores(setting: Setting) -> tuple[tuple[str, int | None], ...]:
    return (
        ("trustworthiness", setting.scale),
        ("continuity", setting.scale),
        ("concentration_correlation", setting.concentration),
        ("density_rank_correlation", 30),
        ("silhouette", None),
        ("stress", None),
    )


def part(label: str, setting: Setting, *, quick: bool = False, seeds: Sequence[int] = SEEDS) -> Study:
    """The runs of one line."""
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
        name=f"ablations, {label}",
        datasets=(_data_name(setting.components, setting.near_clusters),),
        against="" if setting.against is None else _data_name(setting.against),
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

    def parts(self, asked: Asked = USUAL) -> tuple[Study, ...]:
        """The runs of all tables and figures."""
        check_names("datasets", asked.datasets, ("pbmc3k",))
        check_names("methods", asked.methods, ("drsne_code", EXPONENT))
        chosen = asked.seeds_or(SEEDS, quick=SEEDS[:1])
        drawn_seed = SEEDS[0] if SEEDS[0] in chosen else chosen[0]
        out = []
        for (table, way), lines in TABLES.items():
            some = list(lines.values())[: 2 if asked.quick else None]
            out += [part(f"{table}, {way}", line, quick=asked.quick, seeds=chosen) for line in some]
        for table, drawn in PROGRESSIONS.items():
            out += [part(f"{table}, figure", line, quick=asked.quick, seeds=[drawn_seed]) for line in drawn.values()]
        line = part("exponent", Setting(), quick=asked.quick, seeds=chosen)
        out.append(replace(line, methods=(EXPONENT,), variants={EXPONENT: METHOD}))
        if asked.methods:
            out = [study for study in out if study.methods[0] in asked.methods]
        return tuple(sorted(out, key=lambda study: study.datasets))  # what has the same data shares

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """The progressions of maps."""
        for table in PROGRESSIONS:
            found = progression(table, parts, rows)
            file = {row["key"]: folder / "maps" / f"{row['key']}.npy" for row in found}
            if not found or not all(path.exists() for path in file.values()):
                continue
            data = parts[0].data
            panels = [
                figures.Panel(
                    np.load(file[row["key"]]),
                    _labels(data, row["dataset"]),
                    _panel(table, row),
                    _caption(row["metrics"]),
                )
                for row in found
            ]
            figure = figures.row_of_maps(panels)
            figures.save(figure, folder / f"figure_{table}.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """The tables with the paper's numbers, how many cells are near, and the figures."""
        out: list[Block] = [Heading("Ablations on PBMC", 1), Text(_INTRODUCTION)]
        near: list[str] = []
        total = np.zeros(2, dtype=int)
        for (table, way), lines in TABLES.items():
            header, body, count = _table(table, way, lines, parts, rows)
            if body:
                title = f"{TITLES[table]}, {way}".capitalize()
                caption = f"Scores over {TITLES[table]} on PBMC, {way}: mean ± standard deviation over seeds"
                out += [Heading(title), Text(_SAID[table, way]), Table(header, body, caption)]
            if count[1]:
                near.append(f"{TITLES[table]}: {_share(*count)}")
                total += count
            if table in PROGRESSIONS and way == "controlled":
                out.append(
                    Figure(
                        f"figure_{table}.png",
                        f"Maps of PBMC by {TITLES[table]}, coloured by Louvain cluster: {_DRAWN[table]}",
                    )
                )
                out += _beside_figure(table, parts, rows)
        if near:
            bounds = ", ".join(f"{tables.SHORT[name]} {bound:g}" for name, bound in BOUNDS.items())
            out[2:2] = [
                Text(
                    f"As published, beside the paper. Bounds: {bounds} (the stress: of its value); a cell beyond them "
                    "has a star."
                ),
                Bullets([*near, f"all three: {_share(*total)}"] if len(near) > 1 else near),
            ]
        of_ours = [study for study in parts if study.methods == (EXPONENT,)]
        return out + exponent_blocks(of_study(of_ours, rows), SHOWN) + tables.failures(rows)


STUDY = Ablations()

_INTRODUCTION = (
    "Made by `drsne reproduce ablations`: 2700 cells, seeds 42 to 44, mean ± standard deviation (ddof 1; in the paper "
    "ddof 0, which is smaller by a factor of .82). Seconds are those of the optimisation in the fastest run, since the "
    "first one of a process compiles; the paper's are means. "
    '"As published" repeats the settings of the authors\' scripts: 600 iterations and a search for the perplexity that '
    'doubles or halves without closing in, so that every point has another one. "Controlled" lets the search close in '
    "and changes one thing at a time."
)
_SAID = {
    ("lambda", "as published"): "30 components, 299 neighbours, nominal perplexity 30. Clusters are Louvain's on a "
    "graph of 300 neighbours over 20 components.",
    ("lambda", "controlled"): "The same with perplexity 30.",
    (
        "pca",
        "as published",
    ): "lambda .01 and 29 neighbours (the paper's caption says 50), nominal perplexity 30; "
    "scores are against the components that were embedded. Clusters are Louvain's on a graph of 15 neighbours with "
    "Gaussian weights; the authors cluster anew for every seed, we do once.",
    ("pca", "controlled"): "Only what is embedded changes: perplexity 30, and every map is scored against the same 140 "
    "components and their clusters.",
    (
        "k",
        "as published",
    ): "lambda .01, 30 components. The nominal perplexity and the neighbourhood of "
    "trustworthiness, continuity and concentration correlation are k as well, and so are the pairs of the KL term: "
    "four things change at once. The authors' clusters are not known; these are Louvain's on a graph of 15 neighbours, "
    "which come near the printed silhouettes (those of the table of lambda do not).",
    ("k", "controlled"): "Only the density neighbours change: perplexity 30, the KL term over all pairs as in t-SNE, "
    "trustworthiness and continuity over 10 neighbours, concentration correlation over 29.",
}
_DRAWN = {  # as in the authors' figures, not as in the tables
    "lambda": "30 components, 29 neighbours (the table has 299), perplexity 30, seed 42",
    "pca": "lambda .01, 29 neighbours (the paper's caption says 50), perplexity 30, seed 42",
    "k": "50 components (the paper's caption and the tables say 30), lambda .01, perplexity 30, the KL term over k "
    "neighbours, trustworthiness over 10 and concentration correlation over k - 1, seed 42",
}


def _share(near: int, cells: int) -> str:
    return f"{near} of {cells} cells within bounds ({near / cells:.0%})"


def _rows_of(label: str, setting: Setting, parts: Sequence[Study], rows: list[Row]) -> list[Row]:
    name = f"ablations, {label}"
    wanted = [
        study
        for study in parts
        if study.name == name
        and study.scores == _scores(setting)
        and study.datasets == (_data_name(setting.components, setting.near_clusters),)
        and study.variants["drsne_code"].grid == (setting.lam,)
        and study.variants["drsne_code"].settings["k"] == setting.k - 1
    ]
    return [row for study in wanted for row in of_study(study, rows) if not row["error"]]


def progression(table: str, parts: Sequence[Study], rows: list[Row]) -> list[Row]:
    """Return the rows of a figure's maps in the order of what varies, from the smallest value to the largest."""
    settings = sorted(PROGRESSIONS[table].items())
    return [row for _, setting in settings for row in _rows_of(f"{table}, figure", setting, parts, rows)]


def _beside_figure(table: str, parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """The scores of the maps in a figure and those in the authors' files, where these are known."""
    told = []
    for value, setting in PROGRESSIONS[table].items():
        known, found = published.progression(table, value), _rows_of(f"{table}, figure", setting, parts, rows)
        if known and found and all(study.data is pbmc_data for study in parts):
            told.append(f"{_panel(table, found[0])}: {_caption(found[0]['metrics'])} ({_caption(known)})")
    return [Text(f"The same settings in the authors' files, in brackets: {'; '.join(told)}.")] if told else []


def _table(
    table: str, way: str, lines: dict[float, Setting], parts: Sequence[Study], rows: list[Row]
) -> tuple[list[str], list[list[str]], tuple[int, int]]:
    compared = way == "as published" and all(study.data is pbmc_data for study in parts)
    header = [TITLES[table], "seeds"]
    for score in SHOWN:
        header += [tables.SHORT[score]]
        if compared and score != "density_rank_correlation":
            header += ["paper", DIFFERENCE]
    header.append("seconds")
    timed = compared and not math.isnan(published.ablation(table, 0.0, "seconds")[0])
    if timed:
        header.append("paper (another machine)")
    body, near, cells = [], 0, 0
    for value, setting in lines.items():
        found = _rows_of(f"{table}, {way}", setting, parts, rows)
        if not found:
            continue
        line = [f"{value:g}", str(len(found))]
        for score in SHOWN:
            mean, std = tables.mean(found, score)
            line.append(tables.number(mean, std))
            if compared and score != "density_rank_correlation":
                paper = published.ablation(table, value, score)
                difference = mean - paper[0]
                line += [tables.number(*paper), tables.signed(difference)]
                if score in BOUNDS:
                    allowed = BOUNDS[score] * (paper[0] if score == "stress" else 1.0)
                    within = abs(difference) <= allowed + 1e-9
                    near, cells = near + within, cells + 1
                    line[-3] += "" if within else " *"
        line.append(f"{tables.fastest(found):.1f}")
        if timed:
            line.append(f"{published.ablation(table, value, 'seconds')[0]:.1f}")
        body.append(line)
    return header, body, (near, cells)


@lru_cache(maxsize=8)
def _labels(data: Any, name: str) -> Any:
    try:
        return data(name).y
    except (OSError, ImportError, ValueError):
        return None


def _panel(table: str, row: Row) -> str:
    params = row["params"]
    if table == "lambda":
        return f"lambda = {params['lam']:g}"
    return f"k = {params['k'] + 1}" if table == "k" else row["dataset"].split(", ")[1]


def _caption(scores: dict[str, float]) -> str:
    return f"TW {scores['trustworthiness']:.3f}, CC {scores['concentration_correlation']:.3f}"
