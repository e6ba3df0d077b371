from __future__ import annotations

import datetime
import os
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

# One thread for libraries that are loaded later, such as PyTorch, and in other processes: tests run beside one another.
os.environ["OMP_NUM_THREADS"] = "1"

# Tests that `make check` leaves out: folders, files, or single tests of a file. A new slow test has its own marker.
SLOW = (
    "src/drsne/estimators/functions.py",
    "tests/contract/test_engines.py::test_a_hard_map_after_an_ordinary_one",
    "tests/contract/test_engines.py::test_an_ordinary_map_after_a_hard_one_has_its_theta_back",
    "tests/contract/test_engines.py::test_gradients_follow_the_exact_ones",
    "tests/contract/test_engines.py::test_high_accuracy_of_the_mesh",
    "tests/contract/test_engines.py::test_partition_and_forces",
    "tests/contract/test_engines.py::test_partition_and_forces_of_the_adaptive_kernel",
    "tests/contract/test_engines.py::test_same_for_every_number_of_threads",
    "tests/integration",
    "tests/unit/test_anomaly.py::test_scores_of_a_map_that_is_far_small_or_large",
    "tests/unit/test_anomaly.py::test_the_others_are_scikit_learns",
    "tests/unit/test_densne.py::test_every_n_jobs_gives_the_same_map",
    "tests/unit/test_fragmentation.py::test_whole_groups_score_zero",
    "tests/unit/test_hard_cases.py::test_a_perplexity_the_neighbours_can_hold_is_kept",
    "tests/unit/test_metrics.py::test_no_score_holds_a_matrix_of_all_pairs",
    "tests/unit/test_path.py",
    "tests/unit/test_radii.py::test_fast_engines_are_near_exact",
    "tests/unit/test_scale.py::test_memory_estimate_is_near_the_peak",
    "tests/unit/test_scale.py::test_options_reach_the_engine_that_knows_them",
    "tests/unit/test_search.py::test_approximate_recall_and_exact_distances",
)

NEEDS = {"src/drsne/tl/": "anndata", "src/drsne/pl/": "matplotlib"}  # optional packages in the examples of docstrings


def waits(item, turns):
    """Return whether a test with the marker ``rotating(n)`` runs on another day. About as many of them run each day."""
    marker = item.get_closest_marker("rotating")
    if marker is None or os.environ.get("DRSNE_SEEDS") == "all" or "DRSNE_TEST_DEVICE" in os.environ:
        return False
    (n,) = marker.args
    turns[n] += 1
    return (datetime.date.today().toordinal() + turns[n]) % n != 0


def is_slow(nodeid):
    """Return whether a test is in the list."""
    name = nodeid.partition("[")[0]  # without parameters
    return any(name == slow or name.startswith((f"{slow}::", f"{slow}/")) for slow in SLOW)


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(items):
    turns = Counter()
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
        if waits(item, turns):
            item.add_marker(pytest.mark.skip(reason="runs on other days, and in `make nightly`"))
        for folder, package in NEEDS.items():
            if item.nodeid.startswith(folder) and find_spec(package) is None:
                item.add_marker(pytest.mark.skip(reason=f"the examples need {package}"))


@pytest.fixture(scope="session", autouse=True)
def _one_openmp_thread():
    """Tests run beside one another: OpenMP's threads would wait at full speed for cores that the others have."""
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


FEW = ("as usual", "always compiled")


@pytest.fixture(params=FEW)
def few(request, monkeypatch):
    """Run a test twice: as few points are usually treated, and with the compiled functions of many points."""
    from drsne import affinities, initialization
    from drsne.backends.numba import backend, cells

    if request.param == "always compiled":
        for module in (affinities, initialization, backend, cells):
            monkeypatch.setattr(module, "FEW", 0)
