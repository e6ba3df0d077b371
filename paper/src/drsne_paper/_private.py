"""All that the studies take from drsne and that is not part of its documented interface.

The theory study measures the code of drsne itself, and the paper's methods share one preparation between many weights.
Everything here is private until ``drsne.prepare`` exists. No other module imports private names of drsne.
"""

from drsne import engines
from drsne.affinities import DEFAULT_CALIBRATION, affinities
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.threads import Workers
from drsne.estimators.path import Weighted
from drsne.estimators.preparation import PreparationSettings, Prepared, prepare_densne, prepare_drsne
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn
from drsne.terms.profile import DEFAULT_SMOOTHING, loss_and_slope, profile
from drsne.terms.contrast import local_dimension
from drsne.terms.log_radii import correlation_and_slope, standardized
from drsne.terms.objective import DRSNEProblem
from drsne.terms.neighborhoods import NeighborTable
from drsne.optimize.loop import minimize

__all__ = [
    "DEFAULT_CALIBRATION",
    "DEFAULT_SMOOTHING",
    "DRSNEProblem",
    "KnnGraph",
    "NeighborTable",
    "NumbaBackend",
    "PreparationSettings",
    "Prepared",
    "Weighted",
    "Workers",
    "affinities",
    "correlation_and_slope",
    "engines",
    "knn",
    "local_dimension",
    "loss_and_slope",
    "minimize",
    "prepare_densne",
    "prepare_drsne",
    "profile",
    "standardized",
]
