"""Downloads over HTTP with the standard library: bytes in memory, or an error that says how to do without."""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from drsne.progress import ProgressBar

TIMEOUT = 30.0  # seconds without an answer
_CHUNK = 1 << 16  # bytes


class UnreachableError(ConnectionError):
    """A source that gives no answer, or not all of it."""


def fetch(url: str, *, file: str, home: Path) -> bytes:
    """What ``url`` gives. ``file`` and ``home`` are named in the error: where to put it by hand."""
    try:
        return _read(url)
    except (OSError, HTTPException) as error:
        raise UnreachableError(
            f"Could not download {url} ({error}). Try again with a network, or put {file} into the data home {home} "
            "by hand (the Datasets page says what it holds); data_home or DRSNE_DATA_HOME names another folder."
        ) from error


def _read(url: str) -> bytes:
    request = Request(url, headers={"User-Agent": "drsne"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        stated = answer.headers.get("Content-Length")
        total = int(stated) if stated else 0
        content = bytearray()
        label = url.rsplit("/", 1)[-1] + " (KiB)"
        with ProgressBar(-(-total // 1024), label, visible=total > 0) as bar:
            while chunk := answer.read(_CHUNK):
                content += chunk
                bar(-(-len(content) // 1024), {})
    if total and len(content) != total:
        raise OSError(f"it ended after {len(content):,} of {total:,} bytes")
    return bytes(content)
