"""The first two principal components."""

from __future__ import annotations

from typing import Any

from drsne_paper.methods import Array, Method, each


def fit(X: Array, value: Any, seed: int) -> Any:
    """Return the coordinates along the first two components."""
    from sklearn.decomposition import PCA

    return PCA(2, svd_solver="full").fit_transform(X)


METHOD = Method(title="PCA", maps=each(fit), settings={"n_components": 2}, seeded=False)
