"""The file or stream that is read, and what it holds."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from drsne.checks import did_you_mean

_START = 512  # number of bytes from which a format is recognised


class TableError(ValueError):
    """An error about a file: what is wrong, where, and what to do."""


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

    @property
    def has_names(self) -> bool:
        """Return whether the columns have names."""
        return self.columns is not None or hasattr(self.values, "iloc")

    @property
    def names(self) -> list[str]:
        """Return the names of the columns, which are x1, x2 and so on if the file has none."""
        if not self.has_names:
            return [f"x{place + 1}" for place in range(self.values.shape[1])]
        return [str(each) for each in (self.values.columns if self.columns is None else self.columns)]


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
            folder = self.path.absolute().parent
            names = os.listdir(folder) if folder.is_dir() and os.access(folder, os.R_OK) else []
            near = did_you_mean(self.path.name, names)
            raise TableError(f"{self.name} does not exist. {near}{' ' * bool(near)}Check the name and the folder.")
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


def reason(error: BaseException) -> str:
    """Return the message of an error of another package as part of a sentence."""
    return " ".join(str(error).split())[:200].rstrip(".")
