"""The command ``drsne explore``, which writes a page to explore maps in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from drsne.cli import Command, UsageError
from drsne.cli._options import OUTPUT, adding, dropped_columns, listed
from drsne.cli._outputs import PAGES, Outputs


def run(options: argparse.Namespace) -> int:
    """Read the maps and write the page."""
    outputs, page = Outputs(options, options.maps), options.output or "explorer.html"
    outputs.check(page, "--output", extensions=PAGES)
    if options.maps.count("-") > 1:
        raise UsageError("Only one map can be read from standard input. Pass the names of the other files.")
    outputs.page(page, _page([_opened(path, options) for path in options.maps], options))
    return 0


class _Opened(NamedTuple):
    """What one of the files holds."""

    path: str
    source: Any  # a model, a DensityPath or a Map
    columns: dict[str, Any]
    names: Any

    @property
    def title(self) -> str:
        return "standard input" if self.path == "-" else Path(self.path).stem


def _opened(path: str, options: argparse.Namespace) -> _Opened:
    """Read a model or a map."""
    import drsne
    from drsne.cli._maps import read_map
    from drsne.io.models import is_model
    from drsne.io.tables import Source, TableError

    source = Source(path)
    source.check()
    if not is_model(source.start):
        file = read_map(source, listed(options.map_columns), options.use_rep)
        return _Opened(path, file.found, file.columns, file.names)
    if path == "-":
        raise TableError("A model cannot be read from standard input. Pass the name of its file.")
    return _Opened(path, drsne.load(path), {}, None)


def _page(opened: list[_Opened], options: argparse.Namespace) -> Any:
    from drsne import explorer

    columns: dict[str, Any] = {}
    for each in opened:
        columns |= {name: values for name, values in each.columns.items() if name not in columns}
    for name in dropped_columns(options):
        del columns[_known(name, columns, "--drop")]
    labels = _labels(columns, options)
    given: dict[str, Any] = {"labels": labels, "label_name": options.label, "columns": columns}
    given["names"] = next((each.names for each in opened if each.names is not None), None)
    given["title"] = options.title or opened[0].title
    if len(opened) == 1:
        return explorer.page(opened[0].source, **given)
    return explorer.page(_together(opened), **given)


def _labels(columns: dict[str, Any], options: argparse.Namespace) -> Any:
    """Take the labels out of the columns, or raise an error if they are not there."""
    import numpy as np

    if options.label is None:
        return None
    if not columns:
        raise UsageError(f"--label cannot be used with {options.maps[0]}, which has no columns besides its map.")
    labels = columns.pop(_known(options.label, columns, "--label"))
    whole = labels.dtype.kind == "f" and (labels == np.round(labels)).all()
    return labels.astype(np.int64) if whole else labels


def _known(name: str, columns: dict[str, Any], option: str) -> str:
    """Return the name of a column, or raise an error if there is no such column."""
    from drsne.checks import did_you_mean
    from drsne.io.tables import TableError

    if name not in columns:
        hint = did_you_mean(name, columns) or f"They have {', '.join(map(repr, list(columns)[:5])) or 'none'}."
        raise TableError(f"{option} must name a column of one of the files besides the map; got {name!r}. {hint}")
    return name


def _together(opened: list[_Opened]) -> dict[str, Any]:
    """Return all maps by their titles. The page checks that they have the same number of rows."""
    maps: dict[str, Any] = {}
    for each in opened:
        title = each.title if each.title not in maps else each.path
        if hasattr(each.source, "embeddings"):
            weights = zip(each.source.weights, each.source.embeddings, strict=True)
            maps |= {f"{title}, λ = {weight:g}": Y for weight, Y in weights}
        else:
            maps[title] = each.source.embedding_
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
