"""The formats of tables: how they are recognised, and functions that read and write them."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from drsne.checks import choice, package
from drsne.io import text
from drsne.io.models import is_model
from drsne.io.sources import Content, Source, TableError, column_of, listed, plain, plural

_USUAL = ("X", "data", "x", "arr_0", "embedding")  # names that people give to the matrix of an NPZ file
_SPARSE = {"format", "shape", "data"}  # arrays that scipy.sparse.save_npz writes for every format
# Files that people pass by mistake, by their first bytes.
_PICKLE = "a Python pickle, which can run code when it is read; save the table as CSV or Parquet"
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; save the sheet as CSV, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"%PDF": "a PDF document; export the table as CSV",
    b"\x89PNG": "a picture (PNG); pass the table of numbers",
    b"\xff\xd8\xff": "a picture (JPEG); pass the table of numbers",
    b"\x80\x04\x95": _PICKLE,
    b"\x80\x05\x95": _PICKLE,
    b"BZh": "compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "compressed with xz; unpack it first",
}

Options = Mapping[str, Any]


class Format(NamedTuple):
    """A format of files."""

    title: str
    extensions: tuple[str, ...]
    magic: bytes  # how its files begin
    read: Callable[[Source, Options], Content]
    estimate: Callable[[Source, Options], int]  # the least memory of reading; may raise any error for a damaged file
    write: Callable[[Path, Mapping[str, Any]], None] | None = None  # None for formats that are only read
    packages: tuple[str, ...] = ()
    is_text: bool = False  # text is written without other packages

    def check_packages(self) -> None:
        """Raise an error if a package is missing."""
        for name in self.packages:
            package(name, f"{self.title} files need", "anndata" if self.title == "H5AD" else "files")


class Document(NamedTuple):
    """An AnnData object, and what is embedded of it."""

    adata: Any
    representation: Any


class _Header(NamedTuple):
    """The shape and the type of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def memory(self) -> int:
        """The bytes of the array, and of a copy in double precision if it does not hold floating-point numbers."""
        return math.prod(self.shape) * (self.dtype.itemsize + (0 if self.dtype.kind == "f" else 8))

    @property
    def is_column(self) -> bool:
        return len(self.shape) == 1 and not self.dtype.hasobject and not self.dtype.names


def _header_of(stream: IO[bytes]) -> _Header:
    first = np.lib.format.read_magic(stream) == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    return _Header(shape, dtype)


