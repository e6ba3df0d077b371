"""DR-SNE: t-SNE maps that also show how dense each region of the data is.

The public names are loaded when they are first used, so importing the package loads no other module that takes time.
``__init__.pyi`` has the same names for type checkers.
"""

import lazy_loader

__version__ = "0.1.0"

_MODULES = ("affinities", "anomaly", "distributed", "explorer", "metrics", "neighbors", "pl", "presets", "tl")
_NAMES = {
    "affinities": ["Calibration"],
    "estimators.densne": ["DenSNE"],
    "estimators.detector": ["DRSNEDetector"],
    "estimators.drsne": ["DRSNE"],
    "estimators.functions": ["density_path", "load", "memory_estimate"],
    "estimators.path": ["DensityPath"],
    "io.models": ["ModelFileError"],
    "optimize.loop": ["minimize"],
    "optimize.schedule": ["Adam", "Momentum", "Phase", "Schedule"],
    "preparation": ["prepare"],
    "terms.log_radii": ["Correlation"],
    "terms.objective": ["Objective"],
    "terms.profile": ["Smoothing"],
}

# Not attach_stub, which looks for the stub among the files of a folder and so fails in a zip file.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, _MODULES, _NAMES)
