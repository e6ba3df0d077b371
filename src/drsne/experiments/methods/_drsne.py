"""What the methods of this package share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from drsne import DRSNE, density_path, initialization
from drsne._stages import Stage, prepare
from drsne.experiments.methods import Array, Maps, Ready, Run
from drsne.objective import Problem
from drsne.parallel import Workers
from drsne.path import alone
from drsne.presets import paper

PAPER_NEIGHBORS = 29  # of the main comparison
PAPER_GRID = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1)


def along_a_path(**params: Any) -> Maps:
    """Maps of ``density_path``, with neighbours found once for the data."""

    def maps(ready: Ready, values: Sequence[float], seed: int) -> Iterator[Run]:
        graph, searching = ready.neighbors(90)
        start = time.perf_counter()
        path = density_path(ready.X, values, neighbors=tuple(graph), random_state=seed, keep_affinities=False, **params)
        share = (time.perf_counter() - start) / len(path)
        for weight, Y in zip(path.weights, path.embeddings, strict=True):
            yield Run(float(weight), Y, {"neighbors": searching, "optimization": share})

    return maps


def of_the_paper(variant: str, **numbers: Any) -> Maps:
    """The paper's method at each printed lambda, with affinities and target found once for the data."""

    def maps(ready: Ready, values: Sequence[float], seed: int) -> Iterator[Run]:
        n = len(ready.X)
        start = time.perf_counter()
        settings = paper(n, 1.0 / n, PAPER_NEIGHBORS, variant=variant, **numbers)  # the weight one
        stage = ready.once(("paper", variant, *numbers.items()), lambda: _stage(ready.X, settings))
        preparing = time.perf_counter() - start
        for value in values:
            start = time.perf_counter()
            outcome = alone(stage.problem, _start(n, seed), value * n, settings["schedule"])
            yield Run(value, outcome.embedding, {"neighbors": preparing, "optimization": time.perf_counter() - start})

    return maps


def _stage(X: Array, settings: dict[str, Any]) -> Stage[Problem]:
    with Workers(1) as workers:
        return prepare(DRSNE(**settings), X, settings["objective"], 1.0, workers)


def _start(n: int, seed: int) -> Array:
    from sklearn.utils import check_random_state

    return initialization.random(n, 2, check_random_state(seed))
