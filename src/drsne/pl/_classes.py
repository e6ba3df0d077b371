"""Entries of a column: which are missing, which are numbers, and the classes of the others in their natural order."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import is_missing

_DIGITS: Callable[[str], list[str]] = re.compile(r"([0-9]+)").split


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of an array are missing."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "Mm":
        return np.asarray(np.isnat(values))
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def as_numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return an array of numbers with NaN for missing entries, or None if some of the entries are not numbers."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if values.dtype.kind == "O":
        absent = missing(values)
        if not absent.all() and all(_is(value, Real) for value in values[~absent]):
            found = np.full(len(values), np.nan)
            found[~absent] = [float(value) for value in values[~absent]]
            return found
    return None


def are_whole(given: Any) -> bool:
    """Return whether a column has the type of integers, which may have missing entries in pandas."""
    if getattr(getattr(given, "dtype", None), "kind", "") in ("i", "u"):
        return True
    values = np.asarray(given)
    if values.dtype.kind == "O":
        return all(_is(value, Integral) for value in values[~missing(values)])
    return values.dtype.kind in "iu"


def has_categories(given: Any) -> bool:
    """Return whether a column is a pandas categorical."""
    typed = hasattr(getattr(given, "dtype", None), "categories")
    return typed and hasattr(getattr(given, "cat", given), "codes")


def classes_of(given: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the classes, and the class of each entry, or -1 if it is missing.

    The categories of pandas keep their order. Numbers are in numeric order, and "type 2" comes before "type 10".
    """
    if has_categories(given):
        categorical = getattr(given, "cat", given)
        return texts(np.asarray(categorical.categories)), np.asarray(categorical.codes, dtype=np.intp)
    values = np.asarray(given)
    known = ~missing(values)
    words = texts(values[known])
    if as_numbers(values) is None:
        names = sorted(set(words), key=natural)
    else:
        value_of = dict(zip(words, values[known].tolist(), strict=True))
        names = sorted(value_of, key=value_of.__getitem__)
    place = {name: index for index, name in enumerate(names)}
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[known] = [place[word] for word in words]
    return names, codes


def natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers within text by their value, and letters without regard to their case."""
    parts = _DIGITS(text)  # text and digits in turn
    parts[::2] = [part.casefold() for part in parts[::2]]
    parts[1::2] = [part.lstrip("0") for part in parts[1::2]]
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(parts)] + [(0, text)]


def as_text(value: Any) -> str:
    """Return a label or a name as text. Whole numbers are written without decimals."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def texts(values: NDArray[Any]) -> list[str]:
    """Return the entries of an array as text. Dates are written without a time if all times are midnight."""
    if values.dtype.kind == "M" and (values == values.astype("datetime64[D]")).all():
        values = values.astype("datetime64[D]")
    entries = values.astype(str) if values.dtype.kind in "Mm" else values
    return [as_text(entry) for entry in entries.tolist()]


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
