"""The command ``drsne transform``, which places the rows of a file in a saved map."""

from __future__ import annotations

import argparse
from typing import Any

from drsne.cli import Command, note
from drsne.cli._tables import Outputs, add_input, add_output, map_columns, read_input

_NOVEL = 3.0  # novelty above which a row is unlike all training rows


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file, written by drsne embed --model or model.save")
    add_input(parser, drop=False)
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="positions, concentration, novelty and the label"
    )
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="number of threads (default: all cores)")
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Read a model and a table, place the rows and write their positions."""
    outputs = Outputs(options, [options.input, options.model])
    outputs.check(options.output, "--output", table=True)
    model = _loaded(options)
    names = getattr(model, "feature_names_in_", None)
    table = read_input(options, columns=None if names is None else [str(name) for name in names])
    X = _as_fitted(model, table)
    Y = model.transform(X)
    novelty = model.novelty(X)
    columns = {"concentration_data": model.new_concentration(X)} if hasattr(model, "new_concentration") else {}
    outputs.table(options.output, map_columns(table, options.label, Y, **columns, novelty=novelty))
    novel = int((novelty > _NOVEL).sum())
    if novel and not options.quiet:
        note(
            f"{novel:,} of {len(novelty):,} rows are unlike all training rows (novelty above {_NOVEL:g}); their exact "
            "positions mean little."
        )
    return 0


def _loaded(options: argparse.Namespace) -> Any:
    import drsne
    from drsne.tables import Source

    Source(options.model).check()
    model = drsne.load(options.model)
    return model.set_params(n_jobs=options.jobs, verbose=0 if options.quiet else 1)


def _as_fitted(model: Any, table: Any) -> Any:
    """Return the rows as the model was fitted: scaled with the means and spreads of the training data."""
    X = table.X
    if hasattr(model, "column_means_"):
        if X.shape[1] != len(model.column_means_):
            raise ValueError(
                f"The model was fitted to {len(model.column_means_)} columns; got {X.shape[1]}. Pass a file with the "
                "same columns."
            )
        X = (X - model.column_means_) / model.column_spreads_
    if getattr(model, "feature_names_in_", None) is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=model.feature_names_in_)


COMMAND = Command(
    "place the rows of a file in a saved map",
    arguments,
    run,
    """\
  drsne embed train.csv --model train.drsne -o train_map.csv
  drsne transform train.drsne new.csv -o new_map.csv
  drsne transform train.drsne new.parquet -o new_map.parquet --label species""",
)
