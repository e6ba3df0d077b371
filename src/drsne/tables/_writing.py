"""Writing of columns, and checks of outputs before any work is done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drsne.replacing import replacing
from drsne.tables._formats import FORMATS, TableError, by_extension


def check_output(path: Path, *, force: bool, table: bool = False, extensions: tuple[str, ...] = ()) -> None:
    """Raise an error if a file cannot be written, or exists and ``force`` is False.

    A ``table`` must have the extension of a format that can be written. Other files must have one of ``extensions``,
    if any are given.
    """
    if table:
        named = by_extension(path)
        if named is None:
            known = [each for name in FORMATS for each in FORMATS.load(name).extensions]
            raise TableError(f"{path} must end with one of {', '.join(known)}. Choose another name.")
    if extensions and not path.name.lower().endswith(extensions):
        raise TableError(f"{path} must end with {' or '.join(extensions)}. Choose another name.")
    folder = path.absolute().parent
    if path.is_dir():
        raise TableError(f"{path} is a folder. Pass the name of a file.")
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: the folder {folder} does not exist. Create it first.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"{path} cannot be written: there is no permission to write to {folder}.")
    if path.exists() and not force:
        raise TableError(f"{path} exists already. Choose another name, or pass --force to replace it.")


def write(path: Path, columns: Mapping[str, Any], *, force: bool = False) -> None:
    """Write columns to a file whose format follows from its extension.

    Parameters
    ----------
    path : path
        The file.
    columns : mapping of str to array of shape (n_rows,)
        The columns by their names.
    force : bool, default=False
        Whether to replace an existing file.
    """
    check_output(path, force=force, table=True)
    written = FORMATS.load(by_extension(path)).write
    assert written is not None
    with replacing(path) as temporary:
        written(temporary, columns)
