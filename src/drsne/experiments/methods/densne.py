"""den-SNE with the paper's settings, on the engines of this package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from drsne import DenSNE
from drsne._stages import Stage, prepare_radii
from drsne.correlation import CorrelationProblem
from drsne.experiments.methods import Method, Ready, Run
from drsne.experiments.methods._drsne import from_one_stage
from drsne.parallel import Workers
from drsne.presets import densne

_GRID = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0)


def maps(ready: Ready, values: Sequence[float], seed: int, **numbers: Any) -> Iterator[Run]:
    """A map for each density weight."""
    settings = densne(len(ready.X), 1.0, **numbers)

    def stage(workers: Workers) -> Stage[CorrelationProblem]:
        return prepare_radii(DenSNE(**settings), ready.X, workers).stage

    weights = {value: value for value in values}
    key = ("densne", *numbers.items())
    yield from from_one_stage(ready, key, stage, settings["schedule"], weights, seed, term="correlation")


METHOD = Method(
    title="DenSNE",
    parameter="density_weight",
    grid=_GRID,
    maps=maps,
    settings={"perplexity": 30.0, "max_iter": 800, "density_fraction": 0.5},
)
