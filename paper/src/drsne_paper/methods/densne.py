"""den-SNE with the paper's settings, on the engines of this package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from drsne_paper.methods import Method, Run, Workspace
from drsne_paper.methods._drsne import from_one_preparation

_GRID = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0)


def maps(workspace: Workspace, values: Sequence[float], seed: int, **numbers: Any) -> Iterator[Run]:
    """Yield a map for each density weight; ``numbers`` are parameters of the preset."""
    import drsne
    from drsne_paper import presets

    settings = presets.densne(len(workspace.X), 1.0, **numbers)
    workspace.require(perplexity=settings["perplexity"])
    schedule, shift, precision = (settings.pop(name) for name in ("schedule", "variance_shift", "precision"))
    objective = drsne.Correlation(variance_shift=shift, precision=precision)
    settings |= {"objective": objective, "density_neighbors": 0}

    weights = {value: value for value in values}
    key = ("densne", *numbers.items())
    yield from from_one_preparation(
        workspace, key, lambda: drsne.prepare(workspace.X, **settings), schedule, weights, seed
    )


METHOD = Method(
    title="DenSNE",
    parameter="density_weight",
    grid=_GRID,
    maps=maps,
    settings={"perplexity": 30.0, "max_iter": 800, "density_fraction": 0.5},
)
