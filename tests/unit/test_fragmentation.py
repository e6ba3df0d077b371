"""Fragmentation: drawings whose answer is known, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from covering import each_value, in_one_test
from sklearn.neighbors import NearestNeighbors

from drsne.metrics import fragmentation
from drsne.neighbors.search import knn

SIZES = (100, 300, 1000, 3000)


def disc(n, rng):
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)] * np.sqrt(rng.rand(n, 1))


def ring(n, rng):
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)] * rng.normal(1.0, 0.03, (n, 1))


def line(n, rng):
    return np.c_[np.sort(rng.rand(n)) - 0.5, 0.01 * rng.normal(size=n)]


def pieces_of(label, shape, rng, apart=2.0):
    """A map that draws the points of each label as one shape on a wide grid."""
    Y, side = np.empty((len(label), 2)), int(np.ceil(np.sqrt(label.max() + 1)))
    for piece in range(label.max() + 1):
        own = label == piece
        Y[own] = 0.4 * shape(own.sum(), rng) + apart * np.array(divmod(piece, side))
    return Y


def crossing(X, label):
    """The share of counted neighbours of the data that have another label."""
    graph = knn(X, 10)
    counted = graph.distances <= 2.0 * graph.distances[:, 2:3]
    return (label[:, None] != label[graph.indices])[counted].mean()


@pytest.mark.parametrize("n", SIZES)
def test_whole_groups_score_zero(n):
    rng = np.random.RandomState(n)
    wide, plane = rng.normal(size=(n, 8)), rng.normal(size=(n, 2))
    tails = rng.standard_t(3, size=(n, 2))
    along = np.sort(rng.uniform(0.0, 10.0, n))
    spiral = np.c_[np.cos(along), np.sin(along)] * along[:, None] + 0.02 * rng.normal(size=(n, 2))
    for X, Y in ((plane, plane), (tails, tails), (spiral, spiral), (ring(n, rng),) * 2):
        assert fragmentation(X, Y) <= 0.02
    # Neighbours that lie at random in a filled shape are a matter for continuity.
    for Y in (disc(n, rng), rng.normal(size=(n, 2)), rng.rand(n, 2)):
        for scale in (1e-9, 1.0, 1e12):
            assert fragmentation(wide, scale * Y) <= 0.02


@each_value({"n": SIZES, "size": [5, 12, 30]})
def test_beads_score_what_they_tear(n, size):
    rng = np.random.RandomState(n)
    label = np.arange(n) % (n // size)  # beads of points from anywhere in the group
    score = fragmentation(rng.normal(size=(n, 8)), pieces_of(label, disc, rng))
    assert score > 0.6
    assert score == pytest.approx(1.0 - size / n, abs=0.12)


def test_the_size_of_a_group_does_not_matter():
    """A square cut into cells of about twelve points, moved apart."""
    scores = []
    for n in SIZES:
        X = np.random.RandomState(0).rand(n, 2)
        side = round(np.sqrt(n / 12))
        cell = np.minimum((side * X).astype(int), side - 1)
        scores.append(fragmentation(X, 0.8 * (side * X - cell) + 3.0 * cell))
        assert scores[-1] == pytest.approx(crossing(X, cell[:, 0] * side + cell[:, 1]), abs=0.01)
    assert np.ptp(scores) <= 0.05


@in_one_test("shape", [line, ring, disc])
def test_strings_rings_and_islands_score_high(shape):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(1200, 8))
    assert fragmentation(X, pieces_of(np.arange(1200) % 24, shape, rng)) > 0.8
    assert fragmentation(X, ring(1200, rng)) > 0.5  # one ring around nothing
    assert fragmentation(X, line(1200, rng)) <= 0.1  # one line is one piece


def test_separate_groups_may_be_drawn_separately():
    rng = np.random.RandomState(0)
    label = np.repeat(np.arange(30), 8)  # fewer points than neighbours are looked at
    X = rng.normal(size=(240, 5)) + 100.0 * rng.normal(size=(30, 5))[label]
    assert fragmentation(X, pieces_of(label, disc, rng, apart=50.0)) == 0.0
    assert fragmentation(np.repeat(X[:40], 6, axis=0), pieces_of(np.repeat(np.arange(40), 6), disc, rng)) == 0.0


def test_other_whole_groups_count_in_proportion():
    rng = np.random.RandomState(0)
    X = np.vstack([rng.normal(size=(600, 4)), rng.normal(size=(600, 4)) + 50.0])
    torn = pieces_of(np.arange(600) % 50, disc, rng)
    alone = fragmentation(X[:600], torn)
    for scale in (0.01, 1.0, 100.0):  # however densely the other one is drawn
        both = fragmentation(X, np.vstack([torn, scale * disc(600, rng) + 500.0]))
        assert both == pytest.approx(0.5 * alone, abs=0.05)


def test_a_dense_group_in_pieces_next_to_a_sparse_one():
    rng = np.random.RandomState(0)
    X = np.vstack([rng.normal(size=(600, 4)), rng.normal(size=(200, 4)) + 50.0])
    torn = 0.01 * pieces_of(np.arange(600) % 50, disc, rng)
    assert fragmentation(X, np.vstack([torn, 5.0 * disc(200, rng)])) > 0.6  # sparse points all around the pieces


def test_grows_with_the_distance_of_the_pieces():
    X = disc(1000, np.random.RandomState(0))
    unit = np.median(NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X)[0][:, 1])
    right = (X[:, :1] > 0) * np.array([[1.0, 0.0]])
    scores = [fragmentation(X, X + gap * unit * right) for gap in (0, 1, 2, 4, 6, 8, 16, 1e3, 1e9)]
    assert scores[0] == 0.0
    assert (np.diff(scores) >= 0.0).all()
    assert scores[-1] == pytest.approx(crossing(X, (X[:, 0] > 0).astype(int)), abs=1e-12)


@in_one_test("d", [1, 2, 3])
def test_dimensions_of_the_map(d):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(600, d))
    assert fragmentation(X, X) <= 0.02
    beads = 0.01 * rng.normal(size=(600, d))
    beads[:, 0] += np.arange(600) % 50
    assert fragmentation(X, beads) > 0.8


def test_invariances():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(500, 6))
    Y = pieces_of(np.arange(500) % 40, disc, rng, apart=1.5)
    score, turn = fragmentation(X, Y), np.linalg.qr(rng.normal(size=(2, 2)))[0]
    order = rng.permutation(500)
    assert 0.3 < score < 1.0
    assert fragmentation(X, 2.0**-600 * Y) == score
    assert fragmentation(X, 1e4 * Y @ turn + 7.0) == pytest.approx(score, abs=0.002)
    assert fragmentation(X[order], Y[order]) == pytest.approx(score, abs=0.002)
    assert fragmentation(X, Y, max_samples=300, random_state=0) == pytest.approx(score, abs=0.05)


def test_maps_without_extent():
    X = np.random.RandomState(0).normal(size=(60, 3))
    assert fragmentation(X, np.zeros((60, 2))) == 0.0
    assert fragmentation(X[:3], X[:3, :2], 2) == 0.0
    assert fragmentation(np.ones((60, 3)), X[:, :2]) <= 0.02
