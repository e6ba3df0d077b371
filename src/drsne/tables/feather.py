"""Feather files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from drsne.tables._formats import Content, Format, Source
from drsne.tables.parquet import frame_of, packages, read_frame


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a Feather file."""
    return read_frame(source, "read_feather", "Feather")


def estimate(source: Source, options: Mapping[str, Any]) -> int | None:
    """Return the bytes of memory for a data frame and a matrix, at least, because a file can be compressed."""
    return 2 * source.size


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a Feather file."""
    frame_of(columns, "Feather").to_feather(path)


FORMAT = Format("Feather", (".feather", ".arrow"), b"ARROW1", read, write, estimate, partial(packages, "Feather"))
