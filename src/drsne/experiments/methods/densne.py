"""den-SNE with the paper's settings, on the engines of this package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from drsne import DenSNE
from drsne.backends.numba.threads import Workers
from drsne.estimators.preparation import PreparationSettings, Prepared, prepare_densne
from drsne.experiments.methods import Method, Ready, Run
from drsne.experiments.methods._drsne import from_one_preparation
from drsne.objectives.densne import DenSNEProblem
from drsne.presets import densne

_GRID = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0)


def maps(ready: Ready, values: Sequence[float], seed: int, **numbers: Any) -> Iterator[Run]:
    """A map for each density weight."""
    settings = densne(len(ready.X), 1.0, **numbers)

    def prepare(workers: Workers) -> Prepared[DenSNEProblem]:
        parameters = DenSNE(**settings).get_params(deep=False)
        return prepare_densne(
            PreparationSettings.of(parameters),
            ready.X,
            weight=1.0,
            variance_shift=parameters["variance_shift"],
            precision=parameters["precision"],
            workers=workers,
        )

    weights = {value: value for value in values}
    key = ("densne", *numbers.items())
    yield from from_one_preparation(ready, key, prepare, settings["schedule"], weights, seed, term="correlation")


METHOD = Method(
    title="DenSNE",
    parameter="density_weight",
    grid=_GRID,
    maps=maps,
    settings={"perplexity": 30.0, "max_iter": 800, "density_fraction": 0.5},
)
