"""The HTML of a page, put together from the files in ``assets/``, the drawing library in ``vendor/`` and the data.

The scripts are ES modules, so that editors and linters understand them. A page that is opened from a disk cannot import
modules, so they are joined into one script. A content security policy names the two scripts of the page by their hashes
and forbids every connection, so the browser itself makes sure that no other script runs and that no data leave.

The data are ``base64(deflate(length, description, arrays))``: the number of bytes of the description as a 32-bit
integer, the description as JSON, and the arrays. Every array begins at a multiple of eight bytes, counted from the end
of the description, and all numbers are little-endian. Because base64 has no characters with a meaning in HTML, labels
and names cannot break the page, whatever they contain. ``assets/js/payload.js`` is the reader.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.explorer.columns import Column
from drsne.explorer.sources import Maps
from drsne.pl import framed

# In this order, every script comes after those that it imports from.
SCRIPTS = (
    "payload", "elements", "numbers", "palettes", "dataset", "plot", "touch", "theme", "slider",
    "curve", "tooltip", "legend", "colour", "summary", "selection", "search", "keyboard", "main",
)  # fmt: skip
LIBRARY = "regl-scatterplot.min.js"
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_PLACE = re.compile(r"\{\{ (\w+) \}\}")
_FORMAT = 1  # version of the payload; the page refuses other versions
_STEPS = 65535  # number of steps between the sides of the frame of a map
_MISSING = 65535  # code of a missing number in a column that depends on the map


def document(title: str, data: str) -> str:
    """Return the HTML of a page with this title and this data."""
    library, program = _read("vendor", LIBRARY), joined_scripts()
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in (library, program))
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    content = {
        "title": html.escape(title.encode("utf-8", "replace").decode("utf-8")),
        # The drawing library compiles its commands with Function, and it starts a worker from a blob for many points.
        "policy": f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'",
        "style": _read("assets", "explorer.css"),
        "payload": data,
        "library": library,
        "program": program,
    }
    return _PLACE.sub(lambda place: content[place[1]], _read("assets", "explorer.html"))


@cache
def joined_scripts() -> str:
    """Return the scripts as one. Each is a scope of its own, whose exported names are visible to those after it."""
    scopes = []
    for script in SCRIPTS:
        module = _read("assets", "js", f"{script}.js")
        names = ", ".join(_EXPORT.findall(module))
        body = _EXPORT.sub("", _IMPORT.sub("", module))
        scopes.append(f"const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();\n")
    return f'"use strict";\n(() => {{\n{"".join(scopes)}}})();\n'


@cache
def _read(*parts: str) -> str:
    return files("drsne.explorer").joinpath(*parts).read_text(encoding="utf-8")


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
        padding = -len(content) % 8
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
        "format": _FORMAT,
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
    return np.asarray(np.rint(np.clip(unit, 0.0, 1.0) * _STEPS), dtype=np.uint16)


def _described(column: Column, arrays: Arrays) -> dict[str, Any]:
    """Return the description of a column, and add its values to the arrays."""
    described = {"name": column.name, "about": column.about, "diverging": column.diverging, "words": column.words}
    of_maps = np.atleast_2d(column.values)
    if len(of_maps) == 1:
        return {**described, "values": [arrays.add(of_maps[0])]}
    # One array for every map would make the file large, so these have 16 bits instead of 32.
    known = of_maps[np.isfinite(of_maps)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / (_STEPS - 1) or 1.0
    steps = np.rint((of_maps.astype(np.float64) - low) / step)
    codes = np.where(np.isfinite(of_maps), steps, _MISSING).astype(np.uint16)
    return {**described, "values": [arrays.add(row) for row in codes], "low": low, "step": step}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
