"""The partitions of the data: Parquet files, or the row blocks of a Dask array, read in blocks of a fixed size."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.distributed.work import reading, writing
from drsne.io.sources import listed
from drsne.io.writing import replacing

BLOCK = 32_768  # number of rows in memory at once
_BUFFER = 262_144  # number of bytes of a column that are read at once
_ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True)
class ParquetPart:
    """A partition that is a Parquet file. Partitions can be sent to workers, which read them."""

    path: str
    columns: tuple[str, ...]
    n_rows: int
    dtype: str  # "float32" or "float64"

    @property
    def name(self) -> str:
        """The name of the file, and of the file that is written for it."""
        return Path(self.path).name

    def where(self, column: int) -> str:
        """Return the name of the column and the path of the file, and what to do if it is damaged."""
        place = f"column {self.columns[column]!r} of {self.path}"
        return f"{place}. If the file is damaged, write it again, and call fit again"

    def identity(self, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what shows whether the partition has changed. ``known`` is the result of an earlier call.

        The entry "stamp" only saves the checksum: the contents are the same if all other entries are.
        """
        return {"name": self.name, "rows": self.n_rows, **fingerprint(self.path, known)}

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows in blocks of ``BLOCK`` rows, or raise an error that names the file and the column."""
        first, waiting = 0, np.empty((0, len(self.columns)), self.dtype)
        for some in self._batches():
            broken = ~np.isfinite(some)
            if broken.any():
                row, place = np.argwhere(broken)[0]
                raise self._missing(
                    self.columns[place], int(broken[:, place].sum()), f", the first in row {first + row}"
                )
            first += len(some)
            waiting = np.concatenate([waiting, some]) if len(waiting) else some
            while len(waiting) >= BLOCK:
                yield waiting[:BLOCK]
                waiting = waiting[BLOCK:]
        if len(waiting):
            yield waiting
        if first != self.n_rows:
            raise ValueError(
                f"{self.path} must have {self.n_rows} rows, as at the start; got {first}. Do not change it."
            )

    def _batches(self) -> Iterator[NDArray[Any]]:
        from pyarrow.parquet import ParquetFile

        # By default, Arrow keeps all that it has read of a file until the file is closed.
        options = {"pre_buffer": False, "buffer_size": _BUFFER, "page_checksum_verification": True}
        with _arrow_errors(self.path), ParquetFile(self.path, **options) as file:
            for batch in file.iter_batches(BLOCK, columns=list(self.columns), use_threads=False):
                out = np.empty((batch.num_rows, len(self.columns)), self.dtype)
                for place, column in enumerate(self.columns):
                    values = batch.column(column)
                    if values.null_count:
                        raise self._missing(column, values.null_count)
                    out[:, place] = values.to_numpy(zero_copy_only=False)
                yield out

    def _missing(self, column: str, count: int, where: str = "") -> ValueError:
        return ValueError(
            f"Column {column!r} of {self.path} must be finite; got {count} missing or infinite values in a "
            f"block{where}. Fill them in, or drop their rows, and call fit again. To use other columns or files, "
            "remove the work folder (<output>.work) first."
        )


@dataclass(frozen=True)
class ArrayPart:
    """A partition that is a block of rows of a Dask array, in a file of the work folder."""

    path: str
    name: str
    n_rows: int
    n_columns: int
    block: int

    @property
    def _work(self) -> str:
        return str(Path(self.path).parent.parent)

    def where(self, column: int) -> str:
        """Return the numbers of the column and of the block, and what to do if values are wrong."""
        return (
            f"column {column} of block {self.block} of the Dask array. If the value is wrong, correct it, remove the "
            f"folder {self._work!r}, and call fit again"
        )

    def identity(self, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the name and the number of rows. The name of the array says whether its contents have changed."""
        return {"name": self.name, "rows": self.n_rows}

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows as arrays, or raise an error if a value is not finite."""
        with reading(Path(self.path)):
            rows = np.load(self.path, mmap_mode="r", allow_pickle=False)
        for start in range(0, len(rows), BLOCK):
            some = np.array(rows[start : start + BLOCK])
            if not np.isfinite(some).all():
                row, column = np.argwhere(~np.isfinite(some))[0]
                raise ValueError(
                    f"Block {self.block} of the Dask array must be finite; got {some[row, column]} in row "
                    f"{start + row}, column {column}. Fill missing values in, or drop their rows. Then remove the "
                    f"folder {self._work!r}, and call fit again."
                )
            yield some


Part = ParquetPart | ArrayPart


def fingerprint(path: str | Path, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a checksum of a file, and its stamp. With that of ``known``, an earlier result, the file is not read."""
    with open(path, "rb") as stream:
        status = os.fstat(stream.fileno())
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        if known is not None and known.get("stamp") == stamp:
            return {"sha256": known["sha256"], "stamp": stamp}
        return {"sha256": hashlib.file_digest(stream, "sha256").hexdigest(), "stamp": stamp}


