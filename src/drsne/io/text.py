"""Text files with one row per line: CSV, TSV and the like.

Encoding, separator, decimal sign and header are detected from the first lines. pandas reads the values. If something
is wrong, the file is read again line by line to say where.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np

from drsne.io.sources import Content, Source, TableError, number, numbered, plain, plural

_SPACES = r"\s+"  # any number of spaces or tabs
_OLD_ENCODING = "cp1252"  # what most programs write that do not write UTF-8
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", _SPACES: "spaces"}  # the first of equals
# Missing values, in addition to those of pandas, and together with them.
_MISSING = ("?", "-", ".", "none", "None", "NONE", "na", "Na", "missing")
_ALL_MISSING = {"", "nan", "NaN", "NA", "N/A", "n/a", "NULL", "null", "#N/A", "<NA>", *_MISSING}
_SAMPLE = 1 << 18  # number of bytes from which the dialect is detected, if they have enough lines
_LINES = 100  # largest number of lines that are compared
_GZIP = b"\x1f\x8b"
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_DAMAGED = (OSError, EOFError, zlib.error)
_FORMULA = ("=", "+", "-", "@")  # how text begins, after spaces, that spreadsheets may take for a formula
_CONTROLS = ("\t", "\r")


class Dialect(NamedTuple):
    """How a text file is written."""

    encoding: str
    separator: str
    decimal: str
    comments: int  # number of lines before the table that begin with "#"
    header: bool  # whether the first line after the comments has names of columns
    names: list[str] | None  # names of the columns, if they are in a comment


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a text file."""
    dialect = _detected(source, options.get("header"))
    first = _refuse_ragged(source, dialect, most=2)
    frame, dialect = _frame(source, dialect)
    if not len(frame):
        raise TableError(f"{source.name} has a header but no rows. Pass a file with a table of numbers.")
    has_index = type(frame.index).__name__ != "RangeIndex"  # the rows have one field more than the header
    # because they end with a separator, or begin with names
    trailing = has_index and not first[-1].strip() and bool(frame.iloc[:_LINES, -1].isna().all())
    is_late = trailing and bool(frame.iloc[:, -1].notna().any())
    if trailing:
        frame, has_index = frame.reset_index().iloc[:, :-1].set_axis(frame.columns, axis=1), False
    while frame.shape[1] > 1 and frame.iloc[:, -1].isna().all() and _is_unnamed(frame.columns[-1]):
        frame = frame.iloc[:, :-1]  # an empty column after the separator at the end of all lines
    if is_late or frame.iloc[:, -1].isna().any():
        _refuse_ragged(source, dialect, trailing=trailing)
    if dialect.header and frame.shape[1] > 1 and _is_unnamed(frame.columns[0]):
        frame, has_index = frame.set_index(frame.columns[0]), True
    if not dialect.header:
        named = dialect.names is not None and len(dialect.names) == frame.shape[1]
        frame.columns = dialect.names if named else numbered(frame.shape[1])

    def place(column: str, wrong: Callable[[str], bool]) -> str:
        position = list(map(str, frame.columns)).index(column) + has_index
        for line, row in islice(_lines(source, dialect), int(dialect.header), None):
            value = row[position].strip() if position < len(row) else ""
            if value not in _ALL_MISSING and wrong(value):
                return f"line {line}, column {column!r}"
        return f"column {column!r}"

    header = "with a header" if dialect.header else "with a header after #" if dialect.names else "without a header"
    found = [f"separated by {_SEPARATORS[dialect.separator]}", header]
    if dialect.decimal == ",":
        found.append("with decimal commas")
    if dialect.encoding == _OLD_ENCODING:
        found.append("in the encoding Windows-1252, because it is not UTF-8")
    note = f"Read {plural(len(frame), 'row')} and {plural(frame.shape[1], 'column')}, {', '.join(found)}."
    index = frame.index.to_numpy() if has_index else None
    return Content(frame, (note,), index=index, place=place, decimal=dialect.decimal)


def _is_unnamed(name: Any) -> bool:
    """Return whether pandas has made a name of a column, because there was none."""
    return not isinstance(name, str) or name.startswith("Unnamed: ")


