"""scikit-learn's t-SNE with the paper's settings: a random start, the default learning rate and iterations."""

from __future__ import annotations

from typing import Any

from drsne.experiments.methods import Array, Method, each


def fit(X: Array, value: float, seed: int) -> Any:
    """A map with perplexity ``value``."""
    from sklearn.manifold import TSNE

    return TSNE(perplexity=value, init="random", random_state=seed).fit_transform(X)


METHOD = Method(
    title="t-SNE",
    parameter="perplexity",
    grid=(3, 5, 10, 20, 30, 40, 50, 75, 100, 150),
    maps=each(fit),
    settings={"init": "random"},
)
