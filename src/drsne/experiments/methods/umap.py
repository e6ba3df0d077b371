"""umap-learn with the paper's settings."""

from __future__ import annotations

from typing import Any

from drsne.experiments.methods import Array, Method, each


def fit(X: Array, value: float, seed: int) -> Any:
    """A map with ``value`` neighbours."""
    from umap import UMAP

    return UMAP(n_neighbors=int(value), min_dist=0.1, random_state=seed, n_jobs=1).fit_transform(X)


METHOD = Method(
    title="UMAP",
    parameter="n_neighbors",
    grid=(3, 5, 10, 20, 30, 40, 50, 75, 100, 150),
    maps=each(fit),
    settings={"min_dist": 0.1},
    needs=("umap",),
)
