"""Locks of files, which the system releases if their process dies."""

from __future__ import annotations

import os
import sys


def lock(file: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed, if the system supports locks; return False if another process holds it."""
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
