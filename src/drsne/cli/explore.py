"""The command ``drsne explore``, which writes a page to explore maps in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import Command, UsageError
from drsne.cli._files import PAGES, Outputs
from drsne.cli._options import OUTPUT, adding, dropped_columns, listed

if TYPE_CHECKING:
    from drsne.cli._maps import MapFile


def run(options: argparse.Namespace) -> int:
    """Read the maps and write the page."""
    from drsne import explorer
    from drsne.io.tables import known_column

    outputs, page = Outputs(options, options.maps), options.output or "explorer.html"
    outputs.check(page, "--output", PAGES)
    if options.maps.count("-") > 1:
        raise UsageError("Only one map can be read from standard input. Pass the names of the other files.")
    opened = {path: _opened(path, options) for path in options.maps}
    columns: dict[str, Any] = {}
    for file in opened.values():
        columns |= {name: values for name, values in file.columns.items() if name not in columns}
    every = f"{', '.join(opened)} besides the map"
    for name in dropped_columns(options):
        del columns[known_column(name, columns, every, "--drop")]
    labels = None
    if options.label is not None:
        if not columns:
            raise UsageError(f"--label cannot be used with {options.maps[0]}, which has no columns besides its map.")
        labels = columns.pop(known_column(options.label, columns, every, "--label"))
        if labels.dtype.kind == "f" and (labels == labels.round()).all():  # whole numbers are written as integers
            labels = labels.astype("int64")
    given = {
        "labels": labels,
        "label_name": options.label,
        "columns": columns,
        "names": next((file.names for file in opened.values() if file.names is not None), None),
        "title": options.title or _title(options.maps[0]),
    }
    source = opened[options.maps[0]].found if len(options.maps) == 1 else _together(opened)
    outputs.page(page, explorer.page(source, **given))
    return 0


def _opened(path: str, options: argparse.Namespace) -> MapFile:
    """Read a model or a map."""
    import drsne
    from drsne.cli._maps import MapFile, read_map
    from drsne.io.models import is_model
    from drsne.io.tables import Source

    source = Source(path)
    source.check()
    if not is_model(source.start):
        return read_map(source, listed(options.map_columns), options.use_rep)
    if path == "-":
        raise ValueError("A model cannot be read from standard input. Pass the name of its file.")
    return MapFile(drsne.load(path), [], {}, None)


def _title(path: str) -> str:
    return "standard input" if path == "-" else Path(path).stem


def _together(opened: dict[str, MapFile]) -> dict[str, Any]:
    """Return all maps by their titles. The page checks that they have the same number of rows."""
    maps: dict[str, Any] = {}
    for path, file in opened.items():
        title = _title(path) if _title(path) not in maps else path
        if hasattr(file.found, "embeddings"):
            weights = zip(file.found.weights, file.found.embeddings, strict=True)
            maps |= {f"{title}, λ = {weight:g}": Y for weight, Y in weights}
        else:
            maps[title] = file.found.embedding_
    return maps


COMMAND = Command(
    "write a page to explore maps in a browser",
    adding(
        *("maps", "--output", "--label", "--drop", "--map-columns", "--use-rep", "--title", *OUTPUT),
        output="the page (default: explorer.html)",
        label="column of one of the files with labels",
        use_rep="map of an H5AD file: a key of obsm (default: X_drsne)",
    ),
    run,
    """\
  drsne explore map.csv --label species -o page.html
  drsne explore drsne.csv umap.csv tsne.csv -o compare.html
  drsne explore cells.h5ad --use-rep X_umap
  drsne explore points.drsne""",
)
