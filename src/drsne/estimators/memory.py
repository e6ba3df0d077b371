"""How much memory a fit takes, before it takes it (:func:`drsne.memory_estimate`)."""

from __future__ import annotations

import os
from typing import Any

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.estimators import parameters as _parameters
from drsne.neighbors.inverted_file import APPROXIMATE_FROM

_BASE = 180 * 2**20  # the interpreter, numpy, scipy, scikit-learn, numba and the compiled kernels
_PAIRS = 1.45  # stored pairs of the symmetric affinities per directed one; 2 at most, measured on the benchmarks' data
_MESH_BYTES = 64 * 2**20  # of a mesh engine's arrays at its usual size
_LEAF, _SUMMED = 32, 20  # points in a leaf of the adaptive kernel's tree, and sums of a node
_SCORING_BYTES = 48 * 2**20  # of a thread's blocks of distances, when the maps of a path are scored


def estimate(n: int, d: int, params: dict[str, Any]) -> int:
    """Peak memory of a fit of ``n`` x ``d`` dense data, in bytes, for all of the estimator's parameters."""
    objective = params.get("objective")
    double = (params.get("precision") if objective is None else objective.precision) == "double"
    real = 8 if double else 4
    perplexity = min(float(params["perplexity"]), max(1.0, n - 1.0))
    affinity = min(n - 1, int(3 * perplexity + 0.5))
    if objective is not None:
        affinity = objective.calibration.n_neighbors(perplexity, n)
    k = min(n - 1, int(params.get("density_neighbors", 0)))  # den-SNE's are those that carry affinity
    wanted = max(affinity, k)
    data = n * d * 8 * (2 if params["pca_components"] is None else 1)  # X and, of another type, our copy
    if params["pca_components"] is not None:
        d = min(d, 50 if params["pca_components"] == "auto" else int(params["pca_components"]))
        data += n * d * 8
    graph = n * wanted * (4 + 8)
    search = _search(n, d, wanted, params)
    pairs = int(n * affinity * min(_PAIRS, n / max(affinity, 1.0)))
    matrix = pairs * (4 + real)
    calibration = graph + n * affinity * (real + 2 * (4 + real)) + matrix
    near = n * k * 4
    state = 12 * n * int(params["n_components"]) * 8 + _MESH_BYTES
    if isinstance(params["density_weight"], str):
        state += 14 * n * int(params["n_components"]) * 8  # the maps of a path
        state += min(_SCORING_BYTES, 6144 * n) * Workers(params["n_jobs"]).n_threads
    if _parameters.adapts(params):
        state += _adaptive(n, int(params["n_components"]), real)
    optimisation = (2 if n >= 8192 else 1) * (matrix + 3 * near) + state
    groups = graph + matrix + n * k * (4 + 3 * 8)  # ratios of distances and their logarithms, and other neighbours
    return int(_BASE + data + max(search + graph, calibration, groups, optimisation))


def _adaptive(n: int, n_components: int, real: int) -> int:
    """What the adaptive kernel takes beyond the fixed one: log scales, scales and a tree of points that have them."""
    scales = n * (4 * 8 + real)  # of the data, arranged, of an evaluation in either order; inverse
    if n_components > 3:
        return scales
    nodes = 1.4 * n / _LEAF
    lanes = n * (4 * real + 8 + 4)  # coordinates and scale along the curve, codes and order
    return int(scales + lanes + nodes * _SUMMED * real + 4 * n / _LEAF * 4 * 8)


def _search(n: int, d: int, wanted: int, params: dict[str, Any]) -> int:
    """Temporaries of the search for neighbours."""
    if params["neighbors"] is not None:
        return n * wanted * 16
    copies = n * d * (8 + 4)  # centred, and in single precision
    room = int(1.5 * (wanted + max(8, wanted // 4)))
    return copies + (n * room * 8 if n >= APPROXIMATE_FROM else 64 * 2**20)


def available() -> int | None:
    """Memory that can still be had, in bytes, where the system tells."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def warn_if_short(X: Any, params: dict[str, Any]) -> None:
    """Warn where a fit of ``X``, which is in memory already, will take more than there is."""
    n, d = X.shape
    d = max(1, X.nnz // n) if hasattr(X, "nnz") else d  # of sparse data, what is stored counts
    there = n * d * 8 * (2 if params["pca_components"] is None else 1)
    free, needed = available(), estimate(n, d, params) - _BASE - there
    if free is not None and needed > free:
        sizes = "perplexity or density_neighbors" if "density_neighbors" in params else "perplexity"
        checks.warn(
            f"This fit takes about {needed / 1e9:.1f} GB of memory; {free / 1e9:.1f} GB are free. Lower {sizes}, "
            "pass pca_components for wide data, or fit a sample."
        )
