"""densMAP (umap-learn) with the paper's settings."""

from __future__ import annotations

from drsne_paper.methods._peers import densmap, peer

METHOD = peer(
    "DensMAP",
    densmap,
    parameter="dens_lambda",
    grid=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    settings={"n_neighbors": 15, "min_dist": 0.1, "dens_frac": 0.3},
    needs=("umap",),
)
