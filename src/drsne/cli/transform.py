"""The command ``drsne transform``, which places the rows of a file in a saved map."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from drsne.cli import Command, UsageError, note
from drsne.cli._files import Outputs, read_input
from drsne.cli._options import INPUT, OUTPUT, adding, check, table_of

if TYPE_CHECKING:
    from drsne.io.tables import Table

_NOVEL = 3.0  # novelty above which a row is unlike all training rows


def run(options: argparse.Namespace) -> int:
    """Read a model and a table, place the rows and write their positions."""
    outputs = Outputs(options, [options.input, options.model])
    if options.output is None:
        raise UsageError("Nothing would be written. Pass -o placed.csv.")
    outputs.check_table()
    check(options)
    model = _loaded(options)
    record = _record(model, options)
    columns = None if "var_names" not in record else [str(name) for name in record["var_names"]]
    given = vars(options) | {"use_rep": record.get("use_rep")}
    table = read_input(argparse.Namespace(**given), columns=columns)
    X = _as_fitted(model, table, record, options)
    has_density = hasattr(model, "new_concentration")
    axes = [f"drsne{axis + 1}" for axis in range(model.embedding_.shape[1])]
    names = [*axes, *(["concentration_data"] if has_density else []), "novelty"]
    outputs.check_names(table, names)
    found = model._described(X)
    made = [*found.places.T, *([found.concentration] if has_density else []), found.novelty]
    outputs.columns(table, dict(zip(names, made, strict=True)))
    novel = int((found.novelty > _NOVEL).sum())
    if novel and not options.quiet:
        note(
            f"{novel:,} of {len(found.novelty):,} rows are unlike all training rows (novelty above {_NOVEL:g}); do not "
            "interpret their exact positions."
        )
    return 0


def _loaded(options: argparse.Namespace) -> Any:
    import drsne
    from drsne.io.tables import Source

    if options.model == "-":
        raise UsageError("MODEL must be the name of a file; got -. A model cannot be read from standard input.")
    Source(options.model).check()
    model = drsne.load(options.model)
    return model.set_params(n_jobs=options.jobs, verbose=0 if options.quiet else 1)


def _record(model: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return which columns the model was fitted to, as in :func:`drsne.tl.fit`. Unknown entries are not there."""
    import numpy as np

    record = dict(getattr(model, "representation_", {}))
    if record:
        if options.use_rep not in (None, record["use_rep"]):
            raise UsageError(
                f"--use-rep must be {record['use_rep']}, to which the model was fitted; got {options.use_rep}. Leave "
                "it out, or fit another model."
            )
        return record
    names = getattr(model, "feature_names_in_", None)
    record = {"n_columns": int(model.n_features_in_)}
    if names is not None:
        return {"use_rep": options.use_rep or "X", "var_names": np.asarray(names, dtype=str), **record}
    return record if options.use_rep is None else {"use_rep": options.use_rep, **record}


def _as_fitted(model: Any, table: Table, record: dict[str, Any], options: argparse.Namespace) -> Any:
    """Return the rows as the model was fitted: the same columns, scaled with the values of the training data."""
    X = table.X
    if table.document is not None:
        from drsne.tl.representation import same_columns

        if "use_rep" not in record:
            raise ValueError(
                f"The model does not know which representation of {options.input} it was fitted to. Pass --use-rep X, "
                "or --use-rep with a key of obsm."
            )
        X = same_columns(table.document.adata, record["use_rep"], record)[table.rows]
    if X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"The model was fitted to {model.n_features_in_} columns; got {X.shape[1]}. Pass a file with the same "
            "columns."
        )
    names = getattr(model, "feature_names_in_", None)
    if hasattr(X, "nnz") and (names is not None or hasattr(model, "column_means_")):
        X = X.toarray()
    if hasattr(model, "column_means_"):
        X = (X - model.column_means_) / model.column_spreads_
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=names)


COMMAND = Command(
    "place the rows of a file in a saved map",
    adding(
        *("model", *(name for name in INPUT if name != "--drop"), "--output", "--jobs", "--spreadsheet-safe", *OUTPUT),
        output=table_of("positions, concentration, novelty and the label (required)"),
    ),
    run,
    """\
  drsne embed train.csv --model train.drsne -o train_map.csv
  drsne transform train.drsne new.csv -o new_map.csv
  drsne transform train.drsne new.parquet -o new_map.parquet --label species""",
)
