"""Print the tables of docs/choosing.md from the rows and reports of three studies. Nothing is fitted.

    python benchmarks/choosing.py

The default is that of the quality study (results/quality.jsonl), the other weights and the contrast are those of the
study of the contrast (results/contrast.jsonl): means over the seeds 3 to 5 and the twelve data sets of the README. The
neighbourhoods are those of the study that chose the default (results/kernel.md) with the seeds 0 to 2 of the eight
data sets of the paper, 1000 iterations and a contrast of at most 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import contrast
import numpy as np
from data import EXTENDED, MEAN_OVER
from quality_methods import OURS, PLAIN, means, rows, studies
from runner import FIVE, RESULTS, table

from drsne_paper.runner import rows_of_study

MODES = {'`"both"`': "**both, 1**", '`"input"`': "input, 1", '`"embedding"`': "embedding, 1"}
LABELS = ("trustworthiness", "continuity", "CC", "rho30", "rho5")
WORST = ("worst trustworthiness", "worst continuity")
Scores = Mapping[str, dict[str, float]]  # of the data sets


def of_quality(method: str) -> Scores:
    """Return the mean scores of a method of the quality study at default settings."""
    points = means(rows_of_study(studies(), rows().read()))
    return {p.dataset: p.scores for p in points if p.method == method and p.dataset in MEAN_OVER}


def of_contrast(setting: float | str) -> Scores:
    """Return the mean scores of a weight with the automatic contrast, or "before" with one of at most 2."""
    found = contrast.means()
    return {name: found[name, setting] for name in MEAN_OVER}


def line(scores: Scores, *more: str) -> list[str]:
    """Return the means of five scores, and of ``more``, over the data sets."""
    return [f"{np.mean([one[score] for one in scores.values()]):.3f}" for score in (*FIVE, *more)]


def default_table() -> str:
    """Return the scores of plain t-SNE and of the default on every data set."""
    plain, ours = of_quality(PLAIN), of_quality(OURS)
    lines = [
        [EXTENDED[name], *(f"{plain[name][score]:.3f} / {ours[name][score]:.3f}" for score in FIVE)]
        for name in MEAN_OVER
    ]
    return table(["data", *LABELS], lines)


def weight_table() -> str:
    """Return the mean scores of some weights, and their largest losses of trustworthiness and continuity."""
    plain = of_quality(PLAIN)
    lines = [["0 (plain t-SNE)", *line(plain), "", ""]]
    for weight in contrast.WEIGHTS:
        found = of_quality(OURS) if weight == 1.0 else of_contrast(weight)  # both studies have maps of the default
        worst = [
            f"{min(found[name][score] - plain[name][score] for name in MEAN_OVER):+.4f}" for score in tuple(FIVE)[:2]
        ]
        lines.append([f"{weight:g}{' (default)' if weight == 1.0 else ''}", *line(found), *worst])
    return table(["`density_weight`", *LABELS, *WORST], lines)


def contrast_table() -> str:
    """Return the mean scores with a contrast of at most 2 and with the automatic one."""
    lines = [
        ["contrast of at most 2", *line(of_contrast("before"), "fragmentation")],
        ["automatic contrast (default)", *line(of_contrast(1.0), "fragmentation")],
        ["automatic contrast, `density_weight=3`", *line(of_contrast(3.0), "fragmentation")],
    ]
    return table(["setting", *LABELS, "fragmentation"], lines)


def neighborhoods_table() -> str:
    """Return the mean scores of the neighbourhoods from the report of the study of the kernel."""
    text = (RESULTS / "kernel.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines() if row.startswith("|")]
    found = {row[0]: row[1 : 1 + len(LABELS) + len(WORST)] for row in reversed(cells)}
    return table(["`neighborhoods`", *LABELS, *WORST], [[shown, *found[name]] for shown, name in MODES.items()])


TABLES: tuple[Callable[[], str], ...] = (default_table, weight_table, contrast_table, neighborhoods_table)


if __name__ == "__main__":
    for each in TABLES:
        print(each(), end="\n\n")
