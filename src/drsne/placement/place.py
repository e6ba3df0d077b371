"""The places, the novelty and the concentration of new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.affinities import conditional_affinities
from drsne.backends.numba.cells import scaled_cells, scaled_structure, scales_along
from drsne.backends.numba.kernels import placement as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.queries import Search, among_distances, search_among
from drsne.objectives.concentration import group_neighbors, repeated
from drsne.pca import scores
from drsne.placement.reference import Reference

Array = NDArray[np.float64]
CHUNK = 4096  # number of new rows that are placed at once
_GRAIN = 16  # number of new rows per block
_LEAF, _THETA, _SPREADING = 24, 0.45, 0.15  # settings of the tree
_ROUNDS, _STEPS = 4, 12  # searches for neighbours in the map, and steps after each


class _Field(NamedTuple):
    """The repulsion of the map, tabulated as a tree of cells."""

    fixed: tuple[Array, Array, Array]  # places, places divided by the stretch, scales
    tree: tuple[Any, ...]
    stretch: float
    partition: float

    @classmethod
    def of(cls, reference: Reference, workers: Workers) -> _Field:
        """Return the field of a map, and its partition sum."""
        places, scales = reference.places, reference.scales
        stretch = float(np.sqrt(1.0 + reference.training.distance_smoothing))
        shrunk = places / stretch
        d = places.shape[1]
        flat = shrunk if d <= 3 else np.zeros((1, 1))  # the tree has at most three dimensions
        at = scaled_structure(flat, scales[: len(flat)], workers, _LEAF)
        found = scaled_cells(flat, scales_along(scales[: len(flat)], np.float64, workers, at), workers, at)
        tree = (found.coordinates, found.scale, at.nodes, found.summed, (_THETA**2, _SPREADING))
        out = np.empty(len(places))
        workers.run(kernels.potentials, len(places), shrunk, scales, tree, stretch, out)
        return cls((places, shrunk, scales), tree, stretch, max(float(out.sum()), float(np.finfo(np.float64).tiny)))


class NewRows(NamedTuple):
    """New rows with their neighbours among the training rows."""

    graph: KnnGraph
    affinities: Array  # (m, k)
    radii: Array  # (m,)
    kept: NDArray[np.int32] | None

    @property
    def twins(self) -> NDArray[np.int32]:
        """The first training row that equals each row, or -1."""
        return np.where(self.graph.distances[:, 0] == 0.0, self.graph.indices[:, 0], -1)


def _chunks(reference: Reference, X: Any, pca: Any, workers: Workers) -> Iterator[NewRows]:
    """Yield the rows of ``X`` in chunks, with their neighbours, affinities and radii."""
    rows = reference.training.rows
    sparse = sp.issparse(X) if rows is None or pca is not None else sp.issparse(rows)
    for start in range(0, X.shape[0], CHUNK):
        some = X[start : start + CHUNK]
        if sparse:
            some = sp.csr_matrix(some, dtype=np.float64)
        else:
            some = np.require(some.toarray() if sp.issparse(some) else some, np.float64, ["C", "A"])
        yield _new_rows(reference, some if pca is None else scores(pca, some, workers), workers)


def _new_rows(reference: Reference, X: Any, workers: Workers) -> NewRows:
    """Return the neighbours, affinities and radii of some new rows."""
    t = reference.training
    k = max(t.affinity_neighbors, t.density_neighbors)
    graph = among_distances(X, k, workers) if t.rows is None else _search(reference, workers)(X, k, workers)
    _check_finite(graph, t.metric)
    near = KnnGraph(*(np.ascontiguousarray(each) for each in graph.first(t.affinity_neighbors)))
    own, _, _ = conditional_affinities(near.distances, t.perplexity, t.calibration, workers)
    with np.errstate(over="ignore", under="ignore"):
        back = np.exp(t.offsets[near.indices] - t.precisions[near.indices] * near.distances**2)
    P = 0.5 * (own + back / (1.0 + back))
    if not t.density_neighbors:  # den-SNE
        radii = np.sqrt((P * near.distances**2).sum(axis=1) / P.sum(axis=1))
        return NewRows(graph, P, radii, None)
    if t.directed:
        P[:, t.density_neighbors :] = 0.0
    distances = np.ascontiguousarray(graph.distances[:, : t.density_neighbors])
    kept = group_neighbors(distances) if t.small_groups else None
    return NewRows(graph, P, repeated(distances, kept).mean(axis=1), kept)


def _check_finite(graph: KnnGraph, metric: Any) -> None:
    worst = graph.distances.max(initial=0.0)
    if not np.isfinite(worst) or graph.distances.min(initial=0.0) < 0:
        raise ValueError(
            f"Distances between new rows and training rows must be finite and non-negative; metric={metric!r} gave "
            f"{worst}. Rescale or drop the rows that the metric cannot compare."
        )


def placed(reference: Reference, X: Any, workers: Workers, *, pca: Any, progress: Callable[[int], None]) -> Array:
    """Return the places of new rows, (m, d). ``pca`` is that of the fit, or None."""
    places = np.empty((X.shape[0], reference.places.shape[1]))
    done = 0
    for rows in _chunks(reference, X, pca, workers):
        places[done : done + len(rows.radii)] = _placed(reference, rows, workers)
        done += len(rows.radii)
        progress(done)
    return places


def _placed(reference: Reference, rows: NewRows, workers: Workers) -> Array:
    training, field, m = reference.training, _field(reference, workers), len(rows.radii)
    log_radii = _log_radii(reference, rows.radii)
    scales, targets = np.exp(training.log_scale.at(log_radii)), training.target.at(log_radii)
    near = np.ascontiguousarray(rows.graph.indices[:, : training.affinity_neighbors])
    listed = np.ascontiguousarray(repeated(rows.graph.indices[:, : training.density_neighbors], rows.kept))
    n = len(reference.places)
    constants = (
        field.stretch,
        training.affinity_smoothing * field.partition,
        training.mass * n / field.partition,
    )
    density = tuple(tuple(map(float, each)) if isinstance(each, tuple) else float(each) for each in reference.density)
    Y = np.empty((m, reference.places.shape[1]))
    own = near, rows.affinities, scales, listed
    shared = targets, field.fixed, field.tree, constants, density
    workers.run(kernels.begin, m, Y, *own, *shared, grain=_GRAIN)
    rounds = _ROUNDS if reference.density.of_map.weight else 1
    for _ in range(rounds):
        in_map = np.empty((m, 0), np.int32)
        if reference.density.of_map.weight:
            _, found = _tree(reference).query(Y, np.arange(1, training.density_neighbors + 1), workers=workers.n_threads)
            in_map = np.ascontiguousarray(repeated(found.astype(np.int32), rows.kept))
        steps = _STEPS if rounds > 1 else _ROUNDS * _STEPS
        workers.run(kernels.descend, m, Y, *own, in_map, *shared, steps, grain=_GRAIN)
    twins = rows.twins
    known = twins >= 0
    Y[known] = reference.places[twins[known]]
    return Y


def novelty(reference: Reference, X: Any, workers: Workers, *, pca: Any) -> Array:
    """Return the distance of every row to its nearest training row, divided by the radius of that training row."""
    training = reference.training
    least = max(training.added, float(np.finfo(np.float64).tiny))  # duplicates have no radius of their own
    found = np.empty(0)
    for rows in _chunks(reference, X, pca, workers):
        nearest, distances = rows.graph.indices[:, 0], rows.graph.distances[:, 0]
        found = np.append(found, distances / np.maximum(training.radii[nearest], least))
    return found


def concentration(reference: Reference, X: Any, workers: Workers, *, pca: Any) -> Array:
    """Return the log relative concentration of every row among the training rows."""
    found = np.empty(0)
    for rows in _chunks(reference, X, pca, workers):
        radii, twins = rows.radii.copy(), rows.twins
        known = twins >= 0
        radii[known] = reference.training.radii[twins[known]]
        found = np.append(found, reference.training.concentration.at(_log_radii(reference, radii)))
    return found


def _log_radii(reference: Reference, radii: Array) -> Array:
    return np.asarray(np.log(np.maximum(radii + reference.training.added, np.finfo(np.float64).tiny)))


def _field(reference: Reference, workers: Workers) -> _Field:
    if "field" not in reference._derived:
        reference._derived["field"] = _Field.of(reference, workers)
    found: _Field = reference._derived["field"]
    return found


def _search(reference: Reference, workers: Workers) -> Search:
    if "search" not in reference._derived:
        X = reference.training.rows
        X = sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        reference._derived["search"] = search_among(X, reference.training.metric, workers)
    found: Search = reference._derived["search"]
    return found


def _tree(reference: Reference) -> Any:
    if "tree" not in reference._derived:
        from scipy.spatial import cKDTree

        reference._derived["tree"] = cKDTree(reference.places)
    return reference._derived["tree"]
