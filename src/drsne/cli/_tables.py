"""The tables of commands: reading the input, and the columns of an output."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drsne.cli import UsageError, note
from drsne.cli._options import dropped_columns

if TYPE_CHECKING:
    from drsne.io.tables import Table


def read_input(options: argparse.Namespace, *, columns: list[str] | None = None) -> Table:
    """Read the input, and say what was found and left out."""
    from drsne.io.tables import read

    dropped, label = dropped_columns(options), getattr(options, "label", None)
    if label in dropped:
        raise UsageError(f"--label and --drop name the same column, {label!r}. Leave one of them out.")
    table = read(
        options.input,
        format=options.format,
        label=label,
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
    # Columns that were dropped must not reach any output, because they can be confidential.
    return replace(table, others={name: values for name, values in table.others.items() if name not in dropped})


def check_names(table: Table, options: argparse.Namespace, made: Iterable[str]) -> None:
    """Raise an error if the output would have two columns of the same name, one of them among those that are made."""
    from drsne.io.tables import check_columns

    if _has_names(options):
        check_columns(table, options.label, made)


def map_columns(table: Table, options: argparse.Namespace, made: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of an output: the names of the rows, the columns that were made, and the label."""
    from drsne.io.tables import row_names

    names = row_names(table)
    label = {} if table.label is None else {options.label: table.label}
    if _has_names(options):
        return names | made | label
    left_out = [*names, *label]
    if left_out and not options.quiet:
        note(f"An NPY file is a matrix without names, so {', '.join(map(repr, left_out))} is not in it.")
    return made


def _has_names(options: argparse.Namespace) -> bool:
    """Return whether the output has names of columns. A matrix has only the numbers that were made."""
    return options.output is None or not options.output.lower().endswith(".npy")
