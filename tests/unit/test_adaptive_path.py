"""Paths of lambda with the adaptive kernel: what each map is equal to."""

from __future__ import annotations

import numpy as np
import pytest
from covering import in_one_test

from drsne import DRSNE, density_path

QUICK = {"perplexity": 10.0, "density_neighbors": 10, "max_iter": 200, "random_state": 0, "neighborhoods": "both"}


@in_one_test(
    ("weights", "at", "options"),
    [
        ([0.0, 0.5, 1.0], 1, {"kernel": "adaptive"}),
        ([3.0], 0, {"kernel": "adaptive"}),
        ([0.0, 0.03, 0.1, 1.0], 1, {}),
        ([0.0, 0.03, 0.1, 1.0], 2, {}),
    ],
)
def test_a_map_with_a_fit_of_its_own_is_that_of_the_fit(blobs, weights, at, options):
    """The first weight above 0, whatever is before and after it, and the weights that do not adapt in full."""
    path = density_path(blobs, weights, **options, **QUICK)
    model = DRSNE(density_weight=weights[at], **options, **QUICK).fit(blobs)
    np.testing.assert_array_equal(path.embeddings[at], model.embedding_)
    assert path.kl_divergence[at] == model.kl_divergence_
    assert path.concentration_loss[at] == model.concentration_loss_


def test_the_fixed_kernel_goes_on_from_zero(blobs):
    path = density_path(blobs, [0.0, 1.0], kernel="fixed", **QUICK)
    assert path.kl_divergence[0] == DRSNE(density_weight=0.0, kernel="fixed", **QUICK).fit(blobs).kl_divergence_
    same = density_path(blobs, [1.0], kernel="fixed", **QUICK)
    np.testing.assert_array_equal(same.embeddings[0], path.embeddings[1])


def test_a_path_says_that_it_lowers_the_exaggeration(blobs):
    with pytest.warns(UserWarning, match="Lowered n_iter_exaggeration from 100 to 85"):
        density_path(blobs, [0.0, 1.0], **{**QUICK, "max_iter": 200, "n_iter_exaggeration": 100})
