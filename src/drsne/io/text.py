"""Text files with one row per line: CSV, TSV and the like.

Encoding, separator, decimal sign and header are detected from the first lines. pandas reads the numbers. If something
is wrong, the file is read again line by line to say where.
"""

from __future__ import annotations

import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.io.sources import Content, Source, TableError, reason
from drsne.io.values import number, plain, plural

_SPACES = r"\s+"  # any number of spaces or tabs
_OLD_ENCODING = "cp1252"  # what most programs write that do not write UTF-8
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", _SPACES: "spaces"}  # the first of equals
# Missing values, in addition to those of pandas, and together with them.
_MISSING = ("?", "-", ".", "none", "None", "NONE", "na", "Na", "missing")
_ALL_MISSING = {"", "nan", "NaN", "NA", "N/A", "n/a", "NULL", "null", "#N/A", "<NA>", *_MISSING}
_SAMPLE = 1 << 18  # number of bytes from which the dialect is detected, if they have enough lines
_LONGEST = 1 << 26  # largest number of bytes that are read to find enough lines
_LINES = 100  # largest number of lines that are compared
_GZIP = b"\x1f\x8b"
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DAMAGED = (OSError, EOFError, zlib.error)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how text begins that spreadsheets may take for a formula
_UNNAMED = "Unnamed: "  # how pandas names columns without a name


class Dialect(NamedTuple):
    """How a text file is written."""

    encoding: str
    separator: str
    decimal: str
    comments: int  # number of lines before the table that begin with "#"
    header: bool  # whether the first line after the comments has names of columns
    names: list[str] | None  # names of the columns, if they are in a comment
    row_names: bool  # whether the header has an empty name for a first column with names of rows
    trailing: bool  # whether the rows, but not the header, end with a separator


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a text file."""
    dialect = _detected(source, options.get("header"))
    _refuse_ragged(source, dialect, most=2)
    frame, dialect = _frame(source, dialect)
    if not len(frame):
        raise TableError(f"{source.name} has a header but no rows. Pass a file with a table of numbers.")
    width = frame.shape[1]  # without the empty columns that separators at the end of the lines make
    while width > 1 and frame.iloc[:, width - 1].isna().all():
        if dialect.header and not str(frame.columns[width - 1]).startswith(_UNNAMED):
            break
        width -= 1
    frame = frame.iloc[:, :width]
    if frame.iloc[:, -1].isna().any():
        _refuse_ragged(source, dialect)
    has_index = dialect.row_names or type(frame.index).__name__ != "RangeIndex"
    if not dialect.header:
        named = dialect.names is not None and len(dialect.names) == width
        frame.columns = dialect.names if named else [f"x{place + 1}" for place in range(width)]

    def place(column: str, wrong: Callable[[str], bool]) -> str:
        position = list(map(str, frame.columns)).index(column) + has_index
        for line, row in islice(_numbered(source, dialect), int(dialect.header), None):
            value = row[position].strip() if position < len(row) else ""
            if value not in _ALL_MISSING and wrong(value):
                return f"line {line}, column {column!r}"
        return f"column {column!r}"

    note = _described(frame, dialect)
    index = frame.index.to_numpy() if has_index else None
    return Content(frame, (note,), index=index, place=place, decimal=dialect.decimal)


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of memory for the text of a file, and for its fields as numbers, in a data frame and a matrix.

    The size of a compressed file is known only up to a multiple of 4 GiB, so that the estimate can be too low.
    """
    size = source.size
    if source.start.startswith(_GZIP):
        with source.open() as stream:
            stream.seek(-min(4, size), 2)
            size = max(size, int.from_bytes(stream.read(), "little"))
    try:
        with _stream(source) as stream:
            sample = stream.read(_SAMPLE)
    except _DAMAGED:
        return None
    separators = max(sample.count(mark) for mark in (b",", b"\t", b";", b"|")) or len(sample.split())
    fields = size * (separators + sample.count(b"\n")) / max(1, len(sample))
    return int(size + 2 * 8 * fields)


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
    is_formula = isinstance(value, str) and value.startswith(_FORMULA) and number(value) is None
    return f"'{value}" if is_formula else value


