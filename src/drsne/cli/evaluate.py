"""The command ``drsne evaluate``, which scores the map of any method."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from drsne.cli import Command, UsageError, note
from drsne.cli._files import read_input, scaled
from drsne.cli._options import INPUT, adding, check, listed

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MEANINGS = {
    "trustworthiness": "neighbours in the map are neighbours in the data (1 is best)",
    "continuity": "neighbours in the data are neighbours in the map (1 is best)",
    "concentration_correlation": "correlation of the log concentrations of data and map, 30 neighbours (1 is best)",
    "density_rank_correlation": "correlation of the ranks of the densities, 30 neighbours (1 is best)",
    "local_density_rank_correlation": "correlation of the ranks of the densities, 5 neighbours (1 is best)",
    "fragmentation": "share of neighbours that the map tears apart (0 is best)",
    "stress": "distortion of all distances; depends mainly on the size of the map",
    "triplets": "share of random triplets in the right order of distances (1 is best, .5 is chance)",
    "distance_correlation": "rank correlation of the distances of random pairs (1 is best)",
    "silhouette": "separation of the labels in the map (1 is best)",
    "group_density_correlation": "rank correlation of the densities of groups in data and map (1 is best)",
}


def run(options: argparse.Namespace) -> int:
    """Print the scores of a map."""
    from drsne import metrics

    if options.input == options.map == "-":
        raise UsageError("INPUT and MAP cannot both be read from standard input. Pass the name of one of them.")
    check(options)
    table = read_input(options)
    Y = _of_rows(_map(options), table, options)
    X, _ = scaled(table, options)
    samples = None if len(Y) <= options.samples else options.samples
    scores = metrics.evaluate(X, Y, table.label, max_samples=samples, random_state=options.seed, metric=options.metric)
    if options.json:
        known = {name: value if math.isfinite(value) else None for name, value in scores.items()}  # JSON has no NaN
        json.dump(known, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        rows = [[name.replace("_", " "), f"{value:.4f}", _MEANINGS.get(name, "")] for name, value in scores.items()]
        print(_as_markdown([["score", "value", "what it measures"], *rows]))
    return 0


def _as_markdown(lines: list[list[str]]) -> str:
    """Return a table in Markdown, with columns of equal width. The first line is the header."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    header, *others = (f"| {' | '.join(line)} |" for line in padded)
    return "\n".join([header, f"|{'|'.join('-' * (width + 2) for width in widths)}|", *others])


def _map(options: argparse.Namespace) -> Any:
    """Return the map, and say what it is made of."""
    from drsne.cli._maps import read_map
    from drsne.io.tables import Source

    file = read_map(Source(options.map), listed(options.map_columns), options.map_rep)
    if hasattr(file.found, "embeddings"):
        weight = file.found.weights[0]
        raise ValueError(
            f"{options.map} has maps for {len(file.found.weights)} weights. Choose one of them, such as --map-columns "
            f"drsne1_w{weight:g},drsne2_w{weight:g}."
        )
    note(f"Scoring the columns {', '.join(file.used)} of {options.map}.", options)
    return file.found.embedding_


def _of_rows(Y: Any, table: Table, options: argparse.Namespace) -> Any:
    """Return the rows of a map that belong to the rows of the data, or raise an error if this is not clear."""
    used, every = len(table.rows), table.n_rows
    if len(Y) == used:
        return Y
    if len(Y) == every:  # rows with missing values were left out of the data only
        return Y[table.rows]
    left_out = f", of which {used:,} are complete" if every > used else ""
    raise ValueError(
        f"{options.map} has {len(Y):,} rows, but {options.input} has {every:,}{left_out}. The rows of the map "
        "must be those of the data, in the same order."
    )


COMMAND = Command(
    "score the map of any method",
    adding(
        *(*INPUT, "map", "--map-columns", "--map-rep", "--metric", "--scale", "--samples", "--seed", "--json"),
        "--quiet",
        seed="seed of the sample (default: 0)",
        quiet="show no notes and no warnings",
    ),
    run,
    """\
  drsne evaluate flowers.csv map.csv --label species
  drsne evaluate cells.parquet umap.csv --map-columns umap_1,umap_2 --json
  drsne evaluate cells.h5ad cells.h5ad --use-rep X_pca --map-rep X_umap""",
)
