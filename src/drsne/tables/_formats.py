"""The formats of files, how they are recognised, and the file or stream that is read."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from drsne.registry import Registry

_START = 512  # number of bytes from which a format is recognised


class TableError(ValueError):
    """An error about a file: what is wrong, where, and what to do."""


class Format(NamedTuple):
    """A format: its title, its extensions, how its files begin, and functions that read and write it.

    ``read`` takes a :class:`Source` and a mapping of options, and returns a :class:`Content`. ``write`` takes a path
    and a mapping from names of columns to values. It is None for formats that are only read.
    """

    title: str
    extensions: tuple[str, ...]
    magic: bytes
    read: Callable[[Source, Mapping[str, Any]], Content]
    write: Callable[[Path, Mapping[str, Any]], None] | None


class Content(NamedTuple):
    """What a file holds, before the columns are chosen: a data frame, or a matrix with or without names."""

    values: Any
    notes: tuple[str, ...] = ()  # sentences about what was found
    index: Any = None  # names of the rows
    columns: Any = None  # names of the columns of a matrix
    others: Mapping[str, Any] = {}  # further columns of a matrix, such as labels
    place: Callable[[str, Callable[[str], bool]], str] | None = None  # says where a column first has such a value
    document: Any = None  # the object that the file holds, if it holds more than a table


class Source:
    """A file, or standard input for ``-``."""

    def __init__(self, path: str | Path) -> None:
        self.is_stream = str(path) == "-"
        self.path = Path(path)
        self.name = "standard input" if self.is_stream else str(path)

    def check(self) -> None:
        """Raise an error unless the file exists, can be read and is not empty."""
        if not self.is_stream and self.path.is_dir():
            raise TableError(f"{self.name} is a folder. Pass one of the files in it.")
        if not self.is_stream and not self.path.exists():
            near = _similar(self.path)
            raise TableError(f"{self.name} does not exist.{near} Check the name and the folder.")
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
        return sys.stdin.buffer.read()

    @cached_property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._piped) if self.is_stream else self.path.stat().st_size

    def open(self) -> BinaryIO:
        """Return a stream from the first byte."""
        return io.BytesIO(self._piped) if self.is_stream else self.path.open("rb")

    def readable(self) -> Any:
        """Return what other packages can read: the path, or a stream."""
        return self.open() if self.is_stream else self.path


FORMATS: Registry[Format] = Registry("drsne.tables", "FORMAT", parameter="format")
# Files that people pass by mistake, by their first bytes.
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; save the sheet as CSV, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"%PDF": "a PDF document; export the table as CSV",
    b"\x89PNG": "a picture (PNG); pass the table of numbers",
    b"\xff\xd8\xff": "a picture (JPEG); pass the table of numbers",
    b"DRSNEmod": "a model file of drsne; pass the data, or use drsne transform",
    b"\x80\x04\x95": "a Python pickle, which can run code when it is read; save the table as CSV or Parquet",
    b"\x80\x05\x95": "a Python pickle, which can run code when it is read; save the table as CSV or Parquet",
    b"BZh": "compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "compressed with xz; unpack it first",
}


def format_of(source: Source, named: str | None = None) -> str:
    """Return the name of the format of a source, and raise an error if its contents are of another format."""
    found = next((name for name in FORMATS if FORMATS.load(name).magic and _begins(source, name)), None)
    if named is None and source.is_stream:
        named = found or "csv"
    if named is None:
        named = by_extension(source.path)
    if named is None:
        _refuse_others(source)
        raise TableError(f"{source.name} must end with one of {_extensions()}. Rename it, or pass --format.")
    if found != named and (found or FORMATS.load(named).magic):
        _refuse_others(source)
        what = f"a {FORMATS.load(found).title} file" if found else f"not a {FORMATS.load(named).title} file"
        way = f"pass --format {found}" if found else "check how it was made"
        raise TableError(f"{source.name} is {what}, although it is named as {FORMATS.load(named).title}: {way}.")
    if not found:
        _refuse_others(source)
    return named


def by_extension(path: Path) -> str | None:
    """Return the name of the format of files with this extension, or None."""
    name = path.name.lower().removesuffix(".gz")
    return next((each for each in FORMATS if name.endswith(FORMATS.load(each).extensions)), None)


def _begins(source: Source, name: str) -> bool:
    begins = source.start.startswith(FORMATS.load(name).magic)
    return begins and (name != "npz" or b".npy" in source.start)  # other ZIP archives begin in the same way


def _refuse_others(source: Source) -> None:
    for magic, what in _OTHERS.items():
        if source.start.startswith(magic):
            raise TableError(f"{source.name} is {what}.")


def _extensions() -> str:
    return ", ".join(extension for name in FORMATS for extension in FORMATS.load(name).extensions)


def _similar(path: Path) -> str:
    """Return a sentence that names a file with a similar name, or nothing."""
    from drsne.checks import did_you_mean

    try:
        hint = did_you_mean(path.name, [each.name for each in path.absolute().parent.iterdir()])
    except OSError:
        return ""
    return f" {hint}" if hint else ""