@contextmanager
def _undamaged(source: Source, title: str) -> Iterator[None]:
    """Turn the errors of other packages about a file into one that says what to do. A damaged file can raise any."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        if "pickle" in str(error) or "Object arrays" in str(error):
            raise TableError(
                f"{source.name} holds Python objects, which can run code when they are read. Save arrays of numbers, "
                "such as X.astype(float)."
            ) from error
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise TableError(
            f"{source.name} is damaged or not a valid {title} file ({reason}). Copy it or write it again."
        ) from error


def _content(values: Any, more: str = "") -> Content:
    """Return a matrix or a data frame as a table, with a note."""
    rows, width = values.shape
    return Content(values, (f"Read {plural(rows, 'row')} and {plural(width, 'column')}{more}.",))


def _frame_of(columns: Mapping[str, Any]) -> Content:
    """Return columns of equal length as a table."""
    return _content(package("pandas", "Arrays with named columns need", "files").DataFrame(dict(columns)))


def _matrix(array: Any, source: Source) -> Content:
    """Return an array as a table, or raise an error if it is not a matrix of numbers."""
    if array.dtype.names and array.ndim == 1:
        return _frame_of({each: array[each] for each in array.dtype.names})
    if array.ndim != 2 or not all(array.shape):
        raise TableError(
            f"{source.name} holds an array of shape {array.shape}. Pass a matrix of numbers with one row per sample; "
            "images can be flattened with X.reshape(len(X), -1)."
        )
    if array.dtype.kind not in "biuf":
        raise TableError(f"{source.name} holds values of type {array.dtype}. Pass an array of numbers.")
    return _content(array, ", as a sparse matrix" if hasattr(array, "nnz") else "")


def _read_npy(source: Source, options: Options) -> Content:
    """Read a NumPy file without executing code from it."""
    with _undamaged(source, "NumPy"):
        array = np.load(source.readable(), allow_pickle=False)
    return _matrix(array, source)


def _npy_memory(source: Source, options: Options) -> int:
    with source.open() as stream:
        return _header_of(stream).memory


def _write_npy(path: Path, columns: Mapping[str, Any]) -> None:
    """Write the columns of floating-point numbers, and no labels, so that columns of the map keep their places."""
    arrays = [np.asarray(values) for values in columns.values()]
    numbers = [values.astype(np.float64) for values in arrays if values.dtype.kind == "f"]
    if not numbers:
        raise TableError(f"{path.name} would be empty: there are no columns of floating-point numbers. Write CSV.")
    with path.open("wb") as stream:
        np.save(stream, np.column_stack(numbers), allow_pickle=False)


def _read_npz(source: Source, options: Options) -> Content:
    """Read a matrix with further columns, or one-dimensional arrays of one length. Python objects are left out."""
    headers, wanted = _headers(source), options.get("array")
    if wanted is None and headers.keys() >= _SPARSE:
        return _read_sparse(source)
    name = _chosen(headers, wanted, source.name)
    objects = [each for each, header in headers.items() if header.dtype.hasobject and each != wanted]
    notes = (f"Left out {plural(len(objects), 'array')} of Python objects: {listed(objects)}.",) if objects else ()
    shape = () if name is None else headers[name].shape
    lengths = (shape[:1], shape[1:])  # of columns with a value for each row, and of names of the columns
    needed = [each for each, header in headers.items() if header.is_column and (not shape or header.shape in lengths)]
    with _undamaged(source, "NumPy"), np.load(source.readable(), allow_pickle=False) as archive:
        arrays = {each: archive[each] for each in (*needed, *([] if name is None else [name]))}
    content = _frame_of(arrays) if name is None else _matrix(arrays.pop(name), source)
    if name is not None:
        names = arrays.get("columns")
        if names is not None and names.shape == shape[1:] and names.dtype.kind == "U":
            content = content._replace(columns=arrays.pop("columns").tolist())
        others = {each: values for each, values in arrays.items() if values.shape == shape[:1]}
        content = content._replace(others=others)
    return content._replace(notes=content.notes + notes)


def _npz_memory(source: Source, options: Options) -> int:
    headers, wanted = _headers(source), options.get("array")
    name = None if wanted is None and headers.keys() >= _SPARSE else _chosen(headers, wanted, source.name)
    return sum(header.memory for each, header in headers.items() if name in (None, each))


def _headers(source: Source) -> dict[str, _Header]:
    headers = {}
    with _undamaged(source, "NumPy"), source.open() as stream, zipfile.ZipFile(stream) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as array:
                    headers[member.removesuffix(".npy")] = _header_of(array)
    return headers


def _chosen(headers: Mapping[str, _Header], wanted: str | None, source: str) -> str | None:
    """Return the name of the matrix, or None if the arrays are columns of equal length, apart from Python objects."""
    if wanted is not None:
        if wanted not in headers:
            raise TableError(f"--array must name an array of {source}; got {wanted!r}. It has {listed(list(headers))}.")
        return wanted
    plain_arrays = {name: header for name, header in headers.items() if not header.dtype.hasobject}
    matrices = [name for name, header in plain_arrays.items() if len(header.shape) == 2]
    usual = [name for name in _USUAL if name in matrices]
    if len(matrices) == 1 or usual:
        return (usual or matrices)[0]
    if matrices:
        raise TableError(f"{source} has several matrices: {listed(matrices)}. Choose one with --array {matrices[0]}.")
    lengths = {header.shape for header in plain_arrays.values()}
    if len(plain_arrays) > 1 and len(lengths) == 1 and all(header.is_column for header in plain_arrays.values()):
        return None
    raise TableError(
        f"{source} has no matrix, only {listed(list(headers))}. Pass an archive with a matrix of numbers, or with "
        "several columns of equal length. Python objects are not read, because they can run code."
    )


def _read_sparse(source: Source) -> Content:
    """Read a matrix that scipy.sparse.save_npz has written. SciPy does not execute code from the file."""
    import scipy.sparse as sp

    with _undamaged(source, "NumPy"):
        loaded = sp.load_npz(source.readable())
        if hasattr(loaded, "check_format"):
            loaded.check_format(full_check=True)
        matrix = sp.csr_matrix(loaded)
        matrix.sum_duplicates()
    return _matrix(matrix, source)


def _write_npz(path: Path, columns: Mapping[str, Any]) -> None:
    """Write every column as an array. Objects are written as text."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:  # numpy.savez does not accept every name
        for name, values in columns.items():
            array = np.asarray(values)
            array = np.array([str(value) for value in plain(array)]) if array.dtype.kind == "O" else array
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def _read_frame(source: Source, options: Options) -> Content:
    """Read a Parquet or Feather file."""
    import pandas as pd

    is_parquet = source.start.startswith(b"PAR1")
    with _undamaged(source, "Parquet" if is_parquet else "Feather"):
        frame = (pd.read_parquet if is_parquet else pd.read_feather)(source.readable())
    if not len(frame):
        raise TableError(f"{source.name} has no rows. Pass a file with a table of numbers.")
    content, index = _content(frame), frame.index
    if isinstance(index, pd.RangeIndex):
        return content
    name = "/".join(str(each) for each in index.names if each is not None) or None
    if index.nlevels > 1:
        index = index.map(lambda parts: "/".join(map(str, parts)))
    # Names of rows are not measurements, even if they are floating-point numbers.
    return content._replace(index=index.to_numpy(object if index.dtype.kind == "f" else None), index_name=name)


