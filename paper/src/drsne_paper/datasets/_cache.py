"""The data home: its location, the checksums of decoded arrays, and the safe writing of files."""

from __future__ import annotations

import csv
import errno
import hashlib
import os
import struct
import tarfile
import time
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARIABLE = "DRSNE_DATA_HOME"
_ABANDONED_AFTER = 86400  # age in seconds at which an unfinished file is considered abandoned
# The exceptions that decoding a damaged file can raise, for all formats. A damaged header can state any length, which
# leads to MemoryError and OverflowError. numpy parses headers with Python's tokenizer. h5py raises OSError, KeyError
# and RuntimeError.
DECODING_ERRORS = (
    *(ValueError, TypeError, KeyError, IndexError, EOFError, OSError, RuntimeError, MemoryError, OverflowError),
    *(SyntaxError, tokenize.TokenError, csv.Error),
    *(zipfile.BadZipFile, zlib.error, LZMAError, struct.error, tarfile.TarError),
)


class CorruptFileError(ValueError):
    """Raised if the content of a download or of a file in the data home is wrong. Such a file is never used."""


def data_home(path: Any = None) -> Path:
    """Return the folder of the data files.

    If ``path`` is None, use the folder named by the environment variable ``DRSNE_DATA_HOME`` or, if it is not set,
    ``drsne`` in the user's cache directory.
    """
    if path is not None:
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            raise TypeError(f"data_home must be a path or None; got {path!r}. Pass None to use the default folder.")
        return Path(os.fsdecode(path)).expanduser()
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("drsne"))


def check_regular(path: Path) -> None:
    """Raise an error if ``path`` is not a regular file. Reading from a pipe or a device may never end."""
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe, socket or device"
        raise CorruptFileError(f"{path} must be a regular file; it is {kind}. Move it away and load again.")


def checksum(arrays: Mapping[str, NDArray[Any]], hashed: Sequence[tuple[str, str]]) -> str:
    """Return the sha256 of the concatenated arrays in ``hashed``, as C-order bytes of the types given there."""
    import numpy as np

    digest = hashlib.sha256()
    for name, dtype in hashed:
        array = arrays[name]
        if array.dtype.newbyteorder("<") != np.dtype(dtype):
            raise ValueError(f"{name} must be of type {np.dtype(dtype)}; it is {array.dtype}")
        digest.update(np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write ``content`` to a temporary file in the same folder, and rename it to ``path`` when it is complete."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
        _remove_abandoned_parts(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _with_advice(error, path, len(content)) from error
        raise


def _remove_abandoned_parts(path: Path) -> None:
    """Remove old temporary files that interrupted processes left behind."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _ABANDONED_AFTER:
                part.unlink()


def _with_advice(error: OSError, path: Path, size: int) -> OSError:
    """Return an error of the same type with a message that says what to do."""
    elsewhere = f"pass another data_home, or set {VARIABLE}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"There is no space for {path} ({size:,} bytes). Free some space, or {elsewhere}"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        message = f"You have no permission to write {path}. Make its folder writable, or {elsewhere}"
    else:
        message = f"{path} could not be written ({error.strerror or error}). Check the path, or {elsewhere}"
    return type(error)(error.errno, message)
