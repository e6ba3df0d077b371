"""Functions that the methods of this package share. The estimators are imported when a map is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from drsne_paper.methods import Array, Maps, Run, Workspace

if TYPE_CHECKING:
    from drsne import Objective, Schedule
    from drsne_paper._private import Weighted

# Settings of drsne.presets that are recorded in rows, so that rows of another path are not taken for these: the length
# of a step relative to a fit and the rate of paths with the fixed kernel; the iterations of a fit and of a step and the
# rate of paths with the adaptive kernel.
STEPS = {"path_step": 0.1, "path_rate": 1.0}
ADAPTIVE_STEPS = {"iterations": 700, "momentum": 0.9, "path_iterations": 100, "path_rate": 1.0}
FIXED_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 14.0, 22.0, 35.0, 70.0)  # for paths with the fixed kernel
PATH_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0, 9.0, 16.0, 35.0, 70.0)  # some of those of density_path
# The weights of the neighbourhoods in the data and in the map, as in DRSNE(neighborhoods=...).
_NEIGHBORHOODS = {"embedding": (0.0, 1.0), "both": (1.0, 0.7)}
PAPER_NEIGHBORS = 29  # number of neighbours in the main comparison
PAPER_PERPLEXITY = 30.0
PAPER_GRID = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1)


def fixed_kernel(neighborhoods: str) -> Objective:
    """Return the objective of this package with t-SNE's kernel, which is nearer to the paper's than the default."""
    from drsne import Objective

    plain: dict[str, Any] = {"kernel": "fixed", "target_quantile": 0.0, "small_groups": False}
    if neighborhoods == "input":
        return Objective(**plain)
    of_the_data, of_the_map = _NEIGHBORHOODS[neighborhoods]
    return Objective(input_weight=of_the_data, embedding_weight=of_the_map, **plain)


def along_a_path(*, fixed: str | None = None, **params: Any) -> Maps:
    """Return maps of ``density_path``. The neighbours are searched once for the data.

    ``fixed`` names the neighbourhoods of the objective with the fixed kernel; None stands for the default objective.
    """

    def maps(workspace: Workspace, values: Sequence[float], seed: int) -> Iterator[Run]:
        from drsne import density_path

        settings = params if fixed is None else params | {"objective": fixed_kernel(fixed)}
        _require(workspace, settings)
        graph, searching = workspace.neighbors(max(90, settings.get("density_neighbors", 0)))
        start = time.perf_counter()
        path = density_path(
            workspace.X, values, neighbors=tuple(graph), random_state=seed, keep_affinities=False, **settings
        )
        share = (time.perf_counter() - start) / len(path)
        for weight, Y in zip(path.weights, path.embeddings, strict=True):
            yield Run(float(weight), Y, {"neighbors": searching, "optimization": share})

    return maps


def estimator_maps(name: str, **settings: Any) -> Maps:
    """Return the maps of an estimator of this package, ``(settings, one for each value of density_weight)``.

    The value None stands for the default weight.
    """

    def maps(workspace: Workspace, values: Sequence[float | None], seed: int) -> Iterator[Run]:
        import numpy as np

        import drsne

        for value in values:
            weight = {} if value is None else {"density_weight": value}
            model = getattr(drsne, name)(random_state=seed, **settings, **weight)
            _require(workspace, model.get_params(deep=False))
            start = time.perf_counter()
            Y = model.fit_transform(workspace.X)
            yield Run(value, np.asarray(Y, dtype=np.float64), {"optimization": time.perf_counter() - start})

    return maps


def _require(workspace: Workspace, settings: Mapping[str, Any]) -> None:
    """Raise an error if the data have too few points for the settings of an estimator. The default settings are 30."""
    workspace.require(
        perplexity=settings.get("perplexity", 30.0), density_neighbors=settings.get("density_neighbors", 30)
    )


def of_the_paper(
    variant: str,
    *,
    k: int = PAPER_NEIGHBORS,
    perplexity: float = PAPER_PERPLEXITY,
    every_pair: bool = False,
    **numbers: Any,
) -> Maps:
    """Return maps of the paper's method at each printed lambda.

    Parameters
    ----------
    variant : str
        "code" or "text", as in :func:`drsne.presets.paper`.
    k : int, default=29
        The number of neighbours in the density term. The KL term uses the same pairs, as in the code.
    perplexity : float, default=30.0
        The perplexity of the affinities.
    every_pair : bool, default=False
        Whether the KL term uses all pairs, as in t-SNE, so that ``k`` affects only the density term.
    **numbers
        Other parameters of the preset.

    Returns
    -------
    callable
        The ``maps`` of a method.
    """

    def maps(workspace: Workspace, values: Sequence[float], seed: int) -> Iterator[Run]:
        import drsne
        from drsne.presets import paper

        workspace.require(perplexity=perplexity, density_neighbors=k)
        n = len(workspace.X)
        settings = paper(n, 1.0 / n, k, variant=variant, **numbers) | {"perplexity": perplexity}  # at weight 1
        if every_pair:
            settings |= _over_every_pair(**settings)

        schedule = settings.pop("schedule")
        key = ("paper", variant, k, perplexity, every_pair, *numbers.items())
        weights = {value: n * value for value in values}
        yield from from_one_preparation(
            workspace, key, lambda: drsne.prepare(workspace.X, **settings), schedule, weights, seed
        )

    return maps


def _over_every_pair(*, objective: Objective, schedule: Schedule, **_: Any) -> dict[str, Any]:
    phases = tuple(replace(phase, pairs="objective") for phase in schedule.phases)
    return {"objective": replace(objective, support="symmetric"), "schedule": replace(schedule, phases=phases)}


def from_one_preparation(
    workspace: Workspace,
    key: Any,
    prepare: Callable[[], Any],
    schedule: Schedule,
    weights: Mapping[float, float],
    seed: int,
) -> Iterator[Run]:
    """Yield a map for each value of ``weights``, from a random start; affinities and target are computed once.

    ``prepare`` returns the problem at weight 1, which is kept in the workspace under ``key``.
    """
    import drsne

    start = time.perf_counter()
    plain = sum(phase.n_iter for phase in takewhile(lambda phase: not phase.density, schedule.phases))
    problem = workspace.cached_recent(key, lambda: RememberedProblem(prepare(), plain))
    preparing = time.perf_counter() - start
    for value, weight in weights.items():
        start = time.perf_counter()
        outcome = drsne.minimize(problem.weighted(weight), _random_start(len(workspace.X), seed), schedule)
        yield Run(value, outcome.embedding, {"neighbors": preparing, "optimization": time.perf_counter() - start})


class RememberedProblem:
    """A problem that remembers its evaluations of the first ``n_iter`` iterations, before the density term starts.

    If the start is the same, these evaluations are the same for every weight. They are most of the work if the density
    term starts late.
    """

    def __init__(self, problem: Any, n_iter: int) -> None:
        self._problem, self._n_iter = problem, n_iter
        self._remembered: dict[int, tuple[Array, Any]] = {}
        self.backend, self.start, self.names = problem.backend, problem.start, problem.names
        self.reordered_every, self.reorder = problem.reordered_every, problem.reorder

    def weighted(self, weight: float) -> Weighted:
        """Return the problem at another weight of its density term."""
        from drsne_paper._private import Weighted

        return Weighted(self, weight)

    def evaluate(self, Y: Array, *, iteration: int | None, **options: Any) -> Any:
        """Return the evaluation of the problem, from memory if the map is the same as before."""
        import numpy as np

        if iteration is None or iteration >= self._n_iter:
            return self._problem.evaluate(Y, iteration=iteration, **options)
        remembered = self._remembered.get(iteration)
        if remembered is None or not np.array_equal(remembered[0], Y):
            remembered = self._remembered[iteration] = (Y, self._problem.evaluate(Y, iteration=iteration, **options))
        return remembered[1]


def _random_start(n: int, seed: int) -> Array:
    import numpy as np

    return np.random.RandomState(seed).normal(0.0, 1e-4, size=(n, 2))  # as DRSNE(init="random")
