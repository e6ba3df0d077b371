"""How kernels are compiled: without the interpreter lock, cached on disk, loops in vector lanes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import current_thread, main_thread
from typing import Any

from numba import njit
from numba.core import event

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    # Sums may be reordered and multiply-adds fused. The flags that let the compiler assume away nan and inf
    # ("nnan", "ninf") are left out: they drop comparisons with inf.
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    # x / 0 is inf: the check for Python's ZeroDivisionError keeps a loop out of vector lanes (4 x slower).
    "error_model": "numpy",
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use; cache it on disk where a cache directory can be written."""
    try:
        compiled: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no place for a cache
        compiled = njit(**_OPTIONS)(function)
    return compiled


class _Deferred(event.Listener):
    """An interrupt waits until the compiler has given its locks back.

    Raised inside, it can leave a lock of numba or llvmlite taken for ever: the thread that was interrupted would not
    notice, every other would wait without end. Only the main thread is ever interrupted.
    """

    _depth = 0
    _came = False
    _before: Any = None

    def on_start(self, event: object) -> None:
        if current_thread() is not main_thread():
            return
        if self._depth == 0:
            if not callable(signal.getsignal(signal.SIGINT)):  # ignored, or not Python's to handle: nothing is raised
                return
            self._before = signal.signal(signal.SIGINT, self._note)
        self._depth += 1

    def on_end(self, event: object) -> None:
        if current_thread() is not main_thread() or self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0:
            came, self._came = self._came, False
            signal.signal(signal.SIGINT, self._before)
            if came:
                signal.raise_signal(signal.SIGINT)

    def _note(self, number: int, frame: object) -> None:
        self._came = True


event.register("numba:compiler_lock", _Deferred())  # type: ignore[no-untyped-call]
