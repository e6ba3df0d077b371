"""Threads that work on fixed blocks of rows, with results that do not depend on the number of threads.

The blocks depend only on the number of rows. Each block writes its own rows and its own slot of the partial sums. The
partial sums are added in the order of the blocks, so it does not matter which thread computes which block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from time import sleep
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne import checks

_SERVE, _END = "serve", "end"
_ROWS_PER_BLOCK = 256
_MAX_BLOCKS = 256
_LOOKS = 1_000_000  # number of looks at the board, one or two nanoseconds each, before a helper returns to Python
_PAUSE, _LONGEST_PAUSE = 1e-5, 2e-3  # seconds of sleep of a helper while a kernel is compiled: increment and maximum


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
        self._n_helpers = 0  # outside of a with block, one thread does the work
        self._depth = 0  # number of nested with blocks
        self._owner = 0  # the thread that entered the block; work that is started inside of work is not divided
        self._board = _Board()

    def __enter__(self) -> Workers:
        from drsne.backends.numba.kernels._compile import COMPILES, interrupts_deferred

        self._depth += 1
        if self._depth > 1:
            return self
        self._deferred = interrupts_deferred
        self._deferred.__enter__()
        _Blas.limit()
        self._n_helpers, self._owner = (self.n_threads - 1 if COMPILES else 0), get_ident()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth:
            return
        try:
            for helper in self._helpers:
                helper.tasks.put(_END)
            self._helpers, self._n_helpers = [], 0
        finally:
            _Blas.restore()
            self._deferred.__exit__()

    def run(self, kernel: Callable[..., Any], n_rows: int, *arguments: Any, grain: int = _ROWS_PER_BLOCK) -> None:
        """Run ``kernel(*arguments, block, lo, hi)`` over blocks of at least ``grain`` rows.

        A compiled kernel takes its blocks itself. Any other function is called for every block.
        """
        blocks = n_blocks(n_rows, grain)
        alone = blocks == 1 or not self._n_helpers or get_ident() != self._owner
        if hasattr(kernel, "compiled"):
            if alone:
                kernel.compiled(*arguments, kernel.turns(n_rows, blocks))  # type: ignore[attr-defined]
            else:
                self._offer(kernel, n_rows, blocks, arguments)
        else:
            job = _Job(kernel, arguments, n_rows, blocks)
            if alone:
                job.work()
            else:
                self._share(job, blocks)

    def _offer(self, kernel: Any, n_rows: int, blocks: int, arguments: tuple[Any, ...]) -> None:
        """Run a compiled kernel and let the helpers that wait at the board take part."""
        helpers, board = self._started(), self._board
        board.in_use = True
        try:
            for helper in helpers[: blocks - 1]:
                helper.wake()
            kernel.compiled(*arguments, kernel.turns(n_rows, blocks, board.ready()))
        finally:
            board.in_use = False
        board.check()

    def _share(self, job: _Job, blocks: int) -> None:
        """Run a Python function in this thread and in the helpers."""
        helpers = self._started()[: blocks - 1]
        job.busy = [False] * len(helpers)
        complete = False
        try:
            for slot, helper in enumerate(helpers):
                helper.tasks.put((job, slot))
            self._board.call_back()
            job.work()
            complete = job.wait()
        finally:
            if not complete:
                job.abandon()
            job.forget()
        if job.error is not None:
            raise job.error

    def _started(self) -> list[_Helper]:
        """Return the helpers, which are started when there is work for more than one thread."""
        while len(self._helpers) < self._n_helpers:
            self._helpers.append(_Helper(self._board))
        return self._helpers

    def each(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return the results of ``function`` for all items, in the order of the items."""
        results: list[Any] = [None] * len(items)

        def some(block: int, lo: int, hi: int) -> None:
            results[lo:hi] = [function(item) for item in items[lo:hi]]

        if items:
            self.run(some, len(items), grain=1)
        return results


class _Board:
    """The place where a compiled kernel finds its helpers (:mod:`drsne.backends.numba.kernels._turns`)."""

    def __init__(self) -> None:
        self._values: NDArray[np.int64] | None = None
        self._address = 0
        self.in_use = False  # whether the main thread runs a kernel, or compiles one

    def ready(self) -> int:
        """Return the address of the board, which is made on first use: numba takes half a second to start."""
        if self._values is None:
            from drsne.backends.numba.kernels import _compile, _turns

            values = _turns.new_board()
            self._failed, self._called, self._serve = _turns.FAILED, _turns.CALLED, _compile.serve
            self._serve(values, 0, 0)  # compiled here, and not by all helpers
            self._address, self._values = int(values.ctypes.data), values
        return self._address

    def serve(self, tasks: SimpleQueue[Any]) -> None:
        """Help with kernels until none has been offered for a while, or until there are other tasks."""
        if self._values is not None:
            called = int(self._values[self._called])
            if tasks.empty():
                self._serve(self._values, called, _LOOKS)

    def call_back(self) -> None:
        """Call the helpers back to Python, where tasks wait for them."""
        if self._values is not None:
            self._values[self._called] += 1

    def check(self) -> None:
        """Raise an error if the kernel failed in any thread."""
        if self._values is not None and self._values[self._failed]:
            raise MemoryError("A compiled loop has failed, which usually means that there was not enough memory.")


