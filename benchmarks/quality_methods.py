"""The quality study as data: its methods with their settings, its data sets, seeds and scores, and its mean results.

A method without a value is called without arguments other than the seed. All of them are wrappers of
``drsne_paper.methods``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import EIGHT, EXTENDED, extended_data
from runner import RESULTS

from drsne import metrics
from drsne.estimators.path import WEIGHTS
from drsne.optimize.defaults import LAST_STEPS
from drsne_paper import Rows, Study, methods
from drsne_paper.methods import Method, _peers
from drsne_paper.methods._drsne import ADAPTIVE_STEPS, along_a_path, estimator_maps
from drsne_paper.methods._peers import peer
from drsne_paper.rows import Row

ROWS = RESULTS / "quality.jsonl"
SEEDS = (3, 4, 5)
OURS, STRONG, PATH, PLAIN = "drsne", "drsne_strong", "drsne_path", "drsne_plain"


class Score(NamedTuple):
    """How a score is computed and shown."""

    neighbors: int
    label: str  # in tables
    title: str
    larger_is_better: bool = True


SCORES = {
    "trustworthiness": Score(10, "TW", "Trustworthiness, 10 neighbours"),
    "continuity": Score(10, "Cont", "Continuity, 10 neighbours"),
    "concentration_correlation": Score(29, "CC", "Concentration correlation, 29 neighbours"),
    "density_rank_correlation": Score(30, "rho30", "Density rank correlation, 30 neighbours"),
    "local_density_rank_correlation": Score(5, "rho5", "Density rank correlation, 5 neighbours"),
    "fragmentation": Score(10, "Frag", "Fragmentation", larger_is_better=False),
}
OURS_NOW = {name: ADAPTIVE_STEPS[name] for name in ("iterations", "momentum")}  # of a default fit
METHODS: dict[str, Method] = {
    OURS: Method(title="drsne", maps=estimator_maps("DRSNE"), settings=OURS_NOW),
    STRONG: Method(
        title="drsne, weight 3", parameter="density_weight", grid=(3.0,), maps=estimator_maps("DRSNE"),
        settings=OURS_NOW,
    ),
    PATH: Method(
        title="drsne, path", parameter="density_weight", grid=WEIGHTS, maps=along_a_path(),
        settings={**ADAPTIVE_STEPS, "last_iterations": LAST_STEPS}, together=True,
    ),
    PLAIN: Method(
        title="drsne, plain t-SNE", parameter="density_weight", grid=(0,), maps=estimator_maps("DRSNE"),
    ),
    "sklearn_tsne": peer("scikit-learn t-SNE", _peers.tsne),
    "umap": peer("UMAP", _peers.umap, needs=("umap",)),
    "pacmap": peer("PaCMAP", _peers.pacmap, needs=("pacmap",)),
    "scalemap": peer(
        "ScaleMAP", _peers.scalemap, parameter="scale_lambda", grid=(0.25, 0.5, 0.75, 1.0), needs=("scaleMAP",)
    ),
    "densmap": peer(
        "densMAP", _peers.densmap, parameter="dens_lambda", grid=(0.1, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0), needs=("umap",)
    ),
    "densne": Method(title="our DenSNE", maps=estimator_maps("DenSNE")),
    "densne_program": replace(methods.find("densne"), title="our DenSNE, settings of den-SNE's program"),
    "paper_code": replace(methods.find("drsne_code"), title="our implementation of the paper's code"),
}  # fmt: skip
# The values of the table of defaults: those without which the density term is off keep their documented default.
DEFAULTS: dict[str, Any] = {
    OURS: None,
    STRONG: 3.0,
    PLAIN: 0,
    "sklearn_tsne": None,
    "umap": None,
    "pacmap": None,
    "scalemap": 1.0,
    "densmap": 2.0,
    "densne": None,
}
# Density-aware methods, which are compared with our path: programs of others, and our implementations of methods.
OTHERS = ("scalemap", "densmap")
RIVALS = (*OTHERS, "densne", "densne_program", "paper_code")
EARLIER_END = 70.0  # the last weight of the path before it was extended
USEFUL = (0.3, 10.0)  # the range of weights that the documentation recommends
# The scores that a map must match all at once, and the difference that counts as one step of each.
COMPARED = {
    "trustworthiness": 0.01,
    "concentration_correlation": 0.05,
    "density_rank_correlation": 0.05,
    "local_density_rank_correlation": 0.05,
}
DETAILS = {"span": "Full range of the map over its 1 to 99 % range", "groups": "Density rank correlation of the groups"}


def studies(
    datasets: tuple[str, ...] = tuple(EXTENDED),
    names: tuple[str, ...] = tuple(METHODS),
    seeds: tuple[int, ...] = SEEDS,
    *,
    only_defaults: bool = False,
) -> list[Study]:
    """Return the runs of some data sets, methods and seeds.

    On sets that are not of the paper, and everywhere with ``only_defaults``, these are the settings of the table of
    defaults.
    """
    parts = (([name for name in datasets if name in EIGHT], only_defaults), ([*datasets], True))
    return [study(tuple(sets), names, seeds, only_defaults=few) for sets, few in parts if sets]


def details(dataset: str, X: Any, Y: Any, labels: Any) -> dict[str, float]:
    """Return the span of a map along its worse axis, and the score of the groups if there are labels."""
    groups = {} if labels is None else {"groups": metrics.group_density_correlation(X, Y, labels)}
    return {"span": span(Y), **groups}


def span(Y: np.ndarray) -> float:
    """Return the full range of a map over its 1 to 99 % range, along the worse axis."""
    return float((np.ptp(Y, axis=0) / np.maximum(np.ptp(np.quantile(Y, (0.01, 0.99), axis=0), axis=0), 1e-300)).max())


def study(datasets: tuple[str, ...], names: tuple[str, ...], seeds: tuple[int, ...], *, only_defaults: bool) -> Study:
    """Return the runs of some data sets, methods and seeds."""
    grids = {name: (value,) for name, value in DEFAULTS.items()} if only_defaults else {}
    return Study(
        name="quality",
        datasets=datasets,
        methods=tuple(name for name in names if name in DEFAULTS) if only_defaults else names,
        seeds=seeds,
        scores=tuple((name, score.neighbors) for name, score in SCORES.items()),
        data=extended_data,
        extra=details,
        grids=grids,
        variants=METHODS,
    )


def rows(path: Path = ROWS) -> Rows:
    """Return the file of results."""
    return Rows(path)


class Point(NamedTuple):
    """A setting of a method on one data set, with its mean scores."""

    dataset: str
    method: str
    value: Any
    scores: dict[str, float]

    def compared(self) -> np.ndarray:
        """Return the scores that are compared. A score that is not defined counts as the worst possible."""
        return np.nan_to_num([self.scores.get(score, np.nan) for score in COMPARED], nan=-1.0)


def means(results: Sequence[Row], seeds: Sequence[int] = SEEDS) -> list[Point]:
    """Return the mean scores of every setting that has all seeds, in the order of sets, methods and values."""
    by_setting: dict[tuple[str, str, Any], dict[int, dict[str, float]]] = defaultdict(dict)
    for row in results:
        if row["seed"] in seeds and not row["error"]:
            found = row["metrics"] | {name: row["details"][name] for name in DETAILS if name in row.get("details", {})}
            by_setting[row["dataset"], row["method"], row["value"]][row["seed"]] = found
    points = []
    for (dataset, method, value), by_seed in by_setting.items():
        if set(by_seed) == set(seeds):
            common = set.intersection(*(set(scores) for scores in by_seed.values()))
            scores = {name: float(np.mean([one[name] for one in by_seed.values()])) for name in sorted(common)}
            points.append(Point(dataset, method, value, scores))
    sets, methods = list(EXTENDED), list(METHODS)
    return sorted(
        points, key=lambda p: (sets.index(p.dataset), methods.index(p.method), METHODS[p.method].grid.index(p.value))
    )
