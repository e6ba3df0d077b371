"""Results as rows in a file of JSON lines: one row for each run, with a key that identifies what was run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from drsne_paper import checks

Row = dict[str, Any]
_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "umap-learn", "pacmap", "scalemap", "scanpy", "igraph", "louvain",
)  # fmt: skip
_MAPPINGS = ("params", "metrics", "seconds", "details", "versions")  # fields that hold a mapping, if a row has them


def key(identity: dict[str, Any]) -> str:
    """Return twelve hexadecimal digits that identify a run, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=_as_python).encode()).hexdigest()[:12]


def _as_python(value: Any) -> Any:
    """Return a NumPy number as a Python number."""
    return value.item()


class Rows:
    """Rows in a file of JSON lines. Rows are only ever added to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """Return all rows. If the last line was cut off when a process died, it is skipped with a warning."""
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path} is damaged: {error}. Restore the file from a backup, or remove it."
            ) from error
        rows: list[Row] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except RecursionError as error:
                raise self._damaged(number, "is nested too deeply") from error
            except json.JSONDecodeError as error:
                if number < len(lines):
                    raise self._damaged(number, "is not JSON") from error
                checks.warn(f"Skipped the last row of {self.path}, which was cut off. Its run will be repeated.")
                continue
            if reason := _fault(row):
                raise self._damaged(number, reason)
            rows.append(row)
        return rows

    def _damaged(self, line: int, reason: str) -> ValueError:
        return ValueError(
            f"{self.path} is damaged: line {line} {reason}. Remove that line; its run will then be repeated."
        )

    def append(self, rows: Iterable[Row]) -> None:
        """Add all of the rows or none of them: if the disk is full, no part of a row stays behind.

        Other writers of the same file wait until the rows are there.
        """
        from drsne_paper._private import lock  # with the backends, which those who read rows do not need

        text = "".join(json.dumps(row, sort_keys=True, default=_as_python) + "\n" for row in rows)
        make_folder(self.path.parent)
        self.path.touch()
        with self.path.open("r+b") as file:
            lock(file.fileno(), wait=True)
            end, missing = _end_of_rows(file)
            file.seek(end)
            try:
                file.write((missing + text).encode())
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                file.truncate(end)
                raise OSError(
                    error.errno,
                    f"Could not write to {self.path}: {error.strerror}. Finished rows are kept; free some space and "
                    "start again.",
                ) from error

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other processes from adding rows of the same study to this file.

        The lock belongs to the process: the system releases it if the process dies, so no stale lock stays behind.
        """
        make_folder(self.path.parent)
        path = self.path.with_name(f"{self.path.name}.lock")
        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise BlockingIOError(
                f"{self.path} is in use: another process is adding rows to it. Wait until it has finished, or choose "
                "another folder."
            ) from error
        try:
            yield
        finally:
            if sys.platform != "win32":  # Windows cannot remove an open file
                path.unlink(missing_ok=True)
            lock.release()


def _fault(row: Any) -> str:
    """Return what is wrong with the form of a row, or an empty string if nothing is."""
    if not isinstance(row, dict) or "key" not in row:
        return "is not a row: it has no key"
    if not isinstance(row["key"], str):
        return "is not a row: its key is not a string"
    for name in _MAPPINGS:
        if name in row and not isinstance(row[name], dict):
            return f"has a field {name!r} that is not a mapping"
    return ""


def make_folder(folder: Path) -> None:
    """Make a folder for results, or raise an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"folder must be writable; got {str(folder)!r}: {error.strerror}. Choose another."
        ) from error


def _end_of_rows(file: Any) -> tuple[int, str]:
    """Return where the next row starts, and a newline if only that is missing from the last row."""
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        step = min(end, 65536)
        file.seek(end - step)
        newline = file.read(step).rfind(b"\n")
        if newline >= 0:
            end = end - step + newline + 1
            break
        end -= step
    file.seek(end)
    try:
        json.loads(file.read())
    except (ValueError, RecursionError):
        return end, ""
    return size, "\n"


def other_versions(rows: Iterable[Row]) -> dict[str, int]:
    """Return the number of rows from each other version of this package; rows without a version are skipped."""
    import drsne

    counts: dict[str, int] = {}
    for row in rows:
        made_by = row.get("versions", {}).get("drsne", drsne.__version__)
        if made_by != drsne.__version__:
            counts[str(made_by)] = counts.get(str(made_by), 0) + 1
    return counts


@lru_cache(maxsize=1)
def provenance() -> dict[str, Any]:
    """Return the versions of the packages that results depend on, the commit of the source tree and the machine."""
    import drsne

    versions = {"drsne": drsne.__version__}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "commit": _commit(), "machine": machine_name()}


@lru_cache(maxsize=1)
def machine_name() -> str:
    """Return the name of the processor, or its architecture if the system does not give a name, and its cores."""
    try:
        lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout.splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("Model name")]
    except (OSError, subprocess.CalledProcessError):
        names = []
    return f"{(names or [platform.machine()])[0]}, {os.cpu_count()} cores"


def _commit() -> str | None:
    """Return the commit of the source trees, with "+" if files were changed since; None if drsne is installed."""
    import drsne

    trees = [Path(file).parents[1] for file in (str(drsne.__file__), __file__)]
    commit = _git(trees[0], "rev-parse", "--short=12", "HEAD")
    changed = any(_git(tree, "status", "--porcelain", "--", ".") for tree in trees)
    return f"{commit}+" if commit and changed else commit


def _git(tree: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
