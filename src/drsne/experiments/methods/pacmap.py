"""PaCMAP with the paper's settings."""

from __future__ import annotations

from typing import Any

from drsne.experiments.methods import Array, Method, each


def fit(X: Array, value: float, seed: int) -> Any:
    """A map with ``value`` neighbours."""
    from pacmap import PaCMAP

    return PaCMAP(n_neighbors=int(value), MN_ratio=0.5, FP_ratio=2.0, random_state=seed).fit_transform(X)


METHOD = Method(
    title="PaCMAP",
    parameter="n_neighbors",
    grid=(3, 5, 10, 20, 30, 40, 50, 75, 100, 150),
    maps=each(fit),
    settings={"MN_ratio": 0.5, "FP_ratio": 2.0},
    needs=("pacmap",),
)
