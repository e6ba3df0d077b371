"""The command ``drsne path``, which makes maps for a range of density weights."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from drsne.cli import Command, UsageError, note
from drsne.cli._files import PAGES, PICTURES, Outputs, page_of, prepared, read_input
from drsne.cli._options import FIT, INPUT, OUTPUT, adding, check, table_of

_DROP = 0.01  # largest loss of trustworthiness and continuity, as for density_weight="auto"


def run(options: argparse.Namespace) -> int:
    """Read a table, fit the maps and write what the user asked for."""
    outputs = Outputs(options, [options.input])
    if not any((options.output, options.plot, options.explore)):
        raise UsageError("Nothing would be written. Pass --explore page.html, --plot trade_off.png or -o maps.csv.")
    outputs.check(options.explore, "--explore", PAGES)
    outputs.check(options.plot, "--plot", PICTURES)
    outputs.check_table()
    check(options)
    weights = _weights(options.weights)
    table = read_input(options)
    from drsne import density_path
    from drsne.estimators import constraints
    from drsne.estimators.path import WEIGHTS

    outputs.check_names(table, _names(WEIGHTS if weights is None else weights))
    X, params, _ = prepared(table, options, **constraints.ON_PATH)
    maps = density_path(X, weights, **params)
    _write(options, outputs, table, maps)
    return 130 if maps.stopped_by == "interrupt" else 0


def _weights(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    ascending = all(before < after for before, after in pairwise(found))
    if not found or not ascending or found[0] < 0 or not all(map(math.isfinite, found)):
        raise UsageError(
            "--weights must be numbers of at least 0 in ascending order, separated by commas; got "
            f"{text!r}. Pass, for example, 0,1,3,9."
        )
    return found


def _write(options: argparse.Namespace, outputs: Outputs, table: Any, maps: Any) -> None:
    if options.output is not None:
        # Above a weight of 70, the contrast is 1, so the first contrast of the path is that of all other maps.
        contrast = [maps.contrasts[0]] * len(maps.input_concentration)
        made = [*(values for Y in maps.embeddings for values in Y.T), maps.input_concentration, contrast]
        outputs.columns(table, dict(zip(_names(maps.weights), made, strict=True)))
    if options.explore is not None:
        outputs.page(options.explore, page_of(maps, table, options))
    if math.isnan(maps.baseline):
        if options.plot is not None:
            note(f"The scores of the maps are not known, so {options.plot} was not drawn.")
        return
    chosen = maps.best(_DROP)
    if options.plot is not None:
        outputs.figure(options.plot, maps.plot(table.label, chosen=chosen, criterion="density"))
    limits = f"at most {_DROP:g} below plain t-SNE in trustworthiness and in continuity"
    if chosen is None:
        note(f"No map is {limits}. Add smaller weights.", options)
    else:
        weight = f"{maps.weights[chosen]:g}"
        note(f"Of the maps that are {limits}, the one with the weight {weight} shows density best.", options)


def _names(weights: Iterable[float]) -> list[str]:
    """Return the names of the columns of all maps, of the concentration of the data and of the contrast."""
    maps = (f"drsne{axis}_w{weight:g}" for weight in weights for axis in (1, 2))
    return [*maps, "concentration_data", "contrast"]


COMMAND = Command(
    "make maps for a range of density weights",
    adding(
        *(*INPUT, "--explore", "--output", "--plot", "--weights"),
        *(*FIT, "--force-memory", "--spreadsheet-safe", *OUTPUT),
        explore="write a page (HTML) with a slider for the weight",
        output=table_of("all maps, with the weight in the names of the columns"),
        plot="draw the trade-off between neighbours and density: PNG, PDF, SVG or JPG",
    ),
    run,
    """\
  drsne path flowers.csv --label species --explore page.html
  drsne path points.npy --weights 0,0.3,1,3,9 --plot trade_off.png -o maps.npz""",
)
