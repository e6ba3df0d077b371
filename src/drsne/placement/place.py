"""The places of new rows in a map, and everything else that is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.backends.protocol import Placer, Rows, Shared
from drsne.neighbors.graph import KnnGraph
from drsne.placement.reference import Reference
from drsne.placement.rows import NewRows, chunks, log_concentration, other_columns, others_of, with_neighbors
from drsne.terms.masses import slots
from drsne.terms.profile import repeated

Array = NDArray[np.float64]
_ROUNDS, _STEPS = 4, 12  # searches for neighbours in the map, and steps after each
_FAR_ROUNDS, _FAR_STEPS, _SHORTENED = 12, 6, 6  # the same for novel rows, and how often a round is shortened
_FAR_GAIN = 1e-2  # decrease of the loss in a round, below which a novel row stays where it is
# A row is novel if its nearest training row is much farther away than the neighbours of that row. Its affinities say
# little, so it is kept apart from the points of the map: instead of a density term, it has a term that pulls its mean
# distance to the nearest points to a length that is larger than the distance of nearly all points to their 30th
# neighbour.
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


def _field(reference: Reference, placer: Placer) -> _Field:
    """Return the field of a map, and its partition sum."""
    places, training = reference.places, reference.training

    def made() -> _Field:
        stretch = float(np.sqrt(1.0 + training.distance_smoothing))
        masses = np.ones(len(places)) if training.masses is None else training.masses
        at, partition = placer.field(places, reference.scales, masses, stretch)
        centre = places.mean(axis=0)
        reach = float(np.linalg.norm(places - centre, axis=1).max())
        return _Field(at, stretch, max(partition, float(np.finfo(np.float64).tiny)), centre, reach)

    return reference.derived("field", placer, made)


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
        graph = others_of(reference, some, None if X is None else X[start : start + step], placer)
        new = with_neighbors(reference, graph, some, placer)
        places[start : start + len(some)] = _placed(reference, new, placer, keep_twins=False)
        progress(start + len(some))
    return places


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
    weights: Array  # density weights
    apart: Array  # weights with which rows are kept apart from the map
    skipped: NDArray[np.int32]
    numbers: NDArray[np.intp]  # of these rows in the chunk
    kept: NDArray[np.int32] | None

    @classmethod
    def of(cls, reference: Reference, rows: NewRows, placer: Placer) -> _Losses:
        """Return the losses of new rows."""
        training, field, density = reference.training, _field(reference, placer), reference.density
        log_radii = training.log_radii(rows.radii)
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
        host = own.weights, own.apart, own.skipped, np.arange(len(rows.radii)), rows.kept
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
            near[needed] = found[other_columns(found, self.skipped[needed])].reshape(-1, k)
        return np.ascontiguousarray(repeated(_listed(near, reference, wanted), self.kept))


class Description(NamedTuple):
    """Everything that is known of new rows."""

    places: Array  # (m, d)
    concentration: Array  # log relative concentrations among the training rows, (m,)
    novelty: Array  # (m,)
    concentration_map: Array  # log relative concentrations in the map, (m,), or empty if they were not asked for
    twins: NDArray[np.int32]  # the first training row that equals each row, or -1, (m,)


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
    found = [Description(np.empty((0, reference.places.shape[1])), empty, empty, empty, np.empty(0, np.int32))]
    done = 0
    for rows in chunks(reference, X, placer, pca):
        Y, dense = _placed(reference, rows, placer), empty
        if in_map is not None:
            dense = np.where(rows.twins >= 0, in_map[rows.twins], _in_map(reference, rows, Y, placer))
        found.append(Description(Y, log_concentration(reference, rows), rows.novelty, dense, rows.twins))
        done += len(Y)
        progress(done)
    return Description(*map(np.concatenate, zip(*found, strict=True)))


def _listed(near: NDArray[np.int32], reference: Reference, k: int) -> NDArray[np.int32]:
    """Return neighbours in the map, of which those with masses are listed several times."""
    masses = reference.training.masses
    return near if masses is None else slots(KnnGraph(near, np.zeros(near.shape)), masses, k).indices


def _in_map(reference: Reference, rows: NewRows, Y: Array, placer: Placer) -> Array:
    """Return the log relative concentration of new rows in the map, over the neighbours that the fit used."""
    training, density = reference.training, reference.density
    term, listed = density.of_data, slots(rows.graph, training.masses, training.density_neighbors).indices
    if not term.share and density.of_map.share:  # the map was fitted to the concentration over neighbours in the map
        term, k = density.of_map, min(training.density_neighbors, len(reference.places))
        listed = _listed(placer.nearest(_index(reference, placer), Y, k)[1], reference, training.density_neighbors)
    listed = repeated(listed, rows.kept)
    squares = ((reference.places[listed] - Y[:, None]) ** 2).sum(axis=2)
    radii = np.sqrt(squares + density.squared_distance).mean(axis=1) + term.added
    log = -density.exponent * np.log(np.maximum(radii, np.finfo(np.float64).tiny)) - term.log_mean
    return np.asarray(np.log(np.exp(log) + density.profile) if density.profile else log)


def _large_radius(reference: Reference, placer: Placer) -> float:
    """Return a distance that few points of the map have to their 30th neighbour."""

    def made() -> float:
        k, index = min(_NEIGHBORS, len(reference.places) - 1), _index(reference, placer)
        parts = np.array_split(reference.places, -(-len(reference.places) // _MEASURED))
        distances = [placer.nearest(index, part, k + 1)[0][:, -1] for part in parts]  # the first is the point itself
        radius = float(np.quantile(np.concatenate(distances), _APART_QUANTILE))
        return radius or float(np.ptp(reference.places)) or 1.0

    return reference.derived("radius", placer, made)


def _index(reference: Reference, placer: Placer) -> Any:
    return reference.derived("index", placer, lambda: placer.index(reference.places))
