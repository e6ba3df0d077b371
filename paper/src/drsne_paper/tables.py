"""Tables that compare our numbers with the paper's, as blocks, LaTeX and CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from drsne_paper.document import DIFFERENCE, NOTHING, PAPER, Block, Bullets, Cell, Heading, Table
from drsne_paper.rows import Row

SHORT = {
    "trustworthiness": "TW",
    "concentration_correlation": "CC",
    "density_rank_correlation": "rho_S",
    "continuity": "Cont",
    "local_density_rank_correlation": "local rho_S",
    "silhouette": "Sil",
    "stress": "Stress",
}
_LATEX = {"rho_S": r"$\rho_S$", "local rho_S": r"local $\rho_S$"}


class Title(NamedTuple):
    """The name of a data set in tables, with a remark for headings if it needs one."""

    short: str
    remark: str = ""

    def __str__(self) -> str:
        return f"{self.short} ({self.remark})" if self.remark else self.short


class Score(NamedTuple):
    """A score: ours and the paper's, each with its standard deviation; nan for a missing number."""

    mean: float
    std: float
    paper: float
    paper_std: float

    @property
    def difference(self) -> float:
        """Return our score minus the paper's."""
        return self.mean - self.paper


class Line(NamedTuple):
    """A method on a data set."""

    dataset: str
    method: str
    parameter: str  # the value that was chosen for each seed
    seeds: str
    grid: str  # how many values were run
    cells: Mapping[str, Score]


def number(value: float, std: float = math.nan) -> str:
    """Return a score with its standard deviation, or a dash."""
    if math.isnan(value):
        return NOTHING
    text = f"{value:.3f}" if math.isnan(std) else f"{value:.3f} ± {std:.3f}"
    return Cell(text, round(value, 3))


def value(of_grid: object) -> str:
    """Return a value of a grid as text: a number, a word, or several of these."""
    if isinstance(of_grid, list | tuple):
        return " ".join(value(one) for one in of_grid)
    return "" if of_grid is None else f"{of_grid:g}" if isinstance(of_grid, int | float) else str(of_grid)


def signed(value: float) -> str:
    """Return a difference, or a dash."""
    if math.isnan(value):
        return NOTHING
    rounded = round(value, 3) + 0.0  # adding zero removes the minus of -0.0
    return Cell(f"{rounded:+.3f}", rounded)


def mean(rows: Sequence[Row], score: str) -> tuple[float, float]:
    """Return the mean of a score over rows, and its standard deviation (ddof 1; nan for one row)."""
    return spread([row["metrics"][score] for row in rows])


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the values, and their standard deviation (ddof 1; nan for one value)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def fastest(rows: Sequence[Row]) -> float:
    """Return the seconds of the shortest optimisation; the first run of a process also compiles the kernels."""
    return min(float(row["seconds"]["optimization"]) for row in rows)


def failures(rows: Sequence[Row]) -> list[Block]:
    """Return blocks that list the failed runs with their errors; no blocks if no run failed."""
    label = "{dataset}, {method}, {value}, seed {seed}: {error}"
    failed = [label.format(**row) for row in rows if row["error"]]
    return [Heading("Runs that failed"), Bullets(failed)] if failed else []


def blocks(lines: Sequence[Line], scores: Sequence[str]) -> list[Block]:
    """Return a table for each data set: the scores first, then how they were chosen.

    A score that the paper does not have on any data set has no columns for the paper's number and the difference.
    """
    out: list[Block] = []
    compared = {score for score in scores if any(not math.isnan(line.cells[score].paper) for line in lines)}
    header = ["method"]
    for score in scores:
        header += [SHORT[score], PAPER, DIFFERENCE] if score in compared else [SHORT[score]]
    header += ["chosen, by seed", "seeds", "grid"]
    for dataset in dict.fromkeys(line.dataset for line in lines):
        body = []
        for line in (line for line in lines if line.dataset == dataset):
            body.append([line.method])
            for score in scores:
                cell = line.cells[score]
                body[-1].append(number(cell.mean, cell.std))
                if score in compared:
                    body[-1] += [number(cell.paper, cell.paper_std), signed(cell.difference)]
            body[-1] += [line.parameter, line.seeds, line.grid]
        caption = f"{dataset}: mean ± standard deviation over seeds at each method's chosen values; the best in bold"
        out += [Heading(dataset, 3), Table(header, body, caption, best=[SHORT[score] for score in scores])]
    return out


def latex(lines: Sequence[Line], scores: Sequence[str]) -> str:
    """Return one LaTeX tabular with a block of lines for each data set; it needs the package booktabs."""
    head = " & ".join(f"{_LATEX.get(SHORT[score], SHORT[score])} & paper & diff." for score in scores)
    out = [rf"\begin{{tabular}}{{l{'rrr' * len(scores)}}}", r"\toprule", rf"method & {head} \\"]
    for dataset in dict.fromkeys(line.dataset for line in lines):
        out += [r"\midrule", rf"\multicolumn{{{1 + 3 * len(scores)}}}{{l}}{{\textit{{{_escaped(dataset)}}}}} \\"]
        for line in (line for line in lines if line.dataset == dataset):
            cells = [line.cells[score] for score in scores]
            texts = [
                f"{_math(number(cell.mean, cell.std))} & {_math(number(cell.paper, cell.paper_std))} & "
                f"{_math(signed(cell.difference))}"
                for cell in cells
            ]
            out.append(rf"{_escaped(line.method)} & {' & '.join(texts)} \\")
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _math(text: str) -> str:
    return "--" if text == NOTHING else f"${text.replace(' ± ', chr(92) + 'pm ')}$"


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text


def comma_separated(lines: Sequence[Line], scores: Sequence[str]) -> str:
    """Return a line for each data set, method and score, with unrounded numbers."""
    header = [
        "dataset",
        "method",
        "chosen",
        "seeds",
        "grid",
        "score",
        "mean",
        "std",
        "paper",
        "paper_std",
        "difference",
    ]
    body = [
        [line.dataset, line.method, line.parameter, line.seeds, line.grid, score, *cell, cell.difference]
        for line in lines
        for score, cell in ((score, line.cells[score]) for score in scores)
    ]
    return str(pd.DataFrame(body, columns=header).to_csv(index=False, float_format="%.6g", lineterminator="\n"))
