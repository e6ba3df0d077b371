"""The sort of integers on threads equals NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from drsne.backends.numba.sorting import listed_back, stable_order
from drsne.backends.numba.threads import Workers


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize(("n", "bits"), [(1, 60), (500, 60), (40_000, 60), (200_000, 17), (40_000, 1)])
def test_equals_the_stable_sort_of_numpy(n, bits, n_jobs):
    keys = np.random.default_rng(n + bits).integers(0, 2**bits, n)
    keys[n // 3 : n // 2] = keys[0]  # ties
    before = keys.copy()
    with Workers(n_jobs) as workers:
        order, found = stable_order(keys, bits, workers)
    expected = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(found, keys[expected])
    np.testing.assert_array_equal(keys, before)  # the argument is not changed
    assert order.dtype == np.int32


@pytest.mark.parametrize("n", [3, 300, 9000])
def test_points_that_nobody_lists(n):
    neighbors = np.random.default_rng(0).integers(n // 3, n // 2 + 1, (n, 4)).astype(np.int32)
    with Workers(2) as workers:
        offsets, listed_by = listed_back(neighbors, workers)
    assert offsets[0] == offsets[n // 3] == 0
    assert offsets[-1] == offsets[n // 2 + 1] == 4 * n
    for i in range(n // 3, min(n // 2 + 1, n // 3 + 5)):
        rows, _ = np.nonzero(neighbors == i)
        np.testing.assert_array_equal(listed_by[offsets[i] : offsets[i + 1]], rows)
