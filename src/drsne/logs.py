"""Logging of the steps of a fit and their times, with :mod:`logging` under the name "drsne"."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

LOGGER = logging.getLogger("drsne")


@contextmanager
def timed(message: str, *values: object) -> Iterator[None]:
    """Log a message with the time that the block took, in seconds."""
    start = time.perf_counter()
    yield
    LOGGER.debug(f"{message} (%.2f s)", *values, time.perf_counter() - start)


class _Shown:
    """The handler that shows log records while at least one block asks for them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._threads: list[int] = []
        self._level = logging.NOTSET
        self._handler: logging.Handler | None = None

    def begin(self) -> None:
        """Begin to show the log records of this thread."""
        with self._lock:
            if not self._threads:
                self._level = LOGGER.level
                if not LOGGER.hasHandlers():
                    self._handler = logging.StreamHandler()
                    self._handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
                    self._handler.addFilter(lambda record: record.thread in self._threads)
                    LOGGER.addHandler(self._handler)
                LOGGER.setLevel(logging.DEBUG)
            self._threads.append(get_ident())

    def end(self) -> None:
        """Stop showing the log records of this thread, and restore the logger after the last block."""
        with self._lock:
            self._threads.remove(get_ident())
            if not self._threads:
                LOGGER.setLevel(self._level)
                if self._handler is not None:
                    LOGGER.removeHandler(self._handler)
                    self._handler = None


_SHOWN = _Shown()


@contextmanager
def shown(visible: bool) -> Iterator[None]:
    """Show all log records during the block: on standard error, unless the program has its own handlers."""
    if not visible:
        yield
        return
    _SHOWN.begin()
    try:
        yield
    finally:
        _SHOWN.end()
