"""How a text file is written: its encoding, separator, decimal sign and header, detected from its first lines."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from drsne.tables._formats import Source, TableError
from drsne.tables._values import number

SPACES = r"\s+"  # any number of spaces or tabs
OLD_ENCODING = "cp1252"  # what most programs write that do not write UTF-8
# Missing values, in addition to those of pandas, and together with them.
MISSING = ("?", "-", ".", "none", "None", "NONE", "na", "Na", "missing")
ALL_MISSING = {"", "nan", "NaN", "NA", "N/A", "n/a", "NULL", "null", "#N/A", "<NA>", *MISSING}
_SAMPLE = 1 << 18  # number of bytes from which the dialect is detected, if they have enough lines
_LONGEST = 1 << 26  # largest number of bytes that are read to find enough lines
_LINES = 100  # largest number of lines that are compared
_SEPARATORS = (",", "\t", ";", "|")  # the first of equals is chosen
_GZIP = b"\x1f\x8b"
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


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


def stream_of(source: Source) -> Any:
    """Return a stream of the bytes of a text file, which can be compressed."""
    return gzip.open(source.readable()) if source.start.startswith(_GZIP) else source.open()


def estimated_size(source: Source) -> int | None:
    """Return the bytes of memory for the text of a file, and for its fields as numbers, in a data frame and a matrix.

    The size of a compressed file is known only up to a multiple of 4 GiB, so that the estimate can be too low.
    """
    size = source.size
    if source.start.startswith(_GZIP):
        with source.open() as stream:
            stream.seek(-min(4, size), 2)
            size = max(size, int.from_bytes(stream.read(), "little"))
    try:
        with stream_of(source) as stream:
            sample = stream.read(_SAMPLE)
    except (OSError, EOFError, zlib.error):
        return None
    separators = max(sample.count(mark) for mark in (b",", b"\t", b";", b"|")) or len(sample.split())
    fields = size * (separators + sample.count(b"\n")) / max(1, len(sample))
    return int(size + 2 * 8 * fields)


def detect(source: Source, header: bool | None) -> Dialect:
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
    found = _has_header(rows, decimal)
    names = None
    if header is not False and (not found or all(_is_number(value, decimal) for value in rows[0])):
        names = _commented_names(last_comment, separator, rows[0], decimal)
    header = names is None and (found if header is None else header)
    row_names = header and not rows[0][0].strip() and len(rows[0]) > 1
    longer = [row for row in rows[1:] if len(row) == len(rows[0]) + 1 and not row[-1].strip()]
    trailing = header and len(rows) > 1 and len(longer) == len(rows) - 1
    return Dialect(encoding, separator, decimal, comments, header, names, row_names, trailing)


def split(lines: Iterable[str], separator: str) -> Any:
    """Return an iterator over the fields of lines, with the attribute ``line_num`` for the number of lines read."""
    if separator == SPACES:
        lines = (" ".join(line.split()) for line in lines)
        return csv.reader(lines, delimiter=" ")
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _first_lines(source: Source) -> tuple[str, list[str]]:
    """Return the encoding and the first lines, without one that may be incomplete."""
    try:
        with stream_of(source) as stream:
            sample = part = stream.read(_SAMPLE)
            while len(part) == _SAMPLE and sample.count(b"\n") < 3 and len(sample) < _LONGEST:
                part = stream.read(_SAMPLE)
                sample += part
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
        encoding = encoding if error.start > len(sample) - 4 else OLD_ENCODING
        text = sample.decode(encoding, errors="ignore")
    lines = text.splitlines()
    return encoding, lines[:-1] if len(part) == _SAMPLE and len(lines) > 1 else lines


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(split(lines, separator))
    except csv.Error:
        return [line.split() if separator == SPACES else line.split(separator) for line in lines]


def _separator(lines: list[str]) -> str:
    """Return the separator with the largest share of numbers among the fields and, among equals, the most fields.

    Spaces occur in names. They are the separator only if they are better than commas, or if no other one occurs.
    """
    fits = {each: _fit(_rows(lines, each), each) for each in (*_SEPARATORS, SPACES)}
    fits = {each: fit for each, fit in fits.items() if fit[2] > 1}
    spaces = fits.pop(SPACES, None)
    best = max(fits, key=fits.__getitem__, default=None)
    if spaces is not None and "\t" not in fits and all(len(line.split()) > 1 for line in lines):
        return SPACES if best is None or spaces[0] > fits[best][0] else best
    return best or ","


def _fit(rows: list[list[str]], separator: str) -> tuple[float, float, int]:
    """Return how well a separator fits: the share of numbers times that of lines of equal width, and that width."""
    widths = [len(row) for row in rows]
    width = max(set(widths), key=lambda each: (widths.count(each), each))
    equal = widths.count(width) / len(widths)
    values = [value.strip() for row in rows[1:] or rows for value in row]
    values = [value for value in values if value not in ALL_MISSING]
    signs = "." if separator == "," else ".,"
    numbers = sum(any(_is_number(value, sign) for sign in signs) for value in values)
    return numbers / max(1, len(values)) * equal, equal, width


def _decimal_commas(rows: list[list[str]]) -> bool:
    """Return whether more numbers are written with a decimal comma than with a decimal point."""
    values = [value.strip() for row in rows[1:] or rows for value in row]
    commas = sum("," in value and _is_number(value, ",") for value in values)
    points = sum("." in value and _is_number(value, ".") for value in values)
    return commas > points


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first row has names.

    It has if no column of numbers begins with a number, or if it counts the columns.
    """
    first, *others = rows
    if not others:
        return not any(_is_number(value, decimal) for value in first)
    names = [value.strip() for value in first]
    names = names[1:] if not names[0] else names  # the column of row names has no name
    counted = [str(place) for place in range(len(names) + 1)]
    if names in (counted[:-1], counted[1:]):
        return True
    return not any(
        _is_number(value, decimal)
        and all(
            _is_number(row[place], decimal)
            for row in others
            if place < len(row) and row[place].strip() not in ALL_MISSING
        )
        for place, value in enumerate(first)
    )


def _commented_names(comment: str, separator: str, first: list[str], decimal: str) -> list[str] | None:
    """Return the names of the columns in a line that begins with "#", as numpy.savetxt writes it, or None."""
    names = [name.strip() for row in _rows([comment.lstrip("#").strip()], separator) for name in row]
    first = first if first[-1].strip() else first[:-1]  # a row can end with a separator
    if len(names) != len(first) or len(set(names)) < len(names):
        return None
    return None if any(not name or _is_number(name, decimal) for name in names) else names


def _is_number(value: str, decimal: str) -> bool:
    return number(value, decimal) is not None
