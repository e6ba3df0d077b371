"""Files that appear only when they are complete, and locks of files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name in the same folder, which becomes ``path`` if the block succeeds.

    If the block fails or is interrupted, an existing file stays as it was. The temporary name has the extension of
    ``path``, because some packages choose a format by it.
    """
    extension = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=extension)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # as for any new file; temporary files are private
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def lock(file: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed or the process dies; return False if another process holds the lock."""
    if sys.platform == "win32":
        import msvcrt

        try:  # Lock a byte far beyond the text, so that other processes can read the text.
            os.lseek(file, 2**30, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # The file system does not support locks.
        return True
    return True
