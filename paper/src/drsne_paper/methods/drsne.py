"""DR-SNE of this package with the fixed kernel and the paper's neighbourhoods, along a path of lambda."""

from __future__ import annotations

from drsne_paper.methods import Method
from drsne_paper.methods._drsne import FIXED_WEIGHTS, STEPS, along_a_path

METHOD = Method(
    title="DR-SNE (ours, fixed kernel)",
    parameter="density_weight",
    grid=FIXED_WEIGHTS[1:],
    maps=along_a_path(fixed="input"),
    settings={"neighborhoods": "input", **STEPS},
    together=True,
)
