"""PaCMAP with the paper's settings."""

from __future__ import annotations

from drsne_paper.methods._peers import pacmap, peer

METHOD = peer(
    "PaCMAP",
    pacmap,
    parameter="n_neighbors",
    grid=(3, 5, 10, 20, 30, 40, 50, 75, 100, 150),
    settings={"MN_ratio": 0.5, "FP_ratio": 2.0},
    needs=("pacmap",),
)
