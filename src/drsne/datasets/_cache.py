"""The data home: where it is, checksums of decoded arrays, and writes that leave a whole file or none."""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import tarfile
import time
import uuid
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIABLE = "DRSNE_DATA_HOME"
_ABANDONED = 86400  # seconds after which a file half written has no writer
# What decoding a broken file raises, whatever its format (h5py's are OSErrors, KeyErrors and RuntimeErrors).
BROKEN = (
    *(ValueError, KeyError, IndexError, EOFError, OSError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, LZMAError, struct.error, tarfile.TarError),
)


class CorruptFileError(ValueError):
    """A file of the data home, or a download, that does not hold what it should. It is reported, never used."""


def data_home(given: Any = None) -> Path:
    """The folder of data files: ``given``, else ``DRSNE_DATA_HOME``, else ``drsne`` in the user's cache directory."""
    if given is not None:
        if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
            raise TypeError(
                f"data_home must be a path or None; got {given!r}. Pass None for the user's cache directory."
            )
        return Path(os.fsdecode(given)).expanduser()
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: relative paths are to be ignored.
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "drsne"


def checksum(arrays: Mapping[str, NDArray[Any]], hashed: Sequence[tuple[str, str]]) -> str:
    """sha256 of the named arrays, one after the other, as C-order bytes of the given types."""
    digest = hashlib.sha256()
    for name, dtype in hashed:
        array = arrays[name]
        if array.dtype.newbyteorder("<") != np.dtype(dtype):
            raise ValueError(f"{name} must be of type {np.dtype(dtype)}; it is {array.dtype}")
        digest.update(np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write(path: Path, content: bytes) -> None:
    """``path`` with this content, whole or not at all: written beside it under another name, then renamed."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
        _sweep(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _explained(error, path, len(content)) from error
        raise


def _sweep(path: Path) -> None:
    """Removes what killed writes of this file left behind, once no writer can still be at it."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _ABANDONED:
                part.unlink()


def _explained(error: OSError, path: Path, size: int) -> OSError:
    """The same error, saying what to do."""
    elsewhere = f"pass another data_home, or set {VARIABLE}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"No space for {path} ({size:,} bytes): nothing was left behind. Free some, or {elsewhere}"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        message = f"No permission to write {path}. Make its folder writable, or {elsewhere}"
    else:
        message = (
            f"{path} could not be written ({error.strerror or error}): nothing was left behind. Mend it, or {elsewhere}"
        )
    return type(error)(error.errno, message)
