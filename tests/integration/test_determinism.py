"""The same seed gives bitwise the same map: at any n_jobs, from many threads, in forked children and workers."""

from __future__ import annotations

import hashlib
import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import pytest
from covering import in_one_test
from joblib import Parallel, delayed, parallel_config
from scipy.sparse import csr_matrix

from drsne import DRSNE
from drsne.metrics import evaluate

WEIGHTS = (0.0, 5.0)


def hashed(n_jobs=1, weight=5.0, seed=0, sparse=False, **options):
    X = np.random.default_rng(0).normal(size=(900, 20)) * np.linspace(1, 4, 900)[:, None]
    X = csr_matrix(X) if sparse else X
    model = DRSNE(n_jobs=n_jobs, density_weight=weight, random_state=seed, max_iter=60, **options).fit(X)
    return hashlib.sha256(model.embedding_.tobytes() + model.affinities_.data.tobytes()).hexdigest()


@pytest.mark.parametrize("weight", WEIGHTS)
def test_every_n_jobs_and_repetition(weight):
    assert len({hashed(n_jobs, weight) for n_jobs in (1, 2, None, 1)}) == 1


def test_three_dimensions_and_double_precision():
    from drsne import Objective

    for options in ({"n_components": 3}, {"objective": Objective(precision="double", support="directed")}):
        assert len({hashed(n_jobs, **options) for n_jobs in (1, 3)}) == 1


@in_one_test("metric", ["manhattan", "minkowski", "cosine", "hamming"])
def test_ties_under_other_metrics_and_fewer_threads(metric):
    from threadpoolctl import threadpool_limits

    X = (np.random.default_rng(0).normal(size=(400, 20)) > 0).astype(float)
    model = DRSNE(metric=metric, random_state=0, max_iter=20)

    def fit(n_jobs):
        return model.set_params(n_jobs=n_jobs).fit(X).embedding_.tobytes()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # duplicates
        maps = {fit(n_jobs) for n_jobs in (1, 2)}
        with threadpool_limits(1):
            maps.add(fit(1))
    assert len(maps) == 1


def test_four_threads_at_once():
    with ThreadPoolExecutor(4) as pool:
        results = set(pool.map(hashed, (1, 2, 2, 4)))
    assert results == {hashed()}


def _child(queue, n_jobs, metric="euclidean", sparse=False):
    queue.put(hashed(n_jobs, metric=metric, sparse=sparse))


def _score(queue):
    X = np.random.default_rng(0).normal(size=(300, 40))
    queue.put(evaluate(X, X[:, :2]))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_forked_child():
    # pools, BLAS and kernels are in use before the fork
    assert forked(_child, 2) == hashed(2)
    assert forked(_child, 1, "manhattan") == hashed(1, metric="manhattan")
    assert forked(_child, 1, "manhattan", True) == hashed(1, metric="manhattan", sparse=True)
    queue = SimpleQueue()
    _score(queue)
    assert forked(_score) == queue.get()


def forked(target, *arguments):
    """What ``target`` puts into its queue in a forked child."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking a process with threads
        child = context.Process(target=target, args=(queue, *arguments))
        child.start()
    result = queue.get(timeout=120)
    child.join(timeout=60)
    assert child.exitcode == 0
    return result


@pytest.mark.rotating(2)
def test_inside_joblib_workers_and_contexts():
    expected = hashed()
    assert set(Parallel(n_jobs=2)(delayed(hashed)(n_jobs) for n_jobs in (1, 4))) == {expected}
    with parallel_config(backend="threading", n_jobs=2):
        assert hashed(None) == expected


def test_one_thread_by_default_and_inside_workers():
    from drsne.backends.numba.threads import Workers

    assert Workers(None).n_threads == 1
    assert Workers(3).n_threads == 3
    with parallel_config(n_jobs=2):
        assert Workers(None).n_threads == 2
    assert Parallel(n_jobs=2)(delayed(lambda: Workers(4).n_threads)() for _ in range(2)) == [1, 1]
