"""The file or stream that is read, what it holds, and single values of it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.checks import did_you_mean, is_missing

_START = 512  # number of bytes from which a format is recognised


class TableError(ValueError):
    """An error about a file: what is wrong, where, and what to do."""


class Content(NamedTuple):
    """What a file holds, before the columns are chosen: a data frame, or a matrix with or without names."""

    values: Any
    notes: tuple[str, ...] = ()  # sentences about what was found
    index: Any = None  # names of the rows
    index_name: str | None = None  # what the names of the rows are called
    columns: Any = None  # names of the columns of a matrix
    others: Mapping[str, Any] = {}  # further columns of a matrix, such as labels
    place: Callable[[str, Callable[[str], bool]], str] | None = None  # says where a column first has such a value
    decimal: str = "."  # decimal sign of numbers that are stored as text
    document: Any = None  # the object that the file holds, if it holds more than a table

    @property
    def is_frame(self) -> bool:
        """Return whether the values are a data frame."""
        return hasattr(self.values, "iloc")

    @property
    def names(self) -> list[str]:
        """Return the names of the columns, which are x1, x2 and so on if the file has none."""
        columns = self.values.columns if self.is_frame else self.columns
        return numbered(self.values.shape[1]) if columns is None else [str(each) for each in columns]


class Source:
    """A file, or a stream, whose contents are kept: standard input for ``-``, or a pipe such as ``/dev/fd/63``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._is_stdin = str(path) == "-"
        is_pipe = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
        self.is_stream = self._is_stdin or is_pipe
        self.name = "standard input" if self._is_stdin else str(path)

    def check(self) -> None:
        """Raise an error unless the file exists, can be read and is not empty."""
        if not self.is_stream and self.path.is_dir():
            raise TableError(f"{self.name} is a folder. Pass one of the files in it.")
        if not os.path.exists(self.path) and self.path.is_symlink():
            raise TableError(
                f"{self.name} is a symbolic link to {os.readlink(self.path)}, which leads to no file. Mend the link, "
                "or pass the file itself."
            )
        if not self.is_stream and not self.path.exists():
            folder = self.path.absolute().parent
            near = did_you_mean(self.path.name, os.listdir(folder) if os.access(folder, os.R_OK) else [])
            raise TableError(f"{self.name} does not exist. {near}{' ' * bool(near)}Check the name and the folder.")
        try:
            start = self.start
        except PermissionError as error:
            raise TableError(f"{self.name} cannot be read: permission denied. Change its permissions.") from error
        if not start:
            raise TableError(f"{self.name} is empty. Pass a file with a table of numbers.")

    @cached_property
    def start(self) -> bytes:
        """The first bytes."""
        with self.open() as stream:
            return stream.read(_START)

    @cached_property
    def _piped(self) -> bytes:
        return sys.stdin.buffer.read() if self._is_stdin else self.path.read_bytes()

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._piped) if self.is_stream else self.path.stat().st_size

    def open(self) -> BinaryIO:
        """Return a stream from the first byte."""
        return io.BytesIO(self._piped) if self.is_stream else self.path.open("rb")

    def readable(self) -> Any:
        """Return what other packages can read: the path, or a stream."""
        return self.open() if self.is_stream else self.path


def numbered(count: int) -> list[str]:
    """Return the names of columns that have none."""
    return [f"x{place + 1}" for place in range(count)]


def plural(count: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(names: list[str], most: int = 5) -> str:
    """Return names as text, at most five of them."""
    shown = ", ".join(repr(str(name)) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


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
        known = values[~np.isnat(values)]
        units = ("D", "s", "ms", "us", "ns")  # the coarsest unit that loses nothing is used
        unit = next(each for each in units if (known.astype(f"M8[{each}]") == known).all())
        return ["" if text == "NaT" else str(text) for text in np.datetime_as_string(values.astype(f"M8[{unit}]"))]
    if values.dtype.kind == "m":
        import pandas as pd

        values = pd.Series(values).to_numpy(dtype=object)
    if values.dtype.kind != "O":
        return list(values.tolist())
    return ["" if is_missing(each) else each.isoformat() if hasattr(each, "isoformat") else each for each in values]
