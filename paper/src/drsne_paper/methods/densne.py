"""den-SNE with the paper's settings, on the engines of this package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from drsne_paper.methods import Method, Run, Workspace
from drsne_paper.methods._drsne import from_one_preparation

if TYPE_CHECKING:
    from drsne_paper._private import Prepared, Workers

_GRID = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0)


def maps(workspace: Workspace, values: Sequence[float], seed: int, **numbers: Any) -> Iterator[Run]:
    """Yield a map for each density weight; ``numbers`` are parameters of the preset."""
    from drsne import DenSNE
    from drsne.presets import densne
    from drsne_paper._private import PreparationSettings, prepare_densne

    settings = densne(len(workspace.X), 1.0, **numbers)
    parameters = DenSNE(**settings).get_params(deep=False)
    workspace.require(perplexity=parameters["perplexity"])

    def prepare(workers: Workers) -> Prepared[Any]:
        return prepare_densne(
            PreparationSettings.of(parameters),
            workspace.X,
            weight=1.0,
            variance_shift=parameters["variance_shift"],
            precision=parameters["precision"],
            workers=workers,
        )

    weights = {value: value for value in values}
    key = ("densne", *numbers.items())
    yield from from_one_preparation(workspace, key, prepare, settings["schedule"], weights, seed, term="correlation")


METHOD = Method(
    title="DenSNE",
    parameter="density_weight",
    grid=_GRID,
    maps=maps,
    settings={"perplexity": 30.0, "max_iter": 800, "density_fraction": 0.5},
)
