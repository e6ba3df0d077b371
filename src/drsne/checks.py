"""Checks of plain parameters, and warnings. An error names the parameter, its value, the rule and the way out."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Collection
from datetime import date, timedelta
from numbers import Integral, Real
from typing import Any

_OURS = ("drsne", "sklearn")
_NO_NUMBERS = (str, bytes, date, timedelta)


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
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
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


def flag(name: str, value: Any) -> bool:
    """``value`` if it is True or False, else an error."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(_message(name, "True or False", value, ""))
    return bool(value)


def jobs(n_jobs: Any) -> None:
    """An error unless ``n_jobs`` is None or an integer other than 0."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or int(n_jobs) == 0):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0; got {n_jobs!r}. Pass 1 for one thread, -1 for every core."
        )


def choice(name: str, value: Any, allowed: Collection[str], *, also: str = "", hint: str = "") -> str:
    """Return ``value`` if it is one of the ``allowed`` strings, or raise an error that lists them."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in sorted(allowed))
        hints = " ".join(part for part in (did_you_mean(value, allowed), hint) if part)
        raise ValueError(_message(name, f"one of {options}{also}", value, hints))
    return value


def did_you_mean(value: Any, allowed: Collection[str]) -> str:
    """Return a sentence that suggests the most similar of the ``allowed`` strings, or an empty one."""
    if not isinstance(value, str):
        return ""
    from difflib import get_close_matches

    lower = {option.lower(): option for option in sorted(allowed)}
    close = get_close_matches(value.lower(), lower, n=1, cutoff=0.6)
    return f"Did you mean {lower[close[0]]!r}?" if close else ""


def refuse_text(name: str, values: Any) -> None:
    """An error for text and dates, which conversion to numbers would accept in silence."""
    import numpy as np

    if hasattr(values, "toarray"):  # sparse matrices hold numbers
        return
    try:
        array = np.asarray(values)
    except ValueError:  # ragged: the check of shapes says so
        return
    except TypeError as error:  # columns that have no common type
        raise ValueError(f"{name} must hold numbers; got {error}. Encode or drop those columns first.") from error
    text = array.dtype.kind not in "biufcO"
    if text or (array.dtype.kind == "O" and any(isinstance(value, _NO_NUMBERS) for value in array.flat)):
        raise ValueError(f"{name} must hold numbers; got text or dates ({array.dtype}). Encode or drop them first.")


def warn(message: str) -> None:
    """A UserWarning that points at the line outside this package (and scikit-learn's wrappers) that called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def _message(name: str, rule: str, value: Any, hint: str) -> str:
    return f"{name} must be {rule}; got {value!r}.{' ' + hint if hint else ''}"
