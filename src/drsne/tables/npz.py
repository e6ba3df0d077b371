"""NumPy archives with several arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._table import listed
from drsne.tables.npy import of_array, unreadable

_USUAL = ("X", "data", "x", "arr_0", "embedding")  # names that people give to the matrix


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a matrix of an archive. One-dimensional arrays of the same length are further columns."""
    try:
        with np.load(source.readable(), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise unreadable(source, error) from error
    name = _chosen(arrays, options.get("array"), source.name)
    content = of_array(arrays[name], source.name)
    own = arrays[name]
    others = {key: values for key, values in arrays.items() if values.shape == (len(own),)}
    names = arrays.get("columns")
    if names is not None and names.shape == (own.shape[-1],) and names.dtype.kind == "U":
        return content._replace(columns=names.tolist(), others={k: v for k, v in others.items() if k != "columns"})
    return content._replace(others=others)


def _chosen(arrays: Mapping[str, Any], wanted: str | None, source: str) -> str:
    if wanted is not None:
        if wanted not in arrays:
            raise TableError(f"--array must name an array of {source}; got {wanted!r}. It has {listed(list(arrays))}.")
        return wanted
    matrices = [name for name, values in arrays.items() if values.ndim == 2]
    usual = [name for name in _USUAL if name in matrices]
    if len(matrices) == 1 or usual:
        return usual[0] if usual else matrices[0]
    if not matrices:
        raise TableError(f"{source} has no matrix, only {listed(list(arrays))}. Pass an archive with a matrix.")
    raise TableError(f"{source} has several matrices: {listed(matrices)}. Choose one with --array {matrices[0]}.")


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write every column as an array. Text that is not of one type is written as text."""
    arrays = {name: values.astype(str) if values.dtype == object else values for name, values in columns.items()}
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


FORMAT = Format("NPZ", (".npz",), b"PK\x03\x04", read, write)
