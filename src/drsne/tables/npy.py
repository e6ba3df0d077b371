"""NumPy files with one array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import plural


class Header(NamedTuple):
    """The shape and the type of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def memory(self) -> int:
        """The bytes of the array, and of a copy in double precision if it does not hold floating-point numbers."""
        copied = 0 if self.dtype.kind == "f" else 8
        return math.prod(self.shape) * (self.dtype.itemsize + copied)


def header_of(stream: IO[bytes]) -> Header:
    """Return the header of an array. The stream is at its beginning."""
    version = np.lib.format.read_magic(stream)
    first = version == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    return Header(shape, dtype)


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a NumPy file without executing code from it."""
    try:
        array = np.load(source.readable(), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise unreadable(source, error) from error
    return of_array(array, source.name)


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of memory that reading an array takes."""
    try:
        with source.open() as stream:
            return header_of(stream).memory
    except (OSError, ValueError, EOFError):
        return None


def unreadable(source: Source, error: Exception) -> TableError:
    """Return the error for a NumPy file that cannot be read."""
    if "pickle" in str(error) or "Object arrays" in str(error):
        return TableError(
            f"{source.name} holds Python objects, which can run code when they are read. Save arrays of numbers, such "
            "as X.astype(float)."
        )
    reason = " ".join(str(error).split())[:200]
    return TableError(f"{source.name} is damaged or not a NumPy file ({reason}). Write it again.")


def of_array(array: Any, name: str) -> Content:
    """Return an array as a table, or raise an error if it is not a matrix of numbers."""
    if array.dtype.names:
        columns = {each: array[each] for each in array.dtype.names}
        if array.ndim != 1 or any(values.ndim > 1 for values in columns.values()):
            raise TableError(f"{name} holds a structured array of shape {array.shape}. Save its fields as columns.")
        return of_columns(columns)
    if array.ndim != 2:
        raise TableError(
            f"{name} holds an array of shape {array.shape}. Pass a matrix with one row per sample; images can be "
            "flattened with X.reshape(len(X), -1)."
        )
    if array.dtype.kind not in "biuf":
        raise TableError(f"{name} holds values of type {array.dtype}. Pass an array of numbers.")
    if not array.size:
        raise TableError(f"{name} holds an array of shape {array.shape}, without values. Pass a matrix of numbers.")
    return Content(array, (found(array),))


def of_columns(columns: Mapping[str, Any]) -> Content:
    """Return columns of equal length as a table."""
    pandas = package("pandas", "Arrays with named columns", "files")
    frame = pandas.DataFrame(dict(columns))
    return Content(frame, (found(frame),))


def found(values: Any) -> str:
    """Return a sentence about the shape of a table."""
    rows, width = values.shape
    return f"Read {plural(rows, 'row')} and {plural(width, 'column')}."


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write the columns of floating-point numbers as one matrix, in their order.

    Text, and integers such as labels and the numbers of rows, are left out, so that a column of the map always has the
    same place.
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    numbers = [values.astype(np.float64) for values in arrays.values() if values.dtype.kind == "f"]
    if not numbers:
        raise TableError(f"{path.name} would be empty: there are no columns of floating-point numbers. Write CSV.")
    with path.open("wb") as stream:
        np.save(stream, np.column_stack(numbers), allow_pickle=False)


FORMAT = Format("NPY", (".npy",), b"\x93NUMPY", read, write, estimate)
