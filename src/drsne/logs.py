"""Logging of the steps of a fit and their times, with :mod:`logging` under the name "drsne"."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("drsne")


@contextmanager
def timed(message: str, *values: object) -> Iterator[None]:
    """Log a message with the time that the block took, in seconds."""
    start = time.perf_counter()
    yield
    LOGGER.debug(f"{message} (%.2f s)", *values, time.perf_counter() - start)


@contextmanager
def shown(visible: bool) -> Iterator[None]:
    """Show all records during the block, on standard error unless the program has its own handlers."""
    if not visible:
        yield
        return
    level, handler = LOGGER.level, logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    added = not LOGGER.hasHandlers()
    LOGGER.setLevel(logging.DEBUG)
    if added:
        LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        if added:
            LOGGER.removeHandler(handler)
