"""NumPy files with one array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._table import plural


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a NumPy file without executing code from it."""
    try:
        array = np.load(source.readable(), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise unreadable(source, error) from error
    return of_array(array, source.name)


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
        frame = {each: array[each] for each in array.dtype.names}
        if array.ndim != 1 or any(values.ndim > 1 for values in frame.values()):
            raise TableError(f"{name} holds a structured array of shape {array.shape}. Save its fields as columns.")
        import pandas as pd

        return Content(pd.DataFrame(frame), (f"Read {plural(len(array), 'row')} and {plural(len(frame), 'column')}.",))
    if array.ndim != 2:
        raise TableError(
            f"{name} holds an array of shape {array.shape}. Pass a matrix with one row per sample; images can be "
            "flattened with X.reshape(len(X), -1)."
        )
    if array.dtype.kind not in "biuf":
        raise TableError(f"{name} holds values of type {array.dtype}. Pass an array of numbers.")
    if not array.size:
        raise TableError(f"{name} holds an array of shape {array.shape}, without values. Pass a matrix of numbers.")
    rows, width = array.shape
    return Content(array, (f"Read {plural(rows, 'row')} and {plural(width, 'column')}.",))


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write all columns of numbers as one matrix."""
    numbers = [values for values in columns.values() if np.asarray(values).dtype.kind in "biuf"]
    with path.open("wb") as stream:
        np.save(stream, np.column_stack(numbers).astype(np.float64), allow_pickle=False)


FORMAT = Format("NPY", (".npy",), b"\x93NUMPY", read, write)
