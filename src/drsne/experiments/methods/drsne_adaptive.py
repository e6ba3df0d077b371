"""DR-SNE as this package has it by default, with the adaptive kernel, along a path of lambda."""

from __future__ import annotations

from drsne.estimators.path import WEIGHTS
from drsne.experiments.methods import Method
from drsne.experiments.methods._drsne import STEPS, along_a_path

METHOD = Method(
    title="DR-SNE (ours, default)",
    parameter="density_weight",
    grid=WEIGHTS[1:],
    maps=along_a_path(),
    settings={"kernel": "auto", "neighborhoods": "both", **STEPS},
    together=True,
)
