"""scikit-learn's t-SNE with the paper's settings: a random start, the default learning rate and iterations."""

from __future__ import annotations

from drsne_paper.methods._peers import peer, tsne

METHOD = peer(
    "t-SNE",
    tsne,
    parameter="perplexity",
    grid=(3, 5, 10, 20, 30, 40, 50, 75, 100, 150),
    settings={"init": "random"},
)
