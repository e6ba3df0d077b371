"""Data sets: the object that ``load`` returns, and the three kinds of data sets that a file can expose as ``DATASET``.

``Generated`` generates rows from a seed. ``Bundled`` reads them from an installed package. ``Stored`` reads a file in
the data home; if the file is missing, it is downloaded or computed. Files are checked each time they are read.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne_paper.datasets import _cache, _download
from drsne_paper.datasets._formats import Arrays, Format

GENERATED = "generated"
BUNDLED = "comes with scikit-learn"
HERE = "in the data home"
REMOTE = "to be downloaded"
COMPUTABLE = "to be computed"
MISSING = "to be put into the data home by hand"
CORRUPT = "corrupt"
_MAX_ITEM_BYTES = 8  # largest number of bytes for one value in a file


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A data set.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The data, not scaled and in their original data type.
    y : ndarray of shape (n_samples,) or None
        The classes, or 0 for normal and 1 for anomalous rows.
    name : str
        The name of the data set.
    description : str
        A description of the rows, columns and labels, and of the preprocessing.
    source : str
        The origin of the data.
    """

    X: Any
    y: NDArray[Any] | None
    name: str
    description: str
    source: str


class Dataset(Protocol):
    """The interface of the object ``DATASET`` in each file of this folder."""

    @property
    def description(self) -> str:
        """Return one or two sentences about the rows, columns and labels."""
        ...

    @property
    def source(self) -> str:
        """Return the origin of the data."""
        ...

    @property
    def n_samples(self) -> int:
        """Return the number of rows. For generated data, this is the default number."""
        ...

    @property
    def n_features(self) -> int:
        """Return the number of columns."""
        ...

    @property
    def endless(self) -> bool:
        """Return whether any number of rows can be generated."""
        ...

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """Return ``X``, ``y`` and a sentence for the description. The sentence may be empty."""
        ...

    def state(self, home: Path) -> tuple[str, int]:
        """Return the state of the data and their size in bytes in the data home. Nothing is decoded."""
        ...


@dataclass(frozen=True, kw_only=True)
class Generated:
    """A data set that ``make(n_samples, rng)`` generates."""

    make: Callable[[int, np.random.RandomState], tuple[NDArray[Any], NDArray[Any]]]
    n_features: int
    description: str
    source: str
    n_samples: int = 5000
    endless: bool = True

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """Generate the rows."""
        return *self.make(self.n_samples if n_samples is None else n_samples, rng), ""

    def state(self, home: Path) -> tuple[str, int]:
        """Return ``GENERATED`` and the size 0."""
        return GENERATED, 0


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """A data set that ``read()`` reads from an installed package."""

    read: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    n_samples: int
    n_features: int
    description: str
    source: str
    endless: bool = False

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """Return all rows or, if ``n_samples`` is given, a random sample of the rows."""
        return *draw_rows(*self.read(), n_samples, rng), ""

    def state(self, home: Path) -> tuple[str, int]:
        """Return ``BUNDLED`` and the size 0."""
        return BUNDLED, 0


