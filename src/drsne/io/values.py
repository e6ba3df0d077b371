"""Columns and single values of tables: which are missing, which are numbers, and how they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import is_missing


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


def column_of(values: Any, place: int) -> NDArray[Any]:
    """Return a column of a data frame or of a matrix as an array, with NaN for missing values of pandas."""
    if not hasattr(values, "iloc"):
        column = values[:, [place]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    column = values.iloc[:, place]
    if isinstance(column.dtype, np.dtype) or column.dtype.kind == "M" or not column.isna().any():
        return np.asarray(column)
    dtype = np.float64 if column.dtype.kind in "iuf" else object
    return np.asarray(column.to_numpy(dtype=dtype, na_value=np.nan))


def plain(values: NDArray[Any]) -> list[Any]:
    """Return values for a text file: dates in the notation of ISO 8601, and "" for missing text and dates."""
    values = np.asarray(values)
    if values.dtype.kind == "M":
        known = ~np.isnat(values)
        for unit in ("D", "s", "ms", "us"):  # the coarsest unit that loses nothing
            coarse = values.astype(f"datetime64[{unit}]")
            if (coarse[known] == values[known]).all():
                values = coarse
                break
        return [str(text) if each else "" for text, each in zip(np.datetime_as_string(values), known, strict=True)]
    if values.dtype.kind in "mO":
        return ["" if is_missing(value) else _plain(value) for value in values]
    listed: list[Any] = values.tolist()
    return listed


def uniform(values: NDArray[Any]) -> NDArray[Any]:
    """Return values for a file with one type per column: objects of several types become text."""
    values = np.asarray(values)
    types = {type(value) for value in values if not is_missing(value)} if values.dtype.kind == "O" else set()
    if len(types) < 2 or types <= {int, float}:
        return values
    return np.array([None if is_missing(value) else str(_plain(value)) for value in values], dtype=object)


def _plain(value: Any) -> Any:
    if isinstance(value, np.timedelta64):
        seconds = f"{float(value / np.timedelta64(1, 's')):.9f}"
        return f"PT{seconds.rstrip('0').rstrip('.')}S"
    return value.isoformat() if hasattr(value, "isoformat") else value


def plural(count: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(names: list[str], most: int = 5) -> str:
    """Return names as text, at most five of them."""
    shown = ", ".join(repr(str(name)) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
