"""The command ``drsne embed``, which makes a map of a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drsne.cli import Command, UsageError, note
from drsne.cli._files import PAGES, PICTURES, Outputs, page_of, prepared, read_input, two_panels
from drsne.cli._options import FIT, INPUT, OUTPUT, adding, check, dropped_columns, table_of

if TYPE_CHECKING:
    from drsne.io.tables import Table

_MADE = ("drsne1", "drsne2", "concentration_data", "concentration_map", "contrast")  # columns of the output
_SCORED = 5000  # largest number of rows whose reliability is computed


def run(options: argparse.Namespace) -> int:
    """Read a table, fit a map and write what the user asked for."""
    outputs = Outputs(options, [options.input])
    if not any((options.output, options.plot, options.explore, options.model)):
        raise UsageError("Nothing would be written. Pass -o map.csv, --plot map.png, --explore map.html or --model.")
    if options.reliability and options.explore is None:
        raise UsageError("--reliability needs --explore, because it adds a column to the page.")
    outputs.check_table(".h5ad")
    outputs.check(options.plot, "--plot", PICTURES)
    outputs.check(options.explore, "--explore", PAGES)
    outputs.check(options.model, "--model")
    check(options)
    table = read_input(options)
    is_h5ad = str(options.output).lower().endswith(".h5ad")
    if not is_h5ad:
        outputs.check_names(table, _MADE)
    model = _fitted(options, table)
    if options.model is not None:
        model.save(options.model)
        outputs.wrote(options.model)
    if is_h5ad:
        _write_h5ad(options, outputs, table, model)
    elif options.output is not None:
        contrast = [model.contrast_] * len(model.embedding_)
        made = (*model.embedding_.T, model.input_concentration_, model.concentration_, contrast)
        outputs.columns(table, dict(zip(_MADE, made, strict=True)))
    if options.plot is not None:
        outputs.figure(options.plot, two_panels(model, table.label, options.label))
    if options.explore is not None:
        reliability = None
        if options.reliability and model.stopped_by_ != "interrupt":
            from drsne import metrics

            reliability = metrics.reliability(model, max_samples=_SCORED, random_state=0)
        outputs.page(options.explore, page_of(model, table, options, reliability=reliability))
    return 130 if model.stopped_by_ == "interrupt" else 0


def _fitted(options: argparse.Namespace, table: Table) -> Any:
    """Return the model, which remembers the columns and how they were scaled."""
    import numpy as np

    from drsne import DRSNE

    X, params, scaling = prepared(table, options)
    if table.columns is not None and not hasattr(X, "nnz"):
        import pandas as pd

        X = pd.DataFrame(X, columns=table.columns)
    model: Any = DRSNE(**params).fit(X)
    if scaling is not None:
        model.column_means_, model.column_spreads_ = scaling
    if table.document is not None:  # as drsne.tl.fit does
        model.representation_ = table.document.representation.record()
        if table.columns is not None:
            model.representation_ |= {"var_names": np.array(table.columns), "n_columns": len(table.columns)}
    if options.weight == "auto":
        note(f"Chose the weight {model.density_weight_:g}.", options)
    return model


def _write_h5ad(options: argparse.Namespace, outputs: Outputs, table: Table, model: Any) -> None:
    """Write an AnnData object without the columns of ``obs`` and the variables that the user left out."""
    from drsne.io.tables import with_map
    from drsne.io.writing import replacing

    adata, dropped = with_map(table, model, options.label), dropped_columns(options)
    adata.obs = adata.obs.drop(columns=[name for name in dropped if name in adata.obs])
    if adata.var_names.isin(dropped).any():
        adata = adata[:, ~adata.var_names.isin(dropped)].copy()
    if adata.raw is not None and adata.raw.var_names.isin(dropped).any():
        adata.raw = adata.raw[:, ~adata.raw.var_names.isin(dropped)].to_adata()
    with replacing(Path(options.output)) as temporary:
        adata.write_h5ad(temporary)
    outputs.wrote(options.output)


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
