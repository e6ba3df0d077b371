"""Formats of the files in the data home (npz, csv, h5ad) and of their sources (idx, ARFF, 10x archives).

Only the requested arrays are decoded. An array that would need more memory than its data set allows is refused, because
a damaged or malicious file can state any length.
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# The names of the files, in the order that images() expects.
IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


class Format(Protocol):
    """A file format of the data home: how to read a file, and how to check quickly whether it is complete."""

    @property
    def description(self) -> str:
        """Return a short description of the file."""
        ...

    def check_packages(self) -> None:
        """Raise an error if a package that is needed to read the file is missing."""
        ...

    def read(self, stream: BinaryIO, names: Sequence[str], max_bytes: int) -> Arrays:
        """Return the arrays with these ``names``. Each array may need at most ``max_bytes``."""
        ...

    def looks_complete(self, path: Path, n_samples: int, n_features: int) -> bool:
        """Return whether the file looks complete, without decoding it."""
        ...


def _check_size(name: str, shape: Sequence[int], itemsize: int, max_bytes: int) -> None:
    size = math.prod(int(length) for length in shape) * itemsize
    if size > max_bytes:
        raise ValueError(f"{name} would need {size:,} bytes, but the limit is {max_bytes:,} bytes")


class Npz:
    """An npz archive of numpy that contains the arrays ``X`` and ``y``."""

    description = "an .npz file with arrays X and y"

    def check_packages(self) -> None:
        """Do nothing, because numpy reads the file."""

    def read(self, stream: BinaryIO, names: Sequence[str], max_bytes: int) -> Arrays:
        """Return the arrays with these ``names``. Other arrays are not decoded, and pickled objects are refused."""
        if not zipfile.is_zipfile(stream):
            raise ValueError("the file is not a zip archive")
        stream.seek(0)
        arrays = {}
        with zipfile.ZipFile(stream) as archive:
            for name in names:
                with archive.open(f"{name}.npy") as member:
                    shape, dtype = _npy_header(member)
                _check_size(name, shape, dtype.itemsize, max_bytes)
                with archive.open(f"{name}.npy") as member:
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
        return arrays

    def looks_complete(self, path: Path, n_samples: int, n_features: int) -> bool:
        """Check the archive's table of contents and the shape in the header of ``X``."""
        with zipfile.ZipFile(path) as archive, archive.open("X.npy") as member:
            return _npy_header(member)[0] == (n_samples, n_features) and "y.npy" in archive.namelist()


def _npy_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and type in the header of an array. Headers of version 1.0 have at most 64 KiB."""
    version = np.lib.format.read_magic(member)
    if version != (1, 0):
        raise ValueError(f"the header of an array must have version 1.0; it has {version[0]}.{version[1]}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    return shape, dtype


class Csv:
    """A table of numbers with column names in the first line. The column ``label`` is ``y``; the others are ``X``."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.description = f"a .csv file with a column {label}"

    def check_packages(self) -> None:
        """Do nothing, because the standard library reads the file."""

    def read(self, stream: BinaryIO, names: Sequence[str], max_bytes: int) -> Arrays:
        """Return ``X`` as float64 and ``y`` as int64."""
        import pandas as pd

        table = pd.read_csv(stream, dtype=np.float64, float_precision="round_trip")
        if table.isna().any(axis=None):
            raise ValueError("a value is missing")
        y = table.pop(self._label).to_numpy()
        return {"X": table.to_numpy(), "y": y.astype(np.int64)}

    def looks_complete(self, path: Path, n_samples: int, n_features: int) -> bool:
        """Check the names in the first line and the number of lines."""
        content = path.read_bytes()
        names = content[: content.find(b"\n")].decode("utf-8", "replace").strip().split(",")
        return len(names) == n_features + 1 and self._label in names and content.count(b"\n") == n_samples + 1


