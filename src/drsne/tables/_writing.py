"""Writing of columns, and checks of outputs before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from drsne.io.writing import replacing
from drsne.tables._formats import FORMATS, Format, TableError, by_extension, known_extensions, uncompressed
from drsne.tables._table import Table


def check_output(
    path: Path, *, force: bool, table: bool = False, extensions: tuple[str, ...] = (), h5ad: bool = False
) -> None:
    """Raise an error if a file cannot be written, or exists and ``force`` is False.

    Parameters
    ----------
    path : path
        The file.
    force : bool
        Whether an existing file may be replaced.
    table : bool, default=False
        Whether the file is a table. It must then have the extension of a format that can be written, and the packages
        that write this format must be installed.
    extensions : tuple of str, default=()
        The extensions that a file other than a table may have. If empty, any extension is allowed.
    h5ad : bool, default=False
        Whether the caller writes H5AD files itself. If False, :func:`write` must be able to write the table.
    """
    if table:
        packages = _written_format(path, h5ad=h5ad).check_packages
        if packages is not None:
            packages()
    if extensions and not path.name.lower().endswith(extensions):
        raise TableError(f"{path} must end with {' or '.join(extensions)}. Choose another name.")
    folder = path.absolute().parent
    if path.is_dir():
        raise TableError(f"{path} is a folder. Pass the name of a file.")
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: the folder {folder} does not exist. Create it first.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"{path} cannot be written: there is no permission to write to {folder}.")
    if os.path.lexists(path) and not force:  # also a symbolic link that leads to no file
        raise TableError(f"{path} exists already. Choose another name, or pass --force to replace it.")


def _written_format(path: Path, *, h5ad: bool) -> Format:
    """Return the format that a table is written in, or raise an error if it cannot be written."""
    named = by_extension(path)
    if named is None:
        plain = uncompressed(path)
        if plain is not None:
            raise TableError(
                f"{path} must not end with .gz: only text ({known_extensions(_is_text)}) is compressed. Write {plain} "
                "instead."
            )
        known = known_extensions() if h5ad else known_extensions(_is_written)
        raise TableError(f"{path} must end with one of {known}. Choose another name.")
    found = FORMATS.load(named)
    if found.write is None and not (h5ad and named == "h5ad"):
        raise TableError(
            f"{path} must not be an {found.title} file, because this output is a plain table. Choose a name that ends "
            f"with one of {known_extensions(_is_written)}."
        )
    return found


def _is_written(found: Format) -> bool:
    return found.write is not None


def _is_text(found: Format) -> bool:
    return found.is_text


def row_names(table: Table) -> dict[str, NDArray[Any]]:
    """Return the column of an output that identifies the rows of a table.

    It has the names of the rows, and is called as in the input, or "name". If there are no names, and rows were left
    out, it has the numbers of the rows, and is called "row". Otherwise there is no such column.
    """
    if table.index is not None:
        return {table.index_name or "name": table.index}
    if len(table.rows) and int(table.rows[-1]) != len(table.rows) - 1:
        return {"row": table.rows}
    return {}


def check_columns(table: Table, label: str | None, made: Iterable[str]) -> None:
    """Raise an error if two columns of an output would have the same name.

    Parameters
    ----------
    table : Table
        The table whose rows the output describes.
    label : str or None
        Name of the column with the label, which is part of the output.
    made : iterable of str
        Names of the columns that are computed, such as "drsne1".
    """
    parts = [(name, "the names or numbers of the rows") for name in row_names(table)]
    parts += [(name, "a column of the result") for name in made]
    parts += [] if label is None else [(label, "the label")]
    taken: dict[str, str] = {}
    for name, what in parts:
        if name in taken:
            raise TableError(
                f"The output cannot have two columns called {name!r}, {taken[name]} and {what}. Rename the column "
                f"{name!r} of the input."
            )
        taken[name] = what


def write(path: Path, columns: Mapping[str, Any], *, force: bool = False) -> None:
    """Write columns to a file whose format follows from its extension.

    Parameters
    ----------
    path : path
        The file.
    columns : mapping of str to array of shape (n_rows,)
        The columns by their names. An NPY file has only those of floating-point numbers, in this order.
    force : bool, default=False
        Whether to replace an existing file.
    """
    check_output(path, force=force, table=True)
    written = _written_format(path, h5ad=False).write
    assert written is not None
    with replacing(path) as temporary:
        written(temporary, columns)
