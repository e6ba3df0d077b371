"""The paper's main comparison: eight data sets, all methods, the constrained choice, a table and two figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from drsne_paper import checks, datasets, figures, methods, published, tables
from drsne_paper.datasets import recipes
from drsne_paper.document import Block, Figure, Heading, Text
from drsne_paper.protocol import Choice, choose
from drsne_paper.rows import Row
from drsne_paper.scoring import MAIN
from drsne_paper.studies import PaperStudy
from drsne_paper.studies._authors_runs import at_the_authors_parameters
from drsne_paper.study import EVERYTHING, Selection, Study, check_names
from drsne_paper.tables import Title

# Title and trustworthiness threshold (from the authors' code; for Clusters, Helix and MNIST, our choice).
DATASETS = {
    "digits": (Title("Digits"), 0.95),
    "fashion_mnist": (Title("Fashion-MNIST"), 0.95),
    "mnist": (Title("MNIST"), 0.88),
    "gaussians50": (Title("4 Gaussians 50-d", "the paper's MNIST"), 0.88),
    "pbmc3k": (Title("PBMC"), 0.85),
    "shuttle": (Title("Shuttle"), 0.99),
    "controlled_clusters": (Title("Controlled Clusters"), 0.95),
    "helix": (Title("Helix"), 0.95),
}
METHODS = (
    "drsne_adaptive", "drsne", "drsne_both", "densne", "drsne_code", "drsne_text",
    "tsne", "umap", "pacmap", "densmap", "pca",
)  # fmt: skip
SEEDS = (0, 1, 2)
# Of the ten values in each of the paper's grids, those that its runs selected, and some values between them.
GRIDS = {
    "tsne": (3, 10, 40, 50, 100, 150),
    "umap": (5, 10, 20, 30, 40, 75, 150),
    "pacmap": (5, 10, 20, 75, 100, 150),
    "densmap": (0.1, 0.5, 1.0, 2.5, 10.0),
    "drsne_text": (5e-4, 5e-3, 5e-2),
}
FIGURES = {
    "main": ("pbmc3k", "fashion_mnist", "controlled_clusters", "helix"),
    "appendix": ("digits", "gaussians50", "shuttle", "mnist"),
}
FIGURE_CAPTIONS = {
    "main": "Maps of PBMC, Fashion-MNIST, Controlled Clusters and Helix (few far points at the edge), and the "
    "synthetic data themselves below",
    "appendix": "Maps of Digits, the 4 Gaussians, Shuttle and MNIST (few far points at the edge)",
}
DRAWN = ("tsne", "umap", "pacmap", "densmap", "densne", "drsne_code", "drsne", "drsne_both", "drsne_adaptive")
FURTHER_SCORES = ("continuity", "local_density_rank_correlation")  # shown if the rows contain them
SOLID = ("controlled_clusters", "helix")
OTHER_SAMPLES, OTHER_THRESHOLD = 5000, 0.95  # for data sets that are not in the paper
QUICK_SAMPLES = 600
QUICK_DATASETS = ("digits", "gaussians50", "controlled_clusters", "helix")
QUICK_METHODS = ("drsne_adaptive", "drsne", "drsne_both", "densne", "drsne_code", "tsne", "drsne_text", "pca")
QUICK_GRIDS = {
    "drsne_adaptive": (0.3, 1.0, 5.0),
    "drsne": (1.0, 5.0, 14.0),
    "drsne_both": (1.0, 5.0, 14.0),
    "densne": (0.1, 1.0),
    "drsne_code": (1e-3, 1e-2),
    "drsne_text": (1e-2,),
    "tsne": (10, 30),
}


def paper_data(name: str) -> Any:
    """Return a data set as the paper's methods receive it, or 5000 standardised points if it is not in the paper."""
    if name in DATASETS:
        return recipes.paper(name)
    data = datasets.load(name)
    if data.X.shape[0] > OTHER_SAMPLES:
        data = datasets.load(name, n_samples=OTHER_SAMPLES)
    return replace(data, X=recipes.standardise(data.X))


def quick_data(name: str) -> Any:
    """Return ``QUICK_SAMPLES`` points of a data set that needs no file, standardised if the paper standardises them."""
    data = datasets.load(name, n_samples=QUICK_SAMPLES)
    return data if name in SOLID else replace(data, X=recipes.standardise(data.X))


