"""Kernels that take blocks of rows in turn: every row once, the same partial sums for every number of threads."""

from __future__ import annotations

import threading
import time
import weakref

import numpy as np
import pytest
from covering import in_one_test

from drsne.backends.numba.kernels._compile import kernel
from drsne.backends.numba.kernels._turns import over_blocks_uncompiled, read, turns_over
from drsne.backends.numba.threads import Workers, n_blocks


def square_rows(x, out, sums, block, lo, hi):
    """Write squares, count the visits of each row, and sum the block."""
    total = 0.0
    for i in range(lo, hi):
        out[i] += x[i] * x[i]
        total += x[i]
    sums[block] = total


squares = kernel(square_rows)


@in_one_test("n", [1, 255, 256, 1000, 70_001])
def test_every_row_is_visited_once(n):
    x = np.random.default_rng(0).normal(size=n)
    found = []
    for n_jobs in (1, 2, 5):
        out, sums = np.zeros(n), np.full(n_blocks(n), np.nan)
        with Workers(n_jobs) as workers:
            workers.run(squares, n, x, out, sums)
        np.testing.assert_allclose(out, x * x, rtol=1e-15)
        found.append((out.tobytes(), sums.tobytes()))
        assert sums.sum() == pytest.approx(x.sum(), abs=1e-9)
    assert len(set(found)) == 1


def test_many_jobs_in_a_row():
    """Helpers that wake up late find no block left, while the next job has begun."""
    x, n = np.ones(2000), 2000
    with Workers(6) as workers:
        for _ in range(500):
            out, sums = np.zeros(n), np.empty(n_blocks(n))
            workers.run(squares, n, x, out, sums)
            assert sums.sum() == n
            assert (out == 1).all()


@kernel
def meeting(met, fails, block, lo, hi):
    """Wait until all three blocks are being worked on, then fail in one of them, or write 3."""
    met[block] = 1
    seen, looks = 0, 0
    while seen < 3:
        seen = 0
        for other in range(3):
            seen += read(met, other) > 0
        looks += 1
        if looks > 2_000_000_000:
            raise ValueError  # after some ten seconds
    if block == fails:
        raise ValueError
    met[block] = 3


def meet(workers, fails=-1):
    """Run blocks that wait for each other, which only several threads can finish."""
    met = np.zeros(3, np.int64)
    workers.run(meeting, 3, met, fails, grain=1)
    return met.tolist()


@in_one_test("fails", [0, 1, 2])
def test_a_kernel_that_fails_in_any_thread_raises_in_the_caller(fails):
    """The main thread takes any of the blocks. The next kernels find a board that is in order."""
    with Workers(3) as workers:
        for _ in range(10):
            with pytest.raises(MemoryError, match="compiled loop has failed"):
                meet(workers, fails)
            assert meet(workers) == [3, 3, 3]


def test_helpers_come_back_after_a_pause():
    """Helpers that have waited in vain sleep in Python and are woken by the next kernel."""
    with Workers(3) as workers:
        for pause in (0.0, 0.01, 0.1):
            time.sleep(pause)
            assert meet(workers) == [3, 3, 3]


def test_kernels_and_functions_alternate():
    barrier = threading.Barrier(3, timeout=10.0)

    def together(_):
        barrier.wait()
        return threading.get_ident()

    with Workers(3) as workers:
        for _ in range(20):
            assert meet(workers) == [3, 3, 3]
            assert len(set(workers.each(together, [1, 2, 3]))) == 3


def test_finished_functions_are_not_kept():
    """Helpers that are busy with kernels must not keep the arrays of functions that are over."""
    with Workers(2) as workers:
        out, sums = np.zeros(2000), np.empty(n_blocks(2000))
        kept = []
        for _ in range(50):
            workers.run(squares, 2000, np.ones(2000), out, sums)
            values = np.zeros(10)
            kept.append(weakref.ref(values))
            workers.each(values.__getitem__, [0, 1])
            del values
        time.sleep(0.05)
        assert sum(ref() is not None for ref in kept) <= 1
        assert all(helper.tasks.qsize() <= 2 for helper in workers._helpers)


def test_work_inside_of_work_is_not_divided():
    def inside(_):
        out, sums = np.zeros(2000), np.empty(n_blocks(2000))
        workers.run(squares, 2000, np.ones(2000), out, sums)
        return out.sum()

    with Workers(3) as workers:
        for _ in range(20):
            assert workers.each(inside, list(range(6))) == [2000.0] * 6


def test_a_kernel_of_a_block_must_not_return():
    def wrong(x, block, lo, hi):
        for i in range(lo, hi):
            if x[i] > 0:
                return

    with pytest.raises(TypeError, match="wrong must not return"):
        kernel(wrong).compiled  # noqa: B018


def test_without_compilation_the_result_is_the_same():
    x = np.random.default_rng(0).normal(size=700)
    one, other = (np.zeros(700), np.zeros(3)), (np.zeros(700), np.zeros(3))
    squares(x, *one, turns_over(700, 3))
    over_blocks_uncompiled(square_rows)(x, *other, turns_over(700, 3))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-15)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-12)


def test_a_kernel_that_cannot_be_compiled_raises_in_the_caller():
    def wrong(x, block, lo, hi):
        for i in range(lo, hi):
            x[i] = no_such_function(i)  # noqa: F821

    with Workers(3) as workers:
        for _ in range(3):
            with pytest.raises(Exception, match="no_such_function"):
                workers.run(kernel(wrong), 2000, np.zeros(2000))
