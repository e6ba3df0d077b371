"""Text files with one row per line: CSV, TSV and the like.

Separator, decimal sign, header and encoding are detected from the first lines. pandas reads the numbers. If something
is wrong, the file is read again line by line to say where.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._packages import package
from drsne.tables._table import plural

_SAMPLE = 1 << 18  # number of bytes from which the dialect is detected
_LINES = 100  # largest number of lines that are compared
_SEPARATORS = ",\t;|"
_GZIP = b"\x1f\x8b"
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_OLD_ENCODING = "cp1252"  # what most programs write that do not write UTF-8
_MISSING = ("?", "-", ".", "none", "None", "NONE", "na", "Na", "missing")  # in addition to those of pandas
_WIDEST = 100_000  # longest field, in characters, of a table that was written on purpose


class _Dialect(NamedTuple):
    encoding: str
    separator: str  # "\\s+" stands for any number of spaces
    decimal: str
    comments: int  # number of lines before the table that begin with "#"
    header: bool
    row_names: bool  # whether the first column has names of rows
    compressed: bool


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a text file."""
    pandas = package("pandas", "CSV files", "files")
    dialect = _dialect(source, options.get("header"))
    frame, dialect = _frame(pandas, source, dialect)
    if not len(frame):
        raise TableError(f"{source.name} has a header but no rows. Pass a file with a table of numbers.")
    if frame.iloc[:, -1].isna().any():
        _refuse_ragged(source, dialect)
    index = None
    if dialect.row_names or type(frame.index).__name__ != "RangeIndex":
        index = frame.index.to_numpy()
    if not dialect.header:
        frame.columns = [f"x{place + 1}" for place in range(frame.shape[1])]

    def place(column: str, wrong: Callable[[str], bool]) -> str:
        return _place(source, dialect, list(map(str, frame.columns)), column, wrong)

    return Content(frame, (_found(frame, dialect),), index=index, place=place)


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as CSV, or as TSV if the extension says so."""
    separator = "\t" if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        write_rows(stream, columns, separator)


def write_rows(stream: Any, columns: Mapping[str, Any], separator: str = ",") -> None:
    """Write columns as lines of text. Numbers are written so that they can be read again without loss."""
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _dialect(source: Source, header: bool | None) -> _Dialect:
    """Return how the file is written, and raise an error if it is not text."""
    compressed = source.start.startswith(_GZIP)
    try:
        with _stream(source, compressed) as stream:
            sample = stream.read(_SAMPLE)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{source.name} is damaged and cannot be unpacked ({error}). Copy it again.") from error
    encoding = next((name for mark, name in _MARKS.items() if sample.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in sample:
        raise TableError(
            f"{source.name} is a binary file, not text. Pass a table of numbers in one of the known formats."
        )
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError as error:
        # A sample can end in the middle of a character.
        encoding = encoding if error.start > len(sample) - 4 else _OLD_ENCODING
        text = sample.decode(encoding, errors="ignore")
    lines = text.splitlines()
    if len(sample) == _SAMPLE and len(lines) > 1:
        lines.pop()  # it may be incomplete
    comments = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    lines = [line for line in lines[comments:] if line.strip()][:_LINES]
    if not lines:
        raise TableError(f"{source.name} has no lines with values. Pass a file with a table of numbers.")
    separator = _separator(lines)
    rows = [row for row in _split(lines, separator) if row]
    decimal = "," if separator != "," and _decimal_commas(rows) else "."
    header = _has_header(rows, decimal) if header is None else header
    names = header and bool(rows) and not rows[0][0].strip() and len(rows[0]) > 1
    return _Dialect(encoding, separator, decimal, comments, header, names, compressed)


def _stream(source: Source, compressed: bool) -> Any:
    stream = source.open()
    return gzip.open(stream) if compressed else stream


def _separator(lines: list[str]) -> str:
    """Return the separator that divides the lines into the same number of fields, and into as many as possible."""
    best, most = ",", (0.0, 1)
    for separator in _SEPARATORS:
        widths = [len(row) for row in _split(lines, separator)]
        common = max(set(widths), key=widths.count)
        score = (widths.count(common) / len(widths), common)
        if common > 1 and score > most:
            best, most = separator, score
    return best if most[1] > 1 else r"\s+" if all(len(line.split()) > 1 for line in lines) else ","


def _split(lines: list[str], separator: str) -> list[list[str]]:
    if separator == r"\s+":
        return [line.split() for line in lines]
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return [line.split(separator) for line in lines]


def _decimal_commas(rows: list[list[str]]) -> bool:
    """Return whether numbers are written with a decimal comma."""
    fields = [value.strip() for row in rows[1:] for value in row if "," in value]
    return bool(fields) and all(_number(value.replace(",", ".", 1), ".") for value in fields)


def _number(value: str, decimal: str) -> bool:
    try:
        float(value.replace(decimal, ".") if decimal != "." else value)
    except ValueError:
        return False
    return True


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first row has names.

    It has if no column of numbers begins with a number, or if it counts the columns.
    """
    first, *others = rows
    if not others:
        return not any(_number(value, decimal) for value in first)
    names = [value.strip() for value in first]
    names = names[1:] if not names[0] else names  # the column of row names has no name
    counted = [str(place) for place in range(len(names) + 1)]
    if names in (counted[:-1], counted[1:]):
        return True
    return not any(
        _number(value, decimal)
        and all(_number(row[place], decimal) for row in others if place < len(row) and row[place])
        for place, value in enumerate(first)
    )


