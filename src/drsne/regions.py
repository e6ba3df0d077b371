"""Regions of the data, and the distances between them, which the arrangement term compares with those in the map.

A region is a set of rows that are near each other. The distances are those of the means of the regions, those of one
row of each region if the rows have no means, or the lengths of the shortest paths from neighbour to neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csgraph
from sklearn.metrics.pairwise import euclidean_distances

from drsne.backends.arrays import host
from drsne.neighbors.search import EUCLIDEAN, Distances
from drsne.precision import rounded, unit_scale
from drsne.terms.arrangement import Arrangement, standardized
from drsne.terms.contrast import local_dimension

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

REGIONS, ROWS_PER_REGION = 100, 20  # largest number of regions, and smallest mean number of their rows
FEWEST = 4  # smallest number of regions whose distances are compared
SMALLEST = 0.3  # number of rows below which a region is divided among the others, relative to the mean number
_SAMPLE, _ITERATIONS = 64, 8  # number of rows of each region in the sample for k-means, and number of its iterations
_DIGITS = 9  # decimals to which distances at unit scale are compared
_TILE = 2048  # number of rows that are compared with all regions at once
_MEASURED = 5000  # number of rows from which the origin and the local dimension are measured
# Geodesic distances are chosen for data whose neighbour graph is connected, and whose local dimension exceeds that of
# the map by at most _THICKNESS, if they leave at most _EXPLAINED times as much unexplained by a flat map.
_PATHS, _THICKNESS, _EXPLAINED = 10, 0.5, 0.5  # the first is the number of neighbours of a row along which paths lead


class Regions(NamedTuple):
    """The region of every row, and the distances between regions."""

    labels: Labels  # (n,), -1 for rows that belong to none
    distances: Array  # (regions, regions)


@dataclass(frozen=True)
class Arranged:
    """Prepares the arrangement term of a fit with a weight and a kind of distances."""

    weight: float
    kind: str = "auto"
    automatic: bool = False  # whether the weight grows with small weights of the density term along a path

    def __call__(self, data: Any) -> Arrangement | None:
        """Return the term for prepared data, or None if they have too few rows, or regions that do not differ."""
        count = min(REGIONS, data.X.shape[0] // ROWS_PER_REGION)
        if count < FEWEST:
            return None
        labels, distances = regions(data, self.kind, count)
        inside, rows = labels >= 0, np.ones(len(labels)) if data.masses is None else data.masses
        masses = np.bincount(labels[inside], rows[inside], len(distances)).astype(np.float64)
        target, pair_weights = standardized(distances, masses)
        if target is None or len(distances) < FEWEST:
            return None
        labels = np.where(inside, labels, 0)
        return Arrangement(
            weight=self.weight,
            regions=labels,
            shares=np.where(inside, rows / masses[labels], 0.0),  # rows without a region do not feel the term
            target=rounded(target),  # the last bits depend on the units of the data, but the map must not
            pair_weights=pair_weights,
        )


def regions(data: Any, kind: str, count: int) -> Regions:
    """Return about ``count`` regions of prepared data. The ``kind`` of distances is documented by the estimator."""
    X, settings = data.X, data.settings
    if kind == "geodesic" or (settings.precomputed and sp.issparse(X)):
        return _along_graph(_graph(data), data.masses, count)
    if kind == "auto" and (found := _unrolled(data, count)) is not None:
        return found
    if not settings.precomputed and not sp.issparse(X) and settings.metric in (*EUCLIDEAN, "cosine"):
        return _by_means(data, count)
    return _by_landmarks(data, count)


def _rows(data: Any) -> tuple[Callable[[Any], Array], float]:
    """Return a function that gives some rows, near the origin and at unit scale, and the scale."""
    X, cosine = data.X, data.settings.metric == "cosine"
    scale = unit_scale(X)
    some = X[:: max(1, len(X) // _MEASURED)] / scale
    origin = 0.0 if cosine else some.mean(axis=0)
    extent = 1.0 if cosine else unit_scale(some - origin)

    def rows(some: Any) -> Array:
        part = X[some] / scale
        if cosine:
            return np.asarray(part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), np.finfo(float).tiny))
        return np.asarray((part - origin) / extent)

    return rows, 1.0 if cosine else scale * extent


def _by_means(data: Any, count: int) -> Regions:
    """Return regions around the means of k-means (Lloyd iterations on a sample), with the distances of the means."""
    n, rng = len(data.X), np.random.RandomState(0)
    rows, scale = _rows(data)
    sample = rows(np.sort(rng.permutation(n)[: count * _SAMPLE]))
    centres = sample[np.sort(rng.permutation(len(sample))[:count])]
    for _ in range(_ITERATIONS):
        labels = _nearest(lambda some: sample[some], len(sample), centres, data.workers)
        sizes = np.bincount(labels, minlength=count)[:, None]
        sums = np.stack([np.bincount(labels, column, count) for column in sample.T], axis=1)
        centres = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres)
    labels = _nearest(rows, n, centres, data.workers)
    kept = _large(labels, data.masses, count)
    if not kept.all():
        centres = centres[kept]
        labels = _nearest(rows, n, centres, data.workers)
    differences = centres[:, None, :] - centres[None, :, :]
    return Regions(labels, scale * np.sqrt(np.einsum("abf,abf->ab", differences, differences)))


def _large(labels: Labels, masses: Array | None, count: int) -> NDArray[np.bool_]:
    """Return which regions have enough rows, or enough of their mass."""
    found, enough = labels[labels >= 0], np.zeros(count, dtype=bool)
    for weights in (None, masses):
        sizes = np.bincount(found, None if weights is None else weights[labels >= 0], count)
        enough |= sizes >= SMALLEST * sizes.sum() / count
    return enough


def _nearest(rows: Callable[[slice], Array], n: int, centres: Array, workers: Any) -> Labels:
    """Return the nearest centre of every row."""
    halves, columns = 0.5 * (centres**2).sum(axis=1), np.ascontiguousarray(centres.T)
    labels = np.empty(n, np.intp)

    def assign(block: int, lo: int, hi: int) -> None:
        for start in range(lo, hi, _TILE):
            some = slice(start, min(start + _TILE, hi))
            # Rounded, because the last bits depend on the units of the data, and many rows of integers have ties.
            labels[some] = np.round(halves - rows(some) @ columns, _DIGITS).argmin(axis=1)

    workers.run(assign, n)
    return labels


def _by_landmarks(data: Any, count: int) -> Regions:
    """Return regions around some rows, with the distances of these rows."""
    n = data.X.shape[0]
    landmarks = np.sort(np.random.RandomState(0).permutation(n)[:count])
    between = _between(data)

    def labels() -> Labels:
        parts = [between(slice(i, i + _TILE), landmarks) for i in range(0, n, _TILE)]
        unit = unit_scale(parts[0])
        return np.concatenate([np.round(part / unit, _DIGITS).argmin(axis=1) for part in parts])

    found = labels()
    kept = _large(found, data.masses, count)
    if not kept.all():
        landmarks = landmarks[kept]
        found = labels()
    table = between(landmarks, landmarks)
    return Regions(found, 0.5 * (table + table.T))


def _between(data: Any) -> Callable[[Any, Labels], Array]:
    """Return a function that gives the distances of some rows to others."""
    X, metric = data.X, data.settings.metric
    if data.settings.precomputed:
        return lambda some, others: np.asarray(X[some])[:, others]
    if isinstance(metric, str) and metric in EUCLIDEAN:  # sparse data
        unit = unit_scale(X.data)
        return lambda some, others: np.asarray(euclidean_distances(X[some] / unit, X[others] / unit))
    measure = Distances(X, metric)
    rows = measure.rows

    def distances(some: Any, others: Labels) -> Array:
        measure.rows = rows[others]
        return measure.to(rows[some], data.workers)

    return distances


def _graph(data: Any) -> sp.csr_matrix:
    """Return the distances of rows to their nearest neighbours as a symmetric matrix."""
    near = data.graph.first(min(_PATHS, data.graph.indices.shape[1]))
    columns, lengths = host(near.indices).ravel(), np.array(host(near.distances), dtype=np.float64).ravel()
    n = data.X.shape[0]
    lengths = _as_lengths(data, lengths)
    positive = lengths[lengths > 0.0]
    # An entry of 0 would be no edge. Without a positive length, no two rows that differ are neighbours.
    lengths = np.maximum(lengths, 1e-6 * positive.min()) if len(positive) else lengths
    rows = np.repeat(np.arange(n), len(columns) // n)
    graph = sp.csr_matrix((lengths, (rows, columns)), shape=(n, n))
    return graph.maximum(graph.T).tocsr()


def _as_lengths(data: Any, distances: Array) -> Array:
    """Return distances as lengths, which add up along a path: those of two metrics are squares of lengths."""
    metric = data.settings.metric
    if not isinstance(metric, str) or metric not in ("cosine", "sqeuclidean"):
        return distances
    return np.sqrt(2.0 * distances if metric == "cosine" else distances)


def _along_graph(graph: sp.csr_matrix, masses: Array | None, count: int) -> Regions:
    """Return regions around some rows, with the lengths of the shortest paths between these rows.

    A path leads from region to region. Its part between two regions is the shortest that crosses their border once.
    """
    _, part = csgraph.connected_components(graph, directed=False)
    sizes = np.bincount(part)
    chosen = np.random.RandomState(0).permutation(graph.shape[0])[:count]
    # The largest parts of the graph have a region at least. Rows of parts without a region belong to none.
    lacking = np.setdiff1d(np.argsort(-sizes, kind="stable")[:count], part[chosen])
    added = np.array([np.flatnonzero(part == each)[0] for each in lacking], dtype=chosen.dtype)
    landmarks = np.sort(np.append(chosen, added))
    labels, reach = _reached(graph, landmarks)
    large = _large(labels, masses, len(landmarks))
    kept = large | ~np.isin(part[landmarks], part[landmarks[large]])
    if not kept.all():
        landmarks = landmarks[kept]
        labels, reach = _reached(graph, landmarks)
    edges, m = graph.tocoo(), len(landmarks)
    start, end = labels[edges.row], labels[edges.col]
    across = (start < end) & (start >= 0)
    lengths = (reach[edges.row] + edges.data + reach[edges.col])[across]
    pair = start[across] * m + end[across]
    order = np.lexsort((lengths, pair))
    pair, shortest = np.unique(pair[order], return_index=True)
    borders = sp.csr_matrix((lengths[order][shortest], (pair // m, pair % m)), shape=(m, m))
    paths = csgraph.dijkstra(borders, directed=False)
    joined = np.isfinite(paths)
    return Regions(labels, np.where(joined, paths, 2.0 * paths[joined].max()))


def _reached(graph: sp.csr_matrix, landmarks: Labels) -> tuple[Labels, Array]:
    """Return the nearest landmark of every row along the graph, and the length of the path to it."""
    reach, _, source = csgraph.dijkstra(
        graph, directed=False, indices=landmarks, min_only=True, return_predecessors=True
    )
    return np.where(source >= 0, np.searchsorted(landmarks, source), -1), reach


def _unrolled(data: Any, count: int) -> Regions | None:
    """Return regions with geodesic distances if the data are a sheet or a curve that these distances unroll."""
    settings, n = data.settings, data.X.shape[0]
    flat = int(settings.n_components)
    some = np.linspace(0, n - 1, min(n, _MEASURED)).astype(np.intp)
    near = np.asarray(host(data.graph.first(min(30, data.graph.indices.shape[1])).distances)[some], dtype=np.float64)
    near = _as_lengths(data, near)
    if not local_dimension(near, None, None).value <= flat + _THICKNESS:
        return None
    graph = _graph(data)
    if csgraph.connected_components(graph, directed=False)[0] > 1:
        return None
    found = _along_graph(graph, data.masses, count)
    straight = regions(data, "metric", count)
    return found if _unexplained(found, data, flat) <= _EXPLAINED * _unexplained(straight, data, flat) else None


def _unexplained(found: Regions, data: Any, d: int) -> float:
    """Return one minus the correlation of the distances with those in a flat map by classical scaling."""
    masses = np.bincount(found.labels, data.masses, len(found.distances)).astype(np.float64)
    target, weights = standardized(found.distances, masses, cap=np.inf)
    if target is None:
        return 0.0
    shares, B = masses / masses.sum(), -0.5 * (found.distances / found.distances.max()) ** 2
    B = B - (B @ shares)[:, None] - (shares @ B)[None, :] + shares @ B @ shares
    root = np.sqrt(shares)
    values, vectors = np.linalg.eigh(root[:, None] * B * root[None, :])
    Y = vectors[:, -d:] / root[:, None] * np.sqrt(np.maximum(values[-d:], 0.0))
    lengths = np.sqrt(((Y[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))
    shown, _ = standardized(lengths, masses, cap=np.inf)
    return 1.0 if shown is None else 1.0 - float((weights * target * shown).sum())
