"""What several commands share: arguments that describe a table, reading it, and the files that a command writes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import note

if TYPE_CHECKING:
    from drsne.tables import Table

FORMATS = "CSV, TSV, Parquet, Feather, NPY, NPZ or H5AD; - for standard input"
_MUCH = 100.0  # ratio of the spreads of two columns above which scaling is recommended


def add_input(parser: argparse.ArgumentParser, *, label: bool = True, drop: bool = True) -> None:
    """Add the arguments that describe the input."""
    parser.add_argument("input", metavar="INPUT", help=f"the data: {FORMATS}")
    if label:
        parser.add_argument("--label", metavar="COLUMN", help="column with labels, which is not part of the data")
    if drop:
        parser.add_argument(
            "--drop", metavar="COLUMNS", action="append", default=[], help="columns to leave out, separated by commas"
        )
    parser.add_argument("--format", help="format of the input (default: from its extension)")
    parser.add_argument("--array", metavar="NAME", help="array of an NPZ file")
    parser.add_argument("--use-rep", metavar="KEY", help="representation of an H5AD file: X or a key of obsm")
    parser.add_argument("--skip-missing", action="store_true", help="leave out rows with missing values")
    header = parser.add_mutually_exclusive_group()
    header.add_argument("--header", action="store_true", default=None, help="the first line of a CSV file has names")
    header.add_argument("--no-header", dest="header", action="store_false", help="the first line has values")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that protect existing files and show progress."""
    parser.add_argument("--force", action="store_true", help="replace existing files")
    parser.add_argument("--quiet", action="store_true", help="show no progress and no notes")


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a fit that most users need."""
    parser.add_argument("--scale", action="store_true", help="scale every column to mean 0 and standard deviation 1")
    parser.add_argument("--perplexity", type=float, default=30.0, help="effective number of neighbours (default: 30)")
    parser.add_argument(
        "--neighbors", type=int, default=30, metavar="K", help="neighbours that define density (default: 30)"
    )
    parser.add_argument("--metric", default="euclidean", help="metric of the data (default: euclidean)")
    parser.add_argument("--pca", type=int, metavar="N", help="reduce the data to N principal components first")
    parser.add_argument("--iterations", type=int, metavar="N", help="number of iterations (default: 700)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="number of threads (default: all cores)")


def fit_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of DRSNE for these options."""
    return {
        "perplexity": options.perplexity,
        "density_neighbors": options.neighbors,
        "metric": options.metric,
        "pca_components": options.pca,
        "max_iter": "auto" if options.iterations is None else options.iterations,
        "random_state": options.seed,
        "n_jobs": options.jobs,
        "verbose": 0 if options.quiet else 1,
    }


def read_input(options: argparse.Namespace, *, columns: list[str] | None = None) -> Table:
    """Read the input, and say what was found and left out."""
    from drsne.tables import read

    dropped = [name for text in getattr(options, "drop", []) for name in text.split(",") if name]
    table = read(
        options.input,
        format=options.format,
        label=getattr(options, "label", None),
        drop=dropped,
        columns=columns,
        skip_missing=options.skip_missing,
        array=options.array,
        use_rep=options.use_rep,
        header=options.header,
    )
    if not options.quiet:
        for each in table.notes:
            note(each)
    return table


class Outputs:
    """The files that a command is going to write. They are checked before any work begins.

    Two outputs must differ from each other and from the inputs, so that no file is lost even with ``--force``.
    """

    def __init__(self, options: argparse.Namespace, inputs: list[str]) -> None:
        self._force, self._quiet = options.force, options.quiet
        self._taken = {str(Path(each).resolve()): "the input" for each in inputs if each != "-"}

    def check(self, path: str | None, option: str, *, table: bool = False, extensions: tuple[str, ...] = ()) -> None:
        """Raise an error if an output cannot be written. None and "-" (standard output, for tables) are allowed."""
        from drsne.tables import TableError, check_output

        if path is None or (path == "-" and table):
            return
        check_output(Path(path), force=self._force, table=table, extensions=extensions)
        place = str(Path(path).resolve())
        if place in self._taken:
            raise TableError(f"{option} must not be {self._taken[place]}; got {path}. Choose another name.")
        self._taken[place] = f"the same file as {option}"

    def table(self, path: str | None, columns: Mapping[str, Any]) -> None:
        """Write columns to a file or to standard output."""
        if path is None:
            return
        from drsne.tables import write
        from drsne.tables.csv import write_rows

        if path == "-":
            write_rows(sys.stdout, columns)
            sys.stdout.flush()
            return
        write(Path(path), columns, force=self._force)
        self.wrote(path)

    def figure(self, path: str | None, figure: Any) -> None:
        """Write a figure."""
        if path is None:
            return
        from drsne.replacing import replacing

        with replacing(Path(path)) as temporary:
            figure.savefig(temporary, dpi=150)
        self.wrote(path)

    def wrote(self, path: str) -> None:
        """Say that a file was written."""
        if not self._quiet:
            note(f"Wrote {path}.")


def map_columns(table: Table, label: str | None, Y: Any, **columns: Any) -> dict[str, Any]:
    """Return the columns of an output: the names of the rows, the map, further columns and the label."""
    out: dict[str, Any] = {}
    if table.index is not None:
        out["name"] = table.index
    elif len(table.rows) and int(table.rows[-1]) != len(table.rows) - 1:
        out["row"] = table.rows  # rows with missing values were left out
    out |= {f"drsne{place + 1}": Y[:, place] for place in range(Y.shape[1])}
    out |= columns
    if label is not None and table.label is not None:
        out[label] = table.label
    return out


def scaled(table: Table, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the data, scaled if the user wishes, and the mean and spread of the columns, or None."""
    import numpy as np

    X = table.X
    if not isinstance(X, np.ndarray):
        if options.scale:
            raise ValueError("scale must not be given with sparse data. Scale them first.")
        return X, None
    X = X.astype(np.float64) if X.dtype.kind != "f" else X
    spread = X.std(axis=0, dtype=np.float64)
    if options.scale:
        mean, spread = X.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1.0)
        return (X - mean) / spread, {"mean": mean, "spread": spread}
    used = spread[spread > 0]
    if not options.quiet and options.metric == "euclidean" and len(used) > 1 and used.max() > _MUCH * used.min():
        names = table.columns or [f"x{place + 1}" for place in range(X.shape[1])]
        widest = names[int(np.argmax(spread))]
        note(
            f"The spread of the columns differs by a factor of {used.max() / used.min():,.0f}; {widest!r} has the "
            "largest and dominates the distances. Pass --scale if the columns have different units."
        )
    return X, None


def page_of(source: Any, table: Table, path: str) -> Any:
    """Return the page of a model or a path that was fitted to the table in the file ``path``."""
    from drsne import explorer

    title = "standard input" if path == "-" else Path(path).name
    return explorer.page(source, labels=table.label, columns=table.others, names=table.index, title=title)
