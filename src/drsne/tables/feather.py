"""Feather files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drsne.tables._formats import Content, Format, Source
from drsne.tables._packages import package
from drsne.tables.parquet import read_frame


def read(source: Source, options: Mapping[str, Any]) -> Content:
    """Read a Feather file."""
    return read_frame(source, "read_feather", "Feather")


def write(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a Feather file."""
    pandas = package("pandas", "Feather files", "files")
    package("pyarrow", "Feather files", "files")
    pandas.DataFrame(dict(columns)).to_feather(path)


FORMAT = Format("Feather", (".feather", ".arrow"), b"ARROW1", read, write)
