"""The places, the novelty and the concentration of new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from drsne.affinities import conditional_affinities
from drsne.backends.protocol import Placer, Rows, Shared
from drsne.neighbors.graph import KnnGraph
from drsne.neighbors.precomputed import among_distances
from drsne.neighbors.queries import Search, search_among
from drsne.pca import scores
from drsne.placement.reference import CORRECTING, Reference
from drsne.terms.masses import slots
from drsne.terms.profile import group_neighbors, repeated

Array = NDArray[np.float64]
T = TypeVar("T")
_ROUNDS, _STEPS = 4, 12  # searches for neighbours in the map, and steps after each
_FAR_ROUNDS, _FAR_STEPS, _SHORTENED = 12, 6, 6  # the same for novel rows, and how often a round is shortened
_FAR_GAIN = 1e-2  # decrease of the loss in a round, below which a novel row stays where it is
# A row is novel if its nearest training row is much farther away than the neighbours of that row. Its affinities say
# little, so it is kept apart from the points of the map: instead of a density term, it has a term that pulls its mean
# distance to the nearest points to a length that is larger than the distance of nearly all points to their 30th
# neighbour.
_NOVEL = 1.5, 3.0  # novelty at which a row begins to be kept apart, and at which it is fully kept apart
_APART_WEIGHT, _APART_RADIUS, _APART_QUANTILE = 10.0, 1.5, 0.99
_OUTER = 0.5  # share of that weight with which a row starts outside of the map
_NEIGHBORS = 30
_MEASURED = 2**18  # number of points of the map whose neighbours are listed at once


class _Field(NamedTuple):
    """The repulsion of the map."""

    at: Any  # of Placer.field
    stretch: float
    partition: float
    centre: Array  # of the map, (d,)
    reach: float  # largest distance of a point from the centre

    @classmethod
    def of(cls, reference: Reference, placer: Placer) -> _Field:
        """Return the field of a map, and its partition sum."""
        stretch = float(np.sqrt(1.0 + reference.training.distance_smoothing))
        masses = reference.training.masses
        masses = np.ones(len(reference.places)) if masses is None else masses
        at, partition = placer.field(reference.places, reference.scales, masses, stretch)
        partition = max(partition, float(np.finfo(np.float64).tiny))
        centre = reference.places.mean(axis=0)
        reach = float(np.linalg.norm(reference.places - centre, axis=1).max())
        return cls(at, stretch, partition, centre, reach)


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
        first, last = _NOVEL
        return np.asarray(np.clip((self.novelty - first) / (last - first), 0.0, 1.0))

    @property
    def twins(self) -> NDArray[np.int32]:
        """The first training row that equals each row, or -1."""
        return np.where(self.graph.distances[:, 0] == 0.0, self.graph.indices[:, 0], -1)


def _chunks(reference: Reference, X: Any, pca: Any, placer: Placer) -> Iterator[NewRows]:
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
        yield _new_rows(reference, graph, np.full(some.shape[0], -1, np.int32), placer)


def _new_rows(reference: Reference, graph: KnnGraph, skipped: NDArray[np.int32], placer: Placer) -> NewRows:
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


def placed_again(
    reference: Reference, rows: NDArray[np.intp], placer: Placer, progress: Callable[[int], None], X: Any = None
) -> Array:
    """Return the places of some training rows if each is left out of the map and placed as a new row.

    ``X`` are other values of these rows, or None for those of the fit.
    """
    places = np.empty((len(rows), reference.places.shape[1]))
    step = placer.rows_at_once(reference.training.rows.shape[1])
    for start in range(0, len(rows), step):
        some = rows[start : start + step].astype(np.int32)
        graph = _others(reference, some, None if X is None else X[start : start + step], placer)
        new = _new_rows(reference, graph, some, placer)
        places[start : start + len(some)] = _placed(reference, new, placer, keep_twins=False)
        progress(start + len(some))
    return places


def _others(reference: Reference, some: NDArray[np.int32], X: Any, placer: Placer) -> KnnGraph:
    """Return the neighbours of training rows, or of other values ``X`` of them, among the other training rows."""
    k = min(reference.training.searched_neighbors, len(reference.places) - 2)
    data = reference.training.rows[some] if X is None else X
    data = data if sp.issparse(data) else np.asarray(data, np.float64)
    found = _search(reference, placer)(data, k + 1, placer.workers)
    # The row itself is removed. If it is not listed, because it has many duplicates, the last one is removed.
    others = found.indices != some[:, None]
    others[others.all(axis=1), -1] = False
    return KnnGraph(*(each[others].reshape(len(some), k) for each in found))


def halfway(reference: Reference, rows: NDArray[np.intp], rank: int, placer: Placer) -> Any:
    """Return some training rows after they were moved halfway to their neighbour of this rank."""
    near = _others(reference, rows.astype(np.int32), None, placer).indices[:, rank]
    data = reference.training.rows
    return (data[rows] + data[near]) * 0.5


def placed(
    reference: Reference, X: Any, placer: Placer, *, pca: Any, progress: Callable[[int], None]
) -> tuple[Array, NDArray[np.int32]]:
    """Return the places of new rows, (m, d), and the first training row that equals each row, or -1.

    ``pca`` is that of the fit, or None.
    """
    places, known = np.empty((X.shape[0], reference.places.shape[1])), np.empty(X.shape[0], np.int32)
    done = 0
    for rows in _chunks(reference, X, pca, placer):
        some = slice(done, done + len(rows.radii))
        places[some], known[some] = _placed(reference, rows, placer), rows.twins
        done += len(rows.radii)
        progress(done)
    return places, known


def _placed(reference: Reference, rows: NewRows, placer: Placer, *, keep_twins: bool = True) -> Array:
    """Return the places of a chunk of rows. With ``keep_twins``, rows that equal training rows get their places."""
    losses, Y = _Losses.of(reference, rows, placer), np.empty((len(rows.radii), reference.places.shape[1]))
    for novel in (False, True):
        some = np.flatnonzero((losses.apart > 0.0) == novel)
        if len(some):
            Y[some] = (_far_places if novel else _usual_places)(losses.of_rows(some), Y.shape[1])
    if keep_twins:
        twins = rows.twins
        known = twins >= 0
        Y[known] = reference.places[twins[known]]
    return Y


def _usual_places(losses: _Losses, d: int) -> Array:
    """Return the places of rows that are not novel. A row has arrived if its nearest points do not change any more."""
    Y = losses.begin(d)
    near = losses.nearest(Y)
    moving = np.arange(len(Y))
    for _ in range(_ROUNDS):
        some, after = losses.of_rows(moving), Y[moving]
        arrived = some.descend(after, near, _STEPS)
        Y[moving], near_after = after, some.nearest(after)
        left = ~arrived | (np.sort(near_after, axis=1) != np.sort(near, axis=1)).any(axis=1)
        moving, near = moving[left], near_after[left]
        if not len(moving):
            break
    return Y


def _far_places(losses: _Losses, d: int) -> Array:
    """Return the places of novel rows.

    With the nearest points of the start of a round, a row can run into a group of other points. A round is therefore
    shortened until the loss at its end, with the nearest points there, is not larger than at its start.
    """
    Y = losses.begin(d)
    near = losses.nearest(Y)
    value = losses.values(Y, near)
    moving = np.arange(len(Y))
    for _ in range(_FAR_ROUNDS):
        some, after = losses.of_rows(moving), Y[moving]
        some.descend(after, near[moving], _FAR_STEPS)
        for _ in range(_SHORTENED):
            near_after = some.nearest(after)
            value_after = some.values(after, near_after)
            worse = value_after > value[moving]
            if not worse.any():
                break
            after[worse] = 0.5 * (after + Y[moving])[worse]
        better = moving[~worse]
        gained = value[better] - value_after[~worse]
        Y[better], near[better], value[better] = after[~worse], near_after[~worse], value_after[~worse]
        moving = better[gained > _FAR_GAIN]
        if not len(moving):
            break
    return Y


class _Losses(NamedTuple):
    """The losses of some rows, as functions of their places."""

    reference: Reference
    placer: Placer
    new: NewRows  # all rows of the chunk
    rows: Rows  # what the losses depend on, as arrays of the placer
    shared: Shared
    scales: Array  # (m,)
    weights: Array  # density weights
    apart: Array  # weights with which rows are kept apart from the map
    skipped: NDArray[np.int32]
    numbers: NDArray[np.intp]  # of these rows in the chunk
    kept: NDArray[np.int32] | None

    @classmethod
    def of(cls, reference: Reference, rows: NewRows, placer: Placer) -> _Losses:
        """Return the losses of new rows."""
        training, field, density = reference.training, _field(reference, placer), reference.density
        log_radii = _log_radii(reference, rows.radii)
        apart = _APART_WEIGHT * rows.novel
        radius = _APART_RADIUS * _large_radius(reference, placer) if apart.any() else 1.0
        listed = slots(rows.graph, training.masses, training.density_neighbors).indices
        total = len(reference.places) if training.masses is None else float(training.masses.sum())
        constants = (
            field.stretch,
            training.affinity_smoothing * field.partition,
            training.mass * total / field.partition,
            float(np.log(radius)),
            _OUTER * _APART_WEIGHT,
            field.reach + 2.0 * radius,
            field.centre,
        )
        terms = tuple(tuple(map(float, each)) if isinstance(each, tuple) else float(each) for each in density[1:-1])
        own = Rows(
            np.ascontiguousarray(slots(rows.graph, training.masses, training.affinity_neighbors).indices),
            rows.affinities,
            np.exp(training.log_scale.at(log_radii)),
            np.ascontiguousarray(repeated(listed, rows.kept)),
            training.target.at(log_radii),
            density.weight * (1.0 - rows.novel),
            apart,
            rows.skipped,
            np.empty((len(rows.radii), 0)),
            np.zeros(len(rows.radii)),
        )
        shared = Shared(field.at, constants, terms)
        host = own.scales, own.weights, own.apart, own.skipped, np.arange(len(rows.radii)), rows.kept
        return cls(reference, placer, rows, placer.received(own), shared, *host)

    def of_rows(self, some: NDArray[np.intp]) -> _Losses:
        """Return the losses of some of the rows."""
        parts: list[Any] = [each[some] if isinstance(each, np.ndarray) else each for each in self]
        return _Losses(*parts)._replace(rows=self.placer.chosen(self.rows, some))

    def begin(self, d: int) -> Array:
        """Return the places at which the rows start."""
        return self.placer.begin(self.rows, self.shared, d)

    def descend(self, Y: Array, in_map: NDArray[np.int32], steps: int) -> NDArray[np.bool_]:
        """Move the rows by at most so many steps, and return which have arrived at a minimum."""
        arrived = self.placer.descend(Y, self._pulled(Y), in_map, self.shared, steps)
        return np.zeros_like(arrived) if self.reference.density.others else arrived

    def values(self, Y: Array, in_map: NDArray[np.int32]) -> Array:
        """Return the losses at these places."""
        values = self.placer.values(Y, self.rows, in_map, self.shared)
        others = self.reference.density.others
        return values + sum(term.pull(self.new, self.numbers, Y)[0] for term in others) if others else values

    def _pulled(self, Y: Array) -> Rows:
        """Return the rows with the pulls of further terms, as these are at the places ``Y``."""
        pulls = [term.pull(self.new, self.numbers, Y) for term in self.reference.density.others]
        if not pulls:
            return self.rows
        stiffness = np.sum([strength for *_, strength in pulls], axis=0)
        moment = np.sum([anchor * strength[:, None] for _, anchor, strength in pulls], axis=0)
        anchors = np.divide(moment, stiffness[:, None], out=Y.copy(), where=stiffness[:, None] > 0.0)
        return self.placer.pulled(self.rows, anchors, stiffness)

    def nearest(self, Y: Array) -> NDArray[np.int32]:
        """Return the points of the map that are nearest to the places, where a term needs them."""
        reference, n = self.reference, len(self.reference.places)
        needed = (self.apart > 0.0) | (self.weights * reference.density.of_map.share > 0.0)
        wanted = reference.training.density_neighbors or _NEIGHBORS
        k = min(wanted, n - 1)
        near = np.zeros((len(Y), k), np.int32)
        if needed.any():
            _, found = self.placer.nearest(_index(reference, self.placer), Y[needed], k + 1)
            others = found != self.skipped[needed, None]
            others[others.all(axis=1), -1] = False
            near[needed] = found[others].reshape(-1, k)
        if reference.training.masses is not None:
            near = slots(KnnGraph(near, np.zeros(near.shape)), reference.training.masses, wanted).indices
        return np.ascontiguousarray(repeated(near, self.kept))


def novelty(reference: Reference, X: Any, placer: Placer, *, pca: Any) -> Array:
    """Return the distance of every row to its nearest training row, divided by the radius of that training row."""
    return np.concatenate([np.empty(0), *(rows.novelty for rows in _chunks(reference, X, pca, placer))])


def radii(reference: Reference, X: Any, placer: Placer) -> tuple[Array, NDArray[np.bool_]]:
    """Return the radius of every row, and whether it differs from all training rows."""
    found = [(rows.radii, rows.twins < 0) for rows in _chunks(reference, X, None, placer)]
    sizes, new = zip(*found, strict=True)
    return np.concatenate(sizes), np.concatenate(new)


def concentration(reference: Reference, X: Any, placer: Placer, *, pca: Any) -> Array:
    """Return the log relative concentration of every row among the training rows."""
    found = np.empty(0)
    for rows in _chunks(reference, X, pca, placer):
        found = np.append(found, _concentration(reference, rows))
    return found


def _concentration(reference: Reference, rows: NewRows) -> Array:
    training = reference.training
    radii, twins = rows.radii.copy(), rows.twins
    known = twins >= 0
    own = training.radii if training.corrections is None else training.radii * np.exp(training.corrections)
    radii[known] = own[twins[known]]
    return training.concentration.at(_log_radii(reference, radii))


class Description(NamedTuple):
    """Everything that is known of new rows."""

    places: Array  # (m, d)
    concentration: Array  # log relative concentrations among the training rows, (m,)
    novelty: Array  # (m,)
    concentration_map: Array  # log relative concentrations in the map, (m,), or empty if they were not asked for


def described(
    reference: Reference,
    X: Any,
    placer: Placer,
    *,
    pca: Any,
    in_map: Array | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Description:
    """Return the places, the concentration and the novelty of new rows after one search for their neighbours.

    ``in_map`` are the concentrations of the training rows in the map, or None if those of the new rows are not needed.
    """
    empty = np.empty(0)
    found = [Description(np.empty((0, reference.places.shape[1])), empty, empty, empty)]
    done = 0
    for rows in _chunks(reference, X, pca, placer):
        Y, dense = _placed(reference, rows, placer), empty
        if in_map is not None:
            dense = np.where(rows.twins >= 0, in_map[rows.twins], _in_map(reference, rows, Y, placer))
        found.append(Description(Y, _concentration(reference, rows), rows.novelty, dense))
        done += len(Y)
        progress(done)
    return Description(*map(np.concatenate, zip(*found, strict=True)))


def _in_map(reference: Reference, rows: NewRows, Y: Array, placer: Placer) -> Array:
    """Return the log relative concentration of new rows in the map, over the neighbours that the fit used."""
    training, density = reference.training, reference.density
    term, listed = density.of_data, slots(rows.graph, training.masses, training.density_neighbors).indices
    if not term.share and density.of_map.share:  # the map was fitted to the concentration over neighbours in the map
        term, k = density.of_map, min(training.density_neighbors, len(reference.places))
        listed = placer.nearest(_index(reference, placer), Y, k)[1]
        listed = slots(KnnGraph(listed, np.zeros(listed.shape)), training.masses, training.density_neighbors).indices
    listed = repeated(listed, rows.kept)
    squares = ((reference.places[listed] - Y[:, None]) ** 2).sum(axis=2)
    radii = np.sqrt(squares + density.squared_distance).mean(axis=1) + term.added
    log = -density.exponent * np.log(np.maximum(radii, np.finfo(np.float64).tiny)) - term.log_mean
    return np.asarray(np.log(np.exp(log) + density.profile) if density.profile else log)


def _log_radii(reference: Reference, radii: Array) -> Array:
    return np.asarray(np.log(np.maximum(radii + reference.training.added, np.finfo(np.float64).tiny)))


def _large_radius(reference: Reference, placer: Placer) -> float:
    """Return a distance that few points of the map have to their 30th neighbour."""

    def found() -> float:
        k, index = min(_NEIGHBORS, len(reference.places) - 1), _index(reference, placer)
        parts = np.array_split(reference.places, -(-len(reference.places) // _MEASURED))
        distances = [placer.nearest(index, part, k + 1)[0][:, -1] for part in parts]  # the first is the point itself
        radius = float(np.quantile(np.concatenate(distances), _APART_QUANTILE))
        return radius or float(np.ptp(reference.places)) or 1.0

    return _derived(reference, placer, "radius", found)


def _field(reference: Reference, placer: Placer) -> _Field:
    return _derived(reference, placer, "field", lambda: _Field.of(reference, placer))


def _search(reference: Reference, placer: Placer) -> Search:
    def found() -> Search:
        X = reference.training.rows
        X = sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return search_among(X, reference.training.metric, placer.workers, placer.dense_search)

    return _derived(reference, placer, "search", found)


def _index(reference: Reference, placer: Placer) -> Any:
    return _derived(reference, placer, "index", lambda: placer.index(reference.places))


def _derived(reference: Reference, placer: Placer, name: str, found: Callable[[], T]) -> T:
    """Return what is derived from a map on first use, and then kept for this placer."""
    key = f"{name} {placer.name}"
    if key not in reference._derived:
        reference._derived[key] = found()
    value: T = reference._derived[key]
    return value
