"""The method on real data: the scores of the default, of the path and of the preset on Digits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import TSNE

from drsne import DRSNE, DenSNE, metrics
from drsne.presets import paper


def test_default_buys_concentration_for_hardly_any_trust(digits):
    plain, dense = (
        metrics.evaluate(digits[:1000], DRSNE(random_state=0, n_jobs=2, **options).fit_transform(digits[:1000]))
        for options in ({"density_weight": 0.0}, {})
    )
    assert dense["trustworthiness"] > plain["trustworthiness"] - 0.01
    assert dense["concentration_correlation"] > plain["concentration_correlation"] + 0.2
    assert plain["trustworthiness"] > 0.98


def test_weight_zero_is_as_good_a_tsne_as_scikit_learns(digits):
    X = digits[:300]
    ours = DRSNE(density_weight=0.0, random_state=0).fit(X)
    theirs = TSNE(method="exact", random_state=0).fit_transform(X).astype(np.float64)
    P = ours.affinities_.tocoo()

    def divergence(Y):
        W = 1 / (1 + ((Y[:, None] - Y[None]) ** 2).sum(axis=2))
        np.fill_diagonal(W, 0.0)
        return (P.data * np.log(P.data / (W[P.row, P.col] / W.sum()))).sum()

    assert divergence(ours.embedding_) <= 1.01 * divergence(theirs)
    assert divergence(ours.embedding_) == pytest.approx(ours.kl_divergence_, rel=1e-5)


@pytest.mark.rotating(3)
def test_paper_preset_reproduces_the_authors_code(digits):
    """Printed lambda .005, k = 29, 1000 iterations; the authors' code gave TW .963, CC .888 (seed 0)."""
    Y = DRSNE(**paper(len(digits), 0.005, 29), random_state=0, n_jobs=-1).fit_transform(digits)
    assert metrics.trustworthiness(digits, Y) == pytest.approx(0.963, abs=0.012)
    assert metrics.concentration_correlation(digits, Y, 29) == pytest.approx(0.888, abs=0.01)


@pytest.mark.rotating(3)
def test_densne_default_is_a_better_optimum_than_the_programs(digits):
    """Of its own objective: the program's best at lambda = .5 is KL 1.016, rho .870 (own start)."""
    model = DenSNE(density_weight=0.5, max_iter=500, random_state=0, n_jobs=-1).fit(digits)
    assert model.kl_divergence_ - model.correlation_ < 1.016 - 0.870 - 0.05
    assert metrics.trustworthiness(digits, model.embedding_) > 0.98
