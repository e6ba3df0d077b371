"""Checks of plain parameters. An error names the parameter, its value, the rule and the way out."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


def number(
    name: str, value: Any, *, at_least: float | None = None, above: float | None = None, hint: str = ""
) -> float:
    """``value`` as a finite float within its bounds, else an error."""
    rule = "a finite number"
    if at_least is not None:
        rule += f" of at least {at_least:g}"
    if above is not None:
        rule += f" above {above:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(_message(name, rule, value, hint))
    result = float(value)
    low = at_least is not None and result < at_least
    if not math.isfinite(result) or low or (above is not None and result <= above):
        raise ValueError(_message(name, rule, value, hint))
    return result


def integer(name: str, value: Any, *, at_least: int, hint: str = "") -> int:
    """``value`` as an int of at least ``at_least``, else an error."""
    rule = f"an integer of at least {at_least}"
    if isinstance(value, bool) or not isinstance(value, (Integral, Real)):
        raise TypeError(_message(name, rule, value, hint))
    if not isinstance(value, Integral) or int(value) < at_least:
        raise ValueError(_message(name, rule, value, hint))
    return int(value)


def choice(name: str, value: Any, allowed: Collection[str], *, also: str = "", hint: str = "") -> str:
    """``value`` if it is one of the ``allowed`` strings, else an error that lists them."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in sorted(allowed))
        raise ValueError(_message(name, f"one of {options}{also}", value, hint))
    return value


def _message(name: str, rule: str, value: Any, hint: str) -> str:
    return f"{name} must be {rule}; got {value!r}.{' ' + hint if hint else ''}"
