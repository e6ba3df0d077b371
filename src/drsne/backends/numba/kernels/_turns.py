"""The blocks of rows that threads take in turn, and the board where they find a running kernel, in compiled code.

A kernel is written for one block of rows: its last parameters are ``(block, lo, hi)``. :func:`over_blocks` turns it
into a function whose last parameter is ``turns``, which takes blocks until none is left. ``turns`` holds four integers:
how many blocks were taken, the number of blocks, the number of rows, and the address of a board or 0.

If there is a board, the function offers itself there, so that waiting threads (:func:`._compile.serve`) call it with
the same arguments within a microsecond. Sixteen threads that are woken in Python for every kernel need the interpreter
lock one after the other, which takes longer than the work of many kernels.

The board is an array of integers: its state, how many threads have left the kernel, how many failed, how often the
threads were called back to Python, the address of the function to call, and the arguments of the kernel. The state
holds the number of kernels that were offered so far, a bit that says whether the last of them is withdrawn, and how
many threads have entered it. A thread enters by a compare-and-swap of the state, so a late thread cannot enter a kernel
that is withdrawn. A thread that finds no block left withdraws the kernel.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

_TAKEN, _BLOCKS, _ROWS, _BOARD = range(4)  # the places of the values of turns
_LAST = ["block", "lo", "hi"]
_BLOCK = types.UniTuple(types.int64, 3)  # type: ignore[no-untyped-call]

_LINE = 16  # number of integers between values that different threads write, so that they share no cache line
STATE, LEFT, FAILED, CALLED, FUNCTION, ARGUMENTS = (_LINE * place for place in range(6))
_ENTERED = (1 << 20) - 1  # the bits of the state that count the threads
WITHDRAWN = 1 << 20
OFFER = 1 << 21  # the lowest bit of the number of offers

_ROOM = 512  # number of integers for the arguments of a kernel
_INT = ir.IntType(64)
_RAISED = -1  # status that numba's compiled functions return after an exception; a status above 0 is an exception too


def turns_over(n_rows: int, n_blocks: int, board: int = 0) -> NDArray[np.int64]:
    """Return the turns of ``n_blocks`` blocks of ``n_rows`` rows, none of which is taken."""
    return np.array([0, n_blocks, n_rows, board], np.int64)


def whole(n_rows: int) -> NDArray[np.int64]:
    """Return turns with one block of all rows, for a kernel that is called directly."""
    return turns_over(n_rows, 1)


def takes_turns(function: Callable[..., Any]) -> bool:
    """Return whether a function is written for one block of rows."""
    code = function.__code__
    return list(code.co_varnames[: code.co_argcount])[-3:] == _LAST


def over_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs ``function(..., block, lo, hi)`` over the blocks of its last parameter, ``turns``.

    The body of the function becomes the body of a loop. Calling the function in a loop would compile it twice.
    """
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    if any(isinstance(node, ast.Return) for node in ast.walk(definition)):
        raise TypeError(f"{function.__name__} must not return, because other blocks would be left out.")
    definition.decorator_list = []
    definition.args.args[-3:] = [ast.arg("turns")]
    take = ast.parse("block, lo, hi = _next_block(turns)").body
    documentation = definition.body[:1] if ast.get_docstring(definition) is not None else []
    loop = ast.While(ast.parse("lo < hi", mode="eval").body, definition.body[len(documentation) :] + take, [])
    definition.body = [*documentation, *ast.parse("_share(turns)").body, *take, loop]
    ast.increment_lineno(definition, function.__code__.co_firstlineno - 1)
    module = ast.fix_missing_locations(ast.Module([definition], []))
    function.__globals__.update(_share=share, _next_block=next_block)
    made: dict[str, Any] = {}
    exec(compile(module, inspect.getfile(function), "exec"), function.__globals__, made)
    made[function.__name__].__module__ = function.__module__
    return made[function.__name__]  # type: ignore[no-any-return]


def over_blocks_uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function for one thread and without compilation."""

    def over(*arguments: Any) -> None:
        *others, turns = arguments
        count, n_rows = int(turns[_BLOCKS]), int(turns[_ROWS])
        while (block := int(turns[_TAKEN])) < count:
            turns[_TAKEN] += 1
            function(*others, block, block * n_rows // count, (block + 1) * n_rows // count)

    return over


@intrinsic
def share(typing_context, turns):  # type: ignore[no-untyped-def]
    """Run the calling function together with the threads that wait at the board, if there is one.

    The address of the board is replaced by 0, so that the function is not offered again when it is called from there.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(turns)(context, builder, arguments[0]).data
        nothing = ir.Constant(ir.IntType(64), 0)
        board = builder.atomic_rmw("xchg", _slot(builder, data, _BOARD), nothing, "acq_rel")
        with builder.if_then(builder.icmp_signed("!=", board, nothing), likely=False):
            shared(context, builder, board)
        return context.get_dummy_value()

    return types.none(turns), generate


@intrinsic
def next_block(typing_context, turns):  # type: ignore[no-untyped-def]
    """Take a block. Return its number and its range of rows, which is empty if no block is left."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(turns)(context, builder, arguments[0]).data
        zero, one = (ir.Constant(ir.IntType(64), number) for number in (0, 1))
        block = builder.atomic_rmw("add", _slot(builder, data, _TAKEN), one, "acq_rel")
        count, n_rows = (builder.load(_slot(builder, data, index)) for index in (_BLOCKS, _ROWS))
        left = builder.icmp_signed("<", block, count)
        block = builder.select(left, block, zero)
        lo = builder.sdiv(builder.mul(block, n_rows), count)
        hi = builder.sdiv(builder.mul(builder.add(block, one), n_rows), count)
        return context.make_tuple(builder, _BLOCK, (block, lo, builder.select(left, hi, lo)))

    return _BLOCK(turns), generate


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
    entered = builder.and_(_withdrawn(builder, board), _INT(_ENTERED))
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


def _slot(builder: Any, data: Any, index: int) -> Any:
    return builder.gep(data, [ir.Constant(ir.IntType(64), index)])


def _index(place: int) -> Any:
    return ir.Constant(ir.IntType(32), place)


def _address(builder: Any, board: Any, place: int) -> Any:
    return builder.add(board, _INT(8 * place))


def _pointer(builder: Any, board: Any, place: int) -> Any:
    return builder.inttoptr(_address(builder, board, place), _INT.as_pointer())
