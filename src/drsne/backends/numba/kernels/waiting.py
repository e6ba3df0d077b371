"""Waiting for the last block of a kernel without the interpreter lock."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel
from drsne.backends.numba.kernels._turns import count_finished


@kernel
def finished(turns, count, attempts):  # type: ignore[no-untyped-def]
    """Return whether ``count`` blocks are finished, after looking at most ``attempts`` times."""
    for _ in range(attempts):
        if count_finished(turns) >= count:  # type: ignore[call-arg]
            return True
    return False
