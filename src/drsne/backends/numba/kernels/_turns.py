"""The blocks of rows that threads take in turn, inside compiled code.

A kernel is written for one block of rows: its last parameters are ``(block, lo, hi)``. :func:`over_blocks` turns it
into a function whose last parameter is ``turns``, which takes blocks until none is left. A thread then enters a kernel
once and needs the interpreter lock twice, however many blocks there are. With sixteen threads and 64 blocks, taking the
blocks in Python costs several milliseconds, which is more than the work of many kernels.

``turns`` holds four integers: how many blocks were taken, how many are finished, the number of blocks and the number of
rows.
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

_TAKEN, _FINISHED, _BLOCKS, _ROWS = range(4)
_NONE_LEFT = 1 << 40  # number of taken blocks that stops the threads
_LAST = ["block", "lo", "hi"]


def turns_over(n_rows: int, n_blocks: int) -> NDArray[np.int64]:
    """Return the turns of ``n_blocks`` blocks of ``n_rows`` rows, none of which is taken."""
    return np.array([0, 0, n_blocks, n_rows], np.int64)


def stop(turns: NDArray[np.int64]) -> None:
    """Let no thread take another block."""
    turns[_TAKEN] = _NONE_LEFT


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
    definition.decorator_list = []
    definition.args.args[-3:] = [ast.arg("turns")]
    (first, following) = (ast.parse(f"block, lo, hi = {name}(turns)").body for name in ("_first_block", "_next_block"))
    documentation = definition.body[:1] if ast.get_docstring(definition) is not None else []
    loop = ast.While(ast.parse("lo < hi", mode="eval").body, definition.body[len(documentation) :] + following, [])
    definition.body = [*documentation, *first, loop]
    ast.increment_lineno(definition, function.__code__.co_firstlineno - 1)
    module = ast.fix_missing_locations(ast.Module([definition], []))
    function.__globals__.update(_first_block=first_block, _next_block=next_block)
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
            turns[_FINISHED] += 1

    return over


def _slot(builder: Any, data: Any, index: int) -> Any:
    return builder.gep(data, [ir.Constant(ir.IntType(64), index)])


def _add(builder: Any, data: Any, index: int, amount: int) -> Any:
    """Add an amount to one of the turns and return its old value, as one step that no other thread can divide."""
    return builder.atomic_rmw("add", _slot(builder, data, index), ir.Constant(ir.IntType(64), amount), "acq_rel")


def _taken(builder: Any, data: Any) -> Any:
    """Take the next block and return ``(block, lo, hi)``; the range of rows is empty if no block is left."""
    block, one = _add(builder, data, _TAKEN, 1), ir.Constant(ir.IntType(64), 1)
    count, n_rows = (builder.load(_slot(builder, data, index)) for index in (_BLOCKS, _ROWS))
    left = builder.icmp_signed("<", block, count)
    block = builder.select(left, block, ir.Constant(ir.IntType(64), 0))
    lo = builder.sdiv(builder.mul(block, n_rows), count)
    hi = builder.sdiv(builder.mul(builder.add(block, one), n_rows), count)
    return block, lo, builder.select(left, hi, lo)


_BLOCK = types.UniTuple(types.int64, 3)  # type: ignore[no-untyped-call]


@intrinsic
def first_block(typing_context, turns):  # type: ignore[no-untyped-def]
    """Take a block. Return its number and its range of rows, which is empty if no block is left."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(turns)(context, builder, arguments[0]).data
        return context.make_tuple(builder, _BLOCK, _taken(builder, data))

    return _BLOCK(turns), generate


@intrinsic
def next_block(typing_context, turns):  # type: ignore[no-untyped-def]
    """Count a block as finished and take another one."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(turns)(context, builder, arguments[0]).data
        _add(builder, data, _FINISHED, 1)
        return context.make_tuple(builder, _BLOCK, _taken(builder, data))

    return _BLOCK(turns), generate


@intrinsic
def count_finished(typing_context, turns):  # type: ignore[no-untyped-def]
    """Return how many blocks are finished. Everything that was written to them can be read afterwards."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(turns)(context, builder, arguments[0]).data
        return _add(builder, data, _FINISHED, 0)

    return types.int64(turns), generate
