"""The columns of a page: labels, numbers and text, as arrays that a browser can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import refuse_cells
from drsne.explorer.sources import Maps
from drsne.pl._colors import as_numbers, classes_of, has_categories, missing, texts
from drsne.pl._models import target

LABEL = "label"  # default name of the column of labels
_LARGEST_EXACT = 2.0**53  # largest integer up to which the numbers of a page hold every integer
DATA, MAP, RESIDUAL = "concentration in the data", "concentration in the map", "residual"
_MEASURED = {
    "data": "measured over the neighbours in the data",
    "map": "measured over the nearest neighbours in the map",
    "radii": "computed from den-SNE's local radii",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a page."""

    name: str
    values: NDArray[Any]  # numbers or indices into words, (n_samples,), or (n_maps, n_samples) for each map
    words: list[str | None] | None = None  # distinct texts, None for a missing one; None for a column of numbers
    diverging: bool = False  # whether the colours are centred on 0
    about: str = ""  # a sentence that explains the column


def own_columns(maps: Maps) -> list[Column]:
    """Return the columns that follow from the maps: their concentration, that of the data, and the residual."""
    found: list[Column] = []
    data = maps.input_concentration
    unit = "Log relative concentration: 0 is the mean concentration, and larger values are denser"
    if data is not None:
        found.append(Column(name=DATA, values=data.astype(np.float32), about=f"{unit}."))
    if maps.concentrations:
        of_maps = np.stack(maps.concentrations)
        about = f"{unit}; {_MEASURED[maps.measured_in]}."
        found.append(Column(name=MAP, values=of_maps.astype(np.float32), about=about))
        if data is not None:
            contrasts = np.array(maps.contrasts or [1.0] * len(of_maps))
            about = f"Concentration in the map minus {_multiple(contrasts)}. "
            about += "The median is 0. Above 0, the row is drawn too dense."
            wanted = np.stack([target(data, *each) for each in zip(of_maps, contrasts.tolist(), strict=True)])
            values = (of_maps - wanted).astype(np.float32)
            found.append(Column(name=RESIDUAL, values=values, diverging=True, about=about))
    return found


def _multiple(contrasts: NDArray[np.float64]) -> str:
    """Return the words for what is subtracted: the concentration in the data, times the contrast unless it is 1."""
    low, high = float(contrasts.min()), float(contrasts.max())
    if low < high:
        return f"that in the data, which is multiplied by the contrast of the map ({low:.2f} to {high:.2f})"
    factor = "" if low == 1.0 else f"{low:.2f} times "
    return f"{factor}that in the data" + (f" ({low:.2f} is the contrast of the map)" if factor else "")


def label_column(labels: Any, name: str | None, n_samples: int) -> Column:
    """Return the labels as a column of text. If ``name`` is None, it has the name of the series, if that has one."""
    if name is None:
        given = getattr(labels, "name", None)
        name = LABEL if given is None or given == "" else str(given)
    labels = _exact(labels)
    _one_per_row("labels", labels, n_samples)
    return _text_column(name, labels)


def given_columns(columns: Any, n_samples: int) -> list[Column]:
    """Return the columns of a mapping or a data frame."""
    if not isinstance(columns, Mapping) and not hasattr(columns, "columns"):
        raise TypeError(
            "columns must be a mapping from names to columns, or a pandas DataFrame; got "
            f'{type(columns).__name__}. Pass {{"age": ages}}.'
        )
    names = list(columns) if isinstance(columns, Mapping) else list(columns.columns)
    if repeated := sorted(name for name, count in Counter(map(str, names)).items() if count > 1):
        raise ValueError(
            f"columns must have distinct names; got {', '.join(map(repr, repeated))} more than once. Rename them."
        )
    found = []
    for name in names:
        given = _exact(columns[name])
        values = _one_per_row(f"columns[{name!r}]", given, n_samples)
        numbers = None if has_categories(given) else as_numbers(values)
        if numbers is None or _rounded(values, numbers):
            found.append(_text_column(str(name), given))
        else:
            found.append(Column(name=str(name), values=_in_few_bytes(numbers)))
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
    return ["" if absent else text for absent, text in zip(missing(values), texts(values), strict=True)]


def _one_per_row(parameter: str, values: Any, n_samples: int) -> NDArray[Any]:
    """Return values as an array, after checking that there is one for every row."""
    refuse_cells(parameter, values)
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


def _exact(given: Any) -> Any:
    """Return a column as objects if NumPy would round it: whole numbers of pandas that may have missing entries."""
    dtype = getattr(given, "dtype", None)
    return given.astype(object) if getattr(dtype, "kind", "") in ("i", "u") and hasattr(dtype, "na_value") else given


def _rounded(values: NDArray[Any], numbers: NDArray[np.float64]) -> bool:
    """Return whether whole numbers, such as ids, have become others in double precision."""
    large = np.abs(numbers) > _LARGEST_EXACT
    if values.dtype.kind == "O":
        return any(isinstance(value, Integral) and int(value) != int(float(value)) for value in values[large])
    return values.dtype.kind in "iu" and bool(large.any())


def _in_few_bytes(values: NDArray[np.float64]) -> NDArray[np.floating[Any]]:
    """Return numbers as float32 if that changes none of them, and NaN for infinite ones, which no colour shows."""
    out = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(over="ignore"):
        single = out.astype(np.float32)
    return single if np.array_equal(single, out, equal_nan=True) else out


def _text_column(name: str, given: Any) -> Column:
    """Return a column of text, with the classes that occur in it. Missing entries come last."""
    names, codes = classes_of(given)
    used, places = np.unique(np.where(codes < 0, len(names), codes), return_inverse=True)
    words = [names[code] if code < len(names) else None for code in used]
    return Column(name=name, values=places.astype(np.min_scalar_type(max(0, len(words) - 1))), words=words)
