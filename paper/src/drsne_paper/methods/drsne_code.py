"""The paper's DR-SNE, exactly as its code has it."""

from __future__ import annotations

from drsne_paper.methods import Method
from drsne_paper.methods._drsne import PAPER_GRID, PAPER_NEIGHBORS, of_the_paper

METHOD = Method(
    title="DR-SNE (the paper's code)",
    parameter="lam",
    grid=PAPER_GRID,
    maps=of_the_paper("code"),
    settings={"k": PAPER_NEIGHBORS, "variant": "code"},
)