def estimate(source: Source, options: Mapping[str, Any]) -> int:
    """Return the bytes of memory for the text of a file, and for its numbers in a data frame and in a matrix."""
    size = source.size
    if source.start.startswith(_GZIP):  # its size is known only up to a multiple of 4 GiB
        with source.open() as stream:
            stream.seek(-min(4, size), 2)
            size = max(size, int.from_bytes(stream.read(), "little"))
    with _stream(source) as stream:
        sample = stream.read(_SAMPLE)
    separators = max(sample.count(mark) for mark in (b",", b"\t", b";", b"|")) or len(sample.split())
    return int(size + 2 * 8 * size * (separators + sample.count(b"\n")) / max(1, len(sample)))


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as CSV, or as TSV if the extension says so."""
    name = path.name.lower()
    separator = "\t" if name.removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    with (gzip.open if name.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as stream:
        write_rows(stream, columns, separator)


def write_rows(stream: Any, columns: Mapping[str, Any], separator: str = ",") -> None:
    """Write columns as lines of text, with numbers that can be read again without loss."""
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(plain(values) for values in columns.values()), strict=True))


def spreadsheet_safe(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns in which text that begins like a formula has an apostrophe before it. Numbers stay as they are."""

    def guarded(value: Any) -> Any:
        if not isinstance(value, str) or number(value) is not None:
            return value
        is_formula = value.startswith(_CONTROLS) or normalize("NFKC", value.lstrip()).startswith(_FORMULA)
        return f"'{value}" if is_formula else value

    safe = {}
    for name, values in columns.items():
        array = np.asarray(values)
        if array.dtype.kind in "OUT":
            array = array.astype(object)
            array[:] = [guarded(value) for value in array]
        safe[guarded(name)] = array
    return safe


def _frame(source: Source, dialect: Dialect) -> tuple[Any, Dialect]:
    """Return the table, and the dialect with the encoding that could be read."""
    import pandas as pd

    options: dict[str, Any] = {"sep": dialect.separator, "decimal": dialect.decimal, "skiprows": dialect.comments}
    options |= {"header": 0 if dialect.header else None, "na_values": list(_MISSING), "skipinitialspace": True}
    options |= {"low_memory": False, "float_precision": "round_trip"}  # rows that are equal in two files are equal here
    for encoding in dict.fromkeys((dialect.encoding, _OLD_ENCODING)):
        known = dialect._replace(encoding=encoding)
        try:
            with _stream(source) as stream:
                return pd.read_csv(stream, encoding=encoding, **options), known
        except UnicodeDecodeError:
            continue
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            _refuse_ragged(source, known)
            raise TableError(f"{source.name} cannot be read as a table: {error}.") from error
        except _DAMAGED as error:
            raise TableError(f"{source.name} cannot be read as a table: {error}.") from error
    raise TableError(f"{source.name} has an unknown encoding. Save it as UTF-8.")


def _stream(source: Source) -> Any:
    """Return a stream of the bytes of a text file, which can be compressed."""
    return gzip.open(source.readable()) if source.start.startswith(_GZIP) else source.open()


