"""Downloads into memory, with pooch.

The checksums are those of the decoded arrays, several downloads may be combined into one file, and the file is written
only after its arrays have been checked. So pooch only fetches, and ``_cache`` keeps the files.
"""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

TIMEOUT = 30.0  # seconds to wait for a response before giving up


class UnreachableError(ConnectionError):
    """Raised if a server does not respond, or if a download is incomplete."""


def fetch(url: str, *, file: str, home: Path) -> bytes:
    """Return the body of the response from ``url``. An error message asks the user to put ``file`` into ``home``."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    download = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT)
    try:
        with TemporaryDirectory() as folder:
            return Path(pooch.retrieve(url, None, path=folder, downloader=download)).read_bytes()
    except OSError as error:
        raise UnreachableError(
            f"Could not download {url} ({error}). Check the network and try again, or put {file} into the data home "
            f"{home} yourself (the page 'Data sets' of the documentation describes its content). To use another "
            "folder, pass data_home or set DRSNE_DATA_HOME."
        ) from error
