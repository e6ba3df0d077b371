"""DR-SNE: t-SNE maps that also show how crowded each region of the data is.

The public names are loaded when they are first used (PEP 562): importing the package
loads no third-party module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drsne import affinities, anomaly, concentration, datasets, graph, metrics, pl, presets
    from drsne._densne import DenSNE
    from drsne._estimator import DRSNE, density_path, memory_estimate
    from drsne.affinities import Calibration
    from drsne.concentration import Smoothing
    from drsne.objective import Objective
    from drsne.optimize import Adam, Momentum, Phase, Schedule
    from drsne.path import DensityPath

__version__ = "0.1.0"

_HOME = {
    "DRSNE": "drsne._estimator",
    "DenSNE": "drsne._densne",
    "density_path": "drsne._estimator",
    "memory_estimate": "drsne._estimator",
    "Calibration": "drsne.affinities",
    "DensityPath": "drsne.path",
    "Objective": "drsne.objective",
    "Smoothing": "drsne.concentration",
    "Adam": "drsne.optimize",
    "Momentum": "drsne.optimize",
    "Phase": "drsne.optimize",
    "Schedule": "drsne.optimize",
}
_MODULES = ("affinities", "anomaly", "concentration", "datasets", "graph", "metrics", "pl", "presets")

__all__ = [
    "DRSNE",
    "Adam",
    "Calibration",
    "DenSNE",
    "DensityPath",
    "Momentum",
    "Objective",
    "Phase",
    "Schedule",
    "Smoothing",
    "__version__",
    "affinities",
    "anomaly",
    "concentration",
    "datasets",
    "density_path",
    "graph",
    "memory_estimate",
    "metrics",
    "pl",
    "presets",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"drsne.{name}")
    else:
        raise AttributeError(f"module 'drsne' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
