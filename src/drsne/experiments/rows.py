"""Results: one row a run, appended as it finishes, keyed by what was run."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from drsne import _checks

Row = dict[str, Any]
_PACKAGES = ("drsne", "numpy", "scipy", "scikit-learn", "numba", "umap-learn", "pacmap", "scanpy")


def key(what: dict[str, Any]) -> str:
    """Twelve hexadecimal digits that stand for what was run, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]


class Rows:
    """Rows in a file of JSON lines. What is in the file is never changed, only added to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All rows; a last line that was cut off when a process died is left out."""
        if not self.path.exists():
            return []
        rows: list[Row] = []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                if number < len(lines):
                    raise ValueError(
                        f"{self.path} is damaged: line {number} is not JSON. Remove that line; its run is then made "
                        "again."
                    ) from error
                _checks.warn(f"The last row of {self.path} was cut off and is left out; its run is made again.")
        return rows

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows, each whole; on a full disk nothing of them stays behind."""
        text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            end = _whole_lines(file)
            file.seek(end)
            try:
                file.write(text.encode())
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                file.truncate(end)
                raise OSError(
                    error.errno,
                    f"Could not write to {self.path}: {error.strerror}. Finished rows are kept; make room and start "
                    "again.",
                ) from error


def _whole_lines(file: Any) -> int:
    """Where the last whole line ends."""
    size = file.seek(0, os.SEEK_END)
    while size > 0:
        step = min(size, 65536)
        file.seek(size - step)
        found = file.read(step).rfind(b"\n")
        if found >= 0:
            return int(size - step + found + 1)
        size -= step
    return 0


@lru_cache(maxsize=1)
def provenance() -> dict[str, Any]:
    """Versions of what computes, and the commit."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "commit": _commit()}


def _commit() -> str | None:
    """Of the source tree that this package is imported from, or None where it is installed."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
