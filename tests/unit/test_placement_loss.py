"""The loss that a new row minimises (docs/theory.md, eqs. 58 and 59), written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from problems import EXACT, numerical_gradient, with_
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

from drsne import DRSNE, Objective
from drsne.backends.numba.placement import NumbaPlacer

PERPLEXITY, K = 10.0, 10
OPTIONS = {"perplexity": PERPLEXITY, "density_neighbors": K, "max_iter": 200, "random_state": 0}
OBJECTIVE = Objective(
    input_exponent=1.0, target_quantile=0.0, small_groups=False, input_smoothing=EXACT, embedding_smoothing=EXACT
)


def blobs(seed, n):
    """Return points of three groups of different densities."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    centres = 12.0 * np.random.default_rng(0).normal(size=(3, 6))
    return centres[kind] + rng.normal(size=(n, 6)) * np.array([0.3, 1.0, 2.5])[kind, None]


X, NEW = blobs(0, 300), blobs(1, 25)
FOREIGN = np.random.default_rng(2).normal(size=(8, 6)) * 150.0


def precision(squares):
    """Return the precision that gives affinities over these squared distances the perplexity."""

    def excess(log_beta):
        p = np.exp(-np.exp(log_beta) * (squares - squares.min()))
        p /= p.sum()
        return np.log(PERPLEXITY) + (p[p > 0] * np.log(p[p > 0])).sum()

    return np.exp(brentq(excess, -30.0, 30.0, xtol=1e-12))


def affinities(rows):
    """Return the neighbours of new rows, their affinities (eq. 58) and their radii."""
    n_neighbors = int(3 * PERPLEXITY)
    among = np.sort(cdist(X, X), axis=1)[:, 1 : n_neighbors + 1] ** 2
    beta = np.array([precision(squares) for squares in among])
    log_sum = np.log(np.exp(-beta[:, None] * among).sum(axis=1))
    D = cdist(rows, X)
    near = np.argsort(D, axis=1)[:, :n_neighbors]
    squares = np.take_along_axis(D, near, axis=1) ** 2
    own = np.exp([-precision(each) * (each - each.min()) for each in squares])
    r = np.exp(-log_sum[near] - beta[near] * squares)
    return near, 0.5 * (own / own.sum(axis=1, keepdims=True) + r / (1 + r)), np.sqrt(squares[:, :K]).mean(axis=1)


def scales_of(model):
    return model.scales_ if hasattr(model, "scales_") else np.ones(len(model.embedding_))


def attraction(model, near, p, scale):
    Y, rho = model.embedding_[near], scales_of(model)[near]
    return lambda y: (p * np.log1p(((y - Y) ** 2).sum(axis=1) / (scale * rho))).sum()


def repulsion(model, scale):
    Y, rho = model.embedding_, scales_of(model)
    Z = (1 / (1 + cdist(Y, Y) ** 2 / (rho[:, None] * rho))).sum() - len(Y)
    return lambda y: len(Y) / Z * (1 / (1 + ((y - Y) ** 2).sum(axis=1) / (scale * rho))).sum()


def density(model, near, radius):
    """Return the density term over neighbours in the data, with the means of the fitted rows."""
    D, Y = cdist(X, X), model.embedding_
    listed = np.argsort(D, axis=1)[:, 1 : K + 1]
    in_data = -np.log(np.sort(D, axis=1)[:, 1 : K + 1].mean(axis=1))
    in_map = 1 / np.linalg.norm(Y[:, None] - Y[listed], axis=2).mean(axis=1)
    target = np.clip(-np.log(radius), in_data.min(), in_data.max()) - np.log(np.exp(in_data).mean())

    def loss(y):
        seen = -np.log(np.linalg.norm(y - Y[near[:K]], axis=1).mean()) - np.log(in_map.mean())
        return model.density_weight / 2 * (target - seen) ** 2

    return loss


@pytest.mark.parametrize("kernel", ["fixed", "adaptive"])
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_the_forces_on_a_new_row_cancel(kernel, weight):
    model = DRSNE(density_weight=weight, objective=with_(OBJECTIVE, kernel=kernel), **OPTIONS).fit(X)
    radii = np.log(np.sort(cdist(X, X), axis=1)[:, 1 : K + 1].mean(axis=1))
    places, (near, P, own) = model.transform(NEW), affinities(NEW)
    assert model.novelty(NEW).max() < 1.5
    for y, near_x, p, radius in zip(places, near, P, own, strict=True):
        scale = np.exp(np.interp(np.log(radius), np.sort(radii), np.sort(np.log(scales_of(model)))))
        terms = attraction(model, near_x, p, scale), repulsion(model, scale), density(model, near_x, radius)
        forces = [numerical_gradient(lambda at, term=term: term(at[0]), y[None])[0] for term in terms]
        assert np.linalg.norm(np.sum(forces, axis=0)) < 0.01 * np.linalg.norm(forces, axis=1).max()


def test_the_loss_of_a_novel_row(monkeypatch):
    """The term that keeps it apart from the map grows linearly between a novelty of 1.5 and 3 (section 12)."""
    model = DRSNE(density_weight=0.0, objective=with_(OBJECTIVE, kernel="fixed"), **OPTIONS).fit(X)
    around = X[:100] + np.random.default_rng(3).normal(size=(100, 6)) * 3.0
    novelty = model.novelty(around)
    rows = np.concatenate([around[(novelty > 1.6) & (novelty < 2.9)], FOREIGN])
    share = np.clip((model.novelty(rows) - 1.5) / 1.5, 0.0, 1.0)
    assert len(rows) > 20
    assert share[-len(FOREIGN) :].min() == 1.0
    usual, seen = NumbaPlacer.values, []

    def values(self, Y, *rest):
        found = usual(self, Y, *rest)
        seen.append((Y.copy(), found.copy()))  # both change in later rounds
        return found

    monkeypatch.setattr(NumbaPlacer, "values", values)
    places, Y = model.transform(rows), model.embedding_
    near, P, _ = affinities(rows)
    far = 1.5 * np.quantile(np.sort(cdist(Y, Y), axis=1)[:, 30], 0.99)
    repelled = repulsion(model, 1.0)

    def loss(row, y):
        radius = np.sort(np.linalg.norm(y - Y, axis=1))[:K].mean()
        return attraction(model, near[row], P[row], 1.0)(y) + repelled(y) + 5.0 * share[row] * np.log(radius / far) ** 2

    starts, found = seen[0]
    for row, (start, value) in enumerate(zip(starts, found, strict=True)):
        assert value == pytest.approx(loss(row, start), rel=1e-3)
        assert loss(row, places[row]) < value
