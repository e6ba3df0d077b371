"""HTTP downloads into memory, with the standard library.

A download library could not replace this module: the checksums are those of the decoded arrays, several downloads may
be combined into one file, and the file is written only after its arrays have been checked.
"""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from drsne.progress import ProgressBar

TIMEOUT = 30.0  # seconds to wait for a response before giving up
_CHUNK = 1 << 16  # number of bytes to read at a time


class UnreachableError(ConnectionError):
    """Raised if a server does not respond, or if a download is incomplete."""


def fetch(url: str, *, file: str, home: Path) -> bytes:
    """Return the body of the response from ``url``. An error message asks the user to put ``file`` into ``home``."""
    try:
        return _read(url)
    except (OSError, HTTPException) as error:
        raise UnreachableError(
            f"Could not download {url} ({error}). Check the network and try again, or put {file} into the data home "
            f"{home} yourself (the page 'Data sets' of the documentation describes its content). To use another "
            "folder, pass data_home or set DRSNE_DATA_HOME."
        ) from error


def _read(url: str) -> bytes:
    request = Request(url, headers={"User-Agent": "drsne"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        stated = answer.headers.get("Content-Length")
        total = int(stated) if stated else 0
        content = bytearray()
        label = url.rsplit("/", 1)[-1] + " (KiB)"
        with ProgressBar(-(-total // 1024), label, visible=total > 0, preparing="waiting ...") as bar:
            while chunk := answer.read(_CHUNK):
                content += chunk
                bar(-(-len(content) // 1024), {})
    if total and len(content) != total:
        raise OSError(f"the download ended after {len(content):,} of {total:,} bytes")
    return bytes(content)
