"""The compilation of kernels, and the loop in which threads wait for them."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable
from functools import cache, cached_property
from pkgutil import get_data
from threading import Lock, current_thread, main_thread
from typing import Any

from numba import config, njit
from numba.core import event

from drsne.backends.numba.kernels._turns import (
    CALLED,
    OFFER,
    STATE,
    WITHDRAWN,
    call_offered,
    over_blocks,
    over_blocks_uncompiled,
    read,
    replace,
    takes_turns,
    turns_over,
)

COMPILES = not config.DISABLE_JIT  # type: ignore[attr-defined]
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    # Sums may be reordered and multiply-adds fused. The flags that let the compiler assume that there is no nan and no
    # inf ("nnan", "ninf") are not used, because they remove comparisons with inf.
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    # x / 0 is inf. Loops with a check for Python's ZeroDivisionError are not vectorised and take 4 times as long.
    "error_model": "numpy",
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use, and cache it on disk if a cache directory can be written.

    A function with the parameters ``(block, lo, hi)`` becomes a loop over blocks of rows (:class:`Kernel`).
    """
    if takes_turns(function):
        return Kernel(function)
    return _compiled(function) if COMPILES else function


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` into every kernel that calls it.

    Otherwise, each kernel may bring its own copy of a function, whose sums are reordered in its own way. The process
    then runs the copy that it loaded first, so results would depend on what was in the cache.
    """
    return _compiled(function, forceinline=True) if COMPILES else function


def pasted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` as if its body stood where it is called.

    An inlined function is optimised alone first, so its sums and comparisons may be rounded in another way than those
    of the same lines in the kernel. This is for parts of kernels whose results must not depend on how they are divided.
    """
    return _compiled(function, inline="always") if COMPILES else function


class Kernel:
    """A function of one block of rows that is compiled as a loop over blocks.

    Its last argument is ``turns`` (:mod:`drsne.backends.numba.kernels._turns`). The loop is made on first use, because
    a fit uses few of all kernels.
    """

    turns = staticmethod(turns_over)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__doc__, self.__name__ = function, function.__doc__, function.__name__

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The compiled loop, or the same loop in Python if compilation is disabled."""
        return _compiled(over_blocks(self.function)) if COMPILES else over_blocks_uncompiled(self.function)

    def __call__(self, *arguments: Any) -> None:
        """Run the function over the blocks of the last argument."""
        self.compiled(*arguments)


def _compiled(function: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    # numba's cache notices an edit in the file of a kernel, but not in these, whose code becomes part of others.
    function.__qualname__ += f"_{_version()}"
    try:
        compiled: Any = njit(cache=True, **_OPTIONS, **more)(function)
    except RuntimeError:  # numba found no directory for the cache
        return njit(**_OPTIONS, **more)(function)  # type: ignore[no-any-return]
    compiled._cache = _ForgivingCache(compiled._cache)
    return compiled  # type: ignore[no-any-return]


@cache
def _version() -> str:
    """Return a short name for the present contents of the files from which kernels take generated code."""
    # Sources are read by the loader of the package, which can be in a zip file.
    sources = (get_data(__package__, name) or b"" for name in ("_turns.py", "_compile.py", "fields.py"))
    return hashlib.sha256(b"".join(sources)).hexdigest()[:6]


class _ForgivingCache:
    """A cache on disk whose failures only cost another compilation.

    In numba's cache, a full disk, a truncated file or a file of another version can raise any exception.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def load_overload(self, *arguments: Any) -> Any:
        """Return the compiled function, or None if it is not in the cache or cannot be read."""
        try:
            return self._cache.load_overload(*arguments)
        except Exception:
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Save a compiled function, or disable the cache for this process if that fails."""
        try:
            self._cache.save_overload(*arguments)
        except Exception:
            self._cache.disable()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


class _Deferred(event.Listener):
    """A listener that, during our fits, delays interrupts until the compiler has released its locks.

    An interrupt inside the compiler can leave a lock of numba or llvmlite locked for ever. The interrupted thread would
    not notice, and all other threads would wait without end. Only the main thread can be interrupted. If none of our
    fits is running, compilations of other packages are not affected.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._fits = 0
        self._depth = 0
        self._came = False
        self._before: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._fits += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._fits -= 1

    def on_start(self, event: object) -> None:
        """Begin to delay interrupts."""
        if current_thread() is not main_thread() or (self._depth == 0 and self._fits == 0):
            return
        if self._depth == 0:
            if not callable(signal.getsignal(signal.SIGINT)):  # Python does not handle the signal
                return
            self._before = signal.signal(signal.SIGINT, self._note)
        self._depth += 1

    def on_end(self, event: object) -> None:
        """Raise an interrupt that was delayed."""
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


interrupts_deferred = _Deferred()
event.register("numba:compiler_lock", interrupts_deferred)  # type: ignore[no-untyped-call]


@kernel
def serve(board, called, attempts):  # type: ignore[no-untyped-def]
    """Call every kernel that is offered on a board.

    Return when nothing was offered during ``attempts`` looks at the board, or when the threads were called back to
    Python more than ``called`` times.
    """
    known = 0
    left = attempts
    while left > 0:
        state: int = read(board, STATE)  # type: ignore[call-arg]
        if state // OFFER != known and state & WITHDRAWN == 0:
            if replace(board, STATE, state, state + 1):
                known = state // OFFER
                call_offered(board)
                left = attempts
        elif read(board, CALLED) == called:
            left -= 1
        else:
            left = 0
