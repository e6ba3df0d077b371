"""The command ``drsne path``, which makes maps for a range of density weights."""

from __future__ import annotations

import argparse
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


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_input(parser)
    parser.add_argument("--explore", metavar="FILE", help="write a page (HTML) with a slider for the weight")
    parser.add_argument("-o", "--output", metavar="OUT", help="all maps, with the weight in the names of the columns")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the trade-off between neighbours and density: PNG, PDF or SVG"
    )
    parser.add_argument(
        "--weights", metavar="LIST", help="weights, separated by commas (default: nineteen weights from 0 to 1120)"
    )
    add_fit(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Read a table, fit the maps and write what the user asked for."""
    outputs = Outputs(options, [options.input])
    if not any((options.output, options.plot, options.explore)):
        raise ValueError("Nothing would be written. Pass --explore page.html, --plot trade_off.png or -o maps.csv.")
    outputs.check(options.explore, "--explore", extensions=(".html", ".htm"))
    outputs.check(options.plot, "--plot", extensions=(".png", ".pdf", ".svg", ".jpg"))
    outputs.check(options.output, "--output", table=True)
    weights = _weights(options.weights)
    table = read_input(options)
    from drsne import density_path
    from drsne.cli.embed import refuse_too_large

    X, _ = scaled(table, options)
    params = fit_parameters(options)
    refuse_too_large(X, params)
    maps = density_path(X, weights, **params)
    if options.output is not None:
        outputs.table(options.output, _columns(table, options.label, maps))
    if options.plot is not None:
        outputs.figure(options.plot, maps.plot(table.label))
    if options.explore is not None:
        page_of(maps, table, options.input).save(options.explore, force=options.force)
        outputs.wrote(options.explore)
    if not options.quiet:
        chosen = maps.select(max_trustworthiness_drop=max(0.01, maps.baseline - maps.metrics["trustworthiness"].max()))
        note(
            f"The weight {maps.weights[chosen]:g} shows density best within .01 of the trustworthiness of plain t-SNE."
        )
    return 0


def _weights(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise ValueError(
            f"weights must be numbers separated by commas; got {text!r}. Pass, for example, 0,1,3,9."
        ) from None


def _columns(table: Any, label: str | None, maps: Any) -> dict[str, Any]:
    """Return the columns of all maps, such as drsne1_w0.3."""
    columns: dict[str, Any] = {}
    for weight, Y in zip(maps.weights, maps.embeddings, strict=True):
        columns |= {f"drsne{place + 1}_w{weight:g}": Y[:, place] for place in range(Y.shape[1])}
    empty = maps.embeddings[0][:, :0]
    return map_columns(table, label, empty, **columns)


COMMAND = Command(
    "make maps for a range of density weights",
    arguments,
    run,
    """\
  drsne path flowers.csv --label species --explore page.html
  drsne path points.npy --weights 0,0.3,1,3,9 --plot trade_off.png -o maps.npz""",
)
