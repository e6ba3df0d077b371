"""The work folder: results of finished stages and partitions, which appear only when they are complete."""

from __future__ import annotations

import errno
import json
import os
import platform
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from drsne.io.writing import lock, replacing

# The stages, which are also the names of their files and folders.
INPUT, STATISTICS, LANDMARKS, CONCENTRATION = "input", "statistics", "landmarks", "concentration"
MAP, OUTPUT, SCORES = "landmark_map", "output", "scores"
QUERIES = "queries"  # the file with the rows whose neighbours are searched
MANIFEST = "manifest.json"
_LOCK = "lock"
_FORMAT = 1  # version of the files in the folder


@dataclass(frozen=True)
class Work:
    """A folder with the results of the stages. It can be sent to workers, which must see the same path."""

    folder: Path

    def path(self, stage: str, part: int | None = None, ending: str = "npz") -> Path:
        """Return the file of a stage, or of a partition in a stage."""
        return self.folder / (f"{stage}.{ending}" if part is None else f"{stage}/{part:06d}.{ending}")

    def has_results(self, besides: Collection[str] = ()) -> bool:
        """Return whether the folder has other results. Hidden files are those that killed processes have left."""
        names = {path.name for path in self.folder.glob("*")} - {_LOCK, *besides}
        return any(name[0] != "." for name in names)

    def missing(self, stage: str, n_parts: int) -> list[int]:
        """Return the partitions that a stage has not finished, and make its folder."""
        with writing(self.folder / stage):
            (self.folder / stage).mkdir(parents=True, exist_ok=True)
        return [part for part in range(n_parts) if not self.path(stage, part).exists()]

    def save(self, path: Path, arrays: Mapping[str, Any]) -> None:
        """Write arrays to a file."""
        with writing(path), replacing(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **arrays)

    def load(self, path: Path) -> dict[str, NDArray[Any]]:
        """Return the arrays in a file."""
        with reading(path), path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}

    def version(self, path: Path) -> tuple[int, ...]:
        """Return numbers that change when a file is written again, so that caches of workers do not outlive a run."""
        with reading(path), path.open("rb") as stream:  # network file systems check an opened file with the server
            found = os.fstat(stream.fileno())
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def save_json(self, path: Path, value: Any) -> None:
        """Write a value as JSON."""
        with writing(path), replacing(path) as temporary:
            temporary.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")

    def load_json(self, path: Path) -> Any:
        """Return a value that was written as JSON, or None if there is none."""
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(
                f"{path} is damaged ({error}). Remove the folder {self.folder} and the output, and call fit again."
            ) from error

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other calls away from the folder and the output, also those of other processes."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not lock(file, wait=False):
                raise BlockingIOError(
                    f"{self.folder} is in use by another call of fit. Wait until it has finished, or choose another "
                    "output."
                )
            yield
        finally:
            os.close(file)

    def claim(self, settings: Mapping[str, Any], parts: Sequence[Any]) -> None:
        """Write down what this run computes, or raise an error if the folder belongs to a run of something else.

        The stage of the statistics reads all partitions first, and so finds missing values and damaged files. While
        there are only results of its partitions, partitions can be repaired.
        """
        path = self.folder / MANIFEST
        found = self.load_json(path)
        known = {each["name"]: each for each in (found or {}).get("source", [])}
        source = [part.identity(known.get(part.name)) for part in parts]
        wanted = json.loads(json.dumps({"format": _FORMAT, "settings": dict(settings), "source": source}))
        if found == wanted:
            return
        if found is not None and _contents(found) != _contents(wanted):  # otherwise, files were copied or touched
            begun = self.has_results(besides=(MANIFEST, STATISTICS))
            repaired = [] if begun else _repaired(_contents(found), _contents(wanted))
            if not repaired:
                raise ValueError(
                    f"{self.folder} holds an unfinished or finished run with {_difference(found, wanted)}, so this run "
                    "cannot continue it. Repeat the call with the earlier settings and data, choose another output, or "
                    "remove that folder and the output to start again."
                )
            for part in repaired:
                self.path(STATISTICS, part).unlink(missing_ok=True)
        self.save_json(path, wanted)


def _contents(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without what can change while the contents of the files stay the same."""
    source = [{name: value for name, value in each.items() if name != "stamp"} for each in manifest.get("source", [])]
    return {**manifest, "source": source}


def _repaired(found: dict[str, Any], wanted: dict[str, Any]) -> list[int]:
    """Return the partitions whose first results have to be computed again, or none if more than the rows differs."""
    before, now = found["source"], wanted["source"]
    if {**found, "source": now} != wanted or [each["name"] for each in before] != [each["name"] for each in now]:
        return []
    if sum(each["rows"] for each in before) != sum(each["rows"] for each in now):  # samples depend on their number
        return list(range(len(now)))
    return [part for part, (one, other) in enumerate(zip(before, now, strict=True)) if one != other]


def _difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Return in words what differs first between two manifests."""
    if found.get("format") != wanted["format"]:
        return "files of another version of drsne"
    before, now = found.get("settings", {}), wanted["settings"]
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            values = f"{before.get(name)} instead of {now.get(name)}"
            return f"another Dask array ({values})" if name == "array" else f"other settings ({name}={values})"
    parts, new = _contents(found)["source"], _contents(wanted)["source"]
    if len(parts) != len(new):
        return f"other data ({len(parts)} partitions instead of {len(new)})"
    changed = next((one for one, other in zip(new, parts, strict=True) if one != other), {"name": "?"})
    return f"other data ({changed['name']} has changed)"


@contextmanager
def reading(
    path: Path,
    errors: tuple[type[Exception], ...] = (ValueError, EOFError, KeyError, BadZipFile, zlib.error),
    what: str = "damaged",
    way_out: str = "Remove it and call fit again.",
) -> Iterator[None]:
    """Turn errors about a file, by default one of the work folder, into one that names it and says what to do."""
    try:
        yield
    except FileNotFoundError as error:  # the file was there when the run started, or only some machines see it
        raise ValueError(
            f"{path} must exist and be visible to all workers at this path; {platform.node()} does not find it. Put it "
            "back or mount its folder there, and call fit again; what is finished is kept."
        ) from error
    except errors as error:
        raise ValueError(f"{path} is {what} ({reason(error)}). {way_out}") from error


def reason(error: BaseException) -> str:
    """Return the message of an error of another package as part of a sentence."""
    return " ".join((str(error) or repr(error)).split())[:200]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of the disk into one that names the path and says what to do."""
    try:
        yield
    except OSError as error:
        cause, todo = error.strerror or str(error), "Remove the cause"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            cause, todo = "The disk is full", "Free some space"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            todo = "Make the folder writable"
        message = f"Could not write {path}: {cause}. {todo} and call fit again; what is finished is kept"
        raise OSError(error.errno, message) from error
