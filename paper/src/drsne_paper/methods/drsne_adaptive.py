"""DR-SNE with the defaults of this package (the adaptive kernel), along a path of lambda."""

from __future__ import annotations

from drsne_paper.methods import Method
from drsne_paper.methods._drsne import ADAPTIVE_STEPS, PATH_WEIGHTS, along_a_path

METHOD = Method(
    title="DR-SNE (ours, default)",
    parameter="density_weight",
    grid=PATH_WEIGHTS[1:],
    maps=along_a_path(),
    settings={"kernel": "auto", "neighborhoods": "both", **ADAPTIVE_STEPS},
    together=True,
)
