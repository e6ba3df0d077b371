"""New rows with their neighbours among the training rows, their affinities, radii and novelty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from drsne.affinities import conditional_affinities
from drsne.backends.protocol import Placer
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.precomputed import among_distances
from drsne.neighbors.queries import Search, search_among
from drsne.pca import scores
from drsne.placement.reference import CORRECTING, Reference
from drsne.terms.masses import slots
from drsne.terms.profile import group_neighbors, repeated

Array = NDArray[np.float64]
NOVEL = 1.5, 3.0  # novelty at which a row begins to be kept apart, and at which it is fully kept apart


class NewRows(NamedTuple):
    """New rows with their neighbours among the training rows."""

    graph: KnnGraph
    affinities: Array  # (m, k)
    radii: Array  # (m,)
    kept: NDArray[np.int32] | None  # how many of the density neighbours count, (m,)
    novelty: Array  # distance to the nearest training row, divided by the spacing of the rows there, (m,)
    skipped: NDArray[np.int32]  # the training row that is left out while a row is placed, or -1, (m,)

    @property
    def novel(self) -> Array:
        """How far each row is kept apart from the points of the map, from 0 to 1."""
        first, last = NOVEL
        return np.asarray(np.clip((self.novelty - first) / (last - first), 0.0, 1.0))

    @property
    def twins(self) -> NDArray[np.int32]:
        """The first training row that equals each row, or -1."""
        return np.where(self.graph.distances[:, 0] == 0.0, self.graph.indices[:, 0], -1)


def chunks(reference: Reference, X: Any, placer: Placer, pca: Any = None) -> Iterator[NewRows]:
    """Yield the rows of ``X`` in chunks, with their neighbours, affinities and radii."""
    training = reference.training
    sparse = sp.issparse(X) if training.rows is None or pca is not None else sp.issparse(training.rows)
    k, step, workers = training.searched_neighbors, placer.rows_at_once(X.shape[1]), placer.workers
    for start in range(0, X.shape[0], step):
        some = X[start : start + step]
        if sparse:
            some = sp.csr_matrix(some, dtype=np.float64)
        else:
            some = np.require(some.toarray() if sp.issparse(some) else some, np.float64, ["C", "A"])
        some = some if pca is None else scores(pca, some, workers)
        if training.rows is None:
            graph = among_distances(some, k, workers)
        else:
            graph = _search(reference, placer)(some, k, workers)
        yield with_neighbors(reference, graph, np.full(some.shape[0], -1, np.int32), placer)


def with_neighbors(reference: Reference, graph: KnnGraph, skipped: NDArray[np.int32], placer: Placer) -> NewRows:
    """Return rows with these neighbours. A row that is a training row itself is ``skipped`` among the others."""
    t = reference.training
    _check_finite(graph, t.metric)
    first = slots(graph, t.masses, t.affinity_neighbors)
    near = KnnGraph(np.ascontiguousarray(first.indices), np.ascontiguousarray(first.distances))
    own, _, _ = conditional_affinities(near.distances, t.perplexity, t.calibration, placer.workers)
    with np.errstate(all="ignore"):
        log_ratio = t.offsets[near.indices] - t.precisions[near.indices] * near.distances**2
        # A training row is already part of the sums by which the affinities of the others are divided.
        back = np.where(skipped[:, None] >= 0, np.exp(np.minimum(log_ratio, 0.0)), expit(log_ratio))
    P = 0.5 * (own + np.where(np.isnan(back), 0.0, back))
    least = max(t.added, float(np.finfo(np.float64).tiny))
    spacings = t.radii if t.spacings is None else t.spacings
    novelty = graph.distances[:, 0] / np.maximum(spacings[graph.indices[:, 0]], least)
    if not t.density_neighbors:  # den-SNE
        radii = np.sqrt((P * near.distances**2).sum(axis=1) / P.sum(axis=1))
        return NewRows(graph, P, radii, None, novelty, skipped)
    if t.directed:
        P[:, t.density_neighbors :] = 0.0
    listed = slots(graph, t.masses, t.density_neighbors)
    distances = np.ascontiguousarray(listed.distances)
    kept = group_neighbors(distances) if t.small_groups else None
    radii = repeated(distances, kept).mean(axis=1)
    if t.corrections is not None:
        radii *= np.exp(t.corrections[graph.indices[:, :CORRECTING]].mean(axis=1) + t.correction_shift)
    return NewRows(graph, P, radii, kept, novelty, skipped)


def _check_finite(graph: KnnGraph, metric: Any) -> None:
    wrong = ~(np.isfinite(graph.distances) & (graph.distances >= 0)).all(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Distances between new rows and training rows must be finite and non-negative; metric={metric!r} gave "
            f"{graph.distances[row].max()} for {int(wrong.sum())} rows (inf can also stand for nan), for example for "
            f"row {row} of its chunk. Rescale or drop these rows."
        )


def others_of(reference: Reference, some: NDArray[np.int32], X: Any, placer: Placer) -> KnnGraph:
    """Return the neighbours of training rows, or of other values ``X`` of them, among the other training rows."""
    k = min(reference.training.searched_neighbors, len(reference.places) - 2)
    data = reference.training.rows[some] if X is None else X
    data = data if sp.issparse(data) else np.asarray(data, np.float64)
    found = _search(reference, placer)(data, k + 1, placer.workers)
    others = other_columns(found.indices, some)
    return KnnGraph(found.indices[others].reshape(-1, k), found.distances[others].reshape(-1, k))


def other_columns(indices: NDArray[Any], own: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which entries of every row are others than the row itself, or than the last one if it is not listed.

    A row with many duplicates may not be listed among its nearest rows.
    """
    others: NDArray[np.bool_] = indices != own[:, None]
    others[others.all(axis=1), -1] = False
    return others


