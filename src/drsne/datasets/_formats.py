"""Files of the data home (npz, csv, h5ad) and of the sources (idx, ARFF, 10x archives), decoded and encoded."""

from __future__ import annotations

import csv
import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne.datasets import _cache

Arrays = dict[str, NDArray[Any]]
_HDF5 = b"\x89HDF\r\n\x1a\n"  # how such a file begins
# What images() wants, in its order.
IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


class Format(Protocol):
    """How a file of the data home is read, and what it looks like from afar."""

    @property
    def hint(self) -> str:
        """What it is, in words."""
        ...

    def ready(self) -> None:
        """Raise where a package that reads it is missing."""
        ...

    def read(self, stream: BinaryIO) -> Arrays:
        """Its arrays, by name."""
        ...

    def looks_whole(self, path: Path, n_samples: int, n_features: int) -> bool:
        """Whether it looks whole, without decoding it."""
        ...


class Npz:
    """numpy's archive, with arrays ``X`` and ``y``."""

    hint = "an .npz file with arrays X and y"

    def ready(self) -> None:
        """Nothing but numpy is needed."""

    def read(self, stream: BinaryIO) -> Arrays:
        """Every array; pickles are refused."""
        if not zipfile.is_zipfile(stream):
            raise ValueError("it is no zip archive")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def looks_whole(self, path: Path, n_samples: int, n_features: int) -> bool:
        """By the archive's table of contents and the shape in the header of ``X``."""
        try:
            with zipfile.ZipFile(path) as archive, archive.open("X.npy") as member:
                version = np.lib.format.read_magic(member)
                header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape = header(member)[0]
                return bool(shape == (n_samples, n_features)) and "y.npy" in archive.namelist()
        except _cache.BROKEN:
            return False


class Csv:
    """A table of numbers under one line of names; the column ``label`` is ``y``, the others are ``X``."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.hint = f"a .csv file with a column {label}"

    def ready(self) -> None:
        """Nothing but the standard library is needed."""

    def read(self, stream: BinaryIO) -> Arrays:
        """``X`` float64, ``y`` int64."""
        names, *lines = csv.reader(io.StringIO(stream.read().decode("utf-8")))
        at = names.index(self._label)
        table = np.array(lines, dtype=np.float64)
        return {"X": np.delete(table, at, axis=1), "y": table[:, at].astype(np.int64)}

    def looks_whole(self, path: Path, n_samples: int, n_features: int) -> bool:
        """By its names and the number of its lines."""
        content = path.read_bytes()
        names = content[: content.find(b"\n")].decode("utf-8", "replace").strip().split(",")
        return len(names) == n_features + 1 and self._label in names and content.count(b"\n") == n_samples + 1


class H5ad:
    """AnnData's file, of which the sparse counts ``X`` and the names of cells and genes are read, with h5py."""

    hint = "an .h5ad file with CSR counts in X"

    def ready(self) -> None:
        """Raise without h5py, which is an extra."""
        h5py()

    def read(self, stream: BinaryIO) -> Arrays:
        """``data``, ``indices``, ``indptr``; ``cells`` and ``genes`` as newline-separated UTF-8 bytes."""
        with h5py().File(stream, "r") as file:
            arrays: Arrays = {name: file["X"][name][:] for name in ("data", "indices", "indptr")}
            for name, group in (("cells", "obs"), ("genes", "var")):
                names = file[group][file[group].attrs["_index"]][:]
                arrays[name] = np.frombuffer(b"\n".join(names.astype("S")), np.uint8)
        return arrays

    def looks_whole(self, path: Path, n_samples: int, n_features: int) -> bool:
        """By its signature and the length it states."""
        with path.open("rb") as stream:
            head = stream.read(48)
        if len(head) < 48 or head[:8] != _HDF5:
            return False
        at = 40 if head[8] < 2 else 28  # where each version of the superblock states the length of the file
        return int(struct.unpack_from("<Q", head, at)[0]) <= path.stat().st_size


