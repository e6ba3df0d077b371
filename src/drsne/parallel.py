"""Threads over fixed row blocks: the same result for every number of threads.

The blocks depend on the number of rows alone. Each block writes its own rows and its own slot of the
partial sums, and partial sums are added in block order, so who computed what leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from types import TracebackType
from typing import Any

from drsne import _checks

_ROWS_PER_BLOCK = 256
_MAX_BLOCKS = 64


def n_blocks(n_rows: int) -> int:
    """How many blocks ``n_rows`` rows are cut into (the length of a kernel's partial sums)."""
    return max(1, min(_MAX_BLOCKS, n_rows // _ROWS_PER_BLOCK))


def row_blocks(n_rows: int) -> list[tuple[int, int, int]]:
    """``(block, lo, hi)`` for each block."""
    blocks = n_blocks(n_rows)
    edges = [block * n_rows // blocks for block in range(blocks + 1)]
    return [(block, edges[block], edges[block + 1]) for block in range(blocks)]


class Workers:
    """Up to ``n_jobs`` threads for the length of a ``with`` block.

    ``n_jobs`` follows joblib: None is 1 unless a joblib context says otherwise, -1 is every core, and
    it is 1 inside a joblib worker. The pool belongs to one fit, so forked children and concurrent fits
    each have their own.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        from joblib import effective_n_jobs
        from joblib.parallel import get_active_backend

        _checks.jobs(n_jobs)
        nested = (get_active_backend()[0].nesting_level or 0) > 0
        self.n_threads = 1 if nested else int(effective_n_jobs(n_jobs))
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="drsne")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def run(self, kernel: Callable[..., Any], n_rows: int, *arguments: Any) -> None:
        """Call ``kernel(*arguments, block, lo, hi)`` for every block of ``n_rows`` rows."""
        blocks = row_blocks(n_rows)
        if self._pool is None or len(blocks) == 1:
            for block in blocks:
                kernel(*arguments, *block)
            return
        ticket = count()

        def work() -> None:
            while (turn := next(ticket)) < len(blocks):
                kernel(*arguments, *blocks[turn])

        tasks = [self._pool.submit(work) for _ in range(min(self.n_threads, len(blocks)))]
        try:
            wait(tasks)
        except BaseException:
            # An interrupt must not leave threads writing into arrays that the caller reuses.
            wait(tasks)
            raise
        for task in tasks:
            task.result()
