"""den-SNE with the paper's settings, on the engines of this package."""

from __future__ import annotations

from typing import Any

from drsne.experiments.methods import Array, Method, each

_GRID = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0)


def fit(X: Array, value: float, seed: int) -> Any:
    """A map with density weight ``value``."""
    from drsne import DenSNE
    from drsne.presets import densne

    return DenSNE(**densne(len(X), value), random_state=seed).fit_transform(X)


METHOD = Method(
    title="DenSNE",
    parameter="density_weight",
    grid=_GRID,
    maps=each(fit),
    settings={"perplexity": 30.0, "max_iter": 800, "density_fraction": 0.5},
)
