from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from drsne import initialization
from drsne.affinities import Calibration, affinities
from drsne.backends.numba.threads import Workers
from drsne.neighbors.search import knn


def rng():
    return np.random.RandomState(0)


def low_rank(n=300, d=12, seed=0):
    r = np.random.default_rng(seed)
    return r.normal(size=(n, d)) * np.linspace(5, 0.5, d) + 100.0


def agreement(Y, X, d):
    """Smallest cosine between the start's columns and scikit-learn's principal components."""
    expected = PCA(d).fit_transform(X)
    Y = Y - Y.mean(axis=0)
    return min(
        abs((Y[:, c] * expected[:, c]).sum()) / (np.linalg.norm(Y[:, c]) * np.linalg.norm(expected[:, c]))
        for c in range(d)
    )


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("d", [1, 3])
def test_pca_is_principal_components(d):
    X = low_rank() * np.r_[3.0, np.ones(11)]  # columns of different widths
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    widths = PCA(d).fit_transform(X).std(axis=0)
    for Y in (
        initialization.pca(X, d, rng(), Workers()),
        initialization.pca(sp.csr_matrix(X), d, rng(), Workers()),
        initialization.classical_scaling(D, d, rng(), Workers()),
    ):
        assert Y.shape == (300, d)
        assert Y[:, 0].std() == pytest.approx(1e-4, rel=0.01)
        assert agreement(Y, X, d) > 0.99
        np.testing.assert_allclose(Y.std(axis=0) / Y[:, 0].std(), widths / widths[0], rtol=0.03)


@pytest.mark.usefixtures("few")
def test_wide_data():
    X = np.random.default_rng(0).normal(size=(30, 400)) * np.r_[10.0, 5.0, np.ones(398)]
    assert agreement(initialization.pca(X, 2, rng(), Workers()), X, 2) > 0.99


def test_dimensions_the_data_lack_are_noise():
    X = np.linspace(0, 1, 100)[:, None]
    Y = initialization.pca(X, 3, rng(), Workers())
    assert abs(np.corrcoef(Y[:, 0], X[:, 0])[0, 1]) > 0.99
    assert (Y.std(axis=0) > 5e-5).all()
    Y = initialization.pca(np.ones((50, 4)), 2, rng(), Workers())
    assert (Y.std(axis=0) > 5e-5).all()


def test_one_outlier_does_not_flatten_the_rest():
    X = low_rank()
    X[0] = 1e6
    Y = initialization.pca(X, 2, rng(), Workers())
    assert (Y[1:].std(axis=0) > 1e-5).all()


def test_seeds_differ_a_little():
    X = low_rank()
    one, two = (initialization.pca(X, 2, np.random.RandomState(seed), Workers()) for seed in (0, 1))
    assert 0 < np.abs(one - two).max() < 1e-5


def test_diffusion_separates_groups():
    r = np.random.default_rng(0)
    X = np.vstack([r.normal(0, 1, (60, 3)), r.normal(4, 1, (60, 3))])
    with Workers() as workers:
        P = affinities(knn(X, 30), 10.0, Calibration(), workers).P
    Y = initialization.diffusion(P, 2, rng())
    group = np.repeat([0, 1], 60)
    assert abs(np.corrcoef(Y[:, 0], group)[0, 1]) > 0.9


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("sparse", [False, True])
def test_same_for_every_number_of_threads(sparse):
    X = low_rank(1200)
    X = sp.csr_matrix(X) if sparse else X
    starts = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            starts.append(initialization.pca(X, 2, rng(), workers).tobytes())
    assert starts[0] == starts[1] == starts[2]
