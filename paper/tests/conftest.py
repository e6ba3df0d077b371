from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

# One thread for libraries that are loaded later, and in other processes: tests run beside one another.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _one_openmp_thread():
    with threadpool_limits(1, user_api="openmp"):
        yield


@pytest.fixture(scope="session")
def digits():
    """Digits as the paper feeds it: 1797 x 64, standardised."""
    return StandardScaler().fit_transform(load_digits().data)


@pytest.fixture
def blobs():
    """Three groups whose scales differ by factors of four, 120 x 6."""
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(4.0 * g, 0.25 * 4.0**g, (40, 6)) for g in range(3)])
