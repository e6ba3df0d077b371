"""The tables of commands: reading the input, scaling it, the memory of a fit, and the columns of an output."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drsne.cli import UsageError, note
from drsne.cli._options import dropped_columns

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MUCH = 100.0  # ratio of the spreads of two columns above which scaling is recommended


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


def components_of(table: Table) -> dict[str, Any]:
    """Return the number of principal components that an AnnData object asks for, if there is one."""
    if table.document is None or table.document.pca_components is None:
        return {}
    sparse = hasattr(table.X, "nnz")  # sparse solvers find one component fewer
    return {"pca_components": min(table.document.pca_components, *(size - sparse for size in table.X.shape))}


def scaled(table: Table, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the data, scaled if the user wishes, and the mean and spread of the columns, or None."""
    import numpy as np

    X = table.X
    if not isinstance(X, np.ndarray):
        if options.scale:
            raise ValueError("--scale cannot be used with sparse data. Scale the data before you save the file.")
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


def refuse_too_large(X: Any, params: dict[str, Any], options: argparse.Namespace) -> None:
    """Raise an error if a fit will need more memory than is free, unless the user wants to try it."""
    from drsne import DRSNE
    from drsne.estimators import memory

    given = DRSNE(**params).get_params(deep=False)
    found = None if options.force_memory else memory.shortage(X.shape, given, getattr(X, "nnz", None))
    if found is not None:
        needed, free = found
        raise ValueError(
            f"A map of {X.shape[0]:,} rows and {X.shape[1]:,} columns needs about {needed / 1e9:.1f} GB of memory, but "
            f"only {free / 1e9:.1f} GB are free. Reduce the columns with --pca 50, or embed a sample of the rows with "
            "--model and place the others with drsne transform. Pass --force-memory to try it anyway."
        )
