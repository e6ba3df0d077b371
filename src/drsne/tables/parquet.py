"""Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import plural
from drsne.tables._values import uniform


def packages(title: str) -> Any:
    """Return pandas, or raise an error if pandas or pyarrow is missing."""
    package("pyarrow", f"{title} files", "files")
    return package("pandas", f"{title} files", "files")


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a Parquet file."""
    return read_frame(source, "read_parquet", "Parquet")


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of memory for all values as numbers, in a data frame and a matrix."""
    packages("Parquet")
    from pyarrow.parquet import read_metadata

    try:
        metadata = read_metadata(source.readable())
    except (OSError, ValueError, EOFError):  # the file is damaged, which is reported when it is read
        return None
    return 2 * 8 * int(metadata.num_rows) * int(metadata.num_columns)


def read_frame(source: Source, reader: str, title: str) -> Content:
    """Read a file with a function of pandas that uses pyarrow."""
    pandas = packages(title)
    try:
        frame = getattr(pandas, reader)(source.readable())
    except (OSError, ValueError, EOFError) as error:  # pyarrow's errors are kinds of these
        reason = " ".join(str(error).split())[:200]
        raise TableError(
            f"{source.name} is damaged or not a {title} file ({reason}). Copy it or write it again."
        ) from error
    if not len(frame):
        raise TableError(f"{source.name} has no rows. Pass a file with a table of numbers.")
    note = f"Read {plural(len(frame), 'row')} and {plural(frame.shape[1], 'column')}."
    if type(frame.index).__name__ == "RangeIndex":
        return Content(frame, (note,))
    index, name = frame.index, frame.index.name
    if index.nlevels > 1:
        index = index.map(lambda parts: "/".join(map(str, parts)))
        name = "/".join(str(each) for each in frame.index.names if each is not None)
    # Names of rows are not measurements, even if they are floating-point numbers.
    names = index.to_numpy(dtype=object) if index.dtype.kind == "f" else index.to_numpy()
    return Content(frame, (note,), index=names, index_name=str(name) if name else None)


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a Parquet file."""
    frame_of(columns, "Parquet").to_parquet(path, index=False)


def frame_of(columns: Mapping[str, Any], title: str) -> Any:
    """Return columns as a data frame with one type per column."""
    return packages(title).DataFrame({name: uniform(values) for name, values in columns.items()})


FORMAT = Format("Parquet", (".parquet", ".pq"), b"PAR1", read, write, estimate, partial(packages, "Parquet"))
