"""Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import plural


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a Parquet file."""
    return read_frame(source, "read_parquet", "Parquet")


def read_frame(source: Source, reader: str, title: str) -> Content:
    """Read a file with a function of pandas that uses pyarrow."""
    pandas = package("pandas", f"{title} files", "files")
    package("pyarrow", f"{title} files", "files")
    try:
        frame = getattr(pandas, reader)(source.readable())
    except (OSError, ValueError, EOFError) as error:  # pyarrow's errors are kinds of these
        reason = " ".join(str(error).split())[:200]
        raise TableError(
            f"{source.name} is damaged or not a {title} file ({reason}). Copy it or write it again."
        ) from error
    if not len(frame):
        raise TableError(f"{source.name} has no rows. Pass a file with a table of numbers.")
    index = None if type(frame.index).__name__ == "RangeIndex" else frame.index.to_numpy()
    note = f"Read {plural(len(frame), 'row')} and {plural(frame.shape[1], 'column')}."
    return Content(frame, (note,), index=index)


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a Parquet file."""
    pandas = package("pandas", "Parquet files", "files")
    package("pyarrow", "Parquet files", "files")
    pandas.DataFrame(dict(columns)).to_parquet(path, index=False)


FORMAT = Format("Parquet", (".parquet", ".pq"), b"PAR1", read, write)
