"""Single values of tables: which are missing, which are numbers, and how they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import is_missing

_UNITS = ("D", "s", "ms", "us")  # units of dates, the coarsest first


def number(value: Any, decimal: str = ".") -> float | None:
    """Return a value as a number, or None if it is not a number. ``decimal`` is the decimal sign of text."""
    if isinstance(value, str):
        if "_" in value or (decimal == "," and ("." in value or value.strip().endswith(","))):
            return None
        value = value.replace(decimal, ".")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def plain(values: NDArray[Any]) -> list[Any]:
    """Return values for a text file: dates in the notation of ISO 8601, and "" for missing text and dates."""
    values = np.asarray(values)
    if values.dtype.kind == "M":
        return _dates(values)
    if values.dtype.kind in "mO":
        return ["" if is_missing(value) else _plain(value) for value in values]
    listed: list[Any] = values.tolist()
    return listed


def texts(values: NDArray[Any]) -> NDArray[np.str_]:
    """Return values as text, with "" for missing values."""
    return np.array([str(value) for value in plain(values)], dtype=np.str_)


def uniform(values: NDArray[Any]) -> NDArray[Any]:
    """Return values for a file with one type per column: objects of several types become text."""
    values = np.asarray(values)
    if values.dtype.kind != "O":
        return values
    types = {type(value) for value in values if not is_missing(value)}
    if len(types) < 2 or types <= {int, float}:
        return values
    return np.array([None if is_missing(value) else str(_plain(value)) for value in values], dtype=object)


def _plain(value: Any) -> Any:
    if isinstance(value, np.timedelta64):
        seconds = f"{float(value / np.timedelta64(1, 's')):.9f}"
        return f"PT{seconds.rstrip('0').rstrip('.')}S"
    return value.isoformat() if hasattr(value, "isoformat") else value


def _dates(values: NDArray[Any]) -> list[str]:
    known = ~np.isnat(values)
    for unit in _UNITS:
        coarse = values.astype(f"datetime64[{unit}]")
        if (coarse[known] == values[known]).all():
            values = coarse
            break
    return [str(text) if each else "" for text, each in zip(np.datetime_as_string(values), known, strict=True)]