def _frame(pandas: Any, source: Source, dialect: _Dialect) -> tuple[Any, _Dialect]:
    """Return the table, and the dialect with the encoding that could be read."""
    for encoding in dict.fromkeys((dialect.encoding, _OLD_ENCODING)):
        dialect = dialect._replace(encoding=encoding)
        try:
            with _stream(source, dialect.compressed) as stream:
                frame = pandas.read_csv(
                    stream,
                    sep=dialect.separator,
                    decimal=dialect.decimal,
                    header=0 if dialect.header else None,
                    index_col=0 if dialect.row_names else None,
                    skiprows=dialect.comments,
                    encoding=encoding,
                    na_values=list(_MISSING),
                    skipinitialspace=True,
                    low_memory=False,
                    float_precision="round_trip",  # so that rows that are equal in two files are equal here
                )
            return frame, dialect
        except UnicodeDecodeError:
            continue
        except pandas.errors.ParserError as error:
            _refuse_ragged(source, dialect)
            raise TableError(f"{source.name} cannot be read as a table: {_one_line(error)}.") from error
        except (pandas.errors.EmptyDataError, OSError, EOFError, zlib.error) as error:
            raise TableError(f"{source.name} cannot be read as a table: {_one_line(error)}.") from error
    raise TableError(f"{source.name} has an unknown encoding. Save it as UTF-8.")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _numbered(source: Source, dialect: _Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the numbers of their lines, from 1."""
    with _stream(source, dialect.compressed) as stream:
        text = io.TextIOWrapper(stream, encoding=dialect.encoding, errors="replace", newline="")
        for _ in range(dialect.comments):
            text.readline()
        if dialect.separator == r"\s+":
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield dialect.comments + number, line.split()
            return
        csv.field_size_limit(max(csv.field_size_limit(), _WIDEST))
        rows = csv.reader(text, delimiter=dialect.separator, skipinitialspace=True)
        before = 0
        try:
            for row in rows:
                if row:
                    yield dialect.comments + before + 1, row
                before = rows.line_num
        except csv.Error as error:
            raise TableError(
                f"{source.name}, line {dialect.comments + before + 1}: {error}. A quotation mark may be missing."
            ) from error


def _refuse_ragged(source: Source, dialect: _Dialect) -> None:
    """Raise an error for the first line with another number of fields than most lines."""
    width, first = 0, 0
    for place, (number, row) in enumerate(_numbered(source, dialect)):
        if place == 0 or (place == 1 and dialect.header and len(row) == width + 1):  # a header without row names
            width, first = len(row), number
        elif len(row) != width:
            raise TableError(
                f"{source.name}, line {number} has {plural(len(row), 'field')}, but line {first} has {width}. Correct "
                "this line; a field that contains the separator must be in quotation marks."
            )


def _place(source: Source, dialect: _Dialect, columns: list[str], column: str, wrong: Callable[[str], bool]) -> str:
    """Return the line and the column of the first value for which ``wrong`` is true."""
    rows = _numbered(source, dialect)
    if dialect.header:
        next(rows)
    missing = {"", "nan", "NaN", "NA", "N/A", "n/a", "NULL", "null", "#N/A", "<NA>", *_MISSING}
    for number, row in rows:
        place = columns.index(column) + len(row) - len(columns)  # a row can begin with its name
        value = row[place].strip() if place < len(row) else ""
        if dialect.decimal == ",":
            value = value.replace(",", ".")
        if value not in missing and wrong(value):
            return f"line {number}, column {column!r}"
    return f"column {column!r}"


def _found(frame: Any, dialect: _Dialect) -> str:
    """Return a sentence about what was detected."""
    names = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", r"\s+": "spaces"}
    parts = [f"separated by {names[dialect.separator]}", "with a header" if dialect.header else "without a header"]
    if dialect.decimal == ",":
        parts.append("with decimal commas")
    if dialect.encoding == _OLD_ENCODING:
        parts.append("in the encoding Windows-1252, because it is not UTF-8")
    rows, width = frame.shape
    return f"Read {plural(rows, 'row')} and {plural(width, 'column')}, {', '.join(parts)}."


FORMAT = Format("CSV", (".csv", ".tsv", ".txt", ".tab"), b"", read, write)
