"""Waiting for kernels without the interpreter lock, and helping with them."""

from __future__ import annotations

from drsne.backends.numba.kernels._board import CALLED, OFFER, STATE, WITHDRAWN, call_offered, read, replace
from drsne.backends.numba.kernels._compile import kernel


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
