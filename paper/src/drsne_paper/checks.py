"""Checks of parameters, and warnings, in the words of drsne's own errors."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from difflib import get_close_matches
from numbers import Integral
from typing import Any


def integer(name: str, value: Any, *, at_least: int, hint: str = "") -> int:
    """Return ``value`` as an int, or raise an error if it is not an integer of at least ``at_least``."""
    message = f"{name} must be an integer of at least {at_least}; got {value!r}. {hint}".strip()
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(message)
    if not isinstance(value, Integral) or int(value) < at_least:
        raise ValueError(message)
    return int(value)


def choice(name: str, value: Any, allowed: Collection[str], *, also: str = "", hint: str = "") -> str:
    """Return ``value`` if it is one of the ``allowed`` strings, or raise an error that lists them."""
    if isinstance(value, str) and value in allowed:
        return value
    close = get_close_matches(value.lower(), allowed, n=1) if isinstance(value, str) else []
    hints = [f"Did you mean {close[0]!r}?"] if close else []
    rule = f"one of {', '.join(map(repr, sorted(allowed)))}{also}"
    raise ValueError(" ".join([f"{name} must be {rule}; got {value!r}.", *hints, *([hint] if hint else [])]))


def warn(message: str) -> None:
    """Issue a UserWarning that points at the calling line outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "drsne_paper":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
