"""DR-SNE of this package with crowding measured over the neighbours in the data and in the map."""

from __future__ import annotations

from drsne.experiments.methods import Method
from drsne.experiments.methods._drsne import STEPS, along_a_path
from drsne.path import WEIGHTS

METHOD = Method(
    title="DR-SNE (ours, both)",
    parameter="density_weight",
    grid=WEIGHTS[1:],
    maps=along_a_path(neighborhoods="both"),
    settings={"neighborhoods": "both", **STEPS},
    together=True,
)