def _guarded_column(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "OUT":
        return values
    guarded = values.astype(object)
    guarded[:] = [_guarded(value) for value in guarded]
    return guarded


def _frame(source: Source, dialect: Dialect) -> tuple[Any, Dialect]:
    """Return the table, and the dialect with the encoding that could be read."""
    import pandas as pd

    for encoding in dict.fromkeys((dialect.encoding, _OLD_ENCODING)):
        try:
            with _stream(source) as stream, warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # fields without a name would be lost
                frame = pd.read_csv(
                    stream,
                    sep=dialect.separator,
                    decimal=dialect.decimal,
                    header=0 if dialect.header else None,
                    index_col=False if dialect.trailing else 0 if dialect.row_names else None,
                    skiprows=dialect.comments,
                    encoding=encoding,
                    na_values=list(_MISSING),
                    skipinitialspace=True,
                    low_memory=False,
                    float_precision="round_trip",  # so that rows that are equal in two files are equal here
                )
            if dialect.trailing and dialect.row_names:
                frame = frame.set_index(frame.columns[0])
            return frame, dialect._replace(encoding=encoding)
        except UnicodeDecodeError:
            continue
        except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, *_DAMAGED) as error:
            if not isinstance(error, _DAMAGED):
                _refuse_ragged(source, dialect._replace(encoding=encoding))
            raise TableError(f"{source.name} cannot be read as a table: {reason(error)}.") from error
    raise TableError(f"{source.name} has an unknown encoding. Save it as UTF-8.")


def _described(frame: Any, dialect: Dialect) -> str:
    """Return a sentence about what was detected."""
    header = "with a header" if dialect.header else "with a header after #" if dialect.names else "without a header"
    parts = [f"separated by {_SEPARATORS[dialect.separator]}", header]
    if dialect.decimal == ",":
        parts.append("with decimal commas")
    if dialect.encoding == _OLD_ENCODING:
        parts.append("in the encoding Windows-1252, because it is not UTF-8")
    return f"Read {plural(len(frame), 'row')} and {plural(frame.shape[1], 'column')}, {', '.join(parts)}."


def _stream(source: Source) -> Any:
    """Return a stream of the bytes of a text file, which can be compressed."""
    return gzip.open(source.readable()) if source.start.startswith(_GZIP) else source.open()


