"""Tables of the anomaly study: oracle choices on each data set, and the paper's own settings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from drsne.anomaly import detectors
from drsne_paper import published, tables
from drsne_paper.document import DIFFERENCE, OTHER, PAPER, Block, Bullets, Heading, Table, Text
from drsne_paper.oracle import oracle_best, oracle_single
from drsne_paper.rows import Row
from drsne_paper.studies._anomaly_runs import DATASETS
from drsne_paper.study import Study

TITLES = {"knn": "kNN", "lof": "LOF", "isolation_forest": "IF", "centroid": "Cent"}
# The methods in the paper's tables, and the number of settings in the grid of each.
PEERS = ("drsne_code", "densne", "densmap", "pacmap", "umap", "tsne")
SIZES = {"drsne": 33, "drsne_code": 33, "densne": 49, "densmap": 30, "pacmap": 30, "umap": 30, "tsne": 30}
OTHER_FEATURES = ("cifar10",)  # data sets whose features differ from the paper's
Results = dict[Any, list[dict[str, float]]]  # AUPRC of every detector, by setting and seed

_AT_THE_BEST = (
    "A difference in the tables above can come from another choice or from another score. Here nothing is chosen: the "
    "setting of each detector is the one that is the best in the paper's table. CIFAR-10 has other features."
)
_AT_THE_SINGLE = (
    "The same for the paper's oracle-IF table: all detectors are at the one setting behind the paper's table, "
    "whichever setting is the best for IF in our runs."
)


def _auprc(row: Row) -> dict[str, float]:
    return {name: row["metrics"][f"auprc_{name}"] for name in detectors()}


def results(rows: Sequence[Row], dataset: str, method: str) -> Results:
    """Return the AUPRC of every setting for which all seeds were run."""
    out: Results = defaultdict(list)
    for row in rows:
        if (row["dataset"], row["method"], row["error"]) == (dataset, method, None):
            value = row["value"]
            out[tuple(value) if isinstance(value, list) else value].append(_auprc(row))
    most = max((len(runs) for runs in out.values()), default=0)
    return {setting: runs for setting, runs in out.items() if len(runs) == most}


def of_dataset(part: Study, rows: list[Row]) -> list[Block]:
    """Return a table for each oracle choice on a data set, and a list of the settings that were run."""
    dataset = part.datasets[0]
    out: list[Block] = []
    for section, label in (("best", "best"), ("oracle_if", "oracle-IF")):
        body = []
        for method in part.methods:
            found = results(rows, part.datasets[0], method)
            if found and method != "drsne_auto":
                body.append(_oracle_line(part, method, found, section))
        if body:
            details = ["chosen", "in the paper"] if section == "oracle_if" else ["chosen"]
            header = ["method", *_detector_header(), "seeds", "settings", *details]
            title = f"{DATASETS[dataset]}: {label}"
            caption = f"{title}. AUPRC, mean ± standard deviation over seeds; the best in bold"
            out += [Heading(title, 3), Table(header, body, caption, best=list(TITLES.values()))]
    run = {
        method: results(rows, part.datasets[0], method)
        for method in part.methods
        if method not in ("high_d", "drsne_auto")
    }
    if any(run.values()):
        listed = [
            f"{part.method(method).title} ({', '.join(part.method(method).parameter or ())}) "
            + (", ".join(map(_setting, found)) if len(found) < SIZES[method] else "all of the paper's grid")
            for method, found in run.items()
            if found
        ]
        out.append(Text(f"Settings that were run: {'; '.join(listed)}."))
    return out


def _detector_header() -> list[str]:
    return [text for title in TITLES.values() for text in (title, PAPER, DIFFERENCE)]


def _oracle_line(part: Study, method: str, found: Results, section: str) -> list[str]:
    """Return a line of an oracle table: our scores, the paper's, and the difference if both have the same setting."""
    dataset = part.datasets[0]
    choice = oracle_best(found) if section == "best" else oracle_single(found)
    selected = published.anomaly_selected(dataset, method, section)
    line = [part.method(method).title]
    for name in TITLES:
        ours, paper = choice[name], published.anomaly(dataset, method, section, name)
        same = name not in selected or selected[name] == ours.setting
        line += [
            tables.number(ours.mean, ours.std if method != "high_d" else math.nan),
            tables.number(*paper),
            tables.signed(ours.mean - paper[0]) if same else OTHER,
        ]
    size = SIZES.get(method)
    line += [str(len(next(iter(found.values())))), f"{len(found)} of {size}" if size else "1"]
    chosen = {TITLES[name]: _setting(choice[name].setting) for name in TITLES}
    if section == "best":
        return [*line, _by_detector(chosen)]
    return [*line, chosen["IF"], _setting(selected.get("isolation_forest"))]


