"""Downloads over HTTP with the standard library, into memory.

A download library would not replace what is here: the checksums are those of decoded arrays, several downloads may
make one file, and the file is written only after its arrays are checked.
"""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from drsne.progress import ProgressBar

TIMEOUT = 30.0  # seconds without an answer
_CHUNK = 1 << 16  # bytes


class UnreachableError(ConnectionError):
    """Raised if a source does not answer, or does not send everything."""


def fetch(url: str, *, file: str, home: Path) -> bytes:
    """Return what ``url`` sends. The error names ``file`` and ``home``, so that the user can put the file there."""
    try:
        return _read(url)
    except (OSError, HTTPException) as error:
        raise UnreachableError(
            f"Could not download {url} ({error}). Check the network and try again, or put {file} into the data home "
            f"{home} by hand (the page Datasets says what it holds). data_home or DRSNE_DATA_HOME names another folder."
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
        raise OSError(f"it ended after {len(content):,} of {total:,} bytes")
    return bytes(content)
