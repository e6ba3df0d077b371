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
_MAX_BLOCKS = 64


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
        from drsne.backends.numba.kernels._compile import interrupts_deferred

        self._deferred = interrupts_deferred
        self._deferred.__enter__()
        _Blas.limit()
        self._helpers = [_Helper() for _ in range(self.n_threads - 1)]
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
        """Call ``kernel(*arguments, block, lo, hi)`` for every block, each with at least ``grain`` rows."""
        blocks = row_blocks(n_rows, grain)
        if not self._helpers or len(blocks) == 1:
            for block in blocks:
                kernel(*arguments, *block)
            return
        helpers = self._helpers[: len(blocks) - 1]
        job = _Job(kernel, arguments, blocks, len(helpers))
        try:
            for slot, helper in enumerate(helpers):
                helper.tasks.put((job, slot))
            job.work()
            job.wait()
        finally:
            if not job.complete:
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
    """Blocks of rows that several threads take in turn.

    The main thread can be interrupted between any two instructions, so the threads do not exchange tokens: a token
    could be taken and lost. ``_over`` is a flag that can be read again, and a helper sets its flag in ``_busy`` before
    it takes a block.
    """

    def __init__(
        self,
        kernel: Callable[..., Any],
        arguments: tuple[Any, ...],
        blocks: list[tuple[int, int, int]],
        n_helpers: int,
    ) -> None:
        self._kernel, self._arguments, self._blocks = kernel, arguments, blocks
        self._turns, self._ends = count(), count(1)
        self._busy = [False] * n_helpers
        self._over = self._abandoned = False
        self._news: SimpleQueue[None] = SimpleQueue()
        self.complete = False
        self.error: BaseException | None = None

    def work(self, slot: int | None = None) -> None:
        """Run blocks until none is left. In the thread of a helper, exceptions are stored in ``error``."""
        if slot is None:
            self._take()
            return
        self._busy[slot] = True
        try:
            self._take()
        except BaseException as error:
            self.error, self._abandoned = error, True
            self._end()
        finally:
            self._busy[slot] = False

    def _take(self) -> None:
        while not self._abandoned and (turn := next(self._turns)) < len(self._blocks):
            self._kernel(*self._arguments, *self._blocks[turn])
            if next(self._ends) == len(self._blocks):
                self.complete = True
                self._end()

    def _end(self) -> None:
        self._over = True
        self._news.put(None)

    def wait(self) -> None:
        """Wait until the last block is done, or until one has failed."""
        while not self._over:
            self._news.get()

    def abandon(self) -> None:
        """Prevent new blocks from starting, and wait for the running ones even if an interrupt arrives.

        Running blocks write to arrays, so they must end first.
        """
        interrupt: KeyboardInterrupt | None = None
        while not self._abandoned or any(self._busy):
            try:
                self._abandoned = True
                sleep(1e-4)
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


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
            job.work(slot)
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