class Main(PaperStudy):
    """What ``drsne reproduce main`` runs and writes."""

    name = "main"
    description = "the main comparison: eight data sets, all methods, table and figures"

    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return all runs, or only those of the selected data sets, methods and seeds."""
        study = Study(
            name="main",
            datasets=check_names("datasets", selection.datasets, *_known(selection.quick)[0]),
            methods=check_names("methods", selection.methods, *_known(selection.quick)[1]),
            seeds=selection.seeds_or(SEEDS, quick=SEEDS[:2]),
            scores=MAIN,
            data=quick_data if selection.quick else paper_data,
            sample=selection.sample,
            grids=QUICK_GRIDS if selection.quick else GRIDS,
        )
        return (study,)

    def displayed(self, selection: Selection) -> tuple[Study, ...]:
        """Return all runs of the study and, in addition, the selected runs."""
        (default,) = self.parts(Selection(quick=selection.quick))
        more = Selection(
            quick=selection.quick,
            datasets=[*default.datasets, *(selection.datasets or ())],
            methods=[*default.methods, *(selection.methods or ())],
            seeds=sorted({*default.seeds, *(selection.seeds or ())}),
        )
        return self.parts(more)

    def write(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write table.tex and table.csv."""
        (study,) = parts
        scores = shown_scores(study, rows)
        lines = _lines(study, choices(study, rows), scores)
        (folder / "table.tex").write_text(tables.latex(lines, scores), encoding="utf-8")
        (folder / "table.csv").write_text(tables.comma_separated(lines, scores), encoding="utf-8")

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the grids of maps."""
        (study,) = parts
        draw(study, choices(study, rows), folder)

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return the tables, the runs at the authors' parameters, and the figures."""
        (study,) = parts
        scores = shown_scores(study, rows)
        lines = _lines(study, choices(study, rows), scores)
        out = [
            Heading("The main comparison", 1),
            *_text(study),
            *tables.blocks(lines, scores),
            *(at_the_authors_parameters(study, rows, _title) if study.data is paper_data else []),
        ]
        if missing := [_title(name) for name in study.datasets if all(row["dataset"] != name for row in rows)]:
            out.append(Text(f"Not run, or the data are not available: {', '.join(missing)}."))
        out += tables.failures(rows)
        return out + [Figure(f"figure_{label}.png", caption) for label, caption in FIGURE_CAPTIONS.items()]


STUDY = Main()


