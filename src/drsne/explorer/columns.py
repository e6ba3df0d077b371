"""The columns of a page: labels, numbers and text, as arrays that a browser can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.explorer.sources import Maps

LABEL = "label"  # default name of the column of labels
DATA, MAP, RESIDUAL = "concentration in the data", "concentration in the map", "residual"
_NOTHING = ("NoneType", "NAType", "NaTType")  # types of the missing values of Python and pandas
_MEASURED = {
    "data": "measured over the neighbours in the data",
    "map": "measured over the nearest neighbours in the map",
    "radii": "computed from den-SNE's local radii",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str
        The name that the page shows.
    values : ndarray of shape (n_samples,) or (n_maps, n_samples)
        Numbers as float32, or indices into ``words``. With two dimensions, the column depends on the map.
    words : list of str or None
        The distinct texts of a column of text; a missing text is None. For a column of numbers, ``words`` itself is
        None.
    diverging : bool
        Whether the colours of the column are centred on 0.
    about : str
        A sentence that explains the column, or "".
    """

    name: str
    values: NDArray[Any]
    words: list[str | None] | None = None
    diverging: bool = False
    about: str = ""


def own_columns(maps: Maps) -> list[Column]:
    """Return the columns that follow from the maps: their concentration, that of the data, and the residual."""
    found: list[Column] = []
    data = maps.input_concentration
    unit = "Log relative concentration: 0 is average, and larger values are denser"
    if data is not None:
        found.append(Column(name=DATA, values=data.astype(np.float32), about=f"{unit}."))
    if maps.concentrations:
        of_maps = np.stack(maps.concentrations)
        about = f"{unit}; {_MEASURED[maps.measured_in]}."
        found.append(Column(name=MAP, values=of_maps.astype(np.float32), about=about))
        if data is not None:
            times = f", times the contrast {maps.contrast:.1f} of the map" if maps.contrast != 1.0 else ""
            about = f"Concentration in the map minus that in the data{times}. Above 0, the row is drawn too dense."
            values = (of_maps - maps.contrast * data).astype(np.float32)
            found.append(Column(name=RESIDUAL, values=values, diverging=True, about=about))
    return found


def label_column(labels: Any, n_samples: int) -> Column:
    """Return the labels as a column of text, with the name of the series if it has one."""
    given = getattr(labels, "name", None)
    name = given if isinstance(given, str) and given else LABEL
    return _text_column(name, _one_per_row("labels", labels, n_samples), labels)


def given_columns(columns: Any, n_samples: int) -> list[Column]:
    """Return the columns of a mapping or a data frame."""
    if not isinstance(columns, Mapping) and not hasattr(columns, "columns"):
        raise TypeError(
            "columns must be a mapping from names to columns, or a pandas DataFrame; got "
            f'{type(columns).__name__}. Pass {{"age": ages}}.'
        )
    names = list(columns) if isinstance(columns, Mapping) else list(columns.columns)
    repeated = sorted({str(name) for name in names if [str(other) for other in names].count(str(name)) > 1})
    if repeated:
        raise ValueError(
            f"columns must have distinct names; got {', '.join(map(repr, repeated))} more than once. Rename them."
        )
    found = []
    for name in names:
        values = _one_per_row(f"columns[{name!r}]", columns[name], n_samples)
        found.append(_column(str(name), values, columns[name]))
    return found


def row_names(names: Any, columns: Any, n_samples: int) -> list[str] | None:
    """Return the names of the rows, or None if they are the row numbers."""
    if names is None:
        names = getattr(columns, "index", None) if hasattr(columns, "columns") else None
        if names is None:
            return None
    values = _one_per_row("names", names, n_samples)
    if values.dtype.kind in "iu" and np.array_equal(values, np.arange(n_samples)):
        return None
    return ["" if _is_missing(value) else _as_text(value) for value in values.tolist()]


def _one_per_row(parameter: str, values: Any, n_samples: int) -> NDArray[Any]:
    """Return values as an array, after checking that there is one for every row."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.shape != (n_samples,) or isinstance(values, (str, bytes)):
        got = f"shape {array.shape}" if array.ndim else type(values).__name__
        raise ValueError(
            f"{parameter} must have one entry for each of the {n_samples} rows; got {got}. Pass a list or a "
            "one-dimensional array in the order of the rows."
        )
    if array.dtype.kind in "cV":
        raise ValueError(f"{parameter} must hold numbers or text; got the type {array.dtype}. Convert it first.")
    return array


def _column(name: str, values: NDArray[Any], given: Any) -> Column:
    if hasattr(getattr(given, "dtype", None), "categories"):
        return _text_column(name, values, given)
    if values.dtype.kind in "iuf":
        return Column(name=name, values=_single_precision(values))
    if values.dtype.kind == "O":
        present = [value for value in values.tolist() if not _is_missing(value)]
        if present and all(isinstance(value, Real) and not isinstance(value, bool) for value in present):
            numbers = [np.nan if _is_missing(value) else float(value) for value in values.tolist()]
            return Column(name=name, values=_single_precision(np.array(numbers)))
    return _text_column(name, values, given)


def _single_precision(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as float32. Infinite numbers count as missing, because a scale of colours cannot show them."""
    with np.errstate(over="ignore"):
        out = values.astype(np.float32)
    out[~np.isfinite(out)] = np.nan
    return out


def _text_column(name: str, values: NDArray[Any], given: Any) -> Column:
    """Return a column of text. Categories of pandas keep their order, numbers are in numeric order."""
    categories = getattr(getattr(given, "dtype", None), "categories", None)
    entries = values.tolist() if values.dtype.kind not in "Mm" else values.astype(str).tolist()
    texts = [None if _is_missing(entry) else _as_text(entry) for entry in entries]
    present = {text for text in texts if text is not None}
    known: list[str]
    if categories is not None:
        known = [text for text in dict.fromkeys(_as_text(entry) for entry in categories) if text in present]
    elif values.dtype.kind in "iuf":
        known = sorted(present, key=float)
    else:
        known = sorted(present, key=_natural)
    words: list[str | None] = [*known, None] if None in texts else [*known]
    place = {word: index for index, word in enumerate(words)}
    codes = np.array([place[text] for text in texts], dtype=_smallest_type(len(words)))
    return Column(name=name, values=codes, words=words)


def _smallest_type(count: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32


_DIGITS: Callable[[str], list[str]] = re.compile(r"([0-9]+)").split


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key that puts "group 2" before "group 10"."""
    return [(int(part), "") if place % 2 else (0, part.casefold()) for place, part in enumerate(_DIGITS(text))] + [
        (0, text)
    ]


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in _NOTHING or (isinstance(value, float) and value != value)


def _as_text(value: Any) -> str:
    """Return a label or a name as text. Whole numbers are written without decimals."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
