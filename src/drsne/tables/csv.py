"""Text files with one row per line: CSV, TSV and the like.

Separator, decimal sign, header and encoding are detected from the first lines. pandas reads the numbers. If something
is wrong, the file is read again line by line to say where.
"""

from __future__ import annotations

import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.tables._dialect import (
    ALL_MISSING,
    MISSING,
    OLD_ENCODING,
    SPACES,
    Dialect,
    detect,
    estimated_size,
    split,
    stream_of,
)
from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import plural
from drsne.tables._values import number as number_of
from drsne.tables._values import plain

_UNNAMED = "Unnamed: "  # how pandas names columns without a name
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how text begins that spreadsheets may take for a formula


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a text file."""
    pandas = package("pandas", "CSV files", "files")
    dialect = detect(source, options.get("header"))
    _refuse_ragged(source, dialect, most=2)
    frame, dialect = _frame(pandas, source, dialect)
    if not len(frame):
        raise TableError(f"{source.name} has a header but no rows. Pass a file with a table of numbers.")
    frame = _without_empty_end(frame, dialect)
    if frame.iloc[:, -1].isna().any():
        _refuse_ragged(source, dialect)
    has_index = dialect.row_names or type(frame.index).__name__ != "RangeIndex"
    index = frame.index.to_numpy() if has_index else None
    if not dialect.header:
        named = dialect.names is not None and len(dialect.names) == frame.shape[1]
        frame.columns = dialect.names if named else [f"x{place + 1}" for place in range(frame.shape[1])]

    def place(column: str, wrong: Callable[[str], bool]) -> str:
        position = list(map(str, frame.columns)).index(column) + (index is not None)
        return _place(source, dialect, column, position, wrong)

    return Content(frame, (_found(frame, dialect),), index=index, place=place, decimal=dialect.decimal)


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of memory that reading a text file takes."""
    return estimated_size(source)


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as CSV, or as TSV if the extension says so."""
    name = path.name.lower()
    separator = "\t" if name.removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        write_rows(stream, columns, separator)


def write_rows(stream: Any, columns: Mapping[str, Any], separator: str = ",") -> None:
    """Write columns as lines of text.

    Numbers are written so that they can be read again without loss. Dates are written as in ISO 8601.
    """
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(plain(values) for values in columns.values()), strict=True))


def spreadsheet_safe(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns in which text that begins like a formula has an apostrophe before it. Numbers stay as they are."""
    return {_guarded(name): _guarded_column(np.asarray(values)) for name, values in columns.items()}