def halfway(reference: Reference, rows: NDArray[np.intp], rank: int, placer: Placer) -> Any:
    """Return some training rows after they were moved halfway to their neighbour of this rank."""
    near = others_of(reference, rows.astype(np.int32), None, placer).indices[:, rank]
    data = reference.training.rows
    return (data[rows] + data[near]) * 0.5


def _search(reference: Reference, placer: Placer) -> Search:
    def made() -> Search:
        X = reference.training.rows
        X = sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return search_among(X, reference.training.metric, placer.workers, placer.dense_search)

    return reference.derived("search", placer, made)


def novelty(reference: Reference, X: Any, placer: Placer, *, pca: Any) -> Array:
    """Return the distance of every row to its nearest training row, divided by the radius of that training row."""
    return np.concatenate([np.empty(0), *(rows.novelty for rows in chunks(reference, X, placer, pca))])


def radii(reference: Reference, X: Any, placer: Placer) -> tuple[Array, NDArray[np.bool_]]:
    """Return the radius of every row, and whether it differs from all training rows."""
    sizes, new = zip(*((rows.radii, rows.twins < 0) for rows in chunks(reference, X, placer)), strict=True)
    return np.concatenate(sizes), np.concatenate(new)


def concentration(reference: Reference, X: Any, placer: Placer, *, pca: Any) -> Array:
    """Return the log relative concentration of every row among the training rows."""
    found = (log_concentration(reference, rows) for rows in chunks(reference, X, placer, pca))
    return np.concatenate([np.empty(0), *found])


def log_concentration(reference: Reference, rows: NewRows) -> Array:
    """Return the log relative concentration of some rows. Rows that equal training rows have theirs."""
    training = reference.training
    radii, twins = rows.radii.copy(), rows.twins
    known = twins >= 0
    own = training.radii if training.corrections is None else training.radii * np.exp(training.corrections)
    radii[known] = own[twins[known]]
    return training.concentration.at(training.log_radii(radii))
