"""Threads over fixed row blocks: the same result for every number of threads.

The blocks depend on the number of rows alone. Each block writes its own rows and its own slot of the
partial sums, and partial sums are added in block order, so who computed what leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Lock, Thread
from types import TracebackType
from typing import Any

from drsne import _checks

_ROWS_PER_BLOCK = 256
_MAX_BLOCKS = 64


def n_blocks(n_rows: int, grain: int = _ROWS_PER_BLOCK) -> int:
    """How many blocks ``n_rows`` rows are cut into (the length of a kernel's partial sums)."""
    return max(1, min(_MAX_BLOCKS, n_rows // grain))


def row_blocks(n_rows: int, grain: int = _ROWS_PER_BLOCK) -> list[tuple[int, int, int]]:
    """``(block, lo, hi)`` for each block."""
    blocks = n_blocks(n_rows, grain)
    edges = [block * n_rows // blocks for block in range(blocks + 1)]
    return [(block, edges[block], edges[block + 1]) for block in range(blocks)]


class Workers:
    """Up to ``n_jobs`` threads for the length of a ``with`` block.

    ``n_jobs`` follows joblib: None is 1 unless a joblib context says otherwise, -1 is every core, and
    it is 1 inside a joblib worker. The pool belongs to one fit, so forked children and concurrent fits
    each have their own. Meanwhile BLAS has one thread: matrix products are made by ours.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        from joblib import effective_n_jobs
        from joblib.parallel import get_active_backend

        _checks.jobs(n_jobs)
        nested = (get_active_backend()[0].nesting_level or 0) > 0
        self.n_threads = 1 if nested else int(effective_n_jobs(n_jobs))
        self._helpers: list[_Helper] = []

    def __enter__(self) -> Workers:
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
            helper.give(None)
        self._helpers = []
        _Blas.restore()

    def run(self, kernel: Callable[..., Any], n_rows: int, *arguments: Any, grain: int = _ROWS_PER_BLOCK) -> None:
        """Call ``kernel(*arguments, block, lo, hi)`` for every block of ``n_rows`` rows, at least ``grain`` each."""
        blocks = row_blocks(n_rows, grain)
        if not self._helpers or len(blocks) == 1:
            for block in blocks:
                kernel(*arguments, *block)
            return
        ticket = count()

        def work() -> None:
            while (turn := next(ticket)) < len(blocks):
                kernel(*arguments, *blocks[turn])

        helping: list[_Helper] = []
        try:
            for helper in self._helpers[: len(blocks) - 1]:
                helper.give(work)
                helping.append(helper)
            work()
        finally:
            # An interrupt must not leave threads writing into arrays that the caller reuses.
            errors = [helper.wait() for helper in helping]
        for error in errors:
            if error is not None:
                raise error


class _Helper(Thread):
    """A thread that does what it is given; an executor's futures take as long as a kernel on a few thousand points."""

    def __init__(self) -> None:
        super().__init__(name="drsne", daemon=True)
        self._task: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._given, self._done = Lock(), Lock()
        self._given.acquire()
        self._done.acquire()
        self.start()

    def run(self) -> None:
        while True:
            self._given.acquire()
            if self._task is None:
                return
            try:
                self._task()
            except BaseException as error:
                self._error = error
            self._done.release()

    def give(self, task: Callable[[], None] | None) -> None:
        """Start on ``task``; None ends the thread."""
        self._task = task
        self._given.release()

    def wait(self) -> BaseException | None:
        """Wait for its end, through interrupts, which are raised then; what the task raised."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._done.acquire()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        self._task, raised, self._error = None, self._error, None
        return raised or interrupt


class _Blas:
    """One BLAS thread while any :class:`Workers` run in this process.

    A second pool would wait for work at full speed beside ours (kernels take 1.6 times as long), and its products
    round differently with its size. The old number comes back when the last of several at a time ends.
    """

    _lock = Lock()
    _asking = 0
    _limits: Any = None

    @classmethod
    def limit(cls) -> None:
        from threadpoolctl import threadpool_limits

        with cls._lock:
            if cls._asking == 0:
                cls._limits = threadpool_limits(1, user_api="blas")
            cls._asking += 1

    @classmethod
    def restore(cls) -> None:
        with cls._lock:
            cls._asking -= 1
            if cls._asking == 0:
                cls._limits.restore_original_limits()