def _fields(lines: Iterable[str], separator: str) -> Any:
    """Return an iterator over the fields of lines, with the attribute ``line_num`` for the number of lines read."""
    if separator == _SPACES:
        return csv.reader((" ".join(line.split()) for line in lines), delimiter=" ")
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _lines(source: Source, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the numbers of their lines, from 1."""
    with _stream(source) as stream:
        text = io.TextIOWrapper(stream, encoding=dialect.encoding, errors="replace", newline="")
        rows = _fields(islice(text, dialect.comments, None), dialect.separator)
        line = dialect.comments + 1
        try:
            for row in rows:
                if any(row) or len(row) > 1:  # a line is not blank
                    yield line, row
                line = dialect.comments + rows.line_num + 1
        except csv.Error as error:
            raise TableError(f"{source.name}, line {line}: {error}. A quotation mark may be missing.") from error


def _refuse_ragged(source: Source, dialect: Dialect, *, most: int | None = None, trailing: bool = False) -> list[str]:
    """Raise an error for the first line with another number of fields than the first one, or return the last row.

    A header can have one name less if the rows begin with names or end with a separator (``trailing``). At most
    ``most`` lines are compared.
    """
    lines = islice(_lines(source, dialect), most)
    first, header = next(lines)
    width, row = len(header), header
    for place, (line, row) in enumerate(lines):
        count = len(row) - (trailing and not row[-1].strip())
        names = place == 0 and dialect.header and not trailing and (header[0].strip() or not row[-1].strip())
        if names and count == width + 1:
            width = count
        if count != width:
            below = "every column needs a name, or pass --no-header if there is no header; " if place == 0 else ""
            raise TableError(
                f"{source.name}, line {line} has {plural(count, 'field')}, but line {first} has {width}. Correct "
                f"this: {below}a field that contains the separator must be in quotation marks."
            )
    return row


def _detected(source: Source, header: bool | None) -> Dialect:
    """Return how a file is written, and raise an error if it is not text."""
    encoding, lines = _first_lines(source)
    comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    last_comment = lines[comments - 1] if comments else ""
    lines = [line for line in lines[comments:] if line.strip()][:_LINES]
    if not lines:
        raise TableError(f"{source.name} has no lines with values. Pass a file with a table of numbers.")
    separator, decimal = _separated(lines)
    rows = [row for row in _rows(lines, separator) if row]
    likely = _has_header(rows, decimal)
    names = None
    if header is not False and (not likely or all(number(value, decimal) is not None for value in rows[0])):
        names = _commented_names(last_comment, separator, rows[0], decimal)
    header = names is None and (likely if header is None else header)
    return Dialect(encoding, separator, decimal, comments, header, names)


def _first_lines(source: Source) -> tuple[str, list[str]]:
    """Return the encoding and the first lines."""
    try:
        with _stream(source) as stream:
            content = stream.read(_SAMPLE)
            encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
            if encoding == "utf-8" and b"\0" in content:
                raise TableError(
                    f"{source.name} is a binary file, not text. Pass a table of numbers in a known format."
                )
            content += b"".join(islice(stream, 3))  # up to the end of a line; lines can be long
    except _DAMAGED as error:
        raise TableError(f"{source.name} is damaged and cannot be unpacked ({error}). Copy it again.") from error
    try:
        text = content.decode(encoding, errors="ignore" if encoding == "utf-16" else "strict")
    except UnicodeDecodeError:
        encoding = _OLD_ENCODING
        text = content.decode(encoding, errors="ignore")
    return encoding, text.splitlines()


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(_fields(lines, separator))
    except csv.Error:
        return [line.split() if separator == _SPACES else line.split(separator) for line in lines]


def _separated(lines: list[str]) -> tuple[str, str]:
    """Return the separator and the decimal sign.

    The separator is the one with the largest share of numbers among the fields and, among equals, the most fields.
    Spaces occur in names. They are the separator only if they are better than the others, or if no other one occurs.
    """
    fits: dict[str, tuple[float, float, int]] = {}
    decimals = {}
    for separator in _SEPARATORS:
        rows = _rows(lines, separator)
        widths = [len(row) for row in rows]
        width = max(set(widths), key=lambda each: (widths.count(each), each))
        equal = widths.count(width) / len(widths)
        fields = (field.strip() for row in rows[1:] or rows for field in row)  # those below a possible header
        values = [field for field in fields if field not in _ALL_MISSING]
        points, commas = ([number(value, sign) is not None for value in values] for sign in ".,")
        decimals[separator] = "," if separator != "," and sum(commas) > sum(points) else "."
        numbers = sum(points) if separator == "," else sum(map(max, points, commas))
        if width > 1:
            fits[separator] = (numbers / max(1, len(values)) * equal, equal, width)
    spaces = fits.pop(_SPACES, None)
    best = max(fits, key=fits.__getitem__, default=",")
    if spaces is not None and "\t" not in fits and all(len(line.split()) > 1 for line in lines):
        best = _SPACES if not fits or spaces[0] > fits[best][0] else best
    return best, decimals[best]


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first row has names: it counts the columns, or no column of numbers begins with a number."""
    first, *others = rows
    names = [value.strip() for value in first]
    names = names[1:] if not names[0] else names  # the column of row names has no name
    counted = [str(place) for place in range(len(names) + 1)]
    if others and names in (counted[:-1], counted[1:]):
        return True

    def is_number(value: str) -> bool:
        return number(value, decimal) is not None

    def below(place: int) -> list[str]:
        return [row[place] for row in others if place < len(row) and row[place].strip() not in _ALL_MISSING]

    return not any(is_number(value) and all(map(is_number, below(place))) for place, value in enumerate(first))


def _commented_names(comment: str, separator: str, first: list[str], decimal: str) -> list[str] | None:
    """Return the names of the columns in a line that begins with "#", as numpy.savetxt writes it, or None."""
    names = [name.strip() for row in _rows([comment.lstrip("#").strip()], separator) for name in row]
    width = len(first) - (not first[-1].strip())  # a row can end with a separator
    if len(names) != width or len(set(names)) < width:
        return None
    return None if any(not name or number(name, decimal) is not None for name in names) else names
