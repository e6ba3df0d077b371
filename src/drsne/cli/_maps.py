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

    found: Any  # a Map, a DensityPath or a model
    used: list[str]
    columns: dict[str, Any]
    names: Any


def read_map(source: Source, wanted: list[str] | None = None, use_rep: str | None = None) -> MapFile:
    """Return the map in a file: the ``wanted`` columns or, if None, those that are found by their names.

    In an H5AD file, it is the representation ``use_rep`` or, if None, ``obsm["X_drsne"]``. Only the coordinates must be
    complete.
    """
    import numpy as np

    from drsne.io.tables import TableError, column_of, known_column, read_content

    try:
        content = read_content(source, use_rep=use_rep or KEY)
    except TableError:
        raise
    except ValueError as error:  # about the representation of an H5AD file
        raise TableError(
            f"{source.name} cannot be read as a map: {error} Name the map with --use-rep (drsne evaluate: --map-rep)."
        ) from error
    own = {name: column_of(content.values, place) for place, name in enumerate(content.names)}
    numbers = [name for name, values in own.items() if values.dtype.kind in "biuf"]
    weights: dict[float, list[str]] = {}  # the columns of the maps along a path, by their weights
    for name in numbers:
        match = _OF_PATH.fullmatch(name)
        if match and wanted is None:
            weights.setdefault(float(match[2]), []).append(name)
    weights = dict(sorted(weights.items()))
    used = [name for names in weights.values() for name in names]
    used = used or wanted or _coordinates(content, numbers, source.name)
    for name in used:
        known_column(name, numbers, f"numbers in {source.name}", "--map-columns")
    Y = np.column_stack([np.asarray(own[name], dtype=np.float64) for name in used])
    wrong = (~np.isfinite(Y)).sum(axis=0)
    if wrong.any():
        counts = ", ".join(f"{count:,} in {name!r}" for name, count in zip(used, wrong, strict=True) if count)
        raise TableError(
            f"{source.name} has missing or infinite coordinates: {counts}. Leave these rows out of the map and of the "
            "data."
        )
    columns = {name: values for name, values in own.items() if name not in used}
    columns |= {str(name): values for name, values in content.others.items()}
    found: Any = Map(embedding_=Y)
    if weights:
        found = _path(Y, weights, columns)
    elif used[0].startswith("drsne") or (content.document is not None and (use_rep or KEY) == KEY):
        known = {} if content.document is None else content.document.adata.uns.get("drsne", {})
        found = _with_concentrations(Y, columns, known.get("contrast"))
    return MapFile(found, used, columns, content.index)


def _coordinates(content: Any, numbers: list[str], file: str) -> list[str]:
    """Return the columns that are the map, judged by their names, or raise an error if this is not clear.

    These are numbered columns with the same beginning, such as drsne1 and drsne2 or UMAP_1 and UMAP_2, or x and y. If
    there are none, all columns are the map if there are at most three.
    """
    if not content.is_frame and content.columns is None and len(numbers) == _WRITTEN:
        return numbers[:2]
    groups: dict[str, list[str]] = {}
    for name in numbers:
        match = re.fullmatch(r"(.*?)[ _.-]?([0-9]{1,2})", name)
        if match:
            groups.setdefault(match[1].lower(), []).append(name)
    numbered = [group for group in groups.values() if 2 <= len(group) <= _MOST]
    lower = {name.lower(): name for name in numbers}
    if content.document is None and (len(numbered) == 1 or (numbered and "drsne" in groups)):
        return groups.get("drsne", numbered[0])
    if content.document is None and {"x", "y"} <= set(lower):
        return [lower[each] for each in ("x", "y", "z") if each in lower]
    if not numbers or len(numbers) > _MOST:
        shown = ", ".join(numbers[:6]) + (", ..." if len(numbers) > 6 else "")
        raise ValueError(
            f"{file} has {len(numbers)} columns of numbers, and it is not clear which are the map"
            f"{f': {shown}' if shown else ''}. Choose them with --map-columns."
        )
    return numbers


def _path(Y: Any, weights: dict[float, list[str]], columns: dict[str, Any]) -> Any:
    """Return the maps along a path, without scores. The concentration of the data is taken out of the columns."""
    import numpy as np

    from drsne import DensityPath
    from drsne.terms.objective import PROFILE_WEIGHT

    listed = np.array(list(weights))
    unknown = np.full(len(listed), np.nan)
    data, contrast = _taken(columns, _CONCENTRATIONS[0][0]), _taken(columns, _CONTRAST)
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
    both = next((found for names in _CONCENTRATIONS if (found := _taken(columns, *names)) is not None), None)
    if both is None:
        return Map(embedding_=Y)
    data, shown = both
    listed = _taken(columns, _CONTRAST) if contrast is None else None
    if listed is not None:
        contrast = listed[0][0]
    elif contrast is None:  # the column was removed, so the contrast is that of the best line
        contrast = max(slope(data, shown), 0.0) or 1.0
    return Map(embedding_=Y, input_concentration_=data, concentration_=shown, contrast_=float(contrast))


def _taken(columns: dict[str, Any], *names: str) -> list[Any] | None:
    """Remove columns and return them as numbers, or return None if one is missing or incomplete."""
    import numpy as np

    found = [columns.get(name) for name in names]
    if any(values is None or values.dtype.kind not in "biuf" or not np.isfinite(values).all() for values in found):
        return None
    return [np.asarray(columns.pop(name), dtype=np.float64) for name in names]
