"""The options of all commands in one table, and the checks of their values before a file is read."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from drsne.cli import checked_options


def _number(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that reads a number. Other text is kept, so that a check can name the option and the rule."""

    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return read


_FLOAT, _INTEGER = _number(float), _number(int)


class Option(NamedTuple):
    """One option: its help, how its text is read, its default, its name in the help, and the parameter it sets."""

    help: str
    type: Callable[[str], Any] | None = None
    default: Any = None
    metavar: str | None = None
    sets: str | None = None  # parameter of DRSNE, by whose rule the value is checked
    at_least: int | None = None  # smallest value, where there is no such rule
    more: Mapping[str, Any] = {}  # further arguments of argparse


_FLAG = {"action": "store_true"}
OPTIONS = {
    "input": Option("the data: CSV, TSV, Parquet, Feather, NPY, NPZ or H5AD; - for standard input", metavar="INPUT"),
    "model": Option("model file, written by drsne embed --model or model.save", metavar="MODEL"),
    "map": Option("the map, with the rows of INPUT in the same order", metavar="MAP"),
    "maps": Option(
        "files with maps of the same rows, made by any method, outputs of drsne path, or model files; - for standard "
        "input",
        metavar="MAP",
        more={"nargs": "+"},
    ),
    "--label": Option("column with labels, which is not part of the data", metavar="COLUMN"),
    "--drop": Option(
        "columns to leave out, separated by commas", default=[], metavar="COLUMNS", more={"action": "append"}
    ),
    "--format": Option("format of the input (default: from its extension)"),
    "--array": Option("array of an NPZ file", metavar="NAME"),
    "--use-rep": Option("representation of an H5AD file: X or a key of obsm", metavar="KEY"),
    "--skip-missing": Option("leave out rows with missing values", more=_FLAG),
    "--header": Option(
        "whether the first line of a CSV file has names (default: judged by its values)",
        more={"action": argparse.BooleanOptionalAction},
    ),
    "--output": Option("", metavar="OUT"),
    "--plot": Option("draw the map: PNG, PDF, SVG or JPG", metavar="FILE"),
    "--explore": Option("write a page (HTML) to explore the map in a browser", metavar="FILE"),
    "--model": Option("save the model, with which drsne transform places new rows", metavar="FILE"),
    "--reliability": Option("add the reliability of every position to the page of --explore", more=_FLAG),
    "--weight": Option(
        "weight of the density term: a number, or auto to choose one in about six times the time (default: 1)",
        *(_FLOAT, None, "auto|F", "density_weight"),
    ),
    "--weights": Option("weights, separated by commas (default: nineteen weights from 0 to 1120)", metavar="LIST"),
    "--scale": Option("scale every column to mean 0 and standard deviation 1", more=_FLAG),
    "--perplexity": Option("effective number of neighbours (default: 30)", _FLOAT, 30.0, "F", "perplexity"),
    "--neighbors": Option("neighbours that define density (default: 30)", _INTEGER, 30, "K", "density_neighbors"),
    "--contrast": Option(
        "power to which the map raises the concentration of the data (default: auto, computed from the data)",
        *(_FLOAT, "auto", "auto|F", "contrast"),
    ),
    "--arrangement-weight": Option(
        "weight of the arrangement term, which places near each other what is near in the data (default: 0)",
        *(_FLOAT, 0.0, "auto|F", "arrangement_weight"),
    ),
    "--metric": Option("metric of the data (default: euclidean)", None, "euclidean", "NAME", "metric"),
    "--pca": Option("reduce the data to N principal components first", _INTEGER, None, "N", "pca_components"),
    "--iterations": Option("number of iterations (default: 700)", _INTEGER, None, "N", "max_iter"),
    "--seed": Option("seed of the random numbers (default: 0)", _INTEGER, 0, "N", "random_state", 0),
    "--jobs": Option("number of threads (default: all cores)", _INTEGER, -1, "N", "n_jobs"),
    "--force-memory": Option("start the fit even if the free memory will probably not suffice", more=_FLAG),
    "--spreadsheet-safe": Option(
        "write an apostrophe before text in a CSV or TSV file that a spreadsheet would take for a formula", more=_FLAG
    ),
    "--force": Option("replace existing files", more=_FLAG),
    "--quiet": Option("show no progress, no notes and no warnings", more=_FLAG),
    "--map-columns": Option("columns of the map, separated by commas", metavar="COLUMNS"),
    "--map-rep": Option("map of an H5AD file: a key of obsm (default: X_drsne)", metavar="KEY"),
    "--samples": Option("largest number of scored points (default: 5000)", _INTEGER, 5000, "N", at_least=2),
    "--json": Option("print JSON", more=_FLAG),
    "--title": Option("title of the page"),
    "--folder": Option("where to write (default: drsne-demo)", default="drsne-demo"),
    "--small": Option("compile only what maps of up to 2,500 points need", more=_FLAG),
}
INPUT = ("input", "--label", "--drop", "--format", "--array", "--use-rep", "--skip-missing", "--header")
FIT = (
    *("--scale", "--perplexity", "--neighbors", "--contrast", "--arrangement-weight", "--metric"),
    *("--pca", "--iterations", "--seed", "--jobs"),
)
OUTPUT = ("--force", "--quiet")


def table_of(content: str, *, h5ad: bool = False) -> str:
    """Return the help of an output that is a table with this content."""
    formats = "NPY, NPZ or H5AD" if h5ad else "NPY or NPZ"
    return f"{content}: CSV, TSV, Parquet, Feather, {formats}; - for standard output"


def adding(*names: str, **helps: str) -> Callable[[argparse.ArgumentParser], None]:
    """Return a function that adds options to a parser. ``helps`` are help texts that differ in this command."""

    def add(parser: argparse.ArgumentParser) -> None:
        for name in names:
            option, own = OPTIONS[name], helps.get(_attribute(name))
            given = {"type": option.type, "default": option.default, "metavar": option.metavar}
            row = {key: value for key, value in given.items() if value is not None}
            flags = ("-o", name) if name == "--output" else (name,)
            parser.add_argument(*flags, help=own or option.help, **row, **option.more)

    return add


def _attribute(name: str) -> str:
    """Return the name that the parser gives to the value of an option."""
    return name.lstrip("-").replace("-", "_")


def listed(text: str | None) -> list[str] | None:
    """Return the names in the value of an option. They are separated by commas; a name with a comma is in quotes."""
    return None if text is None else [name for row in csv.reader([text]) for name in row if name]


def dropped_columns(options: argparse.Namespace) -> list[str]:
    """Return the columns that the user leaves out."""
    return [name for text in getattr(options, "drop", []) for name in listed(text) or []]


def check(options: argparse.Namespace) -> None:
    """Raise an error for the first option with a wrong value. Options must be checked before a file is read."""
    from drsne import checks
    from drsne.estimators import constraints

    hint, rules = "Leave it out for the default.", constraints.rows("DRSNE")
    for name, option in OPTIONS.items():
        value, parameter = vars(options).get(_attribute(name)), option.sets or name
        if value is None or value == option.default:  # the check of a metric imports compiled code
            continue
        with checked_options(parameter, name):
            if option.at_least is not None:
                checks.integer(parameter, value, at_least=option.at_least, hint=hint)
            elif option.sets is not None:
                rules[parameter]._replace(hint=hint).check(value)


def fit_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of DRSNE that the options set."""
    given = {row.sets: vars(options).get(_attribute(name)) for name, row in OPTIONS.items() if row.sets is not None}
    chosen = {parameter: value for parameter, value in given.items() if value is not None}
    return {**chosen, "verbose": 0 if options.quiet else 1}
