"""What the methods of this package share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np

from drsne import DRSNE, Objective, density_path, initialization
from drsne.backends.numba.threads import Workers
from drsne.estimators.path import Weighted
from drsne.estimators.preparation import PreparationSettings, Prepared, prepare_drsne
from drsne.experiments.methods import Array, Maps, Ready, Run
from drsne.objectives.drsne import NEIGHBORHOODS, DRSNEProblem
from drsne.optimization.loop import minimize
from drsne.optimization.schedule import Schedule
from drsne.presets import PATH_RATE, PATH_STEP, paper

STEPS = {"path_step": PATH_STEP, "path_rate": PATH_RATE}  # so that rows of another path are not taken for these
# The method of this package with t-SNE's kernel, which is nearer to the paper's, by neighbourhoods; and its weights.
FIXED_KERNEL = {
    "input": Objective(kernel="fixed", target_quantile=0.0, small_groups=False),
    "both": Objective(
        input_weight=NEIGHBORHOODS["both"].input,
        embedding_weight=NEIGHBORHOODS["both"].embedding,
        input_exponent="auto",
        kernel="fixed",
        target_quantile=0.0,
        small_groups=False,
    ),
}
FIXED_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 14.0, 22.0, 35.0, 70.0)
PAPER_NEIGHBORS = 29  # of the main comparison
PAPER_PERPLEXITY = 30.0
PAPER_GRID = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1)


def along_a_path(**params: Any) -> Maps:
    """Maps of ``density_path``, with neighbours found once for the data."""

    def maps(ready: Ready, values: Sequence[float], seed: int) -> Iterator[Run]:
        graph, searching = ready.neighbors(max(90, params.get("density_neighbors", 0)))
        start = time.perf_counter()
        path = density_path(ready.X, values, neighbors=tuple(graph), random_state=seed, keep_affinities=False, **params)
        share = (time.perf_counter() - start) / len(path)
        for weight, Y in zip(path.weights, path.embeddings, strict=True):
            yield Run(float(weight), Y, {"neighbors": searching, "optimization": share})

    return maps


def of_the_paper(
    variant: str,
    *,
    k: int = PAPER_NEIGHBORS,
    perplexity: float = PAPER_PERPLEXITY,
    every_pair: bool = False,
    **numbers: Any,
) -> Maps:
    """The paper's method at each printed lambda, with ``k`` density neighbours; ``numbers`` are those of the preset.

    Its KL term is over those neighbours too; with ``every_pair`` it is that of t-SNE, so that k is the density's alone.
    """

    def maps(ready: Ready, values: Sequence[float], seed: int) -> Iterator[Run]:
        n = len(ready.X)
        settings = paper(n, 1.0 / n, k, variant=variant, **numbers) | {"perplexity": perplexity}  # the weight one
        if every_pair:
            settings |= _over_every_pair(**settings)

        def prepare(workers: Workers) -> Prepared[DRSNEProblem]:
            parameters = PreparationSettings.of(DRSNE(**settings).get_params(deep=False))
            return prepare_drsne(parameters, ready.X, settings["objective"], 1.0, workers)

        key = ("paper", variant, k, perplexity, every_pair, *numbers.items())
        yield from from_one_preparation(
            ready, key, prepare, settings["schedule"], {value: n * value for value in values}, seed
        )

    return maps


def _over_every_pair(*, objective: Objective, schedule: Schedule, **_: Any) -> dict[str, Any]:
    phases = tuple(replace(phase, pairs="objective") for phase in schedule.phases)
    return {"objective": replace(objective, support="symmetric"), "schedule": replace(schedule, phases=phases)}


def from_one_preparation(
    ready: Ready,
    key: Any,
    prepare: Callable[[Workers], Prepared[Any]],
    schedule: Schedule,
    weights: Mapping[float, float],
    seed: int,
    *,
    term: str = "concentration",
) -> Iterator[Run]:
    """Return maps at the ``weights`` of values, from a random start; affinities and target are found once for the data.

    What is prepared, and kept under ``key``, has the weight one.
    """

    def on_one_thread() -> Prepared[Any]:
        with Workers(1) as workers:
            return prepare(workers)

    start = time.perf_counter()
    plain = sum(phase.n_iter for phase in takewhile(lambda phase: not phase.density, schedule.phases))
    problem = ready.lately(key, lambda: Remembered(on_one_thread().problem, plain))
    preparing = time.perf_counter() - start
    for value, weight in weights.items():
        start = time.perf_counter()
        outcome = minimize(Weighted(problem, weight), _start(len(ready.X), seed), schedule, term=term)
        yield Run(value, outcome.embedding, {"neighbors": preparing, "optimization": time.perf_counter() - start})


class Remembered:
    """A problem that knows its answers of the first ``n_iter`` iterations, before the density term joins.

    They are the same for every weight from the same start, which is most of the work where the term joins late.
    """

    def __init__(self, problem: Any, n_iter: int) -> None:
        self._problem, self._n_iter = problem, n_iter
        self._known: dict[int, tuple[Array, Any]] = {}
        self.backend, self.start = problem.backend, problem.start

    def evaluate(self, Y: Array, *, iteration: int | None, **options: Any) -> Any:
        """As of the problem; known again where the map is the same."""
        if iteration is None or iteration >= self._n_iter:
            return self._problem.evaluate(Y, iteration=iteration, **options)
        known = self._known.get(iteration)
        if known is None or not np.array_equal(known[0], Y):
            known = self._known[iteration] = (Y, self._problem.evaluate(Y, iteration=iteration, **options))
        return known[1]


def _start(n: int, seed: int) -> Array:
    from sklearn.utils import check_random_state

    return initialization.random(n, 2, check_random_state(seed))
