"""Reading of maps that any method has made."""

from __future__ import annotations

import re
from typing import Any

_MOST = 3  # largest number of dimensions of a map whose columns have no telling names


def read_map(path: str, wanted: list[str] | None = None) -> tuple[Any, list[str]]:
    """Return the coordinates in a file, and the names of their columns."""
    Y, used, _ = read_map_and_rest(path, wanted)
    return Y, used


def read_map_and_rest(path: str, wanted: list[str] | None = None) -> tuple[Any, list[str], Any]:
    """Return the coordinates in a file, the names of their columns, and the whole table."""
    import numpy as np

    from drsne.tables import TableError, read

    table = read(path)
    names = table.columns or [f"x{place + 1}" for place in range(table.X.shape[1])]
    if wanted is not None:
        missing = [name for name in wanted if name not in names]
        if missing:
            raise TableError(f"{path} has no column of numbers {missing[0]!r}. It has {', '.join(names[:10])}.")
    used = wanted or coordinates(names)
    if not used:
        raise TableError(
            f"{path} has {len(names)} columns of numbers, and it is not clear which are the map: {', '.join(names[:6])}"
            ", ... Choose them with --map-columns."
        )
    return np.asarray(table.X[:, [names.index(name) for name in used]], dtype=np.float64), used, table


def coordinates(names: list[str]) -> list[str]:
    """Return the columns that are the coordinates of a map, judged by their names.

    These are numbered columns with the same beginning, such as drsne1 and drsne2 or UMAP_1 and UMAP_2, or x and y. If
    there are none, all columns are the map if there are at most three.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        match = re.fullmatch(r"(.*?)[ _.-]?([0-9]{1,2})", name)
        if match:
            groups.setdefault(match[1].lower(), []).append(name)
    numbered = [group for group in groups.values() if 2 <= len(group) <= _MOST]
    if len(numbered) == 1 or (numbered and "drsne" in groups):
        return groups.get("drsne", numbered[0])
    lower = {name.lower(): name for name in names}
    if {"x", "y"} <= set(lower):
        return [lower[each] for each in ("x", "y", "z") if each in lower]
    return names if len(names) <= _MOST else []
