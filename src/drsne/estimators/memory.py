"""Estimates of the memory that a fit will take (:func:`drsne.memory_estimate`)."""

from __future__ import annotations

import os
from typing import Any

from drsne import checks
from drsne.backends.numba.threads import Workers
from drsne.estimators import parameters as _parameters
from drsne.neighbors.inverted_file import APPROXIMATE_FROM

_BASE = 180 * 2**20  # bytes of the interpreter, numpy, scipy, scikit-learn, numba and the compiled kernels
_PAIRS = 1.45  # number of symmetric pairs per directed pair (at most 2), measured on the data sets of the benchmarks
_MESH_BYTES = 64 * 2**20  # bytes of the arrays of the mesh engine, at the usual size of the mesh
_LEAF, _SUMMED = 32, 20  # number of points in a leaf, and of sums of a node, in the tree of the adaptive kernel
_SCORING_BYTES = 48 * 2**20  # bytes of the distances that one thread holds while the maps of a path are scored


def estimate(n: int, d: int, params: dict[str, Any]) -> int:
    """Return the peak memory, in bytes, of a fit with these parameters to dense data of shape (n, d)."""
    objective = params.get("objective")
    double = (params.get("precision") if objective is None else objective.precision) == "double"
    real = 8 if double else 4
    perplexity = min(float(params["perplexity"]), max(1.0, n - 1.0))
    affinity = min(n - 1, int(3 * perplexity + 0.5))
    if objective is not None:
        affinity = objective.calibration.n_neighbors(perplexity, n)
    k = min(n - 1, int(params.get("density_neighbors", 0)))  # DenSNE uses the neighbours that have an affinity
    wanted = max(affinity, k)
    data = n * d * 8 * (2 if params["pca_components"] is None else 1)  # X, and our copy if X has another type
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
        state += 16 * n * int(params["n_components"]) * 8  # the maps of a path
        state += min(_SCORING_BYTES, 6144 * n) * Workers(params["n_jobs"]).n_threads
    if _parameters.adapts(params):
        state += _adaptive(n, int(params["n_components"]), real)
    optimisation = (2 if n >= 8192 else 1) * (matrix + 3 * near) + state
    groups = graph + matrix + n * k * (4 + 3 * 8)  # ratios of distances, their logarithms, and repeated neighbours
    return int(_BASE + data + max(search + graph, calibration, groups, optimisation))


def _adaptive(n: int, n_components: int, real: int) -> int:
    """Return the additional bytes of the adaptive kernel, for scales and a tree of points with scales."""
    # Log scales in two orders of the points, scales, scales along the curve, and inverse scales.
    scales = n * (4 * 8 + real)
    if n_components > 3:
        return scales
    nodes = 1.4 * n / _LEAF
    points = n * (4 * real + 8 + 4)  # coordinates and scales along the curve, codes and order
    return int(scales + points + nodes * _SUMMED * real + 4 * n / _LEAF * 4 * 8)


def _search(n: int, d: int, wanted: int, params: dict[str, Any]) -> int:
    """Return the bytes of temporary arrays in the search for neighbours."""
    if params["neighbors"] is not None:
        return n * wanted * 16
    copies = n * d * (8 + 4)  # the centred data in double and in single precision
    room = int(1.5 * (wanted + max(8, wanted // 4)))
    return copies + (n * room * 8 if n >= APPROXIMATE_FROM else 64 * 2**20)


def available() -> int | None:
    """Return the free memory in bytes, or None if the system does not report it."""
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


def shortage(X: Any, params: dict[str, Any]) -> tuple[int, int] | None:
    """Return the memory that a fit will need and the free memory, in bytes, or None if there is enough.

    ``X`` is already in memory, so only what the fit adds is compared with the free memory.
    """
    n, d = X.shape
    d = max(1, X.nnz // n) if hasattr(X, "nnz") else d  # only the stored values of sparse data take memory
    present = n * d * 8 * (2 if params["pca_components"] is None else 1)
    free, needed = available(), estimate(n, d, params) - _BASE - present
    return None if free is None or needed <= free else (needed, free)


def warn_if_short(X: Any, params: dict[str, Any]) -> None:
    """Warn if a fit of ``X``, which is already in memory, will need more memory than is free."""
    found = shortage(X, params)
    if found is not None:
        needed, free = found
        sizes = "perplexity or density_neighbors" if "density_neighbors" in params else "perplexity"
        checks.warn(
            f"This fit needs about {needed / 1e9:.1f} GB of memory; only {free / 1e9:.1f} GB are free. Lower {sizes}, "
            "pass pca_components if the data have many features, or fit a sample."
        )
