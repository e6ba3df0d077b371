"""The trade-off between trustworthiness and concentration over lambda, for the paper's method and for ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drsne_paper import datasets as sets
from drsne_paper import figures, published, tables
from drsne_paper.datasets import recipes
from drsne_paper.document import AUTHORS, DIFFERENCE, Block, Figure, Heading, Table, Text
from drsne_paper.methods import Method
from drsne_paper.methods._drsne import FIXED_WEIGHTS, STEPS, along_a_path, of_the_paper
from drsne_paper.rows import Row
from drsne_paper.studies import PaperStudy
from drsne_paper.study import EVERYTHING, Selection, Study, check_names

DATASETS = {
    "pbmc3k": "PBMC",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "digits": "Digits",
    "gaussians50": "4 Gaussians 50-d",
}
SEEDS = (42, 43, 44, 45, 46)
LAMBDAS = (0.0, 0.001, 0.005, 0.01, 0.05, 0.1)
NEIGHBORS = 299
SAMPLES = 5000
SCORES = (("trustworthiness", 10), ("concentration_correlation", NEIGHBORS))
METHODS = ("drsne_code", "drsne", "drsne_wide")
QUICK_SAMPLES, QUICK_WEIGHTS = 400, (0.0, 2.0, 9.0)


def drawn_data(name: str, seed: int) -> Any:
    """Return the data of a seed.

    Each seed uses a different sample if there are enough points. PBMC has 30 components.
    """
    if name == "pbmc3k":
        return recipes.pbmc(n_components=30)
    data = sets.load(name) if name == "digits" else sets.load(name, n_samples=SAMPLES, random_state=seed)
    return replace(data, X=recipes.standardise(data.X))


def quick_data(name: str, seed: int) -> Any:
    """Return a few points of a data set that needs no file."""
    data = sets.load(name, n_samples=QUICK_SAMPLES, random_state=seed)
    return replace(data, X=recipes.standardise(data.X))


def variants(quick: bool) -> dict[str, Method]:
    """Return the paper's code with the settings of its figure, and our path with our neighbours and the paper's."""
    numbers: dict[str, Any] = {"max_iter": 100 if quick else 600, "perplexity_search": "doubling"}
    weights = QUICK_WEIGHTS if quick else FIXED_WEIGHTS
    return {
        "drsne_code": Method(
            title="DR-SNE (the paper's code, as published)",
            parameter="lam",
            grid=LAMBDAS[:3] if quick else LAMBDAS,
            maps=of_the_paper("code", k=NEIGHBORS, **numbers),
            settings={"variant": "code", "k": NEIGHBORS, **numbers},
        ),
        "drsne": Method(
            title="DR-SNE (ours, fixed kernel, k = 30)",
            parameter="density_weight",
            grid=weights,
            maps=along_a_path(fixed="input"),
            settings=STEPS,
            together=True,
        ),
        "drsne_wide": Method(
            title=f"DR-SNE (ours, fixed kernel, k = {NEIGHBORS})",
            parameter="density_weight",
            grid=weights,
            maps=along_a_path(fixed="input", density_neighbors=NEIGHBORS),
            settings={"density_neighbors": NEIGHBORS, **STEPS},
            together=True,
        ),
    }


class TradeOff(PaperStudy):
    """What ``drsne reproduce tradeoff`` runs and writes."""

    name = "tradeoff"
    description = "trustworthiness against concentration over lambda on five data sets, as published and ours"
    keeps_maps = False

    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return one study, with another sample of the data for every seed."""
        known = ("digits", "gaussians50") if selection.quick else tuple(DATASETS)
        study = Study(
            name="tradeoff",
            datasets=check_names("datasets", selection.datasets, known),
            methods=check_names("methods", selection.methods, METHODS),
            seeds=selection.seeds_or(SEEDS, quick=SEEDS[:2]),
            scores=SCORES,
            data=quick_data if selection.quick else drawn_data,
            sample=selection.sample,
            resampled=True,
            variants=variants(selection.quick),
        )
        return (study,)

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the figure, with a panel for each method and a curve for each data set."""
        (study,) = parts
        panels = {study.method(method).title: _curves(study, rows, method) for method in study.methods}
        panels = {title: curves for title, curves in panels.items() if curves}
        if panels:
            figure = figures.trade_offs(panels)
            figures.save(figure, folder / "figure_tradeoff.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return the means that the curves show, next to the means in the authors' files."""
        (study,) = parts
        out: list[Block] = [
            Heading("The trade-off", 1),
            Text(_INTRODUCTION),
            Figure("figure_tradeoff.png", _CAPTION),
        ]
        compared = study.data is drawn_data
        for method in study.methods:
            body = []
            for dataset in study.datasets:
                for value in study.values(method):
                    runs = _rows_of(rows, dataset, method, value)
                    if runs:
                        body.append([DATASETS[dataset], f"{value:g}", str(len(runs))])
                        paper = published.tradeoff(dataset, value)
                        for place, (score, _) in enumerate(SCORES):
                            mean, std = tables.mean(runs, score)
                            body[-1].append(tables.number(mean, std))
                            if method == "drsne_code" and compared:
                                body[-1] += [tables.number(paper[place]), tables.signed(mean - paper[place])]
            if not body:
                continue
            header = ["data", "lambda", "seeds"]
            for score, _ in SCORES:
                header.append(tables.SHORT[score])
                if method == "drsne_code" and compared:
                    header += [AUTHORS, DIFFERENCE]
            title = study.method(method).title
            caption = f"{title}: trustworthiness and concentration correlation over lambda, mean ± standard deviation"
            out += [Heading(title), Table(header, body, caption)]
        return out + tables.failures(rows)


STUDY = TradeOff()

_INTRODUCTION = (
    "Made by `drsne reproduce tradeoff`: trustworthiness (TW, 10 neighbours) against the concentration correlation "
    "over 299 neighbours (CC), seeds 42 to 46, another sample of the data for every seed, mean ± standard deviation "
    "(ddof 1). As published: 600 iterations, a perplexity search that does not converge, lambda as printed. Ours: a "
    "path of the default schedule with the lambda of the written objective. With k = 30, its default, it does not "
    'optimise the correlation over 299 neighbours. "Authors" are the means in their result files, which their figure '
    "shows."
)
_CAPTION = (
    "Trustworthiness against concentration over lambda; points are means over seeds, bands one standard deviation"
)


def _rows_of(rows: list[Row], dataset: str, method: str, value: float) -> list[Row]:
    wanted = (dataset, method, value, None)
    return [row for row in rows if (row["dataset"], row["method"], row["value"], row["error"]) == wanted]


def _curves(study: Study, rows: list[Row], method: str) -> dict[str, figures.TradeOff]:
    out = {}
    for dataset in study.datasets:
        groups = [some for value in study.values(method) if (some := _rows_of(rows, dataset, method, value))]
        if groups:
            trust = np.array([tables.mean(some, "trustworthiness") for some in groups])
            conc = np.array([tables.mean(some, "concentration_correlation") for some in groups])
            out[DATASETS[dataset]] = figures.TradeOff(conc[:, 0], trust[:, 0], np.nan_to_num(trust[:, 1]))
    return out
