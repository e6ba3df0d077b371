"""Nearest training rows of new rows: exact although most lists are skipped, and independent of the batch."""

from __future__ import annotations

from itertools import cycle

import numpy as np
from covering import in_one_test

from drsne.backends.numba.kernels import lists as kernels
from drsne.backends.numba.threads import Workers
from drsne.neighbors.exact import Points
from drsne.neighbors.inverted_file import WIDTH, Lists, Tiles
from drsne.neighbors.queries import search_among


def groups(decades, n=24 * WIDTH, d=12, offset=0.0):
    """Return rows in 30 groups, whose scales span some decades."""
    rng = np.random.default_rng(1)
    group = rng.integers(30, size=n)
    scale = 10.0 ** np.linspace(-decades, 0, 30)
    return offset + 6.0 * rng.normal(size=(30, d))[group] + scale[group, None] * rng.normal(size=(n, d))


def shells(n=2400, d=8):
    """Return rows at the same distances from three centres, so that many rows lie at the radius of their list."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n, d))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows * np.repeat([1.0, 2.0, 8.0], n // 3)[:, None] + np.repeat([0.0, 5.0, 9.0], n // 3)[:, None]


def touching(n=20 * WIDTH):
    """Return rows on a line, in which every list touches the next one."""
    return np.repeat(np.arange(n, dtype=float)[:, None], 3, axis=1) * [1.0, 1e-3, 0.0]


RNG = np.random.default_rng(0)
UNIFORM = RNG.random((1500, 50))
CASES = {
    "uniform": UNIFORM,
    "groups": groups(2.0),
    "groups of very different scales": groups(6.0),
    "groups far from the origin": groups(3.0, offset=1e7),
    "huge values": groups(2.0) * 1e200,
    "tiny values": groups(2.0) * 1e-200,
    "columns of different scales": groups(1.0) * np.logspace(-30, 0, 12),
    "groups of three tiles": np.repeat(40.0 * RNG.normal(size=(8, 12)), 3 * WIDTH, axis=0)
    + RNG.normal(size=(24 * WIDTH, 12)),
    "shells": shells(),
    "touching lists": touching(),
    "one column": RNG.normal(size=(2000, 1)),
    "constant columns": np.concatenate([np.full((900, 9), 1e6), RNG.normal(size=(900, 2))], axis=1),
    "equal rows": np.repeat(RNG.normal(size=(12, 10)), 100, axis=0),
    "one row at many places": np.zeros((700, 5)),
    "distances too small for single precision": np.concatenate([RNG.normal(size=(900, 4)) * 1e-24, np.ones((2, 4))]),
    "an outlier": np.concatenate([RNG.normal(size=(900, 6)), np.full((1, 6), 1e9)]),
    "one tile": RNG.normal(size=(WIDTH, 9)),
    "one row more than a tile": RNG.normal(size=(WIDTH + 1, 9)),
    "few rows": RNG.normal(size=(7, 3)),
    "one row": RNG.normal(size=(1, 3)),
}


def new_rows(X):
    """Return training rows, rows near them, rows between them and rows far from all of them."""
    rng = np.random.default_rng(5)
    some = X[rng.integers(len(X), size=12)]
    others = X[rng.integers(len(X), size=12)]
    width = np.ptp(X, axis=0)
    beside = some + 1e-3 * (others - some) * rng.normal(size=some.shape)
    far = some[:6] + 2.0 * width, some[:2] - 50.0 * width
    return np.concatenate([some[:6], beside, 0.5 * some + 0.5 * others, *far])


def squares(Q, X):
    """Return all squared distances, in double precision."""
    return np.stack([((X - q) ** 2).sum(axis=1) for q in Q])


@in_one_test(("case", "k"), list(zip(CASES, cycle([1, 15, 91]), strict=False)))
def test_neighbours_are_exact(case, k):
    X = CASES[case]
    Q, k = new_rows(X), min(k, len(X))
    with Workers(1) as workers:
        search = search_among(X, "euclidean", workers)
        found = search(Q, k, workers)
        alone = [search(Q[i : i + 1], k, workers) for i in range(len(Q))]
    unit = 2.0 ** np.floor(np.log2(np.abs(X).max() or 1.0))  # a power of two, because division would round the rows
    truth = np.sqrt(squares(Q / unit, X / unit))
    assert np.allclose(found.distances / unit, np.sort(truth, axis=1)[:, :k], rtol=1e-9, atol=1e-300)
    assert np.allclose(found.distances / unit, np.take_along_axis(truth, found.indices, axis=1), rtol=1e-9, atol=1e-300)
    assert all(len(set(row)) == k for row in found.indices.tolist())
    assert np.array_equal(found.indices, np.concatenate([one.indices for one in alone]))
    assert np.array_equal(found.distances, np.concatenate([one.distances for one in alone]))


def test_ties_go_to_the_smallest_index():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 6, size=(2500, 4)).astype(float)  # squared distances of integers are exact
    Q = rng.integers(-2, 8, size=(60, 4)).astype(float)
    with Workers(2) as workers:
        found = search_among(X, "euclidean", workers)(Q, 40, workers)
    expected = np.stack([np.lexsort((np.arange(len(X)), row))[:40] for row in squares(Q, X)])
    assert np.array_equal(found.indices, expected)


def shortlists(index, rows, k, probed=None):
    """Return the candidates of each row, and the bounds."""
    m = len(rows)
    probed = np.arange(len(index.centres), dtype=np.int32)[None] if probed is None else probed
    names, filled, bound = np.empty((m, 2 * (k + k // 4 + 16)), np.int32), np.empty(m, np.int32), np.empty(m)
    with Workers(1) as workers:
        Q = np.ascontiguousarray(rows[:, index.columns])
        workers.run(kernels.shortlists, m, Q, *index[:-1], probed, k, names, filled, bound, grain=16)
    return [names[i, : filled[i]] for i in range(m)], bound


@in_one_test(("case", "lists"), list(zip(CASES, cycle(["halves", "k-means"]), strict=False)))
def test_no_row_that_is_left_out_is_nearer_than_the_bound(case, lists):
    points = Points.of(CASES[case])
    Z = points.centred
    if lists == "halves":
        index = Tiles.halved(Z)
    else:
        with Workers(1) as workers:
            index = Tiles.of(Z, Lists.of(Z, 1, workers))
    scale, mean, second = points.origin
    Q, k = (new_rows(CASES[case]) / scale - mean) / second, min(15, len(Z))
    for q, near, bound in zip(squares(Q, Z), *shortlists(index, Q, k), strict=True):
        if bound == -np.inf:  # nothing is known, so the row will be compared with all rows
            continue
        assert len(set(near.tolist())) == len(near) >= k
        nearest = np.argpartition(q, k - 1)[:k]
        if q[nearest].max() < bound:
            assert set(nearest.tolist()) <= set(near.tolist()) or np.sort(q[near])[k - 1] == q[nearest].max()
        left_out = np.delete(q, near)
        # Candidates that are clearly beyond the k nearest are dropped without lowering the bound.
        assert left_out.min(initial=np.inf) >= min(bound, q[nearest].max()) * (1.0 - 1e-12)


@in_one_test("case", ["groups of three tiles", "touching lists"])
def test_far_lists_are_skipped(case):
    Z = Points.of(CASES[case]).centred
    index, Q = Tiles.halved(Z), Z[::50]
    near, bound = shortlists(index, Q, 15)
    assert (bound > 0.0).all()
    distance = np.sqrt(squares(Q[:, index.columns], index.centres))
    nearest = np.take_along_axis(distance + index.radii, distance.argmin(axis=1)[:, None], axis=1)
    far = distance - index.radii > 1.01 * nearest
    assert far.mean() > 0.3
    for i in range(0, len(Q), 10):
        # If a new row was compared with these lists, their rows, which now equal the new row, would be its candidates.
        changed = index.tiles.copy()
        changed[far[i]] = (Q[i][index.columns] - index.centres[far[i]])[:, :, None]
        again, _ = shortlists(index._replace(tiles=changed), Q[i : i + 1], 15)
        assert np.array_equal(again[0], near[i])
