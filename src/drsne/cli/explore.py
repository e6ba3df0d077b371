"""The command ``drsne explore``, which writes a page to explore maps in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from drsne.cli import Command
from drsne.cli._tables import Outputs, add_output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "maps", metavar="MAP", nargs="+", help="files with maps of the same rows, made by any method, or model files"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="explorer.html", help="the page (default: explorer.html)"
    )
    parser.add_argument("--label", metavar="COLUMN", help="column of the first file with labels")
    parser.add_argument("--map-columns", metavar="COLUMNS", help="columns of the maps, separated by commas")
    parser.add_argument("--title", help="title of the page")
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Read the maps and write the page."""
    outputs = Outputs(options, options.maps)
    outputs.check(options.output, "--output", extensions=(".html", ".htm"))
    from drsne import explorer

    if len(options.maps) == 1 and _is_model(options.maps[0]):
        import drsne

        page = explorer.page(drsne.load(options.maps[0]), title=options.title or Path(options.maps[0]).name)
    else:
        page = _page_of_files(options)
    page.save(options.output, force=options.force)
    outputs.wrote(options.output)
    return 0


def _is_model(path: str) -> bool:
    from drsne.files import MAGIC
    from drsne.tables import Source

    source = Source(path)
    source.check()
    return source.start.startswith(MAGIC)


def _page_of_files(options: argparse.Namespace) -> Any:
    import numpy as np

    import drsne
    from drsne import explorer
    from drsne.cli._maps import read_map_and_rest
    from drsne.tables import TableError

    wanted = None if options.map_columns is None else options.map_columns.split(",")
    maps: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    names = None
    for path in options.maps:
        title = Path(path).stem if Path(path).stem not in maps else path
        if _is_model(path):
            maps[title] = drsne.load(path).embedding_
            continue
        Y, used, table = read_map_and_rest(path, wanted)
        if maps and len(Y) != len(next(iter(maps.values()))):
            first = next(iter(maps))
            raise TableError(
                f"{path} has {len(Y):,} rows, but {first} has {len(maps[first]):,}. Pass maps of the same rows."
            )
        maps[title] = Y
        names = table.index if names is None else names
        rest = [name for name in table.columns or () if name not in used]
        found = {name: table.X[:, table.columns.index(name)] for name in rest} | table.others
        columns |= {name: values for name, values in found.items() if name not in columns}
    labels = None
    if options.label is not None:
        if options.label not in columns:
            raise TableError(f"--label must name a column of {options.maps[0]}; got {options.label!r}.")
        labels = columns.pop(options.label)
        if labels.dtype.kind == "f" and (labels == np.round(labels)).all():
            labels = labels.astype(np.int64)
    source: Any = maps if len(maps) > 1 else next(iter(maps.values()))
    return explorer.page(source, labels=labels, columns=columns, names=names, title=options.title or next(iter(maps)))


COMMAND = Command(
    "write a page to explore maps in a browser",
    arguments,
    run,
    """\
  drsne explore map.csv --label species -o page.html
  drsne explore drsne.csv umap.csv tsne.csv -o compare.html
  drsne explore points.drsne""",
)
