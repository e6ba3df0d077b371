"""Colours of points by class or by value, and the classes of a column in their natural order."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.checks import is_missing, refuse_cells

_DIGITS: Callable[[str], list[str]] = re.compile(r"([0-9]+)").split


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of an array are missing."""
    if values.dtype.kind in "fMm":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def as_numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return an array of numbers with NaN for missing entries, or None if some of the entries are not numbers."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if values.dtype.kind == "O":
        absent = missing(values)
        if not absent.all() and all(_is(value, Real) for value in values[~absent]):
            return np.where(absent, np.nan, values).astype(np.float64)
    return None


def has_categories(given: Any) -> bool:
    """Return whether a column is a pandas categorical."""
    typed = hasattr(getattr(given, "dtype", None), "categories")
    return typed and hasattr(getattr(given, "cat", given), "codes")


def classes_of(given: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the classes, and the class of each entry, or -1 if it is missing.

    The categories of pandas keep their order. Numbers are in numeric order, and "type 2" comes before "type 10".
    """
    if has_categories(given):
        categorical = getattr(given, "cat", given)
        return texts(np.asarray(categorical.categories)), np.asarray(categorical.codes, dtype=np.intp)
    refuse_cells("labels", given)
    values = np.asarray(given)
    known = ~missing(values)
    words = texts(values[known])
    if as_numbers(values) is None:
        names = sorted(set(words), key=natural)
    else:
        value_of = dict(zip(words, values[known].tolist(), strict=True))
        names = sorted(value_of, key=value_of.__getitem__)
    place = {name: index for index, name in enumerate(names)}
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[known] = [place[word] for word in words]
    return names, codes


def natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers within text by their value, and letters without regard to their case."""
    parts = _DIGITS(text)  # text and digits in turn
    parts[::2] = [part.casefold() for part in parts[::2]]
    parts[1::2] = [part.lstrip("0") for part in parts[1::2]]
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(parts)] + [(0, text)]


def as_text(value: Any) -> str:
    """Return a label or a name as text. Whole numbers are written without decimals."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def texts(values: NDArray[Any]) -> list[str]:
    """Return the entries of an array as text. Dates are written without a time if all times are midnight."""
    if values.dtype.kind == "M" and (values == values.astype("datetime64[D]")).all():
        values = values.astype("datetime64[D]")
    entries = values.astype(str) if values.dtype.kind in "Mm" else values
    return [as_text(entry) for entry in entries.tolist()]


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


# The palette of Okabe and Ito (2008) without black, which people with any kind of colour vision can tell apart.
_FEW = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#555555")
# More classes: colours of Paul Tol's palette "muted", and then lighter and darker shades of the others.
_MANY = (
    *_FEW,
    *("#882255", "#332288", "#999933", "#44AA99", "#CC6677", "#117733", "#DDCC77", "#000000"),
    *("#8FC7E8", "#F7D58B", "#7FD1B9", "#E9BFD6", "#B5DDF4", "#F0A878", "#FAF4A6", "#AAAAAA"),
    *("#003F63", "#8C6000", "#8A3D00", "#B08CD9", "#C9A06C", "#2F4F4F"),
)
_MISSING = "#D9D9D9"
MOST_CLASSES = len(_MANY)  # largest number of classes with a colour of their own
_WHOLE_NUMBERS = 30  # whole numbers with more different values are shown as a continuous scale
CONTINUOUS, DIVERGING = "viridis", "RdBu_r"
_OTHER = "other"


class Colors(NamedTuple):
    """The colours of points, and what a legend or a colour bar needs."""

    rgba: NDArray[Any]  # (n, 4)
    names: list[str]  # of the classes, in the order of the legend; empty for values
    of_names: list[Any]
    mapped: Any = None  # a ScalarMappable for the colour bar
    more: int = 0  # number of classes that are drawn as "other"
    extend: str = "neither"  # at which ends of the colour bar there are values beyond it, as matplotlib names them


def single(n: int, color: str = _FEW[0]) -> Colors:
    """Return one colour for all points."""
    from matplotlib.colors import to_rgba

    return Colors(np.tile(to_rgba(color), (n, 1)), [], [])


def is_categorical(color: Any) -> bool:
    """Return whether a column holds classes: categories, text, booleans, dates, or a few whole numbers."""
    refuse_cells("color", color)
    values = np.asarray(color)
    numbers = as_numbers(values)
    if numbers is None or has_categories(color):
        return True
    whole = getattr(getattr(color, "dtype", values.dtype), "kind", "") in ("i", "u")  # may have missing entries
    if values.dtype.kind == "O" and not whole:
        whole = all(_is(value, Integral) for value in values[~missing(values)])
    return whole and len(np.unique(numbers[np.isfinite(numbers)])) <= _WHOLE_NUMBERS


def by_class(color: Any, cmap: Any = None) -> Colors:
    """Return colours for classes. The order of a pandas categorical is kept; other classes are sorted."""
    from matplotlib.colors import to_rgba

    names, codes = classes_of(color)
    more = max(0, len(names) - MOST_CLASSES)
    if more:  # the most frequent classes keep their colours
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_CLASSES - 1])
        places = np.full(len(names), len(kept))
        places[kept] = np.arange(len(kept))
        codes = np.where(codes >= 0, places[codes], -1)
        more = len(names) - len(kept)
        names = [*(names[place] for place in kept), f"{_OTHER} ({more})"]
    palette = _palette(len(names) - bool(more), cmap) + ([to_rgba("#BBBBBB")] if more else [])
    table = np.array([*palette, to_rgba(_MISSING)])
    return Colors(table[codes], names, palette, more=more)


def limits_of(values: NDArray[Any]) -> tuple[float, float]:
    """Return the ends of a scale of colours that leaves out the most extreme percent at each end."""
    low, high = np.quantile(values, (0.01, 0.99)) if len(values) else (0.0, 1.0)
    return float(low), float(high if high > low else low + 1.0)


def by_value(
    values: NDArray[Any], cmap: Any, limits: tuple[float, float] | None = None, center: float | None = None
) -> Colors:
    """Return colours for values. The scale leaves out the most extreme percent at each end."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize, to_rgba

    finite = values[np.isfinite(values)]
    if limits is None:
        limits = low, high = limits_of(finite)
        if center is not None:
            half = max(abs(low - center), abs(high - center))
            limits = center - half, center + half
    mapped = ScalarMappable(Normalize(*limits), cmap or (CONTINUOUS if center is None else DIVERGING))
    rgba = mapped.to_rgba(np.where(np.isfinite(values), values, limits[0]))
    rgba[~np.isfinite(values)] = to_rgba(_MISSING)
    below, above = bool((finite < limits[0]).any()), bool((finite > limits[1]).any())
    extend = "both" if below and above else "min" if below else "max" if above else "neither"
    return Colors(rgba, [], [], mapped, extend=extend)


def _palette(count: int, cmap: Any) -> list[Any]:
    from matplotlib import colormaps
    from matplotlib.colors import Colormap, to_rgba

    if cmap is None:
        chosen = _FEW if count <= len(_FEW) else _MANY
        return [to_rgba(each) for each in chosen[:count]]
    made = cmap if isinstance(cmap, Colormap) else colormaps[cmap]
    if getattr(made, "N", 256) <= 20:  # a list of colours
        return [made(place % made.N) for place in range(count)]
    return [made(place / max(1, count - 1)) for place in range(count)]
