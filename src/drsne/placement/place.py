"""The places, the novelty and the concentration of new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from drsne.affinities import conditional_affinities
from drsne.backends.numba.fields import field_tree
from drsne.backends.numba.kernels import placement as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.queries import Search, among_distances, search_among
from drsne.objectives.concentration import group_neighbors, repeated
from drsne.objectives.masses import slots
from drsne.pca import scores
from drsne.placement.reference import Reference

Array = NDArray[np.float64]
CHUNK = 4096  # number of new rows that are placed at once
_GRAIN = 16  # number of new rows per block
_ROUNDS, _STEPS = 4, 12  # searches for neighbours in the map, and steps after each
# A row is foreign if its nearest training row is much farther away than the neighbours of that row. Its affinities say
# little, so it is placed by its density: its weight rises with the novelty, and its radius may exceed the largest ones.
_FOREIGN = 2.0, 4.0  # novelty at which a row begins to be foreign, and at which it is foreign
_FOREIGN_WEIGHT, _FOREIGN_RADIUS = 10.0, 2.0  # weight that is added, and the factor on the largest radius


class _Field(NamedTuple):
    """The repulsion of the map, tabulated as a tree of cells."""

    fixed: tuple[Array, Array, Array, Array]  # places, places divided by the stretch, scales, masses
    tree: tuple[Any, ...]
    stretch: float
    partition: float

    @classmethod
    def of(cls, reference: Reference, workers: Workers) -> _Field:
        """Return the field of a map, and its partition sum."""
        stretch = float(np.sqrt(1.0 + reference.training.distance_smoothing))
        masses = reference.training.masses
        masses = np.ones(len(reference.places)) if masses is None else masses
        fixed = reference.places, reference.places / stretch, reference.scales, masses
        tree = field_tree(fixed, workers)
        out, forces = np.empty(len(masses)), np.empty_like(reference.places)
        workers.run(kernels.potentials, len(masses), fixed, tree, stretch, out, forces)
        return cls(fixed, tree, stretch, max(float(out.sum()), float(np.finfo(np.float64).tiny)))


class NewRows(NamedTuple):
    """New rows with their neighbours among the training rows."""

    graph: KnnGraph
    affinities: Array  # (m, k)
    radii: Array  # (m,)
    kept: NDArray[np.int32] | None  # how many of the density neighbours count, (m,)
    novelty: Array  # distance to the nearest training row, divided by the radius of that row, (m,)
    skipped: NDArray[np.int32]  # the training row that is left out while a row is placed, or -1, (m,)

    @property
    def foreign(self) -> Array:
        """How foreign each row is, from 0 to 1."""
        first, last = _FOREIGN
        return np.asarray(np.clip((self.novelty - first) / (last - first), 0.0, 1.0))

    @property
    def twins(self) -> NDArray[np.int32]:
        """The first training row that equals each row, or -1."""
        return np.where(self.graph.distances[:, 0] == 0.0, self.graph.indices[:, 0], -1)


def _chunks(reference: Reference, X: Any, pca: Any, workers: Workers) -> Iterator[NewRows]:
    """Yield the rows of ``X`` in chunks, with their neighbours, affinities and radii."""
    training = reference.training
    sparse = sp.issparse(X) if training.rows is None or pca is not None else sp.issparse(training.rows)
    k = training.searched_neighbors
    for start in range(0, X.shape[0], CHUNK):
        some = X[start : start + CHUNK]
        if sparse:
            some = sp.csr_matrix(some, dtype=np.float64)
        else:
            some = np.require(some.toarray() if sp.issparse(some) else some, np.float64, ["C", "A"])
        some = some if pca is None else scores(pca, some, workers)
        if training.rows is None:
            graph = among_distances(some, k, workers)
        else:
            graph = _search(reference, workers)(some, k, workers)
        yield _new_rows(reference, graph, np.full(some.shape[0], -1, np.int32), workers)


def _new_rows(reference: Reference, graph: KnnGraph, skipped: NDArray[np.int32], workers: Workers) -> NewRows:
    """Return rows with these neighbours. A row that is a training row itself is ``skipped`` among the others."""
    t = reference.training
    _check_finite(graph, t.metric)
    first = slots(graph, t.masses, t.affinity_neighbors)
    near = KnnGraph(np.ascontiguousarray(first.indices), np.ascontiguousarray(first.distances))
    own, _, _ = conditional_affinities(near.distances, t.perplexity, t.calibration, workers)
    with np.errstate(all="ignore"):
        back = np.exp(t.offsets[near.indices] - t.precisions[near.indices] * near.distances**2)
    back = np.where(np.isnan(back), 0.0, back)
    # A training row is already part of the sums by which the affinities of the others are divided.
    back = np.where(skipped[:, None] >= 0, np.minimum(back, 1.0), back / (1.0 + back))
    P = 0.5 * (own + back)
    least = max(t.added, float(np.finfo(np.float64).tiny))  # duplicates have no radius of their own
    novelty = graph.distances[:, 0] / np.maximum(t.radii[graph.indices[:, 0]], least)
    if not t.density_neighbors:  # den-SNE
        radii = np.sqrt((P * near.distances**2).sum(axis=1) / P.sum(axis=1))
        return NewRows(graph, P, radii, None, novelty, skipped)
    if t.directed:
        P[:, t.density_neighbors :] = 0.0
    listed = slots(graph, t.masses, t.density_neighbors)
    distances = np.ascontiguousarray(listed.distances)
    kept = group_neighbors(distances) if t.small_groups else None
    return NewRows(graph, P, repeated(distances, kept).mean(axis=1), kept, novelty, skipped)


def _check_finite(graph: KnnGraph, metric: Any) -> None:
    worst = graph.distances.max(initial=0.0)
    if not np.isfinite(worst) or graph.distances.min(initial=0.0) < 0:
        raise ValueError(
            f"Distances between new rows and training rows must be finite and non-negative; metric={metric!r} gave "
            f"{worst}. Rescale or drop the rows that the metric cannot compare."
        )


def placed_again(
    reference: Reference, rows: NDArray[np.intp], workers: Workers, progress: Callable[[int], None]
) -> Array:
    """Return the places of some training rows if each is left out of the map and placed as a new row."""
    places = np.empty((len(rows), reference.places.shape[1]))
    k, among = min(reference.training.searched_neighbors, len(reference.places) - 2), _search(reference, workers)
    for start in range(0, len(rows), CHUNK):
        some = rows[start : start + CHUNK].astype(np.int32)
        data = reference.training.rows[some]
        found = among(data if sp.issparse(data) else np.asarray(data, np.float64), k + 1, workers)
        # The row itself is removed. If it is not listed, because it has many duplicates, the last one is removed.
        others = found.indices != some[:, None]
        others[others.all(axis=1), -1] = False
        graph = KnnGraph(*(each[others].reshape(len(some), k) for each in found))
        new = _new_rows(reference, graph, some, workers)
        places[start : start + len(some)] = _placed(reference, new, workers, keep_twins=False)
        progress(start + len(some))
    return places


def placed(
    reference: Reference, X: Any, workers: Workers, *, pca: Any, progress: Callable[[int], None]
) -> tuple[Array, NDArray[np.int32]]:
    """Return the places of new rows, (m, d), and the first training row that equals each row, or -1.

    ``pca`` is that of the fit, or None.
    """
    places, known = np.empty((X.shape[0], reference.places.shape[1])), np.empty(X.shape[0], np.int32)
    done = 0
    for rows in _chunks(reference, X, pca, workers):
        some = slice(done, done + len(rows.radii))
        places[some], known[some] = _placed(reference, rows, workers), rows.twins
        done += len(rows.radii)
        progress(done)
    return places, known


def _placed(reference: Reference, rows: NewRows, workers: Workers, *, keep_twins: bool = True) -> Array:
    """Return the places of a chunk of rows. With ``keep_twins``, rows that equal training rows get their places."""
    training, field, m = reference.training, _field(reference, workers), len(rows.radii)
    log_radii = _log_radii(reference, rows.radii)
    foreign, density = rows.foreign, reference.density
    scales = np.exp(training.log_scale.at(log_radii))
    targets = training.target.at(log_radii, foreign * np.log(_FOREIGN_RADIUS) * abs(training.target.slope))
    weights = density.weight + foreign * _FOREIGN_WEIGHT
    near = np.ascontiguousarray(slots(rows.graph, training.masses, training.affinity_neighbors).indices)
    listed = slots(rows.graph, training.masses, training.density_neighbors).indices
    listed = np.ascontiguousarray(repeated(listed, rows.kept))
    total = len(reference.places) if training.masses is None else float(training.masses.sum())
    constants = (
        field.stretch,
        training.affinity_smoothing * field.partition,
        training.mass * total / field.partition,
    )
    terms = tuple(tuple(map(float, each)) if isinstance(each, tuple) else float(each) for each in density[1:])
    Y = np.empty((m, reference.places.shape[1]))
    own = near, rows.affinities, scales, listed
    shared = targets, weights, rows.skipped, field.fixed, field.tree, constants, terms
    workers.run(kernels.begin, m, Y, *own, *shared, grain=_GRAIN)
    for _ in range(_ROUNDS):
        in_map = np.empty((m, 0), np.int32)
        if density.of_map.share:
            in_map = _nearest_in_map(reference, Y, rows, weights > 0.0, workers)
        workers.run(kernels.descend, m, Y, *own, in_map, *shared, _STEPS, grain=_GRAIN)
    if keep_twins:
        twins = rows.twins
        known = twins >= 0
        Y[known] = reference.places[twins[known]]
    return Y


def _nearest_in_map(
    reference: Reference, Y: Array, rows: NewRows, needed: NDArray[np.bool_], workers: Workers
) -> NDArray[np.int32]:
    """Return the points of the map that are nearest to those of ``Y`` that are ``needed``, without skipped points."""
    k = min(reference.training.density_neighbors, len(reference.places) - 1)
    near = np.zeros((len(Y), k), np.int32)
    if needed.any():
        _, found = _tree(reference).query(Y[needed], np.arange(1, k + 2), workers=workers.n_threads)
        others = found != rows.skipped[needed, None]
        others[others.all(axis=1), -1] = False
        near[needed] = found[others].reshape(-1, k)
    if reference.training.masses is not None:
        near = slots(KnnGraph(near, np.zeros(near.shape)), reference.training.masses, k).indices
    return np.ascontiguousarray(repeated(near, rows.kept))


def novelty(reference: Reference, X: Any, workers: Workers, *, pca: Any) -> Array:
    """Return the distance of every row to its nearest training row, divided by the radius of that training row."""
    return np.concatenate([np.empty(0), *(rows.novelty for rows in _chunks(reference, X, pca, workers))])


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
