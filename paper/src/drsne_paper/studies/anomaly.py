"""The paper's anomaly study: detectors on maps, oracle choices, and our own choice without labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from drsne.anomaly import detectors
from drsne_paper import figures, published, tables
from drsne_paper.document import DIFFERENCE, OTHER, Block, Figure, Heading, Table, Text
from drsne_paper.oracle import Choice, oracle_best, oracle_single
from drsne_paper.rows import Row
from drsne_paper.studies import PaperStudy
from drsne_paper.studies._anomaly_runs import (
    DATASETS,
    METHODS,
    QUICK_LAMBDAS,
    SEEDS,
    grids,
    labelled_data,
    quick_data,
    variants,
)
from drsne_paper.studies._anomaly_tables import TITLES, at_the_settings, of_dataset, results
from drsne_paper.study import EVERYTHING, Selection, Study, check_names

FIXED_NEIGHBORS = 80


class Anomaly(PaperStudy):
    """What ``drsne reproduce anomaly`` runs and writes."""

    name = "anomaly"
    description = "anomaly detection on maps of six data sets: oracle choices, and one without labels"
    keeps_maps = False

    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return a study for each data set, because the grids differ."""
        known = ("spiral",) if selection.quick else tuple(DATASETS)
        some = ("high_d", "drsne_auto", "drsne", "tsne") if selection.quick else METHODS
        chosen = check_names("methods", selection.methods, some)
        out = []
        for dataset in check_names("datasets", selection.datasets, known):
            grid = grids(dataset)
            if selection.quick:
                grid |= {"drsne": tuple((lam, 40) for lam in QUICK_LAMBDAS), "tsne": ((30, 200),)}
            out.append(
                Study(
                    name="anomaly",
                    datasets=(dataset,),
                    methods=chosen,
                    seeds=selection.seeds_or(SEEDS, quick=SEEDS[:2]),
                    scores=(("anomaly", None),),
                    data=quick_data if selection.quick else labelled_data,
                    sample=selection.sample,
                    grids=grid,
                    variants=variants(dataset),
                )
            )
        return tuple(out)

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the figure of the sweep over lambda."""
        curves = {part.datasets[0]: _sweep(part, rows) for part in parts if "drsne" in part.methods}
        if any(curves.values()):
            shown = {DATASETS[name].short: one for name, one in curves.items() if one}
            figure = figures.sweeps(shown, _SWEEP_LABELS)
            figures.save(figure, folder / "figure_lambda.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return a table of the choice without labels next to the oracle choices, then a table for every data set."""
        out: list[Block] = [Heading("Anomaly detection", 1), Text(_INTRODUCTION)]
        out += _without_labels(parts, rows)
        grids = _QUICK_GRIDS if any(part.sample for part in parts) else _GRIDS
        out += [Heading("With labels: oracle choices"), Text(f"{_ORACLES} {grids}")]
        for part in parts:
            out += of_dataset(part, rows)
        out += at_the_settings(parts, rows)
        out += _over_lambda(parts, rows)
        return out + tables.failures(rows)


STUDY = Anomaly()

_INTRODUCTION = (
    "Made by `drsne reproduce anomaly`. Every data set is standardised, and maps are made without the labels. Four "
    "detectors score the points of a map: the sum of distances to 50 neighbours (kNN), the local outlier factor (LOF, "
    "20), an isolation forest (IF, 500 trees) and the distance to the centroid (Cent). Numbers are areas under the "
    "precision-recall curve (AUPRC), mean ± standard deviation (ddof 1) over seeds. HIGH-D is the data without a map."
)
_ORACLES = (
    '"Best": for each detector, the setting with the largest mean AUPRC. "Oracle-IF": one setting for all detectors, '
    "the best for IF. Both choices use the labels that the result is scored by, so they are not possible in practice. "
    f'A difference is printed only if both numbers are of the same setting. Otherwise "{OTHER}" is in its place: the '
    "setting chosen here is not the one behind the paper's number. The tables at the paper's own settings are below."
)
_QUICK_GRIDS = "Only a few settings of the paper's grids were run, on few points."
_GRIDS = (
    "Our DR-SNE was run on the paper's whole grid (11 lambda x 3 k, lambda as printed, which is multiplied by n in our "
    "objective). The others were run at the settings behind the paper's tables (on the Spiral, which has no table, at "
    "common ones), listed below each pair of tables. If the paper's table differs from the authors' own result files, "
    "the number is that of the files."
)


_SWEEP_LABELS = ("ours, k fixed", "ours, best k", "the paper's code")