def _as_stored(arrays: Arrays, home: Path) -> tuple[Any, Any, str]:
    return arrays["X"], arrays["y"], ""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A data set in one file of the data home.

    ``sha256`` is the checksum of the concatenated arrays in ``hashed``. Each array is hashed as little-endian C-order
    bytes of the type given there. ``sha256`` is None if the file is computed on the user's computer; such a file
    contains its own checksum as an array ``sha256``. ``convert`` turns the downloads from ``urls`` into the content of
    the file. ``make(home)`` computes the content if there is nothing to download. ``alternative`` is advice that is
    shown to the user if the file is missing and can be neither downloaded nor computed.
    """

    file: str
    format: Format
    n_samples: int
    n_features: int
    description: str
    source: str
    sha256: str | None
    hashed: Sequence[tuple[str, str]]
    urls: Sequence[str] = ()
    convert: Callable[[Sequence[bytes]], bytes] = lambda parts: parts[0]
    make: Callable[[Path], bytes] | None = None
    assemble: Callable[[Arrays, Path], tuple[Any, Any, str]] = _as_stored
    alternative: str = ""
    endless: bool = False

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """Return all rows or, if ``n_samples`` is given, a random sample of the rows."""
        X, y, note = self.assemble(self._arrays(home), home)
        return *draw_rows(X, y, n_samples, rng), note

    def state(self, home: Path) -> tuple[str, int]:
        """Return the state and size of the file. The check uses only its size, table of contents and headers."""
        path = home / self.file
        if not path.exists():
            return (COMPUTABLE if self.make else REMOTE if self.urls else MISSING), 0
        try:
            complete = path.is_file() and self.format.looks_complete(path, self.n_samples, self.n_features)
        except _cache.DECODING_ERRORS:
            complete = False
        return (HERE if complete else CORRUPT), path.stat().st_size

    def _arrays(self, home: Path) -> Arrays:
        path = home / self.file
        if path.exists():
            return self._read_file(path)
        self.format.check_packages()
        if self.make is not None:
            content, what = self.make(home), f"{self.file}, as computed,"
        elif self.urls:
            parts = [_download.fetch(url, file=self.file, home=home) for url in self.urls]
            content, what = self._converted(parts), f"{self.file}, as downloaded from {', '.join(self.urls)},"
        else:
            raise FileNotFoundError(
                f"{self.file} is not in the data home {home} and cannot be downloaded. Put the file there "
                f"({self.format.description}), or pass its folder as data_home. "
                f"{self.alternative}".strip()
            )
        arrays = self._checked(io.BytesIO(content), what, "Nothing was written. Try again; the source may have changed")
        _cache.write(path, content)
        return arrays

    def _converted(self, parts: Sequence[bytes]) -> bytes:
        try:
            return self.convert(parts)
        except _cache.DECODING_ERRORS as error:
            raise _cache.CorruptFileError(
                f"The download from {', '.join(self.urls)} cannot be decoded ({error}). Nothing was written. Try "
                "again. If the error persists, open the address in a browser and check whether it returns a web page."
            ) from error

    def _read_file(self, path: Path) -> Arrays:
        """Return the arrays of a file, or raise an error that describes the problem."""
        _cache.check_regular(path)
        try:
            with path.open("rb") as stream:
                return self._checked(stream, str(path), f"Delete {path} and load the data set again")
        except PermissionError as error:
            raise PermissionError(
                error.errno, f"{path} cannot be read. Change its permissions, or pass another data_home"
            ) from error

    def _checked(self, stream: Any, what: str, way_out: str) -> Arrays:
        names = [name for name, _ in self.hashed]
        max_bytes = _MAX_ITEM_BYTES * self.n_samples * self.n_features
        try:
            arrays = self.format.read(stream, names if self.sha256 else [*names, "sha256"], max_bytes)
            expected = self.sha256 or bytes(arrays["sha256"]).hex()
            found = _cache.checksum(arrays, self.hashed)
        except _cache.DECODING_ERRORS as error:
            reason = str(error) or type(error).__name__
            raise _cache.CorruptFileError(
                f"{what} cannot be read as {self.format.description} ({reason}). {way_out}."
            ) from error
        if found != expected:
            raise _cache.CorruptFileError(
                f"{what} has the wrong checksum: expected sha256 {expected}, found {found} (of the arrays "
                f"{', '.join(names)}). The content is not used. {way_out}."
            )
        return arrays


def draw_rows(X: Any, y: Any, n_samples: int | None, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Return all rows, or ``n_samples`` rows drawn as in the paper: without replacement, in the order of the draw."""
    if n_samples is None:
        return X, y
    rows = rng.choice(X.shape[0], n_samples, replace=False)
    return X[rows], None if y is None else y[rows]
