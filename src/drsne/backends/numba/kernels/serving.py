"""Waiting for kernels without the interpreter lock, and helping with them."""

from __future__ import annotations

from drsne.backends.numba.kernels._board import OFFER, STATE, WITHDRAWN, call_offered, read, replace, withdraw
from drsne.backends.numba.kernels._compile import kernel


@kernel
def serve(board, attempts):  # type: ignore[no-untyped-def]
    """Call every kernel that is offered on a board, until nothing was offered during ``attempts`` looks at it."""
    known = 0
    left = attempts
    while left > 0:
        state: int = read(board, STATE)  # type: ignore[call-arg]
        if state // OFFER != known and state & WITHDRAWN == 0:
            if replace(board, STATE, state, state + 1):
                known = state // OFFER
                call_offered(board)
                left = attempts
        else:
            left -= 1


@kernel
def end(address):  # type: ignore[no-untyped-def]
    """Withdraw a kernel that has raised an exception."""
    withdraw(address)  # type: ignore[call-arg]
