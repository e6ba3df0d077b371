"""The files of commands: reading the input, checks before any work begins, and writing tables, pictures and pages."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import UsageError, note
from drsne.cli._options import dropped_columns, fit_parameters

if TYPE_CHECKING:
    from drsne.io.tables import Table

PICTURES = (".png", ".pdf", ".svg", ".jpg")
PAGES = (".html", ".htm")
_MOST_COLUMNS, _MOST_VALUES = 50, 10_000_000  # of the data in a page, which would become too large otherwise
_MUCH = 100.0  # ratio of the spreads of two columns above which scaling is recommended


def read_input(options: argparse.Namespace, *, columns: list[str] | None = None) -> Table:
    """Read the input, and say what was found and left out."""
    from drsne.io.tables import read

    dropped, label = dropped_columns(options), options.label
    if label in dropped:
        raise UsageError(f"--label and --drop name the same column, {label!r}. Leave one of them out.")
    given = {name: vars(options)[name] for name in ("format", "array", "use_rep", "header", "skip_missing")}
    table = read(options.input, label=label, drop=dropped, columns=columns, **given)
    for each in table.notes:
        note(each, options)
    # Columns that were dropped must not reach any output, because they can be confidential.
    return replace(table, others={name: values for name, values in table.others.items() if name not in dropped})


def scaled(table: Table, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the data, scaled if the user wishes, and the mean and spread of the columns, or None."""
    import numpy as np

    from drsne.io.tables import numbered

    X = table.X
    if not isinstance(X, np.ndarray):
        if options.scale:
            raise ValueError("--scale cannot be used with sparse data. Scale the data before you save the file.")
        return X, None
    spread = X.std(axis=0, dtype=np.float64)
    if options.scale:
        mean, spread = X.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1.0)
        return (X - mean) / spread, (mean, spread)
    used = spread[spread > 0]
    if not options.quiet and options.metric == "euclidean" and len(used) > 1 and used.max() > _MUCH * used.min():
        widest = (table.columns or numbered(X.shape[1]))[int(np.argmax(spread))]
        note(
            f"The spread of the columns differs by a factor of {used.max() / used.min():,.0f}; {widest!r} has the "
            "largest and dominates the distances. Pass --scale if the columns have different units."
        )
    return X, None


def prepared(table: Table, options: argparse.Namespace, **changes: Any) -> tuple[Any, dict[str, Any], Any]:
    """Return the data of a fit, its parameters, and the mean and spread of the columns if they are scaled.

    Raise an error if the fit, with these ``changes`` of its parameters, will need more memory than is free.
    """
    from drsne import DRSNE
    from drsne.estimators import memory

    X, scaling = scaled(table, options)
    params = fit_parameters(options)
    if table.document is not None and table.document.representation.computes_pca:
        sparse = hasattr(X, "nnz")  # sparse solvers find one component fewer
        components = min(table.document.representation.n_pcs, *(size - sparse for size in X.shape))
        params = {"pca_components": components, **params}
    model = DRSNE(**{**params, **changes})
    found = memory.shortage(X.shape, model.get_params(deep=False), getattr(X, "nnz", None))
    if found is not None and not options.force_memory:
        needed, free = found
        raise ValueError(
            f"A map of {X.shape[0]:,} rows and {X.shape[1]:,} columns needs about {needed / 1e9:.1f} GB of memory, but "
            f"only {free / 1e9:.1f} GB are free. Reduce the columns with --pca 50, or embed a sample of the rows with "
            "--model and place the others with drsne transform. Pass --force-memory to try it anyway."
        )
    return X, params, scaling