def _guarded(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(_FORMULA) and number_of(value) is None
    return f"'{value}" if is_formula else value


def _guarded_column(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "OUT":
        return values
    guarded = values.astype(object)
    guarded[:] = [_guarded(value) for value in guarded]
    return guarded


def _frame(pandas: Any, source: Source, dialect: Dialect) -> tuple[Any, Dialect]:
    """Return the table, and the dialect with the encoding that could be read."""
    for encoding in dict.fromkeys((dialect.encoding, OLD_ENCODING)):
        dialect = dialect._replace(encoding=encoding)
        try:
            with stream_of(source) as stream, warnings.catch_warnings():
                warnings.simplefilter("error", pandas.errors.ParserWarning)  # fields without a name would be lost
                frame = pandas.read_csv(
                    stream,
                    sep=dialect.separator,
                    decimal=dialect.decimal,
                    header=0 if dialect.header else None,
                    index_col=False if dialect.trailing else 0 if dialect.row_names else None,
                    skiprows=dialect.comments,
                    encoding=encoding,
                    na_values=list(MISSING),
                    skipinitialspace=True,
                    low_memory=False,
                    float_precision="round_trip",  # so that rows that are equal in two files are equal here
                )
            if dialect.trailing and dialect.row_names:
                frame = frame.set_index(frame.columns[0])
            return frame, dialect
        except UnicodeDecodeError:
            continue
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
            _refuse_ragged(source, dialect)
            raise TableError(f"{source.name} cannot be read as a table: {_one_line(error)}.") from error
        except (pandas.errors.EmptyDataError, OSError, EOFError, zlib.error) as error:
            raise TableError(f"{source.name} cannot be read as a table: {_one_line(error)}.") from error
    raise TableError(f"{source.name} has an unknown encoding. Save it as UTF-8.")


def _without_empty_end(frame: Any, dialect: Dialect) -> Any:
    """Return a table without the empty columns that separators at the end of the lines make."""
    width = frame.shape[1]
    while width > 1 and frame.iloc[:, width - 1].isna().all():
        if dialect.header and not str(frame.columns[width - 1]).startswith(_UNNAMED):
            break
        width -= 1
    return frame.iloc[:, :width]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _numbered(source: Source, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the numbers of their lines, from 1."""
    with stream_of(source) as stream:
        text = io.TextIOWrapper(stream, encoding=dialect.encoding, errors="replace", newline="")
        for _ in range(dialect.comments):
            text.readline()
        rows = split(text, dialect.separator)
        before = 0
        try:
            for row in rows:
                if any(row) or len(row) > 1:  # a line is not blank
                    yield dialect.comments + before + 1, row
                before = rows.line_num
        except csv.Error as error:
            raise TableError(
                f"{source.name}, line {dialect.comments + before + 1}: {error}. A quotation mark may be missing."
            ) from error


def _refuse_ragged(source: Source, dialect: Dialect, *, most: int | None = None) -> None:
    """Raise an error for the first line with another number of fields than those before it.

    A header can have one name less if the rows begin with names or end with a separator. At most ``most`` lines are
    compared.
    """
    width, first = 0, 0
    for place, (number, row) in enumerate(islice(_numbered(source, dialect), most)):
        below_header = dialect.header and place == 1
        may_be_longer = below_header and (dialect.trailing or not dialect.row_names)
        if place == 0 or (may_be_longer and len(row) == width + 1):
            width, first = len(row), number
        elif below_header and len(row) > width:
            raise TableError(
                f"{source.name}, line {number} has {plural(len(row), 'field')}, but the header in line {first} has "
                f"{plural(width, 'name')}. Give every column a name, or pass --no-header if there is no header."
            )
        elif len(row) != width:
            raise TableError(
                f"{source.name}, line {number} has {plural(len(row), 'field')}, but line {first} has {width}. Correct "
                "this line; a field that contains the separator must be in quotation marks."
            )
        elif dialect.trailing and place and row[-1].strip():
            raise TableError(
                f"{source.name}, line {number} has {plural(len(row), 'value')}, but the header has {width - 1}. Give "
                "every column a name."
            )


def _place(source: Source, dialect: Dialect, column: str, position: int, wrong: Callable[[str], bool]) -> str:
    """Return the line and the column of the first value for which ``wrong`` is true."""
    for number, row in islice(_numbered(source, dialect), int(dialect.header), None):
        value = row[position].strip() if position < len(row) else ""
        if value not in ALL_MISSING and wrong(value):
            return f"line {number}, column {column!r}"
    return f"column {column!r}"


def _found(frame: Any, dialect: Dialect) -> str:
    """Return a sentence about what was detected."""
    names = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", SPACES: "spaces"}
    header = "with a header" if dialect.header else "with a header after #" if dialect.names else "without a header"
    parts = [f"separated by {names[dialect.separator]}", header]
    if dialect.decimal == ",":
        parts.append("with decimal commas")
    if dialect.encoding == OLD_ENCODING:
        parts.append("in the encoding Windows-1252, because it is not UTF-8")
    rows, width = frame.shape
    return f"Read {plural(rows, 'row')} and {plural(width, 'column')}, {', '.join(parts)}."


FORMAT = Format("CSV", (".csv", ".tsv", ".txt", ".tab"), b"", read, write, estimate, is_text=True)
