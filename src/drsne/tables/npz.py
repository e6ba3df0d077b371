"""NumPy archives with several arrays, and sparse matrices of SciPy."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drsne.tables._formats import Content, Format, Source, TableError
from drsne.tables._table import listed, plural
from drsne.tables._values import texts
from drsne.tables.npy import Header, found, header_of, of_array, of_columns, unreadable

_USUAL = ("X", "data", "x", "arr_0", "embedding")  # names that people give to the matrix
_SPARSE = {"format", "shape", "data"}  # arrays that scipy.sparse.save_npz writes for every format
_ERRORS = (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a matrix of an archive. One-dimensional arrays of the same length are further columns.

    Without a matrix, one-dimensional arrays of one length are the columns of a table. Arrays of Python objects are
    left out.
    """
    headers = _headers(source)
    wanted = options.get("array")
    if wanted is None and headers.keys() >= _SPARSE:
        return _sparse(source)
    name = _chosen(headers, wanted, source.name)
    notes = _left_out(headers, wanted)
    if name is None:
        content = of_columns(_loaded(source, _columns(headers)))
        return content._replace(notes=content.notes + notes)
    length = headers[name].shape[:1]
    others = [each for each in headers if _is_column(headers[each]) and headers[each].shape == length]
    described = "columns" in headers and not headers["columns"].dtype.hasobject
    arrays = _loaded(source, {name, *others, *(["columns"] if described else [])})
    content = of_array(arrays[name], source.name)
    content = content._replace(notes=content.notes + notes, others={each: arrays[each] for each in others})
    names = arrays.get("columns")
    if names is not None and names.shape == headers[name].shape[1:] and names.dtype.kind == "U":
        further = {each: values for each, values in content.others.items() if each != "columns"}
        return content._replace(columns=names.tolist(), others=further)
    return content


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of memory that reading an archive takes."""
    headers = _headers(source)
    wanted = options.get("array")
    if wanted is None and headers.keys() >= _SPARSE:
        return sum(header.memory for header in headers.values())
    name = _chosen(headers, wanted, source.name)
    return sum(header.memory for each, header in headers.items() if name in (None, each))


def _headers(source: Source) -> dict[str, Header]:
    headers = {}
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            for member in archive.namelist():
                if member.endswith(".npy"):
                    with archive.open(member) as array:
                        headers[member.removesuffix(".npy")] = header_of(array)
    except _ERRORS as error:
        raise unreadable(source, error) from error
    return headers


def _loaded(source: Source, names: Collection[str]) -> dict[str, Any]:
    try:
        with np.load(source.readable(), allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except _ERRORS as error:
        raise unreadable(source, error) from error


def _sparse(source: Source) -> Content:
    """Read a matrix that scipy.sparse.save_npz has written. SciPy does not execute code from the file."""
    import scipy.sparse as sp

    try:
        loaded = sp.load_npz(source.readable())
        if hasattr(loaded, "check_format"):
            loaded.check_format(full_check=True)
        matrix = sp.csr_matrix(loaded)
    except (*_ERRORS, IndexError, TypeError) as error:
        raise unreadable(source, error) from error
    if matrix.dtype.kind not in "biuf":
        raise TableError(f"{source.name} holds values of type {matrix.dtype}. Pass a matrix of numbers.")
    if not all(matrix.shape):
        raise TableError(f"{source.name} holds a matrix of shape {matrix.shape}, without values. Pass numbers.")
    matrix.sum_duplicates()
    return Content(matrix, (f"{found(matrix)[:-1]}, as a sparse matrix.",))


def _is_column(header: Header) -> bool:
    return len(header.shape) == 1 and not header.dtype.hasobject and not header.dtype.names


def _columns(headers: Mapping[str, Header]) -> list[str]:
    """Return the names of the arrays if they are columns of equal length, apart from Python objects."""
    arrays = {name: header for name, header in headers.items() if not header.dtype.hasobject}
    lengths = {header.shape for header in arrays.values()}
    return list(arrays) if len(lengths) == 1 and all(map(_is_column, arrays.values())) else []


def _left_out(headers: Mapping[str, Header], wanted: str | None) -> tuple[str, ...]:
    """Return a sentence about arrays of Python objects, if there are any besides the one that the user wants."""
    objects = [name for name, header in headers.items() if header.dtype.hasobject and name != wanted]
    return (f"Left out {plural(len(objects), 'array')} of Python objects: {listed(objects)}.",) if objects else ()


def _chosen(headers: Mapping[str, Header], wanted: str | None, source: str) -> str | None:
    """Return the name of the matrix, or None if the arrays are columns."""
    if wanted is not None:
        if wanted not in headers:
            raise TableError(f"--array must name an array of {source}; got {wanted!r}. It has {listed(list(headers))}.")
        return wanted
    matrices = [name for name, header in headers.items() if len(header.shape) == 2 and not header.dtype.hasobject]
    usual = [name for name in _USUAL if name in matrices]
    if len(matrices) == 1 or usual:
        return usual[0] if usual else matrices[0]
    if matrices:
        raise TableError(f"{source} has several matrices: {listed(matrices)}. Choose one with --array {matrices[0]}.")
    if len(_columns(headers)) > 1:
        return None
    if headers and all(header.dtype.hasobject for header in headers.values()):
        raise TableError(
            f"{source} holds only Python objects, which can run code when they are read. Save arrays of numbers."
        )
    raise TableError(
        f"{source} has no matrix, only {listed(list(headers))}. Pass an archive with a matrix of numbers, or with "
        "several columns of equal length."
    )


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write every column as an array. Objects are written as text."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:  # numpy.savez does not accept every name
        for name, values in columns.items():
            array = np.asarray(values)
            array = texts(array) if array.dtype.kind == "O" else array
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


FORMAT = Format("NPZ", (".npz",), b"PK\x03\x04", read, write, estimate)
