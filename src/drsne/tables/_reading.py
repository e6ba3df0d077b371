"""The function ``read``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from drsne.tables._formats import FORMATS, Source, TableError, format_of
from drsne.tables._table import Table, selected


def read(
    path: str | Path,
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
    path : str or path
        The file, or "-" for standard input.
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
        Whether the first line of a text file has the names of the columns. If None, this is detected.

    Returns
    -------
    Table
        The numbers, and what else the file says about its rows.

    Raises
    ------
    TableError
        If the file cannot be read as a table of finite numbers.
    """
    source = Source(path)
    source.check()
    named = format_of(source, format)
    options = {"array": array, "use_rep": use_rep, "header": header}
    try:
        content = FORMATS.load(named).read(source, options)
    except MemoryError as error:
        raise TableError(
            f"{source.name} is too large for the memory of this machine. Pass a sample of its rows."
        ) from error
    return selected(content, source.name, label=label, drop=drop, wanted=columns, skip=skip_missing)
