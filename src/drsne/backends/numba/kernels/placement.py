"""Placing new rows in a fixed map (docs/theory.md, section 12).

Each row minimises its own loss, while the points of the map stay where they are. A row reads from the map only, so its
place does not depend on the other new rows.
"""

from __future__ import annotations

import numpy as np

from drsne.backends.numba.kernels._compile import inlined, kernel, pasted
from drsne.backends.numba.kernels.fields import field

ARMIJO = 1e-4  # smallest decrease of the loss, relative to the decrease along the gradient
HALVINGS = 14  # largest number of times that a step is halved
SMALL = 1e-5  # length of the last step, in units of the scale of the row
LONGEST = 4.0  # length of the longest step in the same units
CANDIDATES = 8  # number of nearest neighbours whose places are compared as starts
CURVED = 1e-12  # smallest curvature along a step that changes the Hessian, relative to the change of the gradient
COINCIDING = 1e-12  # relative distance below which all neighbours of a row coincide with it
LEAST = 1e-300  # smallest radius


@kernel
def potentials(fixed, tree, stretch, out, forces, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write ``m_i sum_j m_j w_ij`` over all other points j, and minus half of its gradient, for the points lo to hi."""
    places, _, scales, masses = fixed
    d = places.shape[1]
    y, scaled, gradient = np.empty(d), np.empty(d), np.empty(d)
    for i in range(lo, hi):
        for c in range(d):
            y[c] = places[i, c]
        out[i] = masses[i] * field(y, scales[i], fixed, tree, stretch, i, scaled, gradient)
        for c in range(d):
            forces[i, c] = -0.5 * masses[i] * gradient[c]


@inlined
def _gathered(places, numbers, at):  # type: ignore[no-untyped-def]
    """Write the coordinates of listed points, (d, k), so that loops over them read neighbouring values."""
    for c in range(places.shape[1]):
        for t in range(numbers.shape[0]):
            at[c, t] = places[numbers[t], c]


@inlined
def _lists(near, listed, in_map, d):  # type: ignore[no-untyped-def]
    """Return room for what the loss of a row reads from its lists of points."""
    at_near, at_listed = np.empty((d, near.shape[1])), np.empty((d, listed.shape[1]))
    at_map, inverse = np.empty((d, in_map.shape[1])), np.empty(near.shape[1])
    return at_near, inverse, at_listed, at_map


@inlined
def _fill(lists, near, a, listed, in_map, fixed):  # type: ignore[no-untyped-def]
    """Write what the loss of a row with the scale ``a`` reads from its lists of points."""
    at_near, inverse, at_listed, at_map = lists
    places, _, scales, _ = fixed
    _gathered(places, near, at_near)
    _gathered(places, listed, at_listed)
    _gathered(places, in_map, at_map)
    for t in range(near.shape[0]):
        inverse[t] = 1.0 / (a * scales[near[t]])


@inlined
def _room(d, k):  # type: ignore[no-untyped-def]
    """Return room for the loss: a part of the gradient, a place, and two numbers for each of ``k`` listed points."""
    return np.empty(d), np.empty(d), np.empty(k), np.empty(k)


@inlined
def _squares(y, at, floor, squares):  # type: ignore[no-untyped-def]
    """Write the squared distances of ``y`` from points (d, k), plus ``floor``."""
    k = at.shape[1]
    for t in range(k):
        squares[t] = floor
    for c in range(y.shape[0]):
        for t in range(k):
            away = y[c] - at[c, t]
            squares[t] += away * away


@inlined
def _pulled(y, at, factors, c):  # type: ignore[no-untyped-def]
    """Return the sum of coordinate ``c`` of the differences of ``y`` from points, times factors."""
    total = 0.0
    for t in range(at.shape[1]):
        total += factors[t] * (y[c] - at[c, t])
    return total


@inlined
def _mean_distance(y, at, floor, room):  # type: ignore[no-untyped-def]
    """Return the mean distance of ``y`` to listed points, and write its gradient."""
    gradient, _, squares, _ = room
    k = at.shape[1]
    _squares(y, at, floor, squares)
    total = 0.0
    for t in range(k):
        length = np.sqrt(squares[t])
        total += length
        squares[t] = 1.0 / length if length > 0.0 else 0.0
    for c in range(y.shape[0]):
        gradient[c] = _pulled(y, at, squares, c) / k
    return total / k


@inlined
def _profile_loss(y, at, target, lam, term, alpha, floor, smoothing, gradient, room):  # type: ignore[no-untyped-def]
    """Return ``lam * share / 2`` times the squared difference of the profile from its target, and add its gradient.

    ``term`` is (share, added length, log mean concentration of the map).
    """
    share, added, log_mean = term
    weight = lam * share
    if weight == 0.0 or at.shape[1] == 0:
        return 0.0
    radius = max(_mean_distance(y, at, floor, room) + added, LEAST)
    log = -alpha * np.log(radius) - log_mean
    damped = 1.0
    if smoothing > 0.0:
        relative = np.exp(log)
        log = np.log(relative + smoothing)
        damped = relative / (relative + smoothing)
    e = target - log
    for c in range(y.shape[0]):
        gradient[c] += weight * e * damped * alpha / radius * room[0][c]
    return 0.5 * weight * e * e


@inlined
def _apart_loss(y, at, weight, log_radius, floor, gradient, room):  # type: ignore[no-untyped-def]
    """Return ``weight / 2`` times the squared difference of the log radius from a value, and add its gradient."""
    if weight == 0.0 or at.shape[1] == 0:
        return 0.0
    radius = max(_mean_distance(y, at, floor, room), LEAST)
    e = np.log(radius) - log_radius
    for c in range(y.shape[0]):
        gradient[c] += weight * e / radius * room[0][c]
    return 0.5 * weight * e * e


@inlined
def _radius_loss(y, at, target, lam, term, gradient, room):  # type: ignore[no-untyped-def]
    """Return ``-lam * share`` times the change of the correlation of den-SNE by the row, and add its gradient.

    ``term`` is (share, mean and shifted standard deviation of the log radii of the map, their correlation). To second
    order, the change is proportional to ``t z - rho z^2 / 2``, where z is the standardised log radius in the map.
    """
    share, mean, spread, rho = term
    weight = lam * share
    if weight == 0.0 or not spread > 0.0:
        return 0.0
    _, _, squares, _ = room
    m = at.shape[1]
    _squares(y, at, 1.0, squares)
    total = 0.0
    for t in range(m):
        w = 1.0 / squares[t]
        total += w
        squares[t] = w * w
    far = m - total
    if far < COINCIDING * total:  # all neighbours coincide with the row
        return 0.0
    z = (np.log(far / total) - mean) / spread
    slope = -weight * (target - rho * z) / spread * (-m / (total * far))
    for c in range(y.shape[0]):
        gradient[c] -= 2.0 * slope * _pulled(y, at, squares, c)
    return -weight * (target * z - 0.5 * rho * z * z)


@inlined
def _attraction_loss(y, at, inverse, p, base, delta, gradient, room):  # type: ignore[no-untyped-def]
    """Return ``-sum_j p_j log(w_j + delta)`` over the neighbours, and add its gradient."""
    _, _, w, pull = room
    k = at.shape[1]
    _squares(y, at, 0.0, w)
    for t in range(k):
        w[t] = 1.0 / (base + inverse[t] * w[t])
        pull[t] = 2.0 * p[t] * w[t] * (w[t] / (w[t] + delta)) * inverse[t]
    value = 0.0
    for t in range(k):
        value -= p[t] * np.log(w[t] + delta)
    for c in range(y.shape[0]):
        gradient[c] += _pulled(y, at, pull, c)
    return value


@inlined
def _anchor_loss(y, anchor, stiffness, gradient):  # type: ignore[no-untyped-def]
    """Return ``stiffness / 2`` times the squared distance from an anchor, and add its gradient."""
    value = 0.0
    for c in range(anchor.shape[0]):
        away = y[c] - anchor[c]
        gradient[c] += stiffness * away
        value += 0.5 * stiffness * away * away
    return value


@inlined
def loss(y, lists, p, a, target, lam, apart, skipped, anchor, stiffness, shared, gradient, room):  # type: ignore[no-untyped-def]
    """Return the loss of a row at ``y`` and write its gradient.

    ``lists`` are its neighbours, which have the affinities ``p``, and its density neighbours in the data and in the
    map (see :func:`_fill`). ``a`` is the scale of the row, ``lam`` its density weight, and ``apart`` the weight with
    which it is kept apart from the points of the map. Further terms pull it to its ``anchor``. ``shared`` is the same
    for all rows: the places of the map, its places divided by the stretch, its scales and its masses; the tree;
    constants; and the density terms.
    """
    fixed, tree, constants, density = shared
    at_near, inverse, at_listed, at_map = lists
    stretch, delta, repulsion, apart_radius, _, _, _ = constants
    of_data, of_map, of_radii, alpha, floor, smoothing = density
    value = repulsion * field(y, a, fixed, tree, stretch, skipped, room[1], gradient)
    for c in range(y.shape[0]):
        gradient[c] *= repulsion
    value += _attraction_loss(y, at_near, inverse, p, stretch * stretch, delta, gradient, room)
    value += _profile_loss(y, at_listed, target, lam, of_data, alpha, floor, smoothing, gradient, room)
    value += _profile_loss(y, at_map, target, lam, of_map, alpha, floor, smoothing, gradient, room)
    value += _radius_loss(y, at_near, target, lam, of_radii, gradient, room)
    value += _apart_loss(y, at_map, apart, apart_radius, floor, gradient, room)
    if anchor.shape[0] > 0:
        value += _anchor_loss(y, anchor, stiffness, gradient)
    return value


@kernel
def begin(Y, rows, shared, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the best of some starts of rows lo to hi: the mean place of the neighbours, and the nearest of them.

    A row that is kept apart with a weight of at least ``outer`` starts outside of the map, in the direction of its
    neighbours. From the inside of a group, it would not find a way out.
    """
    near, p, a, listed, target, lam, apart, skipped, anchors, stiffness = rows
    places = shared[0][0]
    _, _, _, _, outer, rim, centre = shared[2]
    d, none = Y.shape[1], np.empty((1, 0), np.int32)
    y, gradient = np.empty(d), np.empty(d)
    lists, room = _lists(near, listed, none, d), _room(d, max(near.shape[1], listed.shape[1]))
    for r in range(lo, hi):
        _fill(lists, near[r], a[r], listed[r], none[0], shared[0])
        least = np.inf
        total = 0.0
        for t in range(near.shape[1]):
            total += p[r, t]
        for candidate in range(-1, min(CANDIDATES, near.shape[1])):
            for c in range(d):
                y[c] = 0.0
            if candidate < 0:
                for t in range(near.shape[1]):
                    for c in range(d):
                        y[c] += p[r, t] / total * places[near[r, t], c]
            else:
                for c in range(d):
                    y[c] = places[near[r, candidate], c]
            own = p[r], a[r], target[r], lam[r], apart[r], skipped[r], anchors[r], stiffness[r]
            value = loss(y, lists, *own, shared, gradient, room)
            if value < least or candidate < 0:
                least = value
                for c in range(d):
                    Y[r, c] = y[c]
            if candidate < 0 and apart[r] >= outer:
                length = 0.0
                for c in range(d):
                    length += (y[c] - centre[c]) ** 2
                length = np.sqrt(length)
                for c in range(d):
                    Y[r, c] = centre[c] + (rim * (y[c] - centre[c]) / length if length > 0.0 else rim * (c == 0))
                break


@pasted
def _towards(inverse, gradient, direction):  # type: ignore[no-untyped-def]
    """Write the direction of a step, ``-inverse @ gradient``, and return its length and the slope along it."""
    length, slope = 0.0, 0.0
    for c in range(gradient.shape[0]):
        direction[c] = 0.0
        for e in range(gradient.shape[0]):
            direction[c] -= inverse[c, e] * gradient[e]
        length += direction[c] * direction[c]
        slope += direction[c] * gradient[c]
    return np.sqrt(length), slope


@pasted
def _update(inverse, direction, change, product, image):  # type: ignore[no-untyped-def]
    """Update the inverse Hessian after a step in a ``direction`` with a ``change`` of the gradient (BFGS).

    ``product`` is their inner product, and ``image`` is room for a vector.
    """
    curved = product
    for c in range(change.shape[0]):
        image[c] = 0.0
        for e in range(change.shape[0]):
            image[c] += inverse[c, e] * change[e]
        curved += change[c] * image[c]
    for c in range(change.shape[0]):
        for e in range(change.shape[0]):
            inverse[c, e] += (
                curved * direction[c] * direction[e] / product - image[c] * direction[e] - direction[c] * image[e]
            ) / product


@kernel
def descend(Y, rows, in_map, shared, steps, arrived, values, gradients, block, lo, hi):  # type: ignore[no-untyped-def]
    """Move rows lo to hi to a minimum of their loss by at most ``steps`` steps of the BFGS method.

    A step is halved until the loss decreases enough or the step is shorter than the last one may be. The inverse
    Hessian begins as that of the attraction to neighbours at the distance zero. ``arrived`` says which rows ended at a
    minimum before the last step. ``values`` and ``gradients`` are the losses where the rows end, and their gradients.
    """
    near, p, a, listed, target, lam, apart, skipped, anchors, stiffness = rows
    d = Y.shape[1]
    y, trial, after = np.empty(d), np.empty(d), np.empty(d)
    direction, change, image, inverse = np.empty(d), np.empty(d), np.empty(d), np.empty((d, d))
    lists = _lists(near, listed, in_map, d)
    room = _room(d, max(near.shape[1], listed.shape[1], in_map.shape[1]))
    for r in range(lo, hi):
        for c in range(d):
            y[c] = Y[r, c]
        _fill(lists, near[r], a[r], listed[r], in_map[r], shared[0])
        own = p[r], a[r], target[r], lam[r], apart[r], skipped[r], anchors[r], stiffness[r]
        gradient = gradients[r]
        value = loss(y, lists, *own, shared, gradient, room)
        fresh, arrived[r] = True, True
        for _ in range(steps):
            if fresh:
                for c in range(d):
                    for e in range(d):
                        inverse[c, e] = 0.5 * a[r] * a[r] if c == e else 0.0
            length, slope = _towards(inverse, gradient, direction)
            if not length > 0.0 or not slope < 0.0:
                if fresh:
                    break
                fresh = True
                continue
            step = min(1.0, LONGEST * a[r] / length)
            accepted = False
            moved = value
            for _ in range(HALVINGS):
                for c in range(d):
                    trial[c] = y[c] + step * direction[c]
                moved = loss(trial, lists, *own, shared, after, room)
                accepted = moved <= value + ARMIJO * step * slope
                if accepted or step * length < SMALL * a[r]:
                    break
                step *= 0.5
            if not accepted:
                if fresh:
                    break
                fresh = True
                continue
            product, size = 0.0, 0.0
            for c in range(d):
                direction[c] = trial[c] - y[c]
                change[c] = after[c] - gradient[c]
                product += direction[c] * change[c]
                size += change[c] * change[c]
                y[c], gradient[c] = trial[c], after[c]
            value = moved
            fresh = False
            if step * length < SMALL * a[r]:
                break
            if product > CURVED * size:
                _update(inverse, direction, change, product, image)
        else:
            arrived[r] = False
        values[r] = value
        for c in range(d):
            Y[r, c] = y[c]
