"""Storage of the quality study: maps as files, scores as lines of results/quality.jsonl.

A map is identified by its data set, method, parameters and seed. Its file in the folder of maps holds the embedding
and these fields, so maps that were made on another machine are simply copied into the folder. File names are never
parsed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import RESULTS

ROWS = RESULTS / "quality.jsonl"
Row = dict[str, Any]
Key = tuple[str, str, str, int]


def key(row: Row) -> Key:
    """Return what identifies the map of a row."""
    return row["set"], row["method"], json.dumps(row["params"], sort_keys=True), row["seed"]


def read() -> dict[Key, Row]:
    """Return the rows by key. The last line of a key counts."""
    lines = ROWS.read_text().splitlines() if ROWS.exists() else []
    rows = map(json.loads, lines)
    return {key(row): row for row in rows}


def append(row: Row) -> None:
    """Write a row at once, so that a killed study keeps it."""
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")


def rewrite(rows: Iterable[Row]) -> None:
    """Replace all rows, sorted, in one step."""
    part = ROWS.with_suffix(".part")
    part.write_text("".join(json.dumps(row) + "\n" for row in sorted(rows, key=key)))
    part.replace(ROWS)


def digest(embedding: np.ndarray) -> str:
    """Return a short hash of a map, which ties its scores to it."""
    return hashlib.sha256(np.ascontiguousarray(embedding, dtype=np.float32).tobytes()).hexdigest()[:12]


class Maps:
    """A folder of maps, one npz file each, in float32."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, row: Row) -> Path:
        """Return the file of the map of a row."""
        name = "-".join(re.sub(r"\W+", "_", str(row[field])) for field in ("set", "method", "seed"))
        return self._folder / f"{name}-{hashlib.sha256(repr(key(row)).encode()).hexdigest()[:12]}.npz"

    def save(self, row: Row, embedding: np.ndarray) -> None:
        """Write a map and the fields of its row. A killed process leaves no damaged file."""
        target = self.path(row)
        part = target.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez(file, embedding=np.asarray(embedding, dtype=np.float32), row=json.dumps(row))
        part.replace(target)

    def load(self, row: Row) -> np.ndarray:
        """Return the map of a row, in double precision."""
        with np.load(self.path(row)) as file:
            return file["embedding"].astype(np.float64)

    def rows(self) -> Iterator[Row]:
        """Yield the row of every map in the folder, without scores."""
        for path in sorted(self._folder.glob("*.npz")):
            with np.load(path) as file:
                yield {**json.loads(str(file["row"])), "digest": digest(file["embedding"])}

    def remove(self, row: Row) -> None:
        """Delete the map of a row, if it is there."""
        self.path(row).unlink(missing_ok=True)
