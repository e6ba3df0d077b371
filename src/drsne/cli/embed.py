"""The command ``drsne embed``, which makes a map of a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import Command, UsageError, note
from drsne.cli._options import FIT, INPUT, OUTPUT, adding, check, dropped_columns, fit_parameters, table_of
from drsne.cli._outputs import PAGES, PICTURES, Outputs, page_of, reliability_of, two_panels
from drsne.cli._tables import check_names, components_of, map_columns, read_input, refuse_too_large, scaled

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MADE = ("drsne1", "drsne2", "concentration_data", "concentration_map", "contrast")  # columns of the output


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
    check(options)
    table = read_input(options)
    if options.output is not None and not _is_h5ad(options):
        check_names(table, options, _MADE)
    model = _fitted(options, table)
    _write(options, outputs, table, model)
    return 130 if model.stopped_by_ == "interrupt" else 0


def _fitted(options: argparse.Namespace, table: Table) -> Any:
    from drsne import DRSNE

    X, scaling = scaled(table, options)
    params = components_of(table) | fit_parameters(options)
    refuse_too_large(X, params, options)
    model = DRSNE(**params)
    model.fit(_named(X, table.columns))
    if scaling is not None:
        model.column_means_, model.column_spreads_ = scaling["mean"], scaling["spread"]
    if table.document is not None:
        model.representation_ = _record(table)
    if options.weight == "auto" and not options.quiet:
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
        outputs.figure(options.plot, two_panels(model, table.label, options.label))
    if options.explore is not None:
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
    adding(
        *(*INPUT, "--output", "--weight", "--plot", "--explore", "--model", "--reliability"),
        *(*FIT, "--force-memory", "--spreadsheet-safe", *OUTPUT),
        output=table_of("the map, both concentrations, the contrast and the label", h5ad=True),
    ),
    run,
    """\
  drsne embed flowers.csv -o map.csv --label species --plot map.png --explore map.html
  drsne embed cells.h5ad -o cells_with_map.h5ad --use-rep X_pca
  drsne embed points.npy -o map.npy --weight auto --model points.drsne
  cat table.tsv | drsne embed - -o - --scale --drop id,date > map.csv""",
)