def _arrow_errors(path: str | Path) -> AbstractContextManager[None]:
    """Turn errors about a Parquet file into a ValueError, because an OSError would be taken for one of the output."""
    from pyarrow import ArrowException

    way_out = "Copy it or write it again, and call fit again; what is finished is kept."
    return reading(Path(path), (ArrowException, OSError, EOFError), "damaged or not a Parquet file", way_out)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names by the numbers in them."""
    words = re.split(r"([0-9]+)", name)
    return [(int(word), "") if place % 2 else (0, word) for place, word in enumerate(words)]


def parquet_files(source: Any) -> list[Path]:
    """Return the Parquet files of a folder in natural order, or those of a list in the order of the list."""
    if isinstance(source, (str, os.PathLike)):
        folder = Path(source)
        if not folder.exists():
            raise FileNotFoundError(f"source must be a folder or a list of Parquet files; {str(folder)!r} is neither.")
        return [folder] if folder.is_file() else _files_of(folder)
    if not isinstance(source, list | tuple):
        raise TypeError(
            f"source must be a folder, a list of Parquet files or a Dask array; got {type(source).__name__}. Use "
            "drsne.DRSNE for arrays in memory, and to_dask_array(lengths=True) for a Dask data frame."
        )
    files = [Path(each) for each in source]
    if lost := [path for path in files if not path.is_file()]:
        raise FileNotFoundError(f"source must list existing files; {str(lost[0])!r} is not a file.")
    n_names = len({path.name for path in files})
    if not files or n_names < len(files):
        raise ValueError(
            "source must list at least one file, and files with different names, because the output has the same "
            f"names; got {len(files)} files with {n_names} names."
        )
    return files


def _files_of(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, and raise an error rather than leave out those of folders in it."""

    def is_parquet(path: Path) -> bool:
        return path.suffix.lower() in _ENDINGS

    found = [path for path in folder.iterdir() if is_parquet(path) and path.name[0] not in "._"]
    inner = next((path for path in found if path.is_dir()), None)
    if not found:
        inner = next((path.parent for path in folder.glob("*/**/*") if is_parquet(path)), None)
    if inner is not None:
        raise ValueError(
            f"source must have its Parquet files in one folder; {str(folder)!r} has the folder {str(inner)!r} with "
            "others. Pass that folder, or move all files into one folder, with different names."
        )
    if not found:
        raise FileNotFoundError(f"source must have Parquet files; the folder {str(folder)!r} has none.")
    return sorted(found, key=lambda path: _natural(path.name))