def h5py() -> Any:
    """The package h5py, or an error that says how to get it."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError("pbmc3k is an .h5ad file, which needs h5py: pip install 'drsne[pbmc]'.") from error
    return h5py


def npz(**arrays: NDArray[Any]) -> bytes:
    """Arrays as the content of a compressed npz file."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # its stub takes allow_pickle for an array
    return stream.getvalue()


def idx(content: bytes) -> NDArray[np.uint8]:
    """The array of a gzipped idx file of unsigned bytes (LeCun's format: magic, lengths, values; big-endian)."""
    raw = gzip.decompress(content)
    zeros, kind, dimensions = struct.unpack_from(">HBB", raw)
    if zeros or kind != 8:
        raise ValueError("no idx file of unsigned bytes")
    shape = struct.unpack_from(f">{dimensions}I", raw, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def images(parts: Sequence[bytes]) -> bytes:
    """The four idx files of an MNIST-like set (training images, labels, test images, labels) as one npz."""
    train, train_labels, test, test_labels = map(idx, parts)
    X = np.vstack([train.reshape(len(train), -1), test.reshape(len(test), -1)])
    return npz(X=X, y=np.concatenate([train_labels, test_labels]))


def arff(content: bytes) -> list[list[str]]:
    """The rows of a dense ARFF file without quotes, as text."""
    lines = iter(content.decode("utf-8").splitlines())
    for line in lines:
        if line.strip().lower() == "@data":
            return [line.replace(" ", "").split(",") for line in lines if line.strip() and not line.startswith("%")]
    raise ValueError("no @data line in an ARFF file")


def tenx(content: bytes) -> bytes:
    """A gzipped tar of 10x's matrix.mtx, genes.tsv and barcodes.tsv as an h5ad file of cells x genes."""
    from scipy.io import mmread

    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
        files = {}
        for name in ("matrix.mtx", "genes.tsv", "barcodes.tsv"):
            stream = archive.extractfile(members[name])
            files[name] = stream.read() if stream is not None else b""
    counts = mmread(io.BytesIO(files["matrix.mtx"])).T.tocsr().astype(np.float32)
    counts.sort_indices()
    cells = files["barcodes.tsv"].decode().split()
    ids, symbols = zip(*(line.split("\t")[:2] for line in files["genes.tsv"].decode().splitlines()), strict=True)
    return h5ad(counts, cells, unique(symbols), ids)


def unique(names: Sequence[str]) -> list[str]:
    """Names made unique as AnnData does it: the second of a name gets ``-1``, the third ``-2``."""
    seen: dict[str, int] = {}
    taken, out = set(names), []
    for name in names:
        count = seen.get(name, 0)
        new = name
        while count and (new := f"{name}-{count}") in taken:
            count += 1
        taken.add(new)
        seen[name] = count + 1
        out.append(new)
    return out


def h5ad(counts: Any, cells: Sequence[str], genes: Sequence[str], ids: Sequence[str]) -> bytes:
    """A minimal AnnData file (encodings 0.1.0 and 0.2.0 of its on-disk format)."""
    stream, package = io.BytesIO(), h5py()
    text = package.string_dtype()
    with package.File(stream, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": counts.shape})
        for name, dtype in (("data", np.float32), ("indices", np.int32), ("indptr", np.int32)):
            X.create_dataset(name, data=getattr(counts, name).astype(dtype), compression="gzip")
        for group, index, columns in (("obs", cells, {}), ("var", genes, {"gene_ids": ids})):
            frame = file.create_group(group)
            frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "index"})
            frame.attrs["column-order"] = np.array(list(columns), dtype=object if columns else np.float64)
            for name, values in {"index": index, **columns}.items():
                column = frame.create_dataset(name, data=list(values), dtype=text, compression="gzip")
                column.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
    return stream.getvalue()
