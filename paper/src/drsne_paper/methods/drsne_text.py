"""The paper's DR-SNE as its text describes it."""

from __future__ import annotations

from drsne_paper.methods import Method
from drsne_paper.methods._drsne import PAPER_GRID, PAPER_NEIGHBORS, of_the_paper

METHOD = Method(
    title="DR-SNE (the paper's text)",
    parameter="lam",
    grid=PAPER_GRID,
    maps=of_the_paper("text"),
    settings={"k": PAPER_NEIGHBORS, "variant": "text"},
)
