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

from drsne import checks

Row = dict[str, Any]
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "umap-learn", "pacmap", "scanpy", "igraph", "louvain")


def key(what: dict[str, Any]) -> str:
    """Twelve hexadecimal digits that stand for what was run, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=_plain).encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item()


class Rows:
    """Rows in a file of JSON lines. What is in the file is never changed, only added to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All rows; a last line that was cut off when a process died is left out."""
        if not self.path.exists():
            return []
        rows: list[Row] = []
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is damaged: {error}. Take the file of a backup, or remove it.") from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                if number < len(lines):
                    raise self._damaged(number, "is not JSON") from error
                checks.warn(f"The last row of {self.path} was cut off and is left out; its run is made again.")
                continue
            if not isinstance(row, dict) or "key" not in row:
                raise self._damaged(number, "is not a row: it has no key")
            rows.append(row)
        return rows

    def _damaged(self, line: int, why: str) -> ValueError:
        return ValueError(f"{self.path} is damaged: line {line} {why}. Remove that line; its run is then made again.")

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows, each whole; on a full disk nothing of them stays behind."""
        text = "".join(json.dumps(row, sort_keys=True, default=_plain) + "\n" for row in rows)
        make_folder(self.path.parent)
        self.path.touch()
        with self.path.open("r+b") as file:
            _lock(file)
            end, torn = _whole_lines(file)
            file.seek(end)
            try:
                file.write((torn + text).encode())
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


def make_folder(folder: Path) -> None:
    """Make a folder for results, or say which cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"folder must be one that can be written; got {str(folder)!r}: {error.strerror}. Take another."
        ) from error


def _lock(file: Any) -> None:
    """Until it is closed nobody else appends, where the system has locks for that."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX)


def _whole_lines(file: Any) -> tuple[int, str]:
    """Where to write on, and what is to be written first: a newline where the last row is whole but for that."""
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        step = min(end, 65536)
        file.seek(end - step)
        found = file.read(step).rfind(b"\n")
        if found >= 0:
            end = end - step + found + 1
            break
        end -= step
    file.seek(end)
    try:
        json.loads(file.read())
    except ValueError:
        return end, ""
    return size, "\n"


@lru_cache(maxsize=1)
def provenance() -> dict[str, Any]:
    """Versions of what computes, and the commit."""
    import drsne

    versions = {"drsne": drsne.__version__}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "commit": _commit()}


def _commit() -> str | None:
    """Of the source tree that this package is imported from, "+" where it was changed since; None if installed."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    return f"{commit}+" if commit and _git("status", "--porcelain", "--", ".") else commit


def _git(*arguments: str) -> str | None:
    root = Path(__file__).parents[1]
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