class H5ad:
    """An AnnData file. Only the sparse counts ``X`` and the names of cells and genes are read, with h5py."""

    description = "an .h5ad file with CSR counts in X"

    def check_packages(self) -> None:
        """Raise an error if the optional package h5py is missing."""
        h5py()

    def read(self, stream: BinaryIO, names: Sequence[str], max_bytes: int) -> Arrays:
        """Return ``data``, ``indices`` and ``indptr`` of the counts, and ``cells`` and ``genes`` as UTF-8 lines."""
        with h5py().File(stream, "r") as file:
            stored = {name: file["X"][name] for name in ("data", "indices", "indptr")}
            indices = {name: file[group][file[group].attrs["_index"]] for name, group in _NAME_GROUPS.items()}
            for name, array in {**stored, **indices}.items():
                _check_size(name, array.shape, array.dtype.itemsize, max_bytes)
            arrays: Arrays = {name: array[:] for name, array in stored.items()}
            for name, array in indices.items():
                arrays[name] = np.frombuffer(b"\n".join(array[:].astype("S")), np.uint8)
        return arrays

    def looks_complete(self, path: Path, n_samples: int, n_features: int) -> bool:
        """Check the signature of the file and the length in its header."""
        with path.open("rb") as stream:
            head = stream.read(48)
        if len(head) < 48 or head[:8] != _HDF5_SIGNATURE:
            return False
        offset = 40 if head[8] < 2 else 28  # position of the file length, which depends on the superblock version
        return int(struct.unpack_from("<Q", head, offset)[0]) <= path.stat().st_size


_NAME_GROUPS = {"cells": "obs", "genes": "var"}


def h5py() -> Any:
    """Return the package h5py, or raise an error that says how to install it."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError("Reading pbmc3k (an .h5ad file) needs h5py: pip install './paper[pbmc]'.") from error
    return h5py


def npz(**arrays: NDArray[Any]) -> bytes:
    """Return the content of a compressed npz file with these arrays."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # the stub confuses arrays and allow_pickle
    return stream.getvalue()


def idx(content: bytes) -> NDArray[np.uint8]:
    """Return the array in a gzipped idx file of unsigned bytes (big-endian magic number, lengths and values)."""
    raw = gzip.decompress(content)
    zeros, kind, dimensions = struct.unpack_from(">HBB", raw)
    if zeros or kind != 8:
        raise ValueError("the file is not an idx file of unsigned bytes")
    shape = struct.unpack_from(f">{dimensions}I", raw, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def images(parts: Sequence[bytes]) -> bytes:
    """Return the npz content for the four idx files of a data set like MNIST, in the order of ``IDX_FILES``."""
    train, train_labels, test, test_labels = map(idx, parts)
    X = np.vstack([train.reshape(len(train), -1), test.reshape(len(test), -1)])
    return npz(X=X, y=np.concatenate([train_labels, test_labels]))


def arff(content: bytes) -> list[list[str]]:
    """Return the rows of a dense ARFF file as strings. Quoted values are not supported."""
    lines = iter(content.decode("utf-8").splitlines())
    for line in lines:
        if line.strip().lower() == "@data":
            return [line.replace(" ", "").split(",") for line in lines if line.strip() and not line.startswith("%")]
    raise ValueError("the ARFF file has no @data line")


def tenx(content: bytes) -> bytes:
    """Convert a tar.gz archive of 10x Genomics (matrix.mtx, genes.tsv, barcodes.tsv) to h5ad, with cells as rows."""
    from anndata import AnnData
    from scipy.io import mmread

    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
        files = {}
        for name in ("matrix.mtx", "genes.tsv", "barcodes.tsv"):
            stream = archive.extractfile(members[name])
            files[name] = stream.read() if stream is not None else b""
    counts = mmread(io.BytesIO(files["matrix.mtx"]), spmatrix=True).T.tocsr().astype(np.float32)
    counts.sort_indices()
    ids, symbols = zip(*(line.split("\t")[:2] for line in files["genes.tsv"].decode().splitlines()), strict=True)
    cells = AnnData(counts)
    cells.obs_names, cells.var_names = files["barcodes.tsv"].decode().split(), list(symbols)
    cells.var["gene_ids"] = list(ids)
    cells.var_names_make_unique()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "counts.h5ad"
        cells.write_h5ad(file, compression="gzip")
        return file.read_bytes()
