"""The paper's anomaly detection: detectors on maps, oracle choices, and a choice without labels of our own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drsne.anomaly import Choice, detectors, oracle_best, oracle_single
from drsne.experiments import figures, published, tables
from drsne.experiments.document import DIFFERENCE, Block, Figure, Heading, Table, Text
from drsne.experiments.rows import Row
from drsne.experiments.studies import PaperStudy
from drsne.experiments.studies._anomaly_runs import (
    DATASETS,
    METHODS,
    QUICK_LAMBDAS,
    SEEDS,
    grids,
    labelled_data,
    quick_data,
    variants,
)
from drsne.experiments.study import USUAL, Asked, Study, check_names

TITLES = {"knn": "kNN", "lof": "LOF", "isolation_forest": "IF", "centroid": "Cent"}
FIXED_NEIGHBORS = 80
# Settings of the paper's grids.
SIZES = {"drsne": 33, "drsne_code": 33, "densne": 49, "densmap": 30, "pacmap": 30, "umap": 30, "tsne": 30}


class Anomaly(PaperStudy):
    """What ``drsne reproduce anomaly`` runs and writes."""

    name = "anomaly"
    description = "anomaly detection on maps of six data sets: oracle choices, and one without labels"
    keeps_maps = False

    def parts(self, asked: Asked = USUAL) -> tuple[Study, ...]:
        """A study for each data set, since grids differ."""
        known = ("spiral",) if asked.quick else tuple(DATASETS)
        some = ("high_d", "drsne_auto", "drsne", "tsne") if asked.quick else METHODS
        chosen = check_names("methods", asked.methods, some)
        out = []
        for dataset in check_names("datasets", asked.datasets, known):
            grid = grids(dataset)
            if asked.quick:
                grid |= {"drsne": tuple((lam, 40) for lam in QUICK_LAMBDAS), "tsne": ((30, 200),)}
            out.append(
                Study(
                    name="anomaly, quick" if asked.quick else "anomaly",
                    datasets=(dataset,),
                    methods=chosen,
                    seeds=asked.seeds_or(SEEDS, quick=SEEDS[:2]),
                    scores=(("anomaly", None),),
                    data=quick_data if asked.quick else labelled_data,
                    sample=asked.sample,
                    grids=grid,
                    variants=variants(dataset),
                )
            )
        return tuple(out)

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """The sweep over lambda."""
        curves = {part.datasets[0]: _sweep(part, rows) for part in parts if "drsne" in part.methods}
        if any(curves.values()):
            figure = figures.sweeps({DATASETS[name].split(" (")[0]: found for name, found in curves.items() if found})
            figures.save(figure, folder / "figure_lambda.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """The choice without labels beside the oracles, then a table for every data set."""
        out: list[Block] = [Heading("Anomaly detection", 1), Text(_INTRODUCTION)]
        out += _without_labels(parts, rows)
        out += [Heading("With labels: oracle choices"), Text(_ORACLES)]
        for part in parts:
            out += _of_dataset(part, rows)
        out.append(Figure("figure_lambda.png", _SWEEP))
        return out + tables.failures(rows)


STUDY = Anomaly()

_INTRODUCTION = (
    "Made by `drsne reproduce anomaly`. Every set is standardised; maps know nothing of the labels; four detectors "
    "score the points of a map: the sum of distances to 50 neighbours (kNN), the local outlier factor (LOF, 20), an "
    "isolation forest (IF, 500 trees), the distance to the centroid (Cent). Numbers are areas under the "
    "precision-recall curve (AUPRC), mean ± standard deviation (ddof 1) over seeds; HIGH-D is the data without a "
    "map."
)
_ORACLES = (
    '"Best": for each detector the setting with the largest mean AUPRC. "Oracle-IF": one setting, the best for IF, '
    "with all detectors. Both need the labels that they are scored by, so nobody can have them in practice. The "
    "grid of our DR-SNE is the paper's whole one (11 lambda x 3 k, lambda as printed: times n in our objective). "
    "The others were run at the settings that the paper's tables rest on; \"settings\" says how many of the paper's. "
    "Where the paper's table differs from the authors' own result files, the number is that of the files."
)
_SWEEP = "AUPRC of our DR-SNE over lambda as printed: k = 80 (lines) and the best k for every lambda (dashed)"


def _labelled(row: Row) -> dict[str, float]:
    return {name: row["metrics"][f"auprc_{name}"] for name in detectors()}


def results(part: Study, rows: list[Row], method: str) -> dict[Any, list[dict[str, float]]]:
    """AUPRC of every setting that has all seeds that any has."""
    found: dict[Any, list[dict[str, float]]] = defaultdict(list)
    for row in rows:
        if (row["dataset"], row["method"], row["error"]) == (part.datasets[0], method, None):
            value = row["value"]
            found[tuple(value) if isinstance(value, list) else value].append(_labelled(row))
    most = max((len(runs) for runs in found.values()), default=0)
    return {setting: runs for setting, runs in found.items() if len(runs) == most}


def _without_labels(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """Means over detectors: our choice without labels beside the oracles and the data themselves."""
    header = [
        "data", "anomalies", "no labels (ours)", "lambda chosen", "no labels, both", "HIGH-D", "paper's HIGH-D",
        "paper's best DR-SNE", "best of ours", "oracle-IF of ours",
    ]  # fmt: skip
    body = []
    for part in parts:
        dataset = part.datasets[0]
        free, high = results(part, rows, "drsne_auto"), results(part, rows, "high_d")
        if not free or "input" not in free:
            continue
        weights = [
            f"{row['found']['density_weight']:g}"
            for row in rows
            if (row["dataset"], row["method"], row["value"]) == (dataset, "drsne_auto", "input") and not row["error"]
        ]
        ours = results(part, rows, "drsne")
        count = published.everything()["anomaly_counts"].get(dataset)
        body.append(
            [
                DATASETS[dataset],
                "" if count is None else f"{count[0] / count[1]:.3f}",
                tables.number(*_overall(free["input"])),
                ", ".join(weights),
                tables.number(*_overall(free["both"])) if "both" in free else "-",
                tables.number(_overall(high[None])[0]) if high else "-",
                tables.number(_paper_mean(dataset, "high_d")),
                tables.number(_paper_mean(dataset, "drsne")),
                tables.number(_choice_mean(oracle_best(ours))) if ours else "-",
                tables.number(_choice_mean(oracle_single(ours))) if ours else "-",
            ]
        )
    if not body:
        return []
    text = (
        'The mean AUPRC over the four detectors. "No labels": `DRSNE(density_weight="auto")`, which takes the '
        "largest concentration correlation among maps that lose at most .01 of trustworthiness against lambda = 0; "
        'labels play no part, and k is the default. "Both": the same with `neighborhoods="both"`. "Anomalies" is '
        "the share that chance would score, as the paper's data have it."
    )
    return [Heading("Without labels"), Text(text), Table(header, body)]


def _overall(runs: list[dict[str, float]]) -> tuple[float, float]:
    means = [float(np.mean(list(run.values()))) for run in runs]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else math.nan


def _paper_mean(dataset: str, method: str) -> float:
    return float(np.mean([published.anomaly(dataset, method, "best", name)[0] for name in detectors()]))


def _choice_mean(choices: dict[str, Choice]) -> float:
    return float(np.mean([choice.mean for choice in choices.values()]))


def _of_dataset(part: Study, rows: list[Row]) -> list[Block]:
    dataset = part.datasets[0]
    out: list[Block] = []
    for section, label in (("best", "best"), ("oracle_if", "oracle-IF")):
        header = ["method", "settings"] + (["setting"] if section == "oracle_if" else [])
        for name in TITLES:
            header += [TITLES[name], "paper", DIFFERENCE]
        body = []
        for method in part.methods:
            found = results(part, rows, method)
            if not found or method == "drsne_auto":
                continue
            choice = oracle_best(found) if section == "best" else oracle_single(found)
            size = SIZES.get(method)
            line = [part.method(method).title, f"{len(found)} of {size}" if size else "1"]
            if section == "oracle_if":
                line.append(_setting(part, method, choice["isolation_forest"].setting))
            for name in TITLES:
                paper = published.anomaly(dataset, method, section, name)
                ours = choice[name]
                line += [
                    tables.number(ours.mean, ours.std if method != "high_d" else math.nan),
                    tables.number(*paper),
                    tables.signed(ours.mean - paper[0]),
                ]
            body.append(line)
        if body:
            out += [Heading(f"{DATASETS[dataset]}: {label}", 3), Table(header, body)]
    return out


def _setting(part: Study, method: str, setting: Any) -> str:
    parameter = part.method(method).parameter if method != "high_d" else None
    if not isinstance(parameter, tuple):
        return ""
    return ", ".join(f"{name} {value:g}" for name, value in zip(parameter, setting, strict=True))


def _sweep(part: Study, rows: list[Row]) -> dict[str, figures.Sweep]:
    """By detector: AUPRC over lambda with k fixed, and with the best k."""
    found = results(part, rows, "drsne")
    if not found:
        return {}
    lambdas = sorted({lam for lam, _ in found})
    fixed = FIXED_NEIGHBORS if any(k == FIXED_NEIGHBORS for _, k in found) else next(iter(found))[1]
    out = {}
    for name in detectors():
        at = {setting: [run[name] for run in runs] for setting, runs in found.items()}
        chosen = [at[lam, fixed] for lam in lambdas]
        best = [max(np.mean(values) for (other, _), values in at.items() if other == lam) for lam in lambdas]
        out[TITLES[name]] = figures.Sweep(
            np.array(lambdas),
            np.array([np.mean(values) for values in chosen]),
            np.array([np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in chosen]),
            np.array(best),
        )
    return out
