"""A board on which a running kernel offers itself to waiting threads, inside compiled code.

Sixteen threads that are woken in Python for every kernel need the interpreter lock one after the other, which takes
longer than the work of many kernels. Threads that wait in compiled code (:mod:`drsne.backends.numba.kernels.serving`)
begin within a microsecond.

The board is an array of integers: its state, how many threads have left the kernel, how many failed, how often the
threads were called back to Python, the address of the function to call, and the arguments of the kernel. The state
holds the number of kernels that were offered so far, a bit that says whether the last of them is withdrawn, and how
many threads have entered it. A thread enters by a compare-and-swap of the state, so a late thread cannot enter a kernel
that is withdrawn. A thread that finds no block left withdraws the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

LINE = 16  # number of integers between values that different threads write, so that they share no cache line
STATE, LEFT, FAILED, CALLED, FUNCTION, ARGUMENTS = (LINE * place for place in range(6))
ENTERED = (1 << 20) - 1  # the bits of the state that count the threads
WITHDRAWN = 1 << 20
OFFER = 1 << 21  # the lowest bit of the number of offers

_ROOM = 512  # number of integers for the arguments of a kernel
_INT = ir.IntType(64)
_RAISED = -1  # status that numba's compiled functions return after an exception; a status above 0 is an exception too


def new_board() -> NDArray[np.int64]:
    """Return a board on which nothing is offered."""
    board = np.zeros(ARGUMENTS + _ROOM, np.int64)
    board[STATE] = WITHDRAWN
    return board


def shared(context: Any, builder: Any, board: Any) -> None:
    """Generate code that offers the function being built on the board, calls it, and waits for all other threads.

    The function is called with a copy of its arguments. Exceptions are counted there and here alike, so that nothing is
    freed while a thread is inside.
    """
    function = builder.function
    arguments = function.args[2:]  # the first two are numba's places for the result and the exception
    layout = ir.LiteralStructType([argument.type for argument in arguments])
    if context.get_abi_sizeof(layout) > 8 * _ROOM:
        raise ValueError(f"The arguments of {function.name} take more than {8 * _ROOM} bytes.")
    copies = builder.inttoptr(_address(builder, board, ARGUMENTS), layout.as_pointer())
    for place, argument in enumerate(arguments):
        builder.store(argument, builder.gep(copies, [_index(0), _index(place)]))
    caller = _caller(builder.module, function, layout)
    for place, value in ((FUNCTION, builder.ptrtoint(caller, _INT)), (LEFT, _INT(0)), (FAILED, _INT(0))):
        builder.store(value, _pointer(builder, board, place))
    state = _pointer(builder, board, STATE)
    next_offer = builder.and_(builder.add(builder.load(state), _INT(OFFER)), _INT(-OFFER))
    builder.store_atomic(next_offer, state, "release", 8)
    builder.call(caller, [board])
    entered = builder.and_(_withdrawn(builder, board), _INT(ENTERED))
    again, after = (builder.append_basic_block(name) for name in ("wait", "left"))
    builder.branch(again)
    builder.position_at_end(again)
    left = builder.load_atomic(_pointer(builder, board, LEFT), "acquire", 8)
    builder.cbranch(builder.icmp_signed("<", left, entered), again, after)
    builder.position_at_end(after)


def _withdrawn(builder: Any, board: Any) -> Any:
    """Let no other thread enter the kernel, and return the state before."""
    return builder.atomic_rmw("or", _pointer(builder, board, STATE), _INT(WITHDRAWN), "acq_rel")


def _caller(module: Any, function: Any, layout: Any) -> Any:
    """Return a function that calls ``function`` with the arguments on the board, and counts a failure."""
    caller = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT]), name=f"{function.name}.from_board")
    caller.linkage = "internal"
    builder = ir.IRBuilder(caller.append_basic_block("entry"))
    (board,) = caller.args
    copies = builder.inttoptr(_address(builder, board, ARGUMENTS), layout.as_pointer())
    arguments = [builder.load(builder.gep(copies, [_index(0), _index(place)])) for place in range(len(layout))]
    places = [builder.bitcast(builder.alloca(_INT, size=8), place.type) for place in function.args[:2]]
    status = builder.call(function, [*places, *arguments], attrs=("noinline",))
    raised = builder.icmp_signed("==", status, ir.Constant(status.type, _RAISED))
    other = builder.icmp_signed(">", status, ir.Constant(status.type, 0))
    with builder.if_then(builder.or_(raised, other), likely=False):
        builder.atomic_rmw("add", _pointer(builder, board, FAILED), _INT(1), "acq_rel")
    builder.ret_void()
    return caller


@intrinsic
def read(typing_context, board, place):  # type: ignore[no-untyped-def]
    """Return a value of the board. Everything that was written before this value can be read afterwards."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(board)(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "acquire", 8)

    return types.int64(board, types.int64), generate


@intrinsic
def replace(typing_context, board, place, old, new):  # type: ignore[no-untyped-def]
    """Replace a value of the board by ``new`` if it still is ``old``, and return whether it was replaced."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(board)(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        return builder.extract_value(builder.cmpxchg(place, arguments[2], arguments[3], "acq_rel", "acquire"), 1)

    return types.boolean(board, types.int64, types.int64, types.int64), generate


@intrinsic
def call_offered(typing_context, board):  # type: ignore[no-untyped-def]
    """Call the function that is offered on a board, and count that the thread has left it."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(board)(context, builder, arguments[0]).data
        address = builder.ptrtoint(data, _INT)
        kind = ir.FunctionType(ir.VoidType(), [_INT]).as_pointer()
        function = builder.inttoptr(builder.load(_pointer(builder, address, FUNCTION)), kind)
        builder.call(function, [address])
        _withdrawn(builder, address)  # no block is left
        builder.atomic_rmw("add", _pointer(builder, address, LEFT), _INT(1), "acq_rel")
        return context.get_dummy_value()

    return types.none(board), generate


def _index(place: int) -> Any:
    return ir.Constant(ir.IntType(32), place)


def _address(builder: Any, board: Any, place: int) -> Any:
    return builder.add(board, _INT(8 * place))


def _pointer(builder: Any, board: Any, place: int) -> Any:
    return builder.inttoptr(_address(builder, board, place), _INT.as_pointer())
