"""Threads that work on fixed blocks of rows, with results that do not depend on the number of threads.

The blocks depend only on the number of rows. Each block writes its own rows and its own slot of the partial sums. The
partial sums are added in the order of the blocks, so it does not matter which thread computes which block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from types import TracebackType
from typing import Any

from drsne import checks

_ROWS_PER_BLOCK = 256
_MAX_BLOCKS = 256
_ATTEMPTS = 2000  # number of looks at a counter, which take a few microseconds, before a thread sleeps
_PAUSE, _LONGEST_PAUSE = 1e-5, 2e-4  # seconds of sleep between two looks: the increment and the largest value


def n_blocks(n_rows: int, grain: int = _ROWS_PER_BLOCK) -> int:
    """Return the number of blocks for ``n_rows`` rows, which is also the length of a kernel's partial sums."""
    return max(1, min(_MAX_BLOCKS, n_rows // grain))


def row_blocks(n_rows: int, grain: int = _ROWS_PER_BLOCK) -> list[tuple[int, int, int]]:
    """Return ``(block, lo, hi)`` for each block."""
    blocks = n_blocks(n_rows, grain)
    edges = [block * n_rows // blocks for block in range(blocks + 1)]
    return [(block, edges[block], edges[block + 1]) for block in range(blocks)]


class Workers:
    """Up to ``n_jobs`` threads that run during a ``with`` block.

    ``n_jobs`` follows joblib: None stands for 1 unless a joblib context sets another number, and -1 stands for all
    cores. Inside a joblib worker, one thread is used. The threads belong to one fit, so forked children and concurrent
    fits have their own. BLAS is limited to one thread during the block, because our threads call it in parallel.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        from joblib import effective_n_jobs
        from joblib.parallel import get_active_backend

        checks.jobs(n_jobs)
        nested = (get_active_backend()[0].nesting_level or 0) > 0
        self.n_threads = 1 if nested else int(effective_n_jobs(n_jobs))
        self._helpers: list[_Helper] = []

    def __enter__(self) -> Workers:
        from drsne.backends.numba.kernels._compile import COMPILES, interrupts_deferred

        self._deferred = interrupts_deferred
        self._deferred.__enter__()
        _Blas.limit()
        self._helpers = [_Helper() for _ in range(self.n_threads - 1 if COMPILES else 0)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for helper in self._helpers:
            helper.tasks.put(None)
        self._helpers = []
        _Blas.restore()
        self._deferred.__exit__()

    def run(self, kernel: Callable[..., Any], n_rows: int, *arguments: Any, grain: int = _ROWS_PER_BLOCK) -> None:
        """Run ``kernel(*arguments, block, lo, hi)`` over blocks of at least ``grain`` rows.

        A compiled kernel takes its blocks itself. Any other function is called for every block.
        """
        blocks = n_blocks(n_rows, grain)
        job: _Job
        if hasattr(kernel, "compiled"):
            job = _KernelJob(kernel.compiled, arguments, n_rows, blocks)
        else:
            job = _FunctionJob(kernel, arguments, n_rows, blocks)
        if not self._helpers or blocks == 1:
            job.work()
            return
        helpers = self._helpers[: blocks - 1]
        job.busy = [False] * len(helpers)
        complete = False
        try:
            for slot, helper in enumerate(helpers):
                helper.tasks.put((job, slot))
            job.work()
            complete = job.wait()
        finally:
            if not complete:
                job.abandon()
        if job.error is not None:
            raise job.error

    def each(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return the results of ``function`` for all items, in the order of the items."""
        results: list[Any] = [None] * len(items)

        def some(block: int, lo: int, hi: int) -> None:
            results[lo:hi] = [function(item) for item in items[lo:hi]]

        if items:
            self.run(some, len(items), grain=1)
        return results


class _Job:
    """Work on blocks of rows that several threads take in turn.

    The main thread can be interrupted between any two instructions, so the threads do not exchange tokens: a token
    could be taken and lost. A helper sets its flag in ``busy`` before it takes a block.
    """

    def __init__(self, kernel: Callable[..., Any], arguments: tuple[Any, ...], n_rows: int, blocks: int) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._n_rows, self._blocks = n_rows, blocks
        self.busy: list[bool] = []
        self.error: BaseException | None = None

    def work(self) -> None:
        """Take blocks until none is left."""
        raise NotImplementedError

    def wait(self) -> bool:
        """Wait until the last block is finished, or until one has failed. Return whether all are finished."""
        raise NotImplementedError

    def stop(self) -> None:
        """Let no thread take another block."""
        raise NotImplementedError

    def help(self, slot: int) -> None:
        """Take blocks in the thread of a helper. Exceptions are stored in ``error``."""
        self.busy[slot] = True
        try:
            self.work()
        except BaseException as error:
            self.error = error
            self.stop()
        finally:
            self.busy[slot] = False

    def abandon(self) -> None:
        """Prevent new blocks from starting, and wait for the running ones even if an interrupt arrives.

        Running blocks write to arrays, so they must end first.
        """
        interrupt: KeyboardInterrupt | None = None
        stopped = False
        while not stopped or any(self.busy):
            try:
                self.stop()
                stopped = True
                sleep(1e-4)
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _KernelJob(_Job):
    """A compiled kernel, which takes its blocks itself (:mod:`drsne.backends.numba.kernels._turns`).

    A helper that wakes up late finds no block left. The main thread does not wait for it.
    """

    def __init__(self, kernel: Callable[..., Any], arguments: tuple[Any, ...], n_rows: int, blocks: int) -> None:
        from drsne.backends.numba.kernels import _turns

        super().__init__(kernel, arguments, n_rows, blocks)
        self._turns, self._stop = _turns.turns_over(n_rows, blocks), _turns.stop

    def work(self) -> None:
        self._kernel(*self._arguments, self._turns)

    def wait(self) -> bool:
        from drsne.backends.numba.kernels.waiting import finished

        pause = 0.0  # a block that another thread still works on is finished soon
        while not finished(self._turns, self._blocks, _ATTEMPTS):
            if self.error is not None:
                return False
            sleep(pause)
            pause = min(pause + _PAUSE, _LONGEST_PAUSE)
        return True

    def stop(self) -> None:
        self._stop(self._turns)


class _FunctionJob(_Job):
    """A Python function, which is called for every block."""

    def __init__(self, kernel: Callable[..., Any], arguments: tuple[Any, ...], n_rows: int, blocks: int) -> None:
        super().__init__(kernel, arguments, n_rows, blocks)
        self._taken, self._finished = count(), count(1)
        self._over = self._stopped = self._complete = False
        self._news: SimpleQueue[None] = SimpleQueue()

    def work(self) -> None:
        while not self._stopped and (block := next(self._taken)) < self._blocks:
            edges = block * self._n_rows // self._blocks, (block + 1) * self._n_rows // self._blocks
            self._kernel(*self._arguments, block, *edges)
            if next(self._finished) == self._blocks:
                self._complete = True
                self._end()

    def wait(self) -> bool:
        while not self._over:
            self._news.get()
        return self._complete

    def stop(self) -> None:
        self._stopped = True
        self._end()

    def _end(self) -> None:
        self._over = True
        self._news.put(None)


class _Helper(Thread):
    """A thread that runs jobs from a queue.

    It is used instead of the futures of an executor, which take as long as a kernel on a few thousand points.
    """

    def __init__(self) -> None:
        super().__init__(name="drsne", daemon=True)
        self.tasks: SimpleQueue[tuple[_Job, int] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while (task := self.tasks.get()) is not None:
            job, slot = task
            job.help(slot)
            del job, task  # otherwise the arrays of the last job would stay in memory until the next one


class _Blas:
    """A limit of one BLAS thread while any :class:`Workers` run in this process.

    BLAS threads that wait for work would compete with ours (kernels take 1.6 times as long), and the rounding of BLAS
    products depends on the number of BLAS threads. The old limit is restored when the last of the workers ends.
    """

    _lock = Lock()
    _users = 0
    _limits: Any = None

    @classmethod
    def limit(cls) -> None:
        import scipy.linalg.cython_blas  # noqa: F401 (the products in kernels use it, and only loaded BLAS is limited)
        from threadpoolctl import threadpool_limits

        with cls._lock:
            if cls._users == 0:
                cls._limits = threadpool_limits(1, user_api="blas")
            cls._users += 1

    @classmethod
    def restore(cls) -> None:
        with cls._lock:
            cls._users -= 1
            if cls._users == 0:
                cls._limits.restore_original_limits()
