"""What a dataset is: the object that ``load`` returns, and the three kinds a dataset file may expose as ``DATASET``.

``Generated`` makes rows from a seed, ``Bundled`` takes them from an installed package, ``Filed`` reads a file of the
data home, which it downloads or makes where it is not there. Whatever is read is checked, every time.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from drsne.datasets import _cache, _download
from drsne.datasets._formats import Arrays, Format

GENERATED = "generated"
BUNDLED = "comes with scikit-learn"
HERE = "in the data home"
REMOTE = "to be downloaded"
MAKEABLE = "to be computed"
MISSING = "to be put into the data home by hand"
CORRUPT = "corrupt"


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """A dataset.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The data, as they come: not scaled, in the type they are kept in.
    y : ndarray of shape (n_samples,) or None
        Classes, or 0 and 1 for normal and anomalous.
    name : str
        Name of the dataset.
    description : str
        What the rows, columns and labels are, and what was done to them.
    source : str
        Where they come from.
    """

    X: Any
    y: NDArray[Any] | None
    name: str
    description: str
    source: str


class Dataset(Protocol):
    """What a dataset file exposes as ``DATASET``."""

    @property
    def description(self) -> str:
        """One or two sentences."""
        ...

    @property
    def source(self) -> str:
        """Where the data come from."""
        ...

    @property
    def n_samples(self) -> int:
        """Rows there are (generated data: rows made by default)."""
        ...

    @property
    def n_features(self) -> int:
        """Columns."""
        ...

    @property
    def endless(self) -> bool:
        """Whether any number of rows can be had."""
        ...

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """``X``, ``y`` and a sentence to add to the description, or nothing."""
        ...

    def state(self, home: Path) -> tuple[str, int]:
        """Where the data are, and the bytes they take in the data home; nothing is decoded."""
        ...


@dataclass(frozen=True, kw_only=True)
class Generated:
    """Rows that ``make(n_samples, rng)`` draws."""

    make: Callable[[int, np.random.RandomState], tuple[NDArray[Any], NDArray[Any]]]
    n_features: int
    description: str
    source: str
    n_samples: int = 5000
    endless: bool = True

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """Draws."""
        return *self.make(self.n_samples if n_samples is None else n_samples, rng), ""

    def state(self, home: Path) -> tuple[str, int]:
        """Always at hand."""
        return GENERATED, 0


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """Rows that ``read()`` takes from an installed package."""

    read: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    n_samples: int
    n_features: int
    description: str
    source: str
    endless: bool = False

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """All rows, or a draw."""
        return *drawn(*self.read(), n_samples, rng), ""

    def state(self, home: Path) -> tuple[str, int]:
        """Always at hand."""
        return BUNDLED, 0


def _as_stored(arrays: Arrays, home: Path) -> tuple[Any, Any, str]:
    return arrays["X"], arrays["y"], ""


@dataclass(frozen=True, kw_only=True)
class Filed:
    """Rows of one file of the data home.

    ``sha256`` is that of the arrays named in ``hashed``, one after the other, each as little-endian C-order bytes of
    the type given there. None: the file was made on this machine and holds its own as an array ``sha256``.
    ``convert`` turns what ``urls`` give into the file; ``make(home)`` makes it where there is nothing to download.
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
    instead: str = ""  # what to do where the file cannot be had
    endless: bool = False

    def rows(self, n_samples: int | None, rng: np.random.RandomState, home: Path) -> tuple[Any, Any, str]:
        """All rows, or a draw."""
        X, y, note = self.assemble(self._arrays(home), home)
        return *drawn(X, y, n_samples, rng), note

    def state(self, home: Path) -> tuple[str, int]:
        """By the look of the file: its size, its table of contents and the shapes it states."""
        path = home / self.file
        if not path.exists():
            return (MAKEABLE if self.make else REMOTE if self.urls else MISSING), 0
        whole = path.is_file() and self.format.looks_whole(path, self.n_samples, self.n_features)
        return (HERE if whole else CORRUPT), path.stat().st_size

    def _arrays(self, home: Path) -> Arrays:
        path = home / self.file
        if path.exists():
            return self.read_checked(path)
        self.format.ready()
        if self.make is not None:
            content, what = self.make(home), f"{self.file}, as made,"
        elif self.urls:
            parts = [_download.fetch(url, file=self.file, home=home) for url in self.urls]
            content, what = self._converted(parts), f"{self.file}, as downloaded from {', '.join(self.urls)},"
        else:
            raise FileNotFoundError(
                f"{self.file} is not in the data home {home}, and has no public source. Put it there "
                f"({self.format.hint}), or name another folder by data_home or DRSNE_DATA_HOME. {self.instead}".strip()
            )
        arrays = self._checked(io.BytesIO(content), what, "Nothing was written; the source may have changed")
        _cache.write(path, content)
        return arrays

    def _converted(self, parts: Sequence[bytes]) -> bytes:
        try:
            return self.convert(parts)
        except _cache.BROKEN as error:
            raise _cache.CorruptFileError(
                f"{', '.join(self.urls)}: what was downloaded is not what it should be ({error}). Nothing was written; "
                "load it again, and see whether the address gives a page of its own in a browser."
            ) from error

    def read_checked(self, path: Path) -> Arrays:
        """The arrays of a file, or an error that says what is wrong with it."""
        try:
            with path.open("rb") as stream:
                return self._checked(stream, str(path), f"Delete {path} and load again")
        except PermissionError as error:
            raise PermissionError(
                error.errno, f"{path} cannot be read. Change its permissions, or pass another data_home"
            ) from error
        except IsADirectoryError as error:
            raise _cache.CorruptFileError(
                f"{path} must be a file; it is a folder. Move it away, and load again."
            ) from error

    def _checked(self, stream: Any, what: str, way_out: str) -> Arrays:
        try:
            arrays = self.format.read(stream)
            expected = self.sha256 or bytes(arrays["sha256"]).hex()
            found = _cache.checksum(arrays, self.hashed)
        except _cache.BROKEN as error:
            raise _cache.CorruptFileError(
                f"{what} cannot be read as {self.format.hint} ({error}). {way_out}."
            ) from error
        if found != expected:
            raise _cache.CorruptFileError(
                f"{what} has the wrong checksum: expected sha256 {expected}, found {found} (of the arrays "
                f"{', '.join(name for name, _ in self.hashed)}). It is not used. {way_out}."
            )
        return arrays


def drawn(X: Any, y: Any, n_samples: int | None, rng: np.random.RandomState) -> tuple[Any, Any]:
    """All rows, or ``n_samples`` of them as the paper draws them: ``rng.choice`` without replacement, in its order."""
    if n_samples is None:
        return X, y
    rows = rng.choice(X.shape[0], n_samples, replace=False)
    return X[rows], None if y is None else y[rows]
