"""The command ``drsne evaluate``, which scores the map of any method."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from drsne.cli import Command, note
from drsne.cli._tables import add_input, read_input
from drsne.markdown import table as text_table

_MEANINGS = {
    "trustworthiness": "neighbours in the map are neighbours in the data (1 is best)",
    "continuity": "neighbours in the data are neighbours in the map (1 is best)",
    "concentration_correlation": "density of the data and of the map, k = 30 (1 is best)",
    "density_rank_correlation": "ranks of the densities, k = 30 (1 is best)",
    "local_density_rank_correlation": "ranks of the densities, k = 5 (1 is best)",
    "fragmentation": "share of neighbours that the map tears apart (0 is best)",
    "stress": "distortion of all distances (0 is best)",
    "silhouette": "separation of the labels in the map (1 is best)",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_input(parser)
    parser.add_argument("map", metavar="MAP", help="the map, with the rows of INPUT in the same order")
    parser.add_argument("--map-columns", metavar="COLUMNS", help="columns of the map, separated by commas")
    parser.add_argument("--metric", default="euclidean", help="metric of the data (default: euclidean)")
    parser.add_argument("--scale", action="store_true", help="scale the columns of the data first")
    parser.add_argument(
        "--samples", type=int, default=5000, metavar="N", help="largest number of scored points (default: 5000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="show no notes")


def run(options: argparse.Namespace) -> int:
    """Print the scores of a map."""
    from drsne import metrics
    from drsne.cli._maps import read_map
    from drsne.cli._tables import scaled
    from drsne.tables import TableError

    table = read_input(options)
    wanted = None if options.map_columns is None else options.map_columns.split(",")
    Y, used = read_map(options.map, wanted)
    if not options.quiet:
        note(f"Scoring the columns {', '.join(used)} of {options.map}.")
    kept = table.rows
    if len(Y) > len(kept) and int(kept[-1]) < len(Y):
        Y = Y[kept]
    if len(Y) != table.X.shape[0]:
        raise TableError(
            f"{options.map} has {len(Y):,} rows, but {options.input} has {table.X.shape[0]:,}. The rows of the map "
            "must be those of the data, in the same order."
        )
    X, _ = scaled(table, options)
    samples = None if len(Y) <= options.samples else options.samples
    scores = metrics.evaluate(X, Y, table.label, max_samples=samples, random_state=options.seed, metric=options.metric)
    _show(scores, options)
    return 0


def _show(scores: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        json.dump(scores, sys.stdout, indent=2)
        print()
        return
    rows = [[name.replace("_", " "), f"{value:.4f}", _MEANINGS[name]] for name, value in scores.items()]
    print(text_table(["score", "value", "what it measures"], rows))


COMMAND = Command(
    "score the map of any method",
    arguments,
    run,
    """\
  drsne evaluate flowers.csv map.csv --label species
  drsne evaluate cells.parquet umap.csv --map-columns umap_1,umap_2 --json""",
)
