"""The paper's anomaly detection: detectors on maps, oracle choices, and a choice without labels of our own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
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
# Methods of the paper's tables, and how many settings its grids have.
PEERS = ("drsne_code", "densne", "densmap", "pacmap", "umap", "tsne")
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
            figure = figures.sweeps({_short(name): found for name, found in curves.items() if found})
            figures.save(figure, folder / "figure_lambda.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """The choice without labels beside the oracles, then a table for every data set."""
        out: list[Block] = [Heading("Anomaly detection", 1), Text(_INTRODUCTION)]
        out += _without_labels(parts, rows)
        grids = _QUICK_GRIDS if any(part.sample for part in parts) else _GRIDS
        out += [Heading("With labels: oracle choices"), Text(f"{_ORACLES} {grids}")]
        for part in parts:
            out += _of_dataset(part, rows)
        out += _at_the_settings(parts, rows)
        out += _over_lambda(parts, rows)
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
    "with all detectors. Both need the labels that they are scored by, so nobody can have them in practice."
)
_QUICK_GRIDS = "Of the paper's grids only a few settings were run, on few points."
_GRIDS = (
    "The grid of our DR-SNE is the paper's whole one (11 lambda x 3 k, lambda as printed: times n in our objective). "
    "The others were run at the settings that the paper's tables rest on (on the Spiral, which has none, at usual "
    "ones), listed below each pair of tables. "
    "Where the paper's table differs from the authors' own result files, the number is that of the files."
)


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
        "data", "anomalies", "paper's", "no labels (ours)", "seeds", "lambda chosen", "paper's best DR-SNE", DIFFERENCE,
        "HIGH-D", DIFFERENCE, "paper's HIGH-D", "no labels, both", "best of ours", "oracle-IF of ours",
    ]  # fmt: skip
    body = []
    for part in parts:
        dataset = part.datasets[0]
        of_set = [row for row in rows if row["dataset"] == dataset]
        if not of_set:
            continue
        free, high = results(part, rows, "drsne_auto"), results(part, rows, "high_d")
        ours, count = results(part, rows, "drsne"), published.everything()["anomaly_counts"].get(dataset)
        runs = [row for row in of_set if (row["method"], row["value"], row["error"]) == ("drsne_auto", "input", None)]
        chosen, paper = _overall(free.get("input", [])), _paper_mean(dataset, "drsne")
        plain = _overall(high.get(None, []))[0]
        body.append(
            [
                DATASETS[dataset],
                str(next((row["anomalies"] for row in of_set if "anomalies" in row), "-")),
                "-" if count is None else f"{count[0]} of {count[1]}",
                tables.number(*chosen),
                str(len(runs)),
                ", ".join(f"{row['found']['density_weight']:g}" for row in runs),
                tables.number(paper),
                tables.signed(chosen[0] - paper),
                tables.number(plain),
                tables.signed(chosen[0] - plain),
                tables.number(_paper_mean(dataset, "high_d")),
                tables.number(*_overall(free.get("both", []))),
                tables.number(_choice_mean(oracle_best(ours))) if ours else "-",
                tables.number(_choice_mean(oracle_single(ours))) if ours else "-",
            ]
        )
    if not body:
        return []
    text = (
        'The mean AUPRC over the four detectors. "No labels": `DRSNE(density_weight="auto")`, which takes the '
        "largest concentration correlation among maps that lose at most .01 of trustworthiness against lambda = 0; "
        "labels play no part, and k is the default; the differences are of this choice from the paper's best, which "
        "saw the labels, and from the data without a map (HIGH-D). The paper's best are of the authors' result files "
        'where its table differs. "Both": the same with `neighborhoods="both"`. Chance scores the share of anomalies. '
        "Where no lambda but 0 keeps the trustworthiness, the map at 0 is taken here (the estimator refuses)."
    )
    return [Heading("Without labels"), Text(text), Table(header, body)]


def _overall(runs: list[dict[str, float]]) -> tuple[float, float]:
    if not runs:
        return math.nan, math.nan
    means = [float(np.mean(list(run.values()))) for run in runs]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else math.nan


def _paper_mean(dataset: str, method: str) -> float:
    return fmean(published.anomaly(dataset, method, "best", name)[0] for name in detectors())


def _choice_mean(choices: dict[str, Choice]) -> float:
    return float(np.mean([choice.mean for choice in choices.values()]))


def _of_dataset(part: Study, rows: list[Row]) -> list[Block]:
    dataset = part.datasets[0]
    out: list[Block] = []
    for section, label in (("best", "best"), ("oracle_if", "oracle-IF")):
        header = ["method", "seeds", "settings", "chosen"]
        for name in TITLES:
            header += [TITLES[name], "paper", DIFFERENCE]
        body = []
        for method in part.methods:
            found = results(part, rows, method)
            if not found or method == "drsne_auto":
                continue
            choice = oracle_best(found) if section == "best" else oracle_single(found)
            size = SIZES.get(method)
            seeds = len(next(iter(found.values())))
            line = [part.method(method).title, str(seeds), f"{len(found)} of {size}" if size else "1"]
            chosen = {TITLES[name]: _setting(choice[name].setting) for name in TITLES}
            line.append(chosen["IF"] if section == "oracle_if" else _by_detector(chosen))
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
    run = {method: results(part, rows, method) for method in part.methods if method not in ("high_d", "drsne_auto")}
    if any(run.values()):
        listed = [
            f"{part.method(method).title} ({', '.join(part.method(method).parameter or ())}) "
            + (", ".join(map(_setting, found)) if len(found) < SIZES[method] else "all of the paper's grid")
            for method, found in run.items()
            if found
        ]
        out.append(Text(f"Settings that were run: {'; '.join(listed)}."))
    return out


def _at_the_settings(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """For each detector the setting that the paper's table has as the best, with nothing chosen by us."""
    header = ["data", "method"]
    for name in TITLES:
        header += [TITLES[name], "paper", DIFFERENCE]
    body = []
    for part in parts:
        dataset = part.datasets[0]
        for method in (method for method in part.methods if method in PEERS):
            found, settings = results(part, rows, method), published.anomaly_selected(dataset, method)
            if not found or not settings:
                continue
            line = [_short(dataset), part.method(method).title]
            for name in TITLES:
                runs = [run[name] for run in found.get(settings[name], [])]
                paper = published.anomaly(dataset, method, "best", name)
                mean = fmean(runs) if runs else math.nan
                std = stdev(runs) if len(runs) > 1 else math.nan
                line += [tables.number(mean, std), tables.number(*paper), tables.signed(mean - paper[0])]
            body.append(line)
    if not body:
        return []
    text = (
        "A difference above may come from another choice or from another score. Here nothing is chosen: for each "
        "detector the setting is the one that the paper's table has as the best. CIFAR-10 are other features."
    )
    return [Heading("At the paper's settings"), Text(text), Table(header, body)]


