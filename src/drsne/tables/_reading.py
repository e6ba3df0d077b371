"""The functions that read a file, and the check that a file fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from drsne.tables._formats import FORMATS, Content, Format, Source, TableError, format_of
from drsne.tables._table import Table, selected

_SMALL = 1 << 26  # number of bytes below which the free memory is not checked


def read(
    path: str | Path | Source,
    *,
    format: str | None = None,
    label: str | None = None,
    drop: Iterable[str] = (),
    columns: list[str] | None = None,
    skip_missing: bool = False,
    array: str | None = None,
    use_rep: str | None = None,
    header: bool | None = None,
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str, path or Source
        The file, or "-" for standard input. A stream that was read before must be passed as the same Source.
    format : str, default=None
        Name of the format, such as "csv". If None, it follows from the extension or, for standard input, from the
        contents.
    label : str, default=None
        Name of a column to keep apart as the label.
    drop : iterable of str, default=()
        Names of columns to leave out.
    columns : list of str, default=None
        Names of the columns to use, in this order. If None, all columns of numbers are used.
    skip_missing : bool, default=False
        Whether to leave out rows with missing values. If False, missing values are an error.
    array : str, default=None
        Name of the array in an NPZ file.
    use_rep : str, default=None
        Name of the representation in an H5AD file: "X" or a key of ``obsm``.
    header : bool, default=None
        Whether the first line of a text file, or the last line that begins with "#" before the table, has the names of
        the columns. If None, this is detected.

    Returns
    -------
    Table
        The numbers, and what else the file says about its rows.

    Raises
    ------
    TableError
        If the file cannot be read as a table of finite numbers, or does not fit into memory.
    """
    source = path if isinstance(path, Source) else Source(path)
    content = read_content(source, format=format, array=array, use_rep=use_rep, header=header)
    with _memory_of(source):
        return selected(content, source.name, label=label, drop=drop, wanted=columns, skip=skip_missing)


def read_content(
    source: Source,
    *,
    format: str | None = None,
    array: str | None = None,
    use_rep: str | None = None,
    header: bool | None = None,
) -> Content:
    """Return all that a file holds, before columns are chosen. The parameters are those of :func:`read`."""
    source.check()
    found = FORMATS.load(format_of(source, format))
    options = {"array": array, "use_rep": use_rep, "header": header}
    _refuse_too_large(source, found, options)
    with _memory_of(source):
        return found.read(source, options)


@contextmanager
def _memory_of(source: Source) -> Iterator[None]:
    """Turn a lack of memory into an error about the file."""
    try:
        yield
    except MemoryError as error:
        raise TableError(
            f"{source.name} is too large for the memory of this machine. Pass a sample of its rows."
        ) from error


def _refuse_too_large(source: Source, found: Format, options: Mapping[str, Any]) -> None:
    """Raise an error if reading a file will need more memory than is free."""
    needed = found.estimate(source, options)
    if needed is None or needed < _SMALL:
        return
    from drsne.estimators import memory  # imports compiled code, which small files do not need

    free = memory.available()
    if free is not None and needed > free:
        raise TableError(
            f"{source.name} needs about {needed / 1e9:.1f} GB of memory to be read, but only {free / 1e9:.1f} GB are "
            "free. Pass a file with a sample of its rows, or with only the columns that you need."
        )
