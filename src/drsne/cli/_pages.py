"""The page of a map that a command has made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import note

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MOST_COLUMNS, _MOST_VALUES = 50, 10_000_000  # of the data in a page, which would become too large otherwise
_SCORED = 5000  # largest number of rows whose reliability is computed
_RELIABILITY = "reliability"


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
