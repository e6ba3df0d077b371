"""DR-SNE: t-SNE maps that also show how dense each region of the data is.

The public names are loaded when they are first used (PEP 562), so importing the package loads no third-party module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drsne import (
        affinities,
        anomaly,
        distributed,
        explorer,
        metrics,
        neighbors,
        pl,
        presets,
        tl,
    )
    from drsne.affinities import Calibration
    from drsne.estimators.density_path import density_path
    from drsne.estimators.densne import DenSNE
    from drsne.estimators.detector import DRSNEDetector
    from drsne.estimators.drsne import DRSNE
    from drsne.estimators.load import load
    from drsne.estimators.memory_estimate import memory_estimate
    from drsne.estimators.path import DensityPath
    from drsne.io.models import ModelFileError
    from drsne.optimize.loop import minimize
    from drsne.optimize.optimizers import Adam, Momentum
    from drsne.optimize.schedule import Phase, Schedule
    from drsne.preparation import prepare
    from drsne.terms.log_radii import Correlation
    from drsne.terms.objective import Objective
    from drsne.terms.profile import Smoothing

__version__ = "0.1.0"

_HOME = {
    "DRSNE": "drsne.estimators.drsne",
    "DRSNEDetector": "drsne.estimators.detector",
    "DenSNE": "drsne.estimators.densne",
    "density_path": "drsne.estimators.density_path",
    "memory_estimate": "drsne.estimators.memory_estimate",
    "load": "drsne.estimators.load",
    "ModelFileError": "drsne.io.models",
    "Calibration": "drsne.affinities",
    "Correlation": "drsne.terms.log_radii",
    "DensityPath": "drsne.estimators.path",
    "Objective": "drsne.terms.objective",
    "Smoothing": "drsne.terms.profile",
    "Adam": "drsne.optimize.optimizers",
    "Momentum": "drsne.optimize.optimizers",
    "Phase": "drsne.optimize.schedule",
    "Schedule": "drsne.optimize.schedule",
    "minimize": "drsne.optimize.loop",
    "prepare": "drsne.preparation",
}
_MODULES = (
    "affinities",
    "anomaly",
    "distributed",
    "explorer",
    "metrics",
    "neighbors",
    "pl",
    "presets",
    "tl",
)

__all__ = [
    "DRSNE",
    "Adam",
    "Calibration",
    "Correlation",
    "DRSNEDetector",
    "DenSNE",
    "DensityPath",
    "ModelFileError",
    "Momentum",
    "Objective",
    "Phase",
    "Schedule",
    "Smoothing",
    "__version__",
    "affinities",
    "anomaly",
    "density_path",
    "distributed",
    "explorer",
    "load",
    "memory_estimate",
    "metrics",
    "minimize",
    "neighbors",
    "pl",
    "prepare",
    "presets",
    "tl",
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
