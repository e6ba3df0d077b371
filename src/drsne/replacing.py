"""Files that appear only when they are complete."""

from __future__ import annotations

import os
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
