"""The blocks of rows that threads take in turn, inside compiled code.

A kernel is written for one block of rows: its last parameters are ``(block, lo, hi)``. :func:`over_blocks` turns it
into a function whose last parameter is ``turns``, which takes blocks until none is left. If ``turns`` holds the address
of a board (:mod:`drsne.backends.numba.kernels._board`), the function offers itself there, so that waiting threads call
it with the same arguments.

``turns`` holds four integers: how many blocks were taken, the number of blocks, the number of rows, and the address of
the board or 0.
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

from drsne.backends.numba.kernels._board import shared

_TAKEN, _BLOCKS, _ROWS, _BOARD = range(4)
_LAST = ["block", "lo", "hi"]


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


_BLOCK = types.UniTuple(types.int64, 3)  # type: ignore[no-untyped-call]


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


def _slot(builder: Any, data: Any, index: int) -> Any:
    return builder.gep(data, [ir.Constant(ir.IntType(64), index)])
