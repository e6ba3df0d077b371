"""Kernels that take blocks of rows in turn: every row once, the same partial sums for every number of threads."""

from __future__ import annotations

import time

import numpy as np
import pytest

from drsne.backends.numba.kernels._board import read
from drsne.backends.numba.kernels._compile import kernel
from drsne.backends.numba.kernels._turns import over_blocks_uncompiled, takes_turns, turns_over, whole
from drsne.backends.numba.threads import Workers, n_blocks


def square_rows(x, out, sums, block, lo, hi):
    """Write squares, count the visits of each row, and sum the block."""
    total = 0.0
    for i in range(lo, hi):
        out[i] += x[i] * x[i]
        total += x[i]
    sums[block] = total


squares = kernel(square_rows)


@pytest.mark.parametrize("n", [1, 255, 256, 1000, 70_001])
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


def test_a_kernel_that_is_called_directly_takes_all_rows():
    out, sums = np.zeros(7), np.zeros(1)
    squares(np.arange(7.0), out, sums, whole(7))
    np.testing.assert_array_equal(out, np.arange(7.0) ** 2)


def test_helpers_take_part():
    """Blocks that wait for each other can only be finished by several threads."""
    met = np.zeros(3, np.int64)
    with Workers(3) as workers:
        workers.run(meeting, 3, met, grain=1)
    np.testing.assert_array_equal(met, 3)


@kernel
def meeting(met, block, lo, hi):
    """Wait until all three blocks are being worked on."""
    met[block] = 1
    seen = 0
    while seen < 3:
        seen = 0
        for other in range(3):
            seen += read(met, other) > 0
    met[block] = 3


def test_a_kernel_that_fails_in_a_helper_raises_in_the_caller():
    with Workers(3) as workers:
        for _ in range(3):
            with pytest.raises((MemoryError, ValueError)):
                workers.run(failing, 3, np.zeros(3, np.int64), grain=1)
        out, sums = np.zeros(2000), np.empty(n_blocks(2000))
        workers.run(squares, 2000, np.ones(2000), out, sums)
        assert (out == 1).all()


@kernel
def failing(met, block, lo, hi):
    """Wait until all three blocks are being worked on, and fail in all but the first."""
    met[block] = 1
    seen = 0
    while seen < 3:
        seen = 0
        for other in range(3):
            seen += read(met, other) > 0
    if block > 0:
        raise ValueError


def test_helpers_come_back_after_a_pause():
    """Helpers that have waited in vain sleep in Python and are woken by the next kernel."""
    with Workers(3) as workers:
        for pause in (0.0, 0.01, 0.1):
            time.sleep(pause)
            met = np.zeros(3, np.int64)
            workers.run(meeting, 3, met, grain=1)
            np.testing.assert_array_equal(met, 3)


def test_kernels_and_functions_alternate():
    with Workers(3) as workers:
        for _ in range(20):
            met = np.zeros(3, np.int64)
            workers.run(meeting, 3, met, grain=1)
            assert workers.each(abs, [-1, -2, -3]) == [1, 2, 3]


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


def test_only_functions_of_a_block_take_turns():
    assert takes_turns(square_rows)
    assert not takes_turns(lambda x, lo, hi: None)
