"""The command ``drsne embed``, which makes a map of a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from drsne.cli import Command, note
from drsne.cli._tables import (
    Outputs,
    add_fit,
    add_input,
    add_output,
    fit_parameters,
    map_columns,
    page_of,
    read_input,
    scaled,
)

_PICTURES = (".png", ".pdf", ".svg", ".jpg")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_input(parser)
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="the map, both concentrations and the label: CSV, TSV, Parquet, Feather, "
        "NPY, NPZ or H5AD; - for standard output"
    )  # fmt: skip
    parser.add_argument("--weight", default=None, metavar="auto|F", help="weight of the density term (default: 1)")
    parser.add_argument("--plot", metavar="FILE", help="draw the map: PNG, PDF or SVG")
    parser.add_argument("--explore", metavar="FILE", help="write a page (HTML) to explore the map in a browser")
    parser.add_argument("--model", metavar="FILE", help="save the model, with which drsne transform places new rows")
    add_fit(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Read a table, fit a map and write what the user asked for."""
    outputs = Outputs(options, [options.input])
    if not any((options.output, options.plot, options.explore, options.model)):
        raise ValueError("Nothing would be written. Pass -o map.csv, --plot map.png, --explore map.html or --model.")
    outputs.check(options.output, "--output", table=True)
    outputs.check(options.plot, "--plot", extensions=_PICTURES)
    outputs.check(options.explore, "--explore", extensions=(".html", ".htm"))
    outputs.check(options.model, "--model")
    weight = _weight(options.weight)
    table = read_input(options)
    model = _fitted(options, table, weight)
    _write(options, outputs, table, model)
    return 130 if model._reference is None else 0  # an interrupted fit keeps its last map, but not what new rows need


def _weight(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"weight must be a number of at least 0 or auto; got {text!r}.") from None


def _fitted(options: argparse.Namespace, table: Any, weight: Any) -> Any:
    from drsne import DRSNE

    X, scaling = scaled(table, options)
    params = fit_parameters(options)
    if weight is not None:
        params["density_weight"] = weight
    if params["pca_components"] is None and table.document is not None:
        params["pca_components"] = table.document.pca_components
    refuse_too_large(X, params)
    model = DRSNE(**params)
    model.fit(_named(X, table.columns))
    if scaling is not None:
        model.column_means_, model.column_spreads_ = scaling["mean"], scaling["spread"]
    if weight == "auto" and not options.quiet:
        note(f"Chose the weight {model.density_weight_:g}.")
    return model


def _named(X: Any, columns: list[str] | None) -> Any:
    """Return a data frame, so that the model remembers the names of the columns."""
    if columns is None or hasattr(X, "nnz"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=columns)


def refuse_too_large(X: Any, params: dict[str, Any]) -> None:
    """Raise an error if a fit will need more memory than is free."""
    from drsne import memory_estimate
    from drsne.estimators.memory import available

    n, d = X.shape
    d = max(1, X.nnz // n) if hasattr(X, "nnz") else d
    needed, free = memory_estimate(n, d, **params), available()
    if free is not None and needed > free:
        raise ValueError(
            f"A map of {n:,} rows and {d:,} columns needs about {needed / 1e9:.1f} GB of memory, but only "
            f"{free / 1e9:.1f} GB are free. Pass fewer rows, or reduce the columns with --pca 50."
        )


def _write(options: argparse.Namespace, outputs: Outputs, table: Any, model: Any) -> None:
    if options.model is not None:
        model.save(options.model)
        outputs.wrote(options.model)
    columns = map_columns(
        table,
        options.label,
        model.embedding_,
        concentration_data=model.input_concentration_,
        concentration_map=model.concentration_,
    )
    if options.output is not None and options.output.lower().endswith(".h5ad"):
        _write_h5ad(options, outputs, table, model, columns)
    else:
        outputs.table(options.output, columns)
        _warn_about_text(options, columns)
    if options.plot is not None:
        from drsne.cli._pictures import two_panels

        outputs.figure(options.plot, two_panels(model, table.label, options.label))
    if options.explore is not None:
        page_of(model, table, options.input).save(options.explore, force=options.force)
        outputs.wrote(options.explore)


def _warn_about_text(options: argparse.Namespace, columns: dict[str, Any]) -> None:
    text = [name for name, values in columns.items() if values.dtype.kind not in "biuf"]
    if text and options.output and options.output.lower().endswith(".npy") and not options.quiet:
        note(f"An NPY file holds only numbers, so {', '.join(map(repr, text))} is not in it. Use NPZ or CSV for text.")


def _write_h5ad(options: argparse.Namespace, outputs: Outputs, table: Any, model: Any, columns: dict[str, Any]) -> None:
    from drsne.replacing import replacing
    from drsne.tables.h5ad import with_map

    with replacing(Path(options.output)) as temporary:
        with_map(table, model, columns, options.label).write_h5ad(temporary)
    outputs.wrote(options.output)


COMMAND = Command(
    "make a map of a file, with the density of the data",
    arguments,
    run,
    """\
  drsne embed flowers.csv -o map.csv --label species --plot map.png --explore map.html
  drsne embed cells.h5ad -o cells_with_map.h5ad --use-rep X_pca
  drsne embed points.npy -o map.npy --weight auto --model points.drsne
  cat table.tsv | drsne embed - -o - --scale --drop id,date > map.csv""",
)
