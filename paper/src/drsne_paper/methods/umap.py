"""umap-learn with the paper's settings."""

from __future__ import annotations

from drsne_paper.methods._peers import peer, umap

METHOD = peer(
    "UMAP",
    umap,
    parameter="n_neighbors",
    grid=(3, 5, 10, 20, 30, 40, 50, 75, 100, 150),
    settings={"min_dist": 0.1},
    needs=("umap",),
)