class _Job:
    """A Python function that several threads call for blocks of rows.

    The main thread can be interrupted between any two instructions, so the threads do not exchange tokens: a token
    could be taken and lost. A helper sets its flag in ``busy`` before it takes a block.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], n_rows: int, blocks: int) -> None:
        self._function, self._arguments = function, arguments
        self._n_rows, self._blocks = n_rows, blocks
        self.busy: list[bool] = []
        self.error: BaseException | None = None
        self._taken, self._finished = count(), count(1)
        self._over = self._stopped = self._complete = False
        self._news: SimpleQueue[None] = SimpleQueue()

    def work(self) -> None:
        """Take blocks until none is left."""
        function, arguments = self._function, self._arguments
        while not self._stopped and (block := next(self._taken)) < self._blocks:
            edges = block * self._n_rows // self._blocks, (block + 1) * self._n_rows // self._blocks
            function(*arguments, block, *edges)
            if next(self._finished) == self._blocks:
                self._complete = True
                self._end()

    def wait(self) -> bool:
        """Wait until the last block is finished, or until one has failed. Return whether all are finished."""
        while not self._over:
            self._news.get()
        return self._complete

    def help(self, slot: int) -> None:
        """Take blocks in the thread of a helper. Exceptions are stored in ``error``."""
        self.busy[slot] = True
        try:
            self.work()
        except BaseException as error:
            self.error = error
            self._stop()
        finally:
            self.busy[slot] = False

    def abandon(self) -> None:
        """Prevent new blocks from starting, and wait for the running ones even if an interrupt arrives.

        Running blocks write to arrays, so they must end first.
        """
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._stop()
                if not any(self.busy):
                    break
                sleep(1e-4)
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def forget(self) -> None:
        """Release the arrays of a finished job, because a helper may hold the job for a while."""
        self._stop()
        self._arguments = ()
        self._function = _nothing

    def _stop(self) -> None:
        self._stopped = True
        self._end()

    def _end(self) -> None:
        self._over = True
        self._news.put(None)


def _nothing(*_: Any) -> None:
    """Stand for the function of a job that is over."""


class _Helper(Thread):
    """A thread that helps with kernels while there are many, and otherwise waits for tasks.

    It is used instead of the futures of an executor, which take as long as a kernel on a few thousand points.
    """

    def __init__(self, board: _Board) -> None:
        super().__init__(name="drsne", daemon=True)
        self._board, self._waits = board, True
        self.tasks: SimpleQueue[tuple[_Job, int] | str] = SimpleQueue()
        self.start()

    def wake(self) -> None:
        """Send the helper to the board, if it is not there."""
        if self._waits:
            self._waits = False
            self.tasks.put(_SERVE)

    def run(self) -> None:
        while (task := self.tasks.get()) is not _END:
            if isinstance(task, tuple):
                job, slot = task
                job.help(slot)
                del job  # otherwise the arrays of the last job would stay in memory until the next one
            else:
                self._serve()
            del task

    def _serve(self) -> None:
        pause = 0.0
        while not self._waits:
            self._board.serve(self.tasks)
            if not self.tasks.empty():
                self.tasks.put(_SERVE)  # after the other tasks
                return
            if self._board.in_use:  # a kernel is being compiled, or has no block left
                sleep(pause)
                pause = min(pause + _PAUSE, _LONGEST_PAUSE)
            else:
                self._waits = True  # before the last look, so that no kernel can begin unnoticed in between
                self._waits = not self._board.in_use


class _Blas:
    """A limit of one BLAS thread while any :class:`Workers` run in this process.

    BLAS threads that wait for work would compete with ours (kernels take 1.6 times as long), and the rounding of BLAS
    products depends on the number of BLAS threads. The old limit is restored when the last of the workers ends.
    """

    _lock = Lock()
    _users = 0
    _limits: Any = None
    _controller: Any = None  # the BLAS libraries of NumPy and SciPy, which take two milliseconds to find

    @classmethod
    def limit(cls) -> None:
        import scipy.linalg.cython_blas  # noqa: F401 (the products in kernels use it, and only loaded BLAS is limited)
        from threadpoolctl import ThreadpoolController

        with cls._lock:
            if cls._controller is None:
                cls._controller = ThreadpoolController()
            if cls._users == 0:
                cls._limits = cls._controller.limit(limits=1, user_api="blas")
            cls._users += 1

    @classmethod
    def restore(cls) -> None:
        with cls._lock:
            cls._users -= 1
            if cls._users == 0:
                cls._limits.restore_original_limits()
