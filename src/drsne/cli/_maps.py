"""Reading of maps that any method has made, and of the maps along a path of weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from drsne.pl._models import Map, slope

if TYPE_CHECKING:
    from drsne.io.tables import Source

KEY = "X_drsne"  # where an AnnData object has the map of this package
_MOST = 3  # largest number of dimensions of a map whose columns have no recognisable names
_WRITTEN = 5  # number of columns of an NPY file of drsne embed: the map, both concentrations and the contrast
_OF_PATH = re.compile(r"drsne([0-9]+)_w([0-9][0-9.e+-]*)")  # names of the columns of drsne path
# Names of the concentrations of data and map in tables and in AnnData objects.
_CONCENTRATIONS = (("concentration_data", "concentration_map"), ("drsne_concentration", "drsne_concentration_map"))
_CONTRAST = "contrast"  # the column of the contrast, which has the same value in all rows


class MapFile(NamedTuple):
    """What a file with a map holds: the map or the path of maps, the columns that it is made of, and the rest."""

    found: Any  # a Map or a DensityPath
    used: list[str]
    columns: dict[str, Any]
    names: Any


def read_map(source: Source, wanted: list[str] | None = None, use_rep: str | None = None) -> MapFile:
    """Return the map in a file. Only its coordinates must be complete; other columns may have missing values.

    ``wanted`` are the columns that are the map. If None, they are found by their names. ``use_rep`` is the
    representation of an H5AD file that is the map. If None, it is ``obsm["X_drsne"]``.
    """
    from drsne.io.tables import column_of

    content = _content(source, use_rep or KEY)
    own = {name: column_of(content.values, place) for place, name in enumerate(content.names)}
    rest = {str(name): values for name, values in content.others.items()}
    numbers = [name for name, values in own.items() if values.dtype.kind in "biuf"]
    weights = _weights(numbers) if wanted is None else {}
    if weights:
        used = [name for names in weights.values() for name in names]
    else:
        used = wanted or _coordinates_in(content, numbers, source.name)
    _check_known(used, numbers, source.name)
    Y = _stacked(own, used, source.name)
    columns = {name: values for name, values in own.items() if name not in used} | rest
    contrast = None
    if content.document is not None:
        contrast = content.document.adata.uns.get("drsne", {}).get("contrast")
    if weights:
        found: Any = _path(Y, weights, columns)
    elif used[0].startswith("drsne") or (content.document is not None and (use_rep or KEY) == KEY):
        found = _with_concentrations(Y, columns, contrast)
    else:
        found = Map(embedding_=Y)
    return MapFile(found, used, columns, content.index)


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


def _content(source: Source, use_rep: str) -> Any:
    """Return what a file holds."""
    from drsne.io.tables import TableError, format_of, read_content

    try:
        return read_content(source, use_rep=use_rep)
    except TableError:
        raise
    except ValueError as error:
        if format_of(source) != "h5ad":
            raise
        raise TableError(
            f"{source.name} cannot be read as a map: {error} Name the map with --use-rep (drsne evaluate: --map-rep)."
        ) from error


def _coordinates_in(content: Any, numbers: list[str], file: str) -> list[str]:
    """Return the columns that are the map, or raise an error if this is not clear."""
    from drsne.io.tables import TableError

    if content.document is not None and len(numbers) <= _MOST:
        return numbers
    if not content.has_names and len(numbers) == _WRITTEN:
        return numbers[:2]
    used = coordinates(numbers) if content.document is None else []
    if not used:
        shown = ", ".join(numbers[:6]) + (", ..." if len(numbers) > 6 else "")
        raise TableError(
            f"{file} has {len(numbers)} columns of numbers, and it is not clear which are the map"
            f"{f': {shown}' if shown else ''}. Choose them with --map-columns."
        )
    return used


def _check_known(used: list[str], numbers: list[str], file: str) -> None:
    from drsne.checks import did_you_mean
    from drsne.io.tables import TableError

    missing = [name for name in used if name not in numbers]
    if missing:
        hint = did_you_mean(missing[0], numbers) or f"It has {', '.join(numbers[:10])}."
        raise TableError(f"{file} has no column of numbers {missing[0]!r}. {hint}")


def _stacked(own: dict[str, Any], used: list[str], file: str) -> Any:
    """Return the coordinates as one array, or raise an error if some are missing."""
    import numpy as np

    from drsne.io.tables import TableError

    Y = np.column_stack([np.asarray(own[name], dtype=np.float64) for name in used])
    wrong = (~np.isfinite(Y)).sum(axis=0)
    if wrong.any():
        counts = ", ".join(f"{count:,} in {name!r}" for name, count in zip(used, wrong, strict=True) if count)
        raise TableError(
            f"{file} has missing or infinite coordinates: {counts}. Leave these rows out of the map and of the data."
        )
    return Y


def _weights(numbers: list[str]) -> dict[float, list[str]]:
    """Return the columns of the maps along a path by their weights, in ascending order."""
    found: dict[float, list[str]] = {}
    for name in numbers:
        match = _OF_PATH.fullmatch(name)
        if match:
            found.setdefault(float(match[2]), []).append(name)
    return dict(sorted(found.items()))


def _path(Y: Any, weights: dict[float, list[str]], columns: dict[str, Any]) -> Any:
    """Return the maps along a path, without scores. The concentration of the data is taken out of the columns."""
    import numpy as np

    from drsne import DensityPath
    from drsne.terms.objective import PROFILE_WEIGHT

    listed = np.array(list(weights))
    unknown = np.full(len(listed), np.nan)
    data = _taken(columns, (_CONCENTRATIONS[0][0],))
    contrast = _taken(columns, (_CONTRAST,))
    contrasts = None
    if data is not None and contrast is not None:
        contrasts = np.where(listed > PROFILE_WEIGHT, 1.0, contrast[0][0])
    ends = np.cumsum([len(names) for names in weights.values()])
    return DensityPath(
        weights=listed,
        embeddings=np.split(Y, ends[:-1], axis=1),
        metrics={},
        kl_divergence=unknown,
        concentration_loss=unknown,
        baseline=float("nan"),
        input_concentration=None if data is None else data[0],
        contrasts=contrasts,
    )


def _with_concentrations(Y: Any, columns: dict[str, Any], contrast: float | None) -> Map:
    """Return a map with the concentrations of the data and of the map, if the columns have both."""
    for names in _CONCENTRATIONS:
        both = _taken(columns, names)
        if both is not None:
            data, shown = both
            listed = _taken(columns, (_CONTRAST,)) if contrast is None else None
            if listed is not None:
                contrast = listed[0][0]
            elif contrast is None:  # the column was removed, so the contrast is that of the best line
                contrast = max(slope(data, shown), 0.0) or 1.0
            return Map(embedding_=Y, input_concentration_=data, concentration_=shown, contrast_=float(contrast))
    return Map(embedding_=Y)


def _taken(columns: dict[str, Any], names: tuple[str, ...]) -> list[Any] | None:
    """Remove columns and return them as numbers, or return None if one is missing or incomplete."""
    import numpy as np

    found = [columns.get(name) for name in names]
    if any(values is None or values.dtype.kind not in "biuf" or not np.isfinite(values).all() for values in found):
        return None
    return [np.asarray(columns.pop(name), dtype=np.float64) for name in names]
