"""DR-SNE of this package with the fixed kernel, over the neighbours in the data and in the map."""

from __future__ import annotations

from drsne_paper.methods import Method
from drsne_paper.methods._drsne import FIXED_WEIGHTS, STEPS, along_a_path

METHOD = Method(
    title="DR-SNE (ours, fixed kernel, both)",
    parameter="density_weight",
    grid=FIXED_WEIGHTS[1:],
    maps=along_a_path(fixed="both"),
    settings={"neighborhoods": "both", **STEPS},
    together=True,
)