class Outputs:
    """The files that a command is going to write. They are checked before any work begins.

    Two outputs must differ from each other and from the inputs, so that no file is lost even with ``--force``.
    """

    def __init__(self, options: argparse.Namespace, inputs: list[str]) -> None:
        self._options, self._safe = options, getattr(options, "spreadsheet_safe", False)
        self._taken = {os.path.realpath(each): "the input" for each in inputs if each != "-"}

    def check(self, path: str | None, option: str, extensions: tuple[str, ...] = ()) -> None:
        """Raise an error if an output cannot be written. None is allowed."""
        from drsne.checks import package
        from drsne.io.tables import TableError, check_output

        if path is None:
            return
        if path == "-":
            raise UsageError(f"{option} must be the name of a file; got -. Only tables are written to standard output.")
        check_output(Path(path), extensions, force=self._options.force)
        if extensions == PICTURES:
            package("matplotlib", "Plots need", "plot")
        place = os.path.realpath(path)
        if place in self._taken:
            raise TableError(f"{option} must not be {self._taken[place]}; got {path}. Choose another name.")
        self._taken[place] = f"the same file as {option}"

    def check_table(self, *also: str) -> None:
        """Raise an error if the table of ``--output``, if any, cannot be written. ``also`` are further extensions."""
        from drsne.io.tables import WRITABLE, by_extension

        path = self._options.output
        if self._safe and path != "-" and (path is None or by_extension(Path(path)) != "csv"):
            raise UsageError(
                f"--spreadsheet-safe needs a CSV or TSV file as --output; got {path or 'none'}. Leave it out, or "
                "choose another name."
            )
        if path != "-":
            self.check(path, "--output", (*WRITABLE, *also))

    def check_names(self, table: Table, made: Iterable[str]) -> None:
        """Raise an error if the table of ``--output`` would have two columns of the same name."""
        from drsne.io.tables import check_columns

        if self._options.output is not None and not self._is_matrix:
            check_columns(table, self._options.label, made)

    @property
    def _is_matrix(self) -> bool:
        """Return whether the table has no names of columns, and only the numbers that were made."""
        return str(self._options.output).lower().endswith(".npy")

    def columns(self, table: Table, made: Mapping[str, Any]) -> None:
        """Write the table of ``--output``: the names of the rows, the columns that were made, and the label."""
        from drsne.io.tables import row_names

        names, label = row_names(table), {} if table.label is None else {self._options.label: table.label}
        if not self._is_matrix:
            made = {**names, **made, **label}
        elif names or label:
            left_out = ", ".join(map(repr, [*names, *label]))
            note(f"An NPY file is a matrix without names, so {left_out} is not in it.", self._options)
        self.table(self._options.output, made)

    def table(self, path: str | None, columns: Mapping[str, Any]) -> None:
        """Write columns to a file or to standard output."""
        from drsne.io.tables import write
        from drsne.io.text import spreadsheet_safe, write_rows

        if path is None:
            return
        columns = spreadsheet_safe(columns) if self._safe else columns
        if path == "-":
            write_rows(sys.stdout, columns)
            sys.stdout.flush()
            return
        write(Path(path), columns, force=self._options.force)
        self.wrote(path)

    def figure(self, path: str, figure: Any) -> None:
        """Write a figure."""
        from drsne.io.writing import replacing

        with replacing(Path(path)) as temporary:
            figure.savefig(temporary, dpi=150)
        self.wrote(path)

    def page(self, path: str, page: Any) -> None:
        """Write a page of the explorer."""
        page.save(path, force=self._options.force)
        self.wrote(path)

    def wrote(self, path: str) -> None:
        """Say that a file was written."""
        note(f"Wrote {path}.", self._options)


def two_panels(model: Any, label: Any, title: str | None) -> Any:
    """Return a figure of a map, coloured by label (if there is one) and by the concentration of the data."""
    from drsne import pl

    panels = [] if label is None else [(label, title or "label")]
    panels.append(("concentration", "Density"))
    figure = pl.new_figure((6.2 * len(panels) + 0.6, 5.4))
    for axis, (color, name) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        pl.embedding(model, color, ax=axis, title=name)
    return figure


def page_of(source: Any, table: Table, options: argparse.Namespace, *, reliability: Any = None) -> Any:
    """Return the page of a model or a path that was fitted to the table."""
    from drsne import explorer
    from drsne.io.tables import column_of, numbered, row_names

    n, width = table.X.shape
    most = min(width, _MOST_COLUMNS, max(1, _MOST_VALUES // n))
    if most < width:
        note(f"The page has the first {most} of the {width:,} columns of numbers, to colour the points by.", options)
    names = (table.columns or numbered(width))[:most]
    some = table.X[:, :most]
    columns = {name: column_of(some, place) for place, name in enumerate(names)} | table.others
    if reliability is not None:
        columns["reliability" if "reliability" not in columns else "reliability of the position"] = reliability
    return explorer.page(
        source,
        labels=table.label,
        label_name=options.label,
        columns=columns,
        names=next(iter(row_names(table).values()), None),
        title="standard input" if options.input == "-" else Path(options.input).name,
    )