def _known(quick: bool) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the data sets and methods that are run by default, and all that can be selected."""
    default = (QUICK_DATASETS, QUICK_METHODS) if quick else (tuple(DATASETS), METHODS)
    every = (QUICK_DATASETS if quick else datasets.names(), methods.names())
    return [(some, tuple(dict.fromkeys((*some, *more)))) for some, more in zip(default, every, strict=True)]


def _title(dataset: str) -> str:
    return str(DATASETS[dataset][0]) if dataset in DATASETS else dataset


def _short(dataset: str) -> str:
    return DATASETS[dataset][0].short if dataset in DATASETS else dataset


def _threshold(dataset: str) -> float:
    return DATASETS[dataset][1] if dataset in DATASETS else OTHER_THRESHOLD


def choices(study: Study, rows: list[Row]) -> dict[tuple[str, str], Choice]:
    """Return the choices by method and data set."""
    return {
        (method, dataset): choose(
            [row for row in rows if (row["method"], row["dataset"]) == (method, dataset)], _threshold(dataset)
        )
        for dataset in study.datasets
        for method in study.methods
    }


def shown_scores(study: Study, rows: list[Row]) -> list[str]:
    """Return the scores for the tables: those of the study, and any others found in the rows."""
    further = [name for name in FURTHER_SCORES if any(name in row["metrics"] for row in rows)]
    return list(dict.fromkeys([*(name for name, _ in study.scores), *further]))


def _lines(study: Study, chosen: dict[tuple[str, str], Choice], scores: Sequence[str]) -> list[tables.Line]:
    return [
        _line(study, method, dataset, choice, scores) for (method, dataset), choice in chosen.items() if choice.n_seeds
    ]


def _line(study: Study, method: str, dataset: str, choice: Choice, scores: Sequence[str]) -> tables.Line:
    known = study.method(method)
    values = [
        f"{tables.value(row['value'])}{'*' if edge else ''}" if row["value"] is not None else ""
        for row, edge in zip(choice.rows, choice.edges, strict=True)
    ]
    cells = {
        score: tables.Score(choice.mean(score), choice.std(score), *published.main(dataset, method, score))
        for score in scores
    }
    seeds = f"{len(choice.rows)} of {choice.n_seeds}"
    grid = f"{choice.n_values} of {len(known.grid)}"
    return tables.Line(_title(dataset), known.title, ", ".join(values) or "none", seeds, grid, cells)


def _text(study: Study) -> list[Block]:
    size = f" of {QUICK_SAMPLES} points of each set (a quick look)" if study.data is quick_data else ""
    return [
        Text(
            f"Made by `drsne reproduce main`{size}. For each seed, the value of a method's parameter is chosen that "
            "has the largest concentration correlation (CC, 29 neighbours) among those whose trustworthiness (TW, 10) "
            "is at or above the data set's threshold. The tables have the mean ± standard deviation (ddof 1) over "
            "seeds. rho_S is the density rank correlation (30). A star marks a value at the edge of those that were "
            'run. "Seeds" says how many seeds have a map above the threshold, and "grid" how many values were run. The '
            "paper's rho_S of the 4 Gaussians are the corrected ones (paper.json)."
        ),
        Text(f"Values that were run: {'; '.join(_values(study, method) for method in study.methods)}."),
        Text("Thresholds: " + ", ".join(f"{_title(name)} {_threshold(name):g}" for name in study.datasets) + "."),
    ]


def _values(study: Study, method: str) -> str:
    known = study.method(method)
    if known.parameter is None:
        return f"{known.title} has none"
    values = ", ".join(tables.value(one) for one in study.values(method))
    return f"{known.title} {tables.value(known.parameter)} {values}"


def draw(study: Study, chosen: dict[tuple[str, str], Choice], folder: Path) -> None:
    """Write the grids of maps for the first seed that has a choice. The maps are kept in maps.npz for the next call."""
    maps, captions = _maps(chosen, folder)
    for label, columns in FIGURES.items():
        wanted = [name for name in columns if any(place[1] == name for place in maps)]
        if not wanted:
            continue
        data = {name: one for name in wanted if (one := _available(study, name)) is not None}
        shown = [name for name in DRAWN if any((name, column) in maps for column in wanted)]
        figure = figures.grid_of_maps(
            maps,
            {name: one.y for name, one in data.items()},
            [(name, study.method(name).title) for name in shown],
            [(name, _short(name)) for name in wanted],
            solids={name: one.X for name, one in data.items() if name in SOLID},
            captions=captions,
        )
        figures.save(figure, folder / f"figure_{label}.png")


def _available(study: Study, name: str) -> Any:
    """Return the data, or None if they are not available. Maps are then drawn without colours."""
    try:
        return study.data(name)
    except (OSError, ImportError, ValueError):
        return None


def _maps(
    chosen: dict[tuple[str, str], Choice], folder: Path
) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], str]]:
    pack = folder / "maps.npz"
    kept = _kept(pack)
    maps, captions, packed = {}, {}, {}
    for place, choice in chosen.items():
        if not choice.rows:
            continue
        row = choice.rows[0]
        file = folder / "maps" / f"{row['key']}.npy"
        Y = np.load(file) if file.exists() else kept.get(row["key"])
        if Y is not None:
            maps[place] = Y.astype(np.float32)
            packed[row["key"]] = (Y / np.abs(Y).max()).astype(np.float16)
        parameter = methods.find(row["method"]).parameter
        captions[place] = "" if row["value"] is None else f"{tables.value(parameter)} {tables.value(row['value'])}"
    if packed.keys() - kept.keys():
        part = pack.with_name("maps.part.npz")
        np.savez_compressed(part, **{**kept, **packed})
        part.replace(pack)
    return maps, captions


def _kept(pack: Path) -> dict[str, Any]:
    """Return the maps of earlier choices; there are none if the file does not exist or is damaged."""
    try:
        with pack.open("rb") as file:
            return dict(np.load(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, BadZipFile) as error:
        checks.warn(f"{pack} cannot be read ({error}). It is replaced by a file of the maps that are available.")
        return {}
