"""The sort of integers and the transpose of sparse matrices on threads equal those of NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from covering import each_value

from drsne.backends.numba import ordering
from drsne.backends.numba.ordering import listed_back, stable_order, transposed
from drsne.backends.numba.threads import Workers


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_several_blocks_of_keys(n_jobs, monkeypatch):
    monkeypatch.setattr(ordering, "_SORTED_TOGETHER", 1000)
    keys = np.random.default_rng(0).integers(0, 2**13, 30_000)
    with Workers(n_jobs) as workers:
        order, _ = stable_order(keys, 13, workers)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


@each_value({"n_jobs": [1, 3], "n, bits": [(1, 60), (500, 60), (40_000, 60), (200_000, 17), (40_000, 1)]})
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


@each_value({"n_jobs": [1, 3], "n": [1, 50, 20_000]})
def test_the_transpose_has_sorted_rows(n, n_jobs):
    rows, columns = np.random.default_rng(n).integers(0, n, (2, 20 * n))
    A = sp.csr_matrix((np.arange(20.0 * n), (rows, columns)), shape=(n, n))
    A.indices = A.indices.astype(np.int32)
    with Workers(n_jobs) as workers:
        offsets, names, moved = transposed(A.indptr.astype(np.int64), A.indices, A.data, workers)
    expected = A.T.tocsr()
    expected.sort_indices()
    np.testing.assert_array_equal(offsets, expected.indptr)
    np.testing.assert_array_equal(names, expected.indices)
    np.testing.assert_array_equal(moved, expected.data)