def _without_labels(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """Return means over detectors for our choice without labels, the oracle choices, and the data themselves."""
    header = [
        "data", "no labels (ours)", "paper's best DR-SNE", DIFFERENCE, "HIGH-D", DIFFERENCE, "paper's HIGH-D",
        "no labels, both", "best of ours", "oracle-IF of ours", "lambda chosen", "seeds", "anomalies", "in the paper",
    ]  # fmt: skip
    body = []
    for part in parts:
        dataset = part.datasets[0]
        of_set = [row for row in rows if row["dataset"] == dataset]
        if not of_set:
            continue
        free, high = results(rows, part.datasets[0], "drsne_auto"), results(rows, part.datasets[0], "high_d")
        ours, count = results(rows, part.datasets[0], "drsne"), published.everything()["anomaly_counts"].get(dataset)
        runs = [row for row in of_set if (row["method"], row["value"], row["error"]) == ("drsne_auto", "input", None)]
        chosen, paper = _overall(free.get("input", [])), _paper_mean(dataset, "drsne")
        plain = _overall(high.get(None, []))[0]
        body.append(
            [
                str(DATASETS[dataset]),
                tables.number(*chosen),
                tables.number(paper),
                tables.signed(chosen[0] - paper),
                tables.number(plain),
                tables.signed(chosen[0] - plain),
                tables.number(_paper_mean(dataset, "high_d")),
                tables.number(*_overall(free.get("both", []))),
                tables.number(_choice_mean(oracle_best(ours))) if ours else "-",
                tables.number(_choice_mean(oracle_single(ours))) if ours else "-",
                ", ".join(f"{row['details']['density_weight']:g}" for row in runs),
                str(len(runs)),
                str(next((row["anomalies"] for row in of_set if "anomalies" in row), "-")),
                "-" if count is None else f"{count[0]} of {count[1]}",
            ]
        )
    if not body:
        return []
    text = (
        'The mean AUPRC over the four detectors. "No labels" chooses the map of our path (fixed kernel, default k) '
        "with the largest concentration correlation among maps that lose at most .01 of trustworthiness against "
        "lambda = 0. It does not use the labels. The differences are those of this choice from the paper's best, which "
        "used the labels, and from the data without a map (HIGH-D). The paper's best are those of the authors' result "
        'files if its table differs. "Both": the same with `neighborhoods="both"`. The score of chance is the share '
        "of anomalies. If only lambda = 0 keeps the trustworthiness, the map at 0 is chosen."
    )
    caption = "Mean AUPRC over the four detectors, without labels and with them"
    return [Heading("Without labels"), Text(text), Table(header, body, caption)]


def _overall(runs: list[dict[str, float]]) -> tuple[float, float]:
    if not runs:
        return math.nan, math.nan
    means = [float(np.mean(list(run.values()))) for run in runs]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else math.nan


def _paper_mean(dataset: str, method: str) -> float:
    return fmean(published.anomaly(dataset, method, "best", name)[0] for name in detectors())


def _choice_mean(choices: dict[str, Choice]) -> float:
    return float(np.mean([choice.mean for choice in choices.values()]))


def _over_lambda(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """Return the figure of the sweep, and a table of the gain from the best lambda, next to the authors' gain."""
    body, fixed = [], FIXED_NEIGHBORS
    for part in parts:
        dataset = part.datasets[0]
        found = results(rows, part.datasets[0], "drsne")
        none = {setting: runs for setting, runs in found.items() if setting[0] == 0}
        some = {setting: runs for setting, runs in found.items() if setting[0] > 0}
        if none and some:
            fixed = _fixed(found)
            one, best = (oracle_best(runs)["isolation_forest"] for runs in (none, some))
            line = [DATASETS[dataset].short, tables.number(one.mean, one.std), tables.number(best.mean, best.std)]
            known = {} if part.sample else published.everything()["anomaly_sweep"]  # the authors' sweep uses all points
            theirs = known.get(dataset, [math.nan, math.nan, math.nan])
            line += [f"{best.setting[0]:g}", tables.number(theirs[0]), tables.number(theirs[1])]
            body.append([*line, "-" if math.isnan(theirs[2]) else f"{theirs[2]:g}"])
    if not body:
        return []
    caption = (
        f"AUPRC over lambda as printed. Lines and bands: this package's DR-SNE with k = {fixed}, mean and one standard "
        "deviation over seeds. Dashed: this package's DR-SNE with the best k for every lambda. Diamonds: the paper's "
        "code at the settings of the paper's tables, with one standard deviation. It was not run on the whole grid."
    )
    text = (
        "AUPRC of the isolation forest without a density term and at the best lambda and k: ours, and the paper's "
        "method in the authors' files (for CIFAR-10 with other features). The best of many settings is also better by "
        "chance. Without a density term ours does not depend on k, except for the order of neighbours at equal "
        "distances, so that the best of three k is nearly one setting. Theirs depends on k, because their KL term is "
        "over k pairs."
    )
    header = ["data", "ours, lambda = 0", "ours, best", "lambda", "authors, lambda = 0", "authors, best", "lambda"]
    title = "AUPRC of the isolation forest without a density term and at the best lambda and k"
    return [Heading("Over lambda"), Text(text), Table(header, body, title), Figure("figure_lambda.png", caption)]


def _fixed(found: Any) -> int:
    """Return the value of k for the lines of the sweep."""
    return FIXED_NEIGHBORS if any(k == FIXED_NEIGHBORS for _, k in found) else int(next(iter(found))[1])


def _sweep(part: Study, rows: list[Row]) -> dict[str, figures.Sweep]:
    """Return the AUPRC over lambda for each detector: ours with a fixed k and with the best k, and the paper's code."""
    found, theirs = results(rows, part.datasets[0], "drsne"), results(rows, part.datasets[0], "drsne_code")
    lambdas = sorted({lam for lam, _ in found})
    if not any(lam > 0 for lam in lambdas):
        return {}
    fixed, out = _fixed(found), {}
    for name in detectors():
        at = {setting: [run[name] for run in runs] for setting, runs in found.items()}
        chosen = [at.get((lam, fixed), [math.nan]) for lam in lambdas]
        best = [max(np.mean(values) for (other, _), values in at.items() if other == lam) for lam in lambdas]
        out[TITLES[name]] = figures.Sweep(
            np.array(lambdas),
            np.array([np.mean(values) for values in chosen]),
            np.array([np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in chosen]),
            np.array(best),
            [(lam, *tables.spread([run[name] for run in runs])) for (lam, _), runs in theirs.items()],
        )
    return out