def at_the_settings(parts: Sequence[Study], rows: list[Row]) -> list[Block]:
    """Return both tables of the paper, computed at the paper's own settings, and how many cells agree."""
    out: list[Block] = []
    for section, title, text in (
        ("best", "At the paper's settings", _AT_THE_BEST),
        ("oracle_if", "At the paper's settings: oracle-IF", _AT_THE_SINGLE),
    ):
        body: list[list[str]] = []
        near: dict[str, list[bool]] = {}
        for part in parts:
            for method in (method for method in part.methods if method in PEERS):
                line, within = _line_at_the_settings(part, rows, method, section)
                if line:
                    body.append(line)
                    if part.datasets[0] not in OTHER_FEATURES:
                        near.setdefault(method, []).extend(within)
        if body:
            caption = f"{title}. AUPRC, mean ± standard deviation over seeds; the best on each data set in bold"
            table = Table(
                ["data", "method", *_detector_header()], body, caption, best=list(TITLES.values()), within="data"
            )
            out += [Heading(title), Text(text), *_agreement(near, parts[0]), table]
    return out


def _line_at_the_settings(part: Study, rows: list[Row], method: str, section: str) -> tuple[list[str], list[bool]]:
    """Return a line of the table and, for each cell, whether it is within the paper's standard deviation."""
    dataset, within = part.datasets[0], []
    found, settings = results(rows, part.datasets[0], method), published.anomaly_selected(dataset, method, section)
    if not found or not settings:
        return [], []
    line = [DATASETS[dataset].short, part.method(method).title]
    for name in TITLES:
        runs = [run[name] for run in found.get(settings[name], [])]
        paper = published.anomaly(dataset, method, section, name)
        mean = fmean(runs) if runs else math.nan
        std = stdev(runs) if len(runs) > 1 else math.nan
        line += [tables.number(mean, std), tables.number(*paper), tables.signed(mean - paper[0])]
        if runs:
            within.append(abs(mean - paper[0]) <= paper[1])
    return line, within


def _agreement(near: dict[str, list[bool]], part: Study) -> list[Block]:
    """Return how many cells are within the printed standard deviation, for the paper's method and for its peers."""
    if not near:
        return []
    peers = [one for method, some in near.items() if method != "drsne_code" for one in some]
    items = [f"{part.method(method).title}: {sum(some)} of {len(some)}" for method, some in near.items()]
    if peers:
        items.append(f"the peers together: {sum(peers)} of {len(peers)}")
    return [
        Text("Cells whose mean is within the printed standard deviation of the printed mean, without CIFAR-10:"),
        Bullets(items),
    ]


def _setting(setting: Any) -> str:
    return "/".join(f"{value:g}" for value in setting) if isinstance(setting, tuple) else ""


def _by_detector(chosen: dict[str, str]) -> str:
    """Return a text with the common setting of all detectors, or with the setting of each if they differ."""
    if len(set(chosen.values())) == 1:
        return next(iter(chosen.values()))
    return ", ".join(f"{name} {setting}" for name, setting in chosen.items())
