"""Logging of the steps of a fit and their times, with :mod:`logging` under the name "drsne"."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, get_ident

LOGGER = logging.getLogger("drsne")
_LOCK = Lock()
_THREADS: list[int] = []  # the threads that show log records
_UNDO = ExitStack()  # restores the logger after the last of them


@contextmanager
def timed(message: str, *values: object) -> Iterator[None]:
    """Log a message with the time that the block took, in seconds."""
    start = time.perf_counter()
    yield
    LOGGER.debug(f"{message} (%.2f s)", *values, time.perf_counter() - start)


@contextmanager
def shown(visible: bool) -> Iterator[None]:
    """Show the log records of this thread during the block: on standard error, unless the program has handlers."""
    if not visible:
        yield
        return
    with _LOCK:
        if not _THREADS:
            _UNDO.callback(LOGGER.setLevel, LOGGER.level)
            if not LOGGER.hasHandlers():
                handler = logging.StreamHandler()
                handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
                handler.addFilter(lambda record: record.thread in _THREADS)
                LOGGER.addHandler(handler)
                _UNDO.callback(LOGGER.removeHandler, handler)
            LOGGER.setLevel(logging.DEBUG)
        _THREADS.append(get_ident())
    try:
        yield
    finally:
        with _LOCK:
            _THREADS.remove(get_ident())
            if not _THREADS:
                _UNDO.close()
