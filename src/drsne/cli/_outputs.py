"""The files that a command writes: their checks before any work begins, what they show, and writing them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import UsageError, note

if TYPE_CHECKING:
    from drsne.io.tables import Table

PICTURES = (".png", ".pdf", ".svg", ".jpg")
PAGES = (".html", ".htm")
_MOST_COLUMNS, _MOST_VALUES = 50, 10_000_000  # of the data in a page, which would become too large otherwise
_SCORED = 5000  # largest number of rows whose reliability is computed
_RELIABILITY = "reliability"


class Outputs:
    """The files that a command is going to write. They are checked before any work begins.

    Two outputs must differ from each other and from the inputs, so that no file is lost even with ``--force``.
    """

    def __init__(self, options: argparse.Namespace, inputs: list[str]) -> None:
        self._force, self._quiet = options.force, options.quiet
        self._safe = getattr(options, "spreadsheet_safe", False)
        self._taken = {os.path.realpath(each): "the input" for each in inputs if each != "-"}

    def check(
        self,
        path: str | None,
        option: str,
        *,
        table: bool = False,
        h5ad: bool = False,
        extensions: tuple[str, ...] = (),
    ) -> None:
        """Raise an error if an output cannot be written. None and "-" (standard output, for tables) are allowed.

        The parameters are those of :func:`drsne.io.tables.check_output`.
        """
        from drsne.checks import package
        from drsne.io.tables import TableError, check_output

        if table and self._safe and not _is_text(path):
            raise UsageError(
                f"--spreadsheet-safe needs a CSV or TSV file as {option}; got {path or 'none'}. Leave it out, or "
                "choose another name."
            )
        if path is None or (path == "-" and table):
            return
        if path == "-":
            raise UsageError(f"{option} must be the name of a file; got -. Only tables are written to standard output.")
        check_output(Path(path), force=self._force, table=table, extensions=extensions, h5ad=h5ad)
        if extensions == PICTURES:
            package("matplotlib", "Plots need", "plot")
        place = os.path.realpath(path)
        if place in self._taken:
            raise TableError(f"{option} must not be {self._taken[place]}; got {path}. Choose another name.")
        self._taken[place] = f"the same file as {option}"

    def table(self, path: str | None, columns: Mapping[str, Any]) -> None:
        """Write columns to a file or to standard output."""
        if path is None:
            return
        from drsne.io.tables import write
        from drsne.io.text import spreadsheet_safe, write_rows

        columns = spreadsheet_safe(columns) if self._safe else columns
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
        from drsne.io.writing import replacing

        with replacing(Path(path)) as temporary:
            figure.savefig(temporary, dpi=150)
        self.wrote(path)

    def page(self, path: str, page: Any) -> None:
        """Write a page of the explorer."""
        page.save(path, force=self._force)
        self.wrote(path)

    def wrote(self, path: str) -> None:
        """Say that a file was written."""
        if not self._quiet:
            note(f"Wrote {path}.")


def _is_text(path: str | None) -> bool:
    """Return whether a table is written as text."""
    from drsne.io.formats import by_extension

    return path is not None and (path == "-" or by_extension(Path(path)) == "csv")


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
    from drsne.io.tables import row_names

    columns = _numbers(table, options) | table.others
    if reliability is not None:
        columns[_RELIABILITY if _RELIABILITY not in columns else f"{_RELIABILITY} of the position"] = reliability
    return explorer.page(
        source,
        labels=table.label,
        label_name=options.label,
        columns=columns,
        names=next(iter(row_names(table).values()), None),
        title="standard input" if options.input == "-" else Path(options.input).name,
    )


def reliability_of(model: Any) -> Any:
    """Return the reliability of every position in a map, or of a sample if there are many. Others are nan."""
    from drsne import metrics

    return metrics.reliability(model, max_samples=_SCORED, random_state=0)


def _numbers(table: Table, options: argparse.Namespace) -> dict[str, Any]:
    """Return the columns of the data, but not more than a page can hold."""
    n, width = table.X.shape
    most = min(width, _MOST_COLUMNS, max(1, _MOST_VALUES // n))
    if most < width and not options.quiet:
        note(f"The page has the first {most} of the {width:,} columns of numbers, to colour the points by.")
    names = table.columns or [f"x{place + 1}" for place in range(width)]
    some = table.X[:, :most]
    some = some.toarray() if hasattr(some, "nnz") else some
    return {name: some[:, place] for place, name in enumerate(names[:most])}
