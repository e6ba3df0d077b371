"""Our runs at the parameters that the authors' runs selected, seed by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drsne_paper import published, tables
from drsne_paper.document import AUTHORS_BY_SEED, DIFFERENCE, Block, Heading, Table, Text
from drsne_paper.rows import Row
from drsne_paper.study import Study

TRUST, CONCENTRATION = "trustworthiness", "concentration_correlation"
# The largest difference that still counts as close. For the paper's method it is compared at every seed, and for other
# methods between means.
# None means that differences are shown without a bound.
BY_SEED = {"drsne_code": {TRUST: 0.01, CONCENTRATION: 0.03}}
BY_MEAN = {name: {TRUST: 0.02, CONCENTRATION: None} for name in ("densne", "tsne", "umap", "pacmap", "densmap")}


def at_the_authors_parameters(study: Study, rows: list[Row], title: Callable[[str], str]) -> list[Block]:
    """Return a table of our runs at the parameters that the authors selected for the same seeds, if there are any."""
    body = []
    for dataset in study.datasets:
        for method in study.methods:
            wanted = dict(enumerate(published.selected(dataset, method)))
            some = {
                row["seed"]: row
                for row in rows
                if (row["dataset"], row["method"], row["error"]) == (dataset, method, None)
                and row["seed"] in wanted
                and wanted[row["seed"]] == row["value"]
            }
            if some and method in BY_SEED | BY_MEAN:
                body.append([title(dataset), study.method(method).title, *_line(dataset, method, some)])
    if not body:
        return []
    header = ["data", "method", "seeds"]
    for score in ("TW", "CC"):
        header += [f"{score}, by seed", AUTHORS_BY_SEED, DIFFERENCE, "within"]
    text = (
        "For each of the authors' seeds that was run here, this is the run at the parameter that their own run "
        "selected, so that no choice of ours is involved. The difference is that of the means over these seeds. "
        "\"Within\" says for the paper's method how many seeds are within .01 (TW) and .03 (CC) of the authors' run of "
        "that seed, and for the others whether the mean TW is within .02. If the published standard deviation is "
        "larger, it is the bound."
    )
    caption = "Runs at the parameters that the authors' runs selected, seed by seed"
    return [Heading("At the authors' parameters"), Text(text), Table(header, body, caption)]


def _line(dataset: str, method: str, some: dict[int, Row]) -> list[str]:
    out = [str(len(some))]
    for place, (score, bound) in enumerate((BY_SEED | BY_MEAN)[method].items()):
        ours = np.array([row["metrics"][score] for row in some.values()])
        theirs = np.array([published.selected_scores(dataset, method)[seed][place] for seed in some])
        allowed = max(bound or 0.0, published.main(dataset, method, score)[1])
        if bound is None:
            within = ""
        elif method in BY_SEED:
            near = int(np.sum(np.abs(ours - theirs) <= allowed))
            within = f"{near} of {len(ours)}" + (f" ({allowed:.3f})" if near < len(ours) else "")
        else:
            within = "yes" if abs(float(np.mean(ours - theirs))) <= allowed else f"no ({allowed:.3f})"
        out += [_listed(ours), _listed(theirs), tables.signed(float(np.mean(ours - theirs))), within]
    return out


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