def _frame_memory(source: Source, options: Options) -> int:
    """Return twice the size in double precision of a Parquet file, and at least that of a Feather file."""
    if not source.start.startswith(b"PAR1"):
        return 2 * source.size
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(source.readable())
    return 2 * 8 * int(metadata.num_rows) * int(metadata.num_columns)


def _write_frame(path: Path, columns: Mapping[str, Any]) -> None:
    """Write a Feather file, or a Parquet file if the extension says so."""
    import pandas as pd

    frame = pd.DataFrame(dict(columns))
    if by_extension(path) == "feather":
        frame.to_feather(path)
    else:
        frame.to_parquet(path, index=False)


def _read_h5ad(source: Source, options: Options) -> Content:
    """Read the representation of the cells, chosen as in :func:`drsne.tl.drsne`, and the columns of ``obs``."""
    import anndata

    from drsne.tl.fitting import MIN_CELLS, check_cells
    from drsne.tl.representation import choose

    if source.is_stream:
        raise TableError(f"An H5AD file cannot be read from {source.name}, which is a stream. Pass the name of a file.")
    with _undamaged(source, "H5AD"):
        adata = anndata.read_h5ad(source.path)
    check_cells(adata, MIN_CELLS)
    chosen = choose(adata, options.get("use_rep"), None)
    return Content(
        chosen.X,
        (f"Read {plural(adata.n_obs, 'cell')}; embedding {chosen.described}.",),
        index=np.asarray(adata.obs_names),
        index_name=None if adata.obs_names.name is None else str(adata.obs_names.name),
        columns=None if chosen.var_names is None else [str(each) for each in chosen.var_names],
        others={str(each): column_of(adata.obs, place) for place, each in enumerate(adata.obs)},
        document=Document(adata, chosen),
    )


def _h5ad_memory(source: Source, options: Options) -> int:
    """Return the bytes of all arrays of the file, because all of them are read."""
    import h5py

    sizes: list[int] = []

    def add(_: str, each: Any) -> None:
        if isinstance(each, h5py.Dataset):
            sizes.append((each.size or 0) * each.dtype.itemsize)

    with h5py.File(source.path, "r") as file:
        file.visititems(add)
    return sum(sizes)


_FRAME = ("pyarrow", "pandas")
_TEXT = tuple(f".{name}{end}" for end in ("", ".gz") for name in ("csv", "tsv", "txt", "tab"))
FORMATS = {
    each.title.lower(): each
    for each in (
        Format("CSV", _TEXT, b"", text.read, text.estimate, text.write, ("pandas",), True),
        Format("Feather", (".feather", ".arrow"), b"ARROW1", _read_frame, _frame_memory, _write_frame, _FRAME),
        Format("H5AD", (".h5ad",), b"\x89HDF\r\n\x1a\n", _read_h5ad, _h5ad_memory, None, ("h5py", "anndata")),
        Format("NPY", (".npy",), b"\x93NUMPY", _read_npy, _npy_memory, _write_npy),
        Format("NPZ", (".npz",), b"PK\x03\x04", _read_npz, _npz_memory, _write_npz),
        Format("Parquet", (".parquet", ".pq"), b"PAR1", _read_frame, _frame_memory, _write_frame, _FRAME),
    )
}


def format_of(source: Source, named: str | None = None) -> str:
    """Return the name of the format of a source, and raise an error if its contents are of another format."""
    if is_model(source.start):
        raise TableError(f"{source.name} is a model file of drsne. Pass the data, or use drsne transform.")
    begun = [name for name, known in FORMATS.items() if known.magic and source.start.startswith(known.magic)]
    likely = next((name for name in begun if name != "npz" or b".npy" in source.start), None)  # not any ZIP archive
    named = by_extension(source.path) if named is None else choice("format", named, FORMATS)
    if named is None and source.is_stream:
        named = likely or "csv"
    if not likely or named is None:
        other = next((what for magic, what in _OTHERS.items() if source.start.startswith(magic)), None)
        if other is not None:
            raise TableError(f"{source.name} is {other}.")
    if named is None:
        raise TableError(f"{source.name} must end with one of {', '.join(extensions())}. Rename it, or pass --format.")
    if likely != named and (likely or FORMATS[named].magic):
        what = f"a {FORMATS[likely].title} file" if likely else f"not a {FORMATS[named].title} file"
        way = f"pass --format {likely}" if likely else "check how it was made"
        raise TableError(f"{source.name} is {what}, although it is named as {FORMATS[named].title}: {way}.")
    return named


def by_extension(path: Path) -> str | None:
    """Return the name of the format of files with this extension, or None."""
    return next((name for name, known in FORMATS.items() if path.name.lower().endswith(known.extensions)), None)


def extensions(which: Callable[[Format], object] = bool) -> tuple[str, ...]:
    """Return the extensions of the formats for which ``which`` is true."""
    return tuple(extension for each in FORMATS.values() if which(each) for extension in each.extensions)
