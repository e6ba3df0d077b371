"""Estimates of the memory that a fit will take (:func:`drsne.memory_estimate`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from drsne import checks
from drsne.backends import choice
from drsne.backends.numba.threads import Workers
from drsne.estimators import constraints
from drsne.neighbors.inverted_file import APPROXIMATE_FROM

_BASE = 180 * 2**20  # bytes of the interpreter, numpy, scipy, scikit-learn, numba and the compiled kernels
_PAIRS = 1.45  # number of symmetric pairs per directed pair (at most 2), measured on the data sets of the benchmarks
_INVERTED_FROM = 300_000  # smallest number of rows for which a GPU searches approximately
_MESH_BYTES = 64 * 2**20  # bytes of the arrays of the mesh engine, at the usual size of the mesh
_LEAF, _SUMMED = 32, 20  # number of points in a leaf, and of sums of a node, in the tree of the adaptive kernel
_SCORING_BYTES = 48 * 2**20  # bytes of the distances that one thread holds while the maps of a path are scored
# On a GPU: the largest numbers of distances and of sorted pairs in memory, the bytes of a distance and of such a pair
# with temporary arrays, the bytes for each directed pair while they are sorted, and the bytes of a point of the map.
_DISTANCES, _SORTED = 2**28, 2**27
_ALL_PAIRS, _ALL_PAIR_BYTES = 2**24, 64  # the same for the pairs of a map of more than two dimensions
_DISTANCE_BYTES, _SORTED_BYTES, _PAIR_BYTES, _POINT_BYTES = 7, 57, 40, 800


def estimate(n: int, d: int, params: dict[str, Any]) -> int:
    """Return the peak memory (of the GPU, if one is used) of a fit to dense data of shape (n, d), in bytes."""
    return _on_processor(n, d, params) if _gpu(params) is None else on_gpu(n, d, params)


def _gpu(params: dict[str, Any]) -> str | None:
    return choice.gpu(params["backend"], params["device"])


class _Sizes(NamedTuple):
    """Numbers that both estimates need."""

    n: int
    d: int  # number of columns in which neighbours are searched
    affinity: int  # number of neighbours that have an affinity
    k: int  # number of density neighbours; DenSNE uses those that have an affinity
    wanted: int  # number of neighbours that are searched for
    n_components: int

    @classmethod
    def of(cls, n: int, d: int, params: dict[str, Any]) -> _Sizes:
        perplexity = min(float(params["perplexity"]), max(1.0, n - 1.0))
        objective, components = params.get("objective"), params["pca_components"]
        affinity = min(n - 1, int(3 * perplexity + 0.5))
        if objective is not None:
            affinity = objective.calibration.n_neighbors(perplexity, n)
        k = min(n - 1, int(params.get("density_neighbors", 0)))
        if components is not None:
            d = min(d, 50 if components == "auto" else int(components))
        return cls(n, d, affinity, k, max(affinity, k), int(params["n_components"]))

    def pairs(self, symmetric: float = _PAIRS) -> int:
        """Return the number of pairs with an affinity, for ``symmetric`` pairs per directed pair."""
        return int(self.n * self.affinity * min(symmetric, self.n / max(self.affinity, 1.0)))


def on_gpu(n: int, d: int, params: dict[str, Any]) -> int:
    """Return the peak memory of a GPU: that of the search, of the symmetric affinities, or of the optimisation."""
    _, d, affinity, k, wanted, n_components = sizes = _Sizes.of(n, d, params)
    rows = min(n, max(1, _DISTANCES // min(n, _DISTANCES)))
    measured = 24 * min(_DISTANCES, (n if n >= _INVERTED_FROM else rows) * (wanted + 8) * d)
    search = n * (20 * d + 16 * wanted) + _DISTANCE_BYTES * min(_DISTANCES, n * n) + measured
    pairs = sizes.pairs(_PAIRS + 0.2)
    symmetric = n * (8 * d + _PAIR_BYTES * affinity) + 8 * pairs + _SORTED_BYTES * min(_SORTED, 2 * n * affinity)
    optimisation = 16 * pairs + n * (12 * k + _POINT_BYTES)
    if n_components > 2:  # sums over all pairs by plain PyTorch
        optimisation += _ALL_PAIR_BYTES * min(_ALL_PAIRS, n * n)
    return int(max(search, symmetric, optimisation))


def _on_processor(n: int, columns: int, params: dict[str, Any]) -> int:
    objective = params.get("objective")
    real = 8 if (params.get("precision") if objective is None else objective.precision) == "double" else 4
    _, d, affinity, k, wanted, n_components = sizes = _Sizes.of(n, columns, params)
    data = n * 8 * (columns + d)  # X, and our copy if X has another type, or its components
    graph = n * wanted * (4 + 8)
    matrix = sizes.pairs() * (4 + real)
    calibration = graph + n * affinity * (real + 2 * (4 + real)) + matrix
    state = 12 * n * n_components * 8 + _MESH_BYTES
    if constraints.on_path(params):
        state += 16 * n * n_components * 8  # the maps of a path
        state += min(_SCORING_BYTES, 6144 * n) * Workers(params["n_jobs"]).n_threads
    if constraints.adapts(params):
        state += n * (4 * 8 + real)  # log scales in two orders, scales, scales along the curve, and inverse scales
        if n_components <= 3:  # coordinates and scales along the curve, codes and order, and the tree
            state += int(n * (4 * real + 8 + 4) + 1.4 * n / _LEAF * _SUMMED * real + 4 * n / _LEAF * 4 * 8)
    optimisation = (2 if n >= 8192 else 1) * (matrix + 12 * n * k) + state
    groups = graph + matrix + n * k * (4 + 3 * 8)  # ratios of distances, their logarithms, and repeated neighbours
    if params["neighbors"] is not None:
        search = n * wanted * 16
    else:  # the centred data in double and in single precision, and the shortlists
        shortlists = n * int(1.5 * (wanted + max(8, wanted // 4))) * 8 if n >= APPROXIMATE_FROM else 64 * 2**20
        search = n * d * (8 + 4) + shortlists
    return int(_BASE + data + max(search + graph, calibration, groups, optimisation))


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


def shortage(shape: tuple[int, int], params: dict[str, Any], stored: int | None = None) -> tuple[int, int] | None:
    """Return the memory that a fit will need and the free memory, in bytes, or None if there is enough.

    The data are already in memory, so only what the fit adds is compared with the free memory. For a fit on a GPU, it
    is the memory of the GPU. ``stored`` is the number of stored values of sparse data, which alone take memory.
    """
    n, d = shape
    d = d if stored is None else max(1, stored // n)
    device = _gpu(params)
    if device is not None:
        needed, free = on_gpu(n, d, params), choice.free_memory(device)
        return None if needed <= free else (needed, free)
    present = n * d * 8 * (2 if params["pca_components"] is None else 1)
    total, needed = available(), _on_processor(n, d, params) - _BASE - present
    return None if total is None or needed <= total else (needed, total)


def warn_if_short(shape: tuple[int, int], params: dict[str, Any], stored: int | None = None) -> None:
    """Warn if a fit will need more memory than is free. The arguments are those of :func:`shortage`."""
    if (found := shortage(shape, params, stored)) is not None:
        needed, free = found
        sizes = "perplexity or density_neighbors" if "density_neighbors" in params else "perplexity"
        of = "of memory" if _gpu(params) is None else "of the GPU"
        checks.warn(
            f"This fit needs about {needed / 1e9:.1f} GB {of}; only {free / 1e9:.1f} GB are free. Lower {sizes}, "
            "pass pca_components if the data have many features, or fit a sample."
        )


@contextmanager
def on_device(shape: tuple[int, int], params: dict[str, Any]) -> Iterator[None]:
    """Use the device of a fit of data of this shape during a block, after a check that it is there."""

    def message(reason: str) -> str:
        return (
            f"The device has too little memory for this fit, which needs about {on_gpu(*shape, params) / 1e9:.1f} GB "
            f"({reason}). Lower perplexity or density_neighbors, pass pca_components if the data have many features, "
            "fit a sample, or omit device to use the processor."
        )

    with choice.using(params["backend"], params["device"], message):
        yield
