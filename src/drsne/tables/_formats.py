"""The formats of files, how they are recognised, and the file or stream that is read."""

from __future__ import annotations

import io
import os
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
    # Returns the number of bytes of memory that reading takes, or None if the file does not tell.
    estimate: Callable[[Source, Mapping[str, Any]], int | None]
    # Raises an ImportError if a package that writing needs is missing.
    check_packages: Callable[[], object] | None = None
    is_text: bool = False  # text can be compressed with gzip


class Content(NamedTuple):
    """What a file holds, before the columns are chosen: a data frame, or a matrix with or without names."""

    values: Any
    notes: tuple[str, ...] = ()  # sentences about what was found
    index: Any = None  # names of the rows
    index_name: str | None = None  # what the names of the rows are called
    columns: Any = None  # names of the columns of a matrix
    others: Mapping[str, Any] = {}  # further columns of a matrix, such as labels
    place: Callable[[str, Callable[[str], bool]], str] | None = None  # says where a column first has such a value
    decimal: str = "."  # decimal sign of numbers that are stored as text
    document: Any = None  # the object that the file holds, if it holds more than a table


class Source:
    """A file, or a stream: standard input for ``-``, or a pipe such as ``/dev/fd/63``.

    A stream can be read only once. Its contents are therefore kept, and an object can be opened several times.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._is_stdin = str(path) == "-"
        is_pipe = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
        self.is_stream = self._is_stdin or is_pipe
        self.name = "standard input" if self._is_stdin else str(path)

    def check(self) -> None:
        """Raise an error unless the file exists, can be read and is not empty."""
        if not self.is_stream and self.path.is_dir():
            raise TableError(f"{self.name} is a folder. Pass one of the files in it.")
        if not os.path.exists(self.path) and self.path.is_symlink():
            raise TableError(
                f"{self.name} is a symbolic link to {os.readlink(self.path)}, which leads to no file. Mend the link, "
                "or pass the file itself."
            )
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
        return sys.stdin.buffer.read() if self._is_stdin else self.path.read_bytes()

    @property
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
    if named is None:
        named = by_extension(source.path)
    if named is None and source.is_stream:
        named = found or "csv"
    if named is None:
        _refuse_others(source)
        if uncompressed(source.path) is not None:
            raise TableError(f"{source.name} is compressed, and only text files can be. Unpack it with gunzip first.")
        raise TableError(f"{source.name} must end with one of {known_extensions()}. Rename it, or pass --format.")
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
    name = path.name.lower()
    for each in FORMATS:
        known = FORMATS.load(each)
        if (name.removesuffix(".gz") if known.is_text else name).endswith(known.extensions):
            return each
    return None


def uncompressed(path: Path) -> Path | None:
    """Return the name of a file without .gz if it has a format that is not compressed, or None."""
    if path.suffix.lower() != ".gz" or by_extension(path) is not None or by_extension(path.with_suffix("")) is None:
        return None
    return path.with_suffix("")


def known_extensions(which: Callable[[Format], object] = bool) -> str:
    """Return the extensions of the formats for which ``which`` is true."""
    known = [FORMATS.load(name) for name in FORMATS]
    return ", ".join(extension for each in known if which(each) for extension in each.extensions)


def _begins(source: Source, name: str) -> bool:
    begins = source.start.startswith(FORMATS.load(name).magic)
    return begins and (name != "npz" or b".npy" in source.start)  # other ZIP archives begin in the same way


def _refuse_others(source: Source) -> None:
    for magic, what in _OTHERS.items():
        if source.start.startswith(magic):
            raise TableError(f"{source.name} is {what}.")


def _similar(path: Path) -> str:
    """Return a sentence that names a file with a similar name, or nothing."""
    from drsne.checks import did_you_mean

    try:
        hint = did_you_mean(path.name, [each.name for each in path.absolute().parent.iterdir()])
    except OSError:
        return ""
    return f" {hint}" if hint else ""