def _fields(lines: Iterable[str], separator: str) -> Any:
    """Return an iterator over the fields of lines, with the attribute ``line_num`` for the number of lines read."""
    if separator == _SPACES:
        return csv.reader((" ".join(line.split()) for line in lines), delimiter=" ")
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _numbered(source: Source, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the numbers of their lines, from 1."""
    with _stream(source) as stream:
        text = io.TextIOWrapper(stream, encoding=dialect.encoding, errors="replace", newline="")
        for _ in range(dialect.comments):
            text.readline()
        rows = _fields(text, dialect.separator)
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
    for place, (line, row) in enumerate(islice(_numbered(source, dialect), most)):
        below_header = dialect.header and place == 1
        may_be_longer = below_header and (dialect.trailing or not dialect.row_names)
        if place == 0 or (may_be_longer and len(row) == width + 1):
            width, first = len(row), line
        elif below_header and len(row) > width:
            raise TableError(
                f"{source.name}, line {line} has {plural(len(row), 'field')}, but the header in line {first} has "
                f"{plural(width, 'name')}. Give every column a name, or pass --no-header if there is no header."
            )
        elif len(row) != width:
            raise TableError(
                f"{source.name}, line {line} has {plural(len(row), 'field')}, but line {first} has {width}. Correct "
                "this line; a field that contains the separator must be in quotation marks."
            )
        elif dialect.trailing and place and row[-1].strip():
            raise TableError(
                f"{source.name}, line {line} has {plural(len(row), 'value')}, but the header has {width - 1}. Give "
                "every column a name."
            )


def _detected(source: Source, header: bool | None) -> Dialect:
    """Return how a file is written, and raise an error if it is not text."""
    encoding, lines = _first_lines(source)
    comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    last_comment = lines[comments - 1] if comments else ""
    lines = [line for line in lines[comments:] if line.strip()][:_LINES]
    if not lines:
        raise TableError(f"{source.name} has no lines with values. Pass a file with a table of numbers.")
    separator = _separator(lines)
    rows = [row for row in _rows(lines, separator) if row]
    decimal = "," if separator != "," and _decimal_commas(rows) else "."
    likely = _has_header(rows, decimal)
    names = None
    if header is not False and (not likely or all(number(value, decimal) is not None for value in rows[0])):
        names = _commented_names(last_comment, separator, rows[0], decimal)
    header = names is None and (likely if header is None else header)
    row_names = header and not rows[0][0].strip() and len(rows[0]) > 1
    longer = [row for row in rows[1:] if len(row) == len(rows[0]) + 1 and not row[-1].strip()]
    trailing = header and len(rows) > 1 and len(longer) == len(rows) - 1
    return Dialect(encoding, separator, decimal, comments, header, names, row_names, trailing)


def _first_lines(source: Source) -> tuple[str, list[str]]:
    """Return the encoding and the first lines, without one that may be incomplete."""
    try:
        with _stream(source) as stream:
            sample = part = stream.read(_SAMPLE)
            while len(part) == _SAMPLE and sample.count(b"\n") < 3 and len(sample) < _LONGEST:
                part = stream.read(_SAMPLE)
                sample += part
    except _DAMAGED as error:
        raise TableError(f"{source.name} is damaged and cannot be unpacked ({error}). Copy it again.") from error
    encoding = next((name for mark, name in _MARKS.items() if sample.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in sample:
        raise TableError(f"{source.name} is a binary file, not text. Pass a table of numbers in a known format.")
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError as error:
        # A sample can end in the middle of a character.
        encoding = encoding if error.start > len(sample) - 4 else _OLD_ENCODING
        text = sample.decode(encoding, errors="ignore")
    lines = text.splitlines()
    return encoding, lines[:-1] if len(part) == _SAMPLE and len(lines) > 1 else lines


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(_fields(lines, separator))
    except csv.Error:
        return [line.split() if separator == _SPACES else line.split(separator) for line in lines]


def _values(rows: list[list[str]]) -> list[str]:
    """Return the values that are there below a possible header."""
    values = (value.strip() for row in rows[1:] or rows for value in row)
    return [value for value in values if value not in _ALL_MISSING]


def _separator(lines: list[str]) -> str:
    """Return the separator with the largest share of numbers among the fields and, among equals, the most fields.

    Spaces occur in names. They are the separator only if they are better than commas, or if no other one occurs.
    """
    fits = {each: _fit(_rows(lines, each), each) for each in _SEPARATORS}
    fits = {each: fit for each, fit in fits.items() if fit[2] > 1}
    spaces = fits.pop(_SPACES, None)
    best = max(fits, key=fits.__getitem__, default=None)
    if spaces is not None and "\t" not in fits and all(len(line.split()) > 1 for line in lines):
        return _SPACES if best is None or spaces[0] > fits[best][0] else best
    return best or ","


def _fit(rows: list[list[str]], separator: str) -> tuple[float, float, int]:
    """Return how well a separator fits: the share of numbers times that of lines of equal width, and that width."""
    widths = [len(row) for row in rows]
    width = max(set(widths), key=lambda each: (widths.count(each), each))
    equal = widths.count(width) / len(widths)
    values, signs = _values(rows), "." if separator == "," else ".,"
    numbers = sum(any(number(value, sign) is not None for sign in signs) for value in values)
    return numbers / max(1, len(values)) * equal, equal, width


def _decimal_commas(rows: list[list[str]]) -> bool:
    """Return whether more numbers are written with a decimal comma than with a decimal point."""
    values = _values(rows)
    commas = sum("," in value and number(value, ",") is not None for value in values)
    return commas > sum("." in value and number(value) is not None for value in values)


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first row has names: it counts the columns, or no column of numbers begins with a number."""
    first, *others = rows
    names = [value.strip() for value in first]
    names = names[1:] if not names[0] else names  # the column of row names has no name
    counted = [str(place) for place in range(len(names) + 1)]
    if others and names in (counted[:-1], counted[1:]):
        return True
    return not any(
        number(value, decimal) is not None
        and all(
            number(row[place], decimal) is not None
            for row in others
            if place < len(row) and row[place].strip() not in _ALL_MISSING
        )
        for place, value in enumerate(first)
    )


def _commented_names(comment: str, separator: str, first: list[str], decimal: str) -> list[str] | None:
    """Return the names of the columns in a line that begins with "#", as numpy.savetxt writes it, or None."""
    names = [name.strip() for row in _rows([comment.lstrip("#").strip()], separator) for name in row]
    width = len(first) - (not first[-1].strip())  # a row can end with a separator
    if len(names) != width or len(set(names)) < width:
        return None
    return None if any(not name or number(name, decimal) is not None for name in names) else names
