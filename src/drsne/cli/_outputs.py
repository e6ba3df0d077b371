"""The files that a command writes: their arguments, their checks before any work begins, and writing them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drsne.cli import UsageError, note

PICTURES = (".png", ".pdf", ".svg", ".jpg")
PAGES = (".html", ".htm")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that protect existing files and show progress."""
    parser.add_argument("--force", action="store_true", help="replace existing files")
    parser.add_argument("--quiet", action="store_true", help="show no progress, no notes and no warnings")


def add_spreadsheet_safe(parser: argparse.ArgumentParser) -> None:
    """Add the argument that protects spreadsheets from text of the input."""
    parser.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="write an apostrophe before text in a CSV or TSV file that a spreadsheet would take for a formula",
    )


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
