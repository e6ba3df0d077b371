"""densMAP (umap-learn) with the paper's settings."""

from __future__ import annotations

from typing import Any

from drsne.experiments.methods import Array, Method, each

_SETTINGS = {"n_neighbors": 15, "min_dist": 0.1, "dens_frac": 0.3}


def fit(X: Array, value: float, seed: int) -> Any:
    """A map with density weight ``value``."""
    from umap import UMAP

    return UMAP(densmap=True, dens_lambda=value, random_state=seed, n_jobs=1, **_SETTINGS).fit_transform(X)


METHOD = Method(
    title="DensMAP",
    parameter="dens_lambda",
    grid=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    maps=each(fit),
    settings=_SETTINGS,
    needs=("umap",),
)
