from . import affinities, anomaly, distributed, explorer, metrics, neighbors, pl, presets, tl
from .affinities import Calibration
from .estimators.densne import DenSNE
from .estimators.detector import DRSNEDetector
from .estimators.drsne import DRSNE
from .estimators.functions import density_path, load, memory_estimate
from .estimators.path import DensityPath
from .io.models import ModelFileError
from .optimize.loop import minimize
from .optimize.schedule import Adam, Momentum, Phase, Schedule
from .preparation import prepare
from .terms.log_radii import Correlation
from .terms.objective import Objective
from .terms.profile import Smoothing

__version__: str
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