def _setting(setting: Any) -> str:
    return "/".join(f"{value:g}" for value in setting) if isinstance(setting, tuple) else ""


def _by_detector(chosen: dict[str, str]) -> str:
    """One setting where all detectors have the same, else that of each."""
    if len(set(chosen.values())) == 1:
        return next(iter(chosen.values()))
    return ", ".join(f"{name} {setting}" for name, setting in chosen.items())


def _short(dataset: str) -> str:
    return DATASETS[dataset].split(" (")[0]


def _over_lambda(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """The figure of the sweep, and what the best lambda adds for the isolation forest, beside the authors' files."""
    body, fixed = [], FIXED_NEIGHBORS
    for part in parts:
        dataset = part.datasets[0]
        found = results(part, rows, "drsne")
        none = {setting: runs for setting, runs in found.items() if setting[0] == 0}
        some = {setting: runs for setting, runs in found.items() if setting[0] > 0}
        if none and some:
            fixed = _fixed(found)
            one, best = (oracle_best(runs)["isolation_forest"] for runs in (none, some))
            line = [_short(dataset), tables.number(one.mean, one.std), tables.number(best.mean, best.std)]
            known = {} if part.sample else published.everything()["anomaly_sweep"]  # of all points
            theirs = known.get(dataset, [math.nan, math.nan, math.nan])
            line += [f"{best.setting[0]:g}", tables.number(theirs[0]), tables.number(theirs[1])]
            body.append([*line, "-" if math.isnan(theirs[2]) else f"{theirs[2]:g}"])
    if not body:
        return []
    caption = (
        f"AUPRC of our DR-SNE over lambda as printed: k = {fixed} (lines, with bands of one standard deviation "
        "over seeds) and the best k for every lambda (dashed)"
    )
    text = (
        "AUPRC of the isolation forest without a density term and at the best lambda and k: ours, and the paper's "
        "method in the authors' files (of CIFAR-10 with other features). The best of many settings is better by chance "
        "alone, too. Without a density term ours does not depend on k, but for the order of neighbours that are "
        "equally far, so that the best of three k is nearly one setting; theirs does, since their KL term is over k "
        "pairs."
    )
    header = ["data", "ours, lambda = 0", "ours, best", "lambda", "authors, lambda = 0", "authors, best", "lambda"]
    return [Heading("Over lambda"), Text(text), Table(header, body), Figure("figure_lambda.png", caption)]


def _fixed(found: Any) -> int:
    """The k of the lines in the sweep."""
    return FIXED_NEIGHBORS if any(k == FIXED_NEIGHBORS for _, k in found) else int(next(iter(found))[1])


def _sweep(part: Study, rows: list[Row]) -> dict[str, figures.Sweep]:
    """By detector: AUPRC over lambda with k fixed, and with the best k."""
    found = results(part, rows, "drsne")
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
        )
    return out