def parquet_parts(files: Sequence[Path], columns: Sequence[str] | None) -> list[ParquetPart]:
    """Return the partitions, after a check that all files have the same types in the columns."""
    from pyarrow.parquet import read_metadata

    parts: list[ParquetPart] = []
    types: dict[str, Any] = {}
    for path in files:
        with _arrow_errors(path):
            metadata = read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
        if not parts:
            types = {name: _numeric(path, schema, name) for name in columns or _data_columns(schema)}
            if not types:
                raise ValueError(f"{path} must have at least one column of numbers; got none besides the index.")
        if columns is None and (more := [name for name in _data_columns(schema) if name not in types]):
            raise ValueError(
                f"All files must have the same columns if columns=None; got {listed(more)} in {path}, but not in "
                f"{parts[0].path}. Name the columns to use with columns=[...], or write the files again."
            )
        for name, expected in types.items():
            if (found := _type(path, schema, name)) != expected:
                raise ValueError(
                    f"Column {name!r} of {path} must have the type {expected}, as in {parts[0].path}; got {found}. "
                    "Write the file again with that type, or leave the column out with columns=[...]."
                )
        small = all(str(each) in ("float", "halffloat") for each in types.values())
        dtype = "float32" if small else "float64"
        parts.append(ParquetPart(str(path.absolute()), tuple(types), metadata.num_rows, dtype))
    return parts


def _data_columns(schema: Any) -> tuple[str, ...]:
    """Return the names of all columns, except those in which pandas or Dask has stored the index of a data frame."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return tuple(name for name in schema.names if name not in index)


def _type(path: Path, schema: Any, name: str) -> Any:
    count = schema.names.count(name)
    if not count:
        raise ValueError(
            f"{path} must have the column {name!r}; it has {listed(schema.names)}. Write the file again with that "
            "column, or pass columns=[...]."
        )
    if count > 1:
        raise ValueError(
            f"{path} must have one column {name!r}; got {count}. Write the file again with different names, or leave "
            "the column out with columns=[...]."
        )
    return schema.field(name).type


def _numeric(path: Path, schema: Any, name: str) -> Any:
    from pyarrow import types

    found = _type(path, schema, name)
    if not (types.is_floating(found) or types.is_integer(found) or types.is_boolean(found)):
        raise ValueError(
            f"Column {name!r} of {path} must hold numbers; got the type {found}. Name the columns of numbers with "
            "columns=[...]."
        )
    return found


def is_dask_array(source: Any) -> bool:
    """Return whether an object is a Dask array. Dask is not imported for this."""
    return type(source).__module__.startswith("dask.array")


def array_parts(source: Any, folder: Path) -> list[ArrayPart]:
    """Return the partitions of a Dask array, whose blocks :func:`store` writes to ``folder``."""
    if source.ndim != 2 or source.dtype.kind not in "biuf" or source.shape[1] == 0:
        raise ValueError(
            f"source must be a Dask array of numbers with two dimensions and at least one column; got shape "
            f"{source.shape} and type {source.dtype}."
        )
    sizes = source.chunks[0]
    if any(np.isnan(size) for size in (*sizes, source.shape[1])):
        raise ValueError(
            "source must have known chunk sizes; got unknown ones. Call source.compute_chunk_sizes() first."
        )
    width = max(5, len(str(len(sizes) - 1)))
    names = [f"part-{block:0{width}d}" for block in range(len(sizes))]
    return [
        ArrayPart(str(folder / f"{name}.npy"), f"{name}.parquet", int(size), int(source.shape[1]), block)
        for block, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]


def store(part: ArrayPart, number: int, block: Any) -> None:
    """Write a block of a Dask array, which has been computed, to the file of its partition, for all stages."""
    if np.ma.is_masked(block):
        raise ValueError(
            f"Block {number} of the Dask array must have no masked values. Fill them in, for example with "
            "dask.array.ma.filled, or drop their rows."
        )
    rows = np.asarray(block.toarray() if hasattr(block, "toarray") else block)  # some blocks are sparse
    rows = np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
    if rows.shape != (part.n_rows, part.n_columns):
        raise ValueError(
            f"Block {number} of the Dask array must have the shape {(part.n_rows, part.n_columns)}, as the array "
            f"says; got {rows.shape}. Compute the array without drsne to find the step that changes it."
        )
    path = Path(part.path)
    with writing(path), replacing(path) as temporary, temporary.open("wb") as stream:
        # np.save writes through a second stream of C, which loses the end of a file on a full disk without an error.
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(rows))
        stream.write(rows.data)
        stream.flush()
        os.fsync(stream.fileno())
