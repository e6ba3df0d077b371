"""All that the studies take from drsne and that is not part of its documented interface.

The theory study measures the code of drsne itself. No other module imports private names of drsne.
"""

from drsne import engines
from drsne.affinities import DEFAULT_CALIBRATION, affinities
from drsne.backends import Kind
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.kernels._compile import kernel
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.checks import number
from drsne.io.writing import lock
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.search import knn
from drsne.preparation import problem_of
from drsne.terms.concentration import NeighborTable
from drsne.terms.contrast import local_dimension
from drsne.terms.log_radii import correlation_and_slope, standardized
from drsne.terms.problem import Problem, Weighted
from drsne.terms.profile import DEFAULT_SMOOTHING, loss_and_slope, profile

__all__ = [
    "DEFAULT_CALIBRATION",
    "DEFAULT_SMOOTHING",
    "Kind",
    "KnnGraph",
    "NeighborTable",
    "NumbaBackend",
    "Problem",
    "Weighted",
    "Workers",
    "affinities",
    "correlation_and_slope",
    "engines",
    "kernel",
    "knn",
    "local_dimension",
    "lock",
    "loss_and_slope",
    "n_blocks",
    "number",
    "problem_of",
    "profile",
    "standardized",
]
