"""The command ``drsne methods``, which lists the methods that are compared."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from drsne.cli import Command
from drsne_paper.document import table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--grids", action="store_true", help="also show the grid of each method")


def run(options: argparse.Namespace) -> int:
    """Print the list of methods."""
    from drsne_paper import methods

    header = ["name", "title", *(["grid"] if options.grids else []), "description", "state"]
    rows = []
    for name in methods.names():
        method = methods.find(name)
        grid = [f"{_text(method.parameter)}: {', '.join(map(_text, method.grid))}" if method.parameter else ""]
        description = (sys.modules[f"{methods.__name__}.{name}"].__doc__ or "").split("\n")[0]
        missing = methods.missing(method)
        state = f"needs {', '.join(missing)}: pip install './paper[{method.extra}]'" if missing else "ready"
        rows.append([name, method.title, *(grid if options.grids else []), description, state])
    print(table(header, rows))
    return 0


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_text(part) for part in value)
    return f"{value:g}" if isinstance(value, int | float) else str(value)


COMMAND = Command("list the methods that drsne reproduce can compare", arguments, run, "  drsne methods --grids")
