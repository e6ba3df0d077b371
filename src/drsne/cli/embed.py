"""The command ``drsne embed``, which makes a map of a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import Command, UsageError, checked_options, note
from drsne.cli._fitting import add_fit, check_fit, fit_parameters, number, refuse_too_large, scaled
from drsne.cli._outputs import PAGES, PICTURES, Outputs, add_output, add_spreadsheet_safe
from drsne.cli._tables import add_input, check_names, dropped_columns, map_columns, read_input

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MADE = ("drsne1", "drsne2", "concentration_data", "concentration_map", "contrast")  # columns of the output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_input(parser)
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="the map, both concentrations, the contrast and the label: CSV, TSV, "
        "Parquet, Feather, NPY, NPZ or H5AD; - for standard output"
    )  # fmt: skip
    parser.add_argument(
        "--weight",
        metavar="auto|F",
        help="weight of the density term: a number, or auto to choose one in about six times the time (default: 1)",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the map: PNG, PDF, SVG or JPG")
    parser.add_argument("--explore", metavar="FILE", help="write a page (HTML) to explore the map in a browser")
    parser.add_argument("--model", metavar="FILE", help="save the model, with which drsne transform places new rows")
    parser.add_argument(
        "--reliability", action="store_true", help="add the reliability of every position to the page of --explore"
    )
    add_fit(parser)
    add_spreadsheet_safe(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Read a table, fit a map and write what the user asked for."""
    outputs = Outputs(options, [options.input])
    if not any((options.output, options.plot, options.explore, options.model)):
        raise UsageError("Nothing would be written. Pass -o map.csv, --plot map.png, --explore map.html or --model.")
    if options.reliability and options.explore is None:
        raise UsageError("--reliability needs --explore, because it adds a column to the page.")
    outputs.check(options.output, "--output", table=True, h5ad=True)
    outputs.check(options.plot, "--plot", extensions=PICTURES)
    outputs.check(options.explore, "--explore", extensions=PAGES)
    outputs.check(options.model, "--model")
    check_fit(options)
    weight = _weight(options.weight)
    table = read_input(options)
    if options.output is not None and not _is_h5ad(options):
        check_names(table, options, _MADE)
    model = _fitted(options, table, weight)
    _write(options, outputs, table, model)
    return 130 if model.stopped_by_ == "interrupt" else 0


def _weight(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    with checked_options():
        return number("--weight", text, at_least=0, hint="Pass 0 for plain t-SNE, or auto.")


def _fitted(options: argparse.Namespace, table: Table, weight: Any) -> Any:
    from drsne import DRSNE

    X, scaling = scaled(table, options)
    params = fit_parameters(options, table, **({} if weight is None else {"density_weight": weight}))
    refuse_too_large(X, params, options)
    model = DRSNE(**params)
    model.fit(_named(X, table.columns))
    if scaling is not None:
        model.column_means_, model.column_spreads_ = scaling["mean"], scaling["spread"]
    if table.document is not None:
        model.representation_ = _record(table)
    if weight == "auto" and not options.quiet:
        note(f"Chose the weight {model.density_weight_:g}.")
    return model


def _named(X: Any, columns: list[str] | None) -> Any:
    """Return a data frame, so that the model remembers the names of the columns."""
    if columns is None or hasattr(X, "nnz"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=columns)


def _record(table: Table) -> dict[str, Any]:
    """Return which columns of an AnnData object the model was fitted to, as :func:`drsne.tl.fit` does."""
    import numpy as np

    record: dict[str, Any] = table.document.representation.record()
    if table.columns is None:
        return record
    return {**record, "var_names": np.array(table.columns), "n_columns": len(table.columns)}


def _write(options: argparse.Namespace, outputs: Outputs, table: Table, model: Any) -> None:
    if options.model is not None:
        model.save(options.model)
        outputs.wrote(options.model)
    if _is_h5ad(options):
        _write_h5ad(options, outputs, table, model)
    elif options.output is not None:
        import numpy as np

        contrast = np.full(len(model.embedding_), model.contrast_)
        made = (*model.embedding_.T, model.input_concentration_, model.concentration_, contrast)
        outputs.table(options.output, map_columns(table, options, dict(zip(_MADE, made, strict=True))))
    if options.plot is not None:
        from drsne.cli._pictures import two_panels

        outputs.figure(options.plot, two_panels(model, table.label, options.label))
    if options.explore is not None:
        from drsne.cli._pages import page_of, reliability_of

        wanted = options.reliability and model.stopped_by_ != "interrupt"
        reliability = reliability_of(model) if wanted else None
        outputs.page(options.explore, page_of(model, table, options, reliability=reliability))


def _is_h5ad(options: argparse.Namespace) -> bool:
    return options.output is not None and options.output.lower().endswith(".h5ad")


def _write_h5ad(options: argparse.Namespace, outputs: Outputs, table: Table, model: Any) -> None:
    from drsne.io.tables import with_map
    from drsne.io.writing import replacing

    adata = _without(with_map(table, model, options.label), dropped_columns(options))
    with replacing(Path(options.output)) as temporary:
        adata.write_h5ad(temporary)
    outputs.wrote(options.output)


def _without(adata: Any, dropped: list[str]) -> Any:
    """Return an AnnData object without columns of ``obs`` and without variables that the user left out."""
    adata.obs = adata.obs.drop(columns=[name for name in dropped if name in adata.obs])
    if adata.var_names.isin(dropped).any():
        adata = adata[:, ~adata.var_names.isin(dropped)].copy()
    if adata.raw is not None and adata.raw.var_names.isin(dropped).any():
        adata.raw = adata.raw[:, ~adata.raw.var_names.isin(dropped)].to_adata()
    return adata


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
