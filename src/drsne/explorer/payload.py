"""The data of a page as one compressed text.

The payload is ``base64(deflate(length, description, arrays))``: the number of bytes of the description as a 32-bit
integer, the description as JSON, and the arrays. Every array begins at a multiple of eight bytes, counted from the end
of the description, and all numbers are little-endian. Because base64 has no characters with a meaning in HTML, labels
and names cannot break the page, whatever they contain. ``assets/js/payload.js`` is the reader.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.explorer.columns import Column
from drsne.explorer.sources import Maps
from drsne.pl import framed

FORMAT = 1  # version of the payload; the page refuses other versions
STEPS = 65535  # number of steps between the sides of the frame of a map
MISSING = 65535  # code of a missing number in a column that depends on the map
_ALIGNED = 8  # bytes


class Arrays:
    """The arrays of a payload. :meth:`add` returns the number by which the description refers to an array."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.described: list[dict[str, Any]] = []
        self._length = 0

    def add(self, values: NDArray[Any]) -> int:
        """Add an array of integers or floats, and return its number."""
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        content = little.tobytes()
        padding = -len(content) % _ALIGNED
        self.described.append({"type": little.dtype.str[1:], "at": self._length, "length": int(little.size)})
        self.parts += [content, bytes(padding)]
        self._length += len(content) + padding
        return len(self.described) - 1


def payload(
    maps: Maps, columns: Sequence[Column], *, label: int | None, names: list[str] | None, title: str, version: str
) -> str:
    """Return the data of a page as text. ``label`` is the index of the column of labels."""
    arrays = Arrays()
    description = {
        "format": FORMAT,
        "version": version,
        "title": title,
        "rows": maps.n_samples,
        "names": names,
        "start": maps.start,
        "label": label,
        "maps": [
            {"title": name, "tick": tick, "x": arrays.add(place[:, 0]), "y": arrays.add(place[:, 1])}
            for name, tick, place in zip(maps.titles, maps.ticks, map(placed, maps.embeddings), strict=True)
        ],
        "scores": {name: [_finite(value) for value in values] for name, values in maps.scores.items()},
        "baseline": _finite(maps.baseline),
        "columns": [_described(column, arrays) for column in columns],
    }
    text = json.dumps({**description, "arrays": arrays.described}, allow_nan=False).encode("ascii")
    content = b"".join([len(text).to_bytes(4, "little"), text, *arrays.parts])
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def placed(Y: NDArray[Any]) -> NDArray[np.uint16]:
    """Return the positions of a map in a square of 65536 by 65536 places, with equal scales in both directions.

    Outlying points are moved to the edge of the frame, as in :func:`drsne.pl.framed`.
    """
    inside = framed(Y)
    low, high = inside.min(axis=0), inside.max(axis=0)
    extent = float((high - low).max()) or 1.0
    unit = (inside - (low + high) / 2) / extent + 0.5  # between 0 and 1, centred in both directions
    return np.asarray(np.rint(np.clip(unit, 0.0, 1.0) * STEPS), dtype=np.uint16)


def _described(column: Column, arrays: Arrays) -> dict[str, Any]:
    """Return the description of a column, and add its values to the arrays."""
    described = {"name": column.name, "about": column.about, "diverging": column.diverging, "words": column.words}
    if column.values.ndim == 1:
        return {**described, "values": [arrays.add(column.values)]}
    if len(column.values) == 1:
        return {**described, "values": [arrays.add(column.values[0])]}
    # One array for every map would make the file large, so these have 16 bits instead of 32.
    low, high = _range(column.values)
    step = (high - low) / (STEPS - 1) or 1.0
    values = [arrays.add(_coded(row, low, step)) for row in column.values]
    return {**described, "values": values, "low": low, "step": step}


def _coded(values: NDArray[Any], low: float, step: float) -> NDArray[np.uint16]:
    known = np.isfinite(values)
    codes = np.full(len(values), MISSING, np.uint16)
    codes[known] = np.rint((values[known].astype(np.float64) - low) / step).astype(np.uint16)
    return codes


def _range(values: NDArray[Any]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
