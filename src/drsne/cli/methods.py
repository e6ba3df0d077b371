"""``drsne methods`` lists the methods that are compared.

The list is made from the text of the files in ``experiments/methods``, which is parsed and not imported: a method may
need packages that take seconds to load, or that are not installed.
"""

from __future__ import annotations

import argparse
import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from drsne.cli import Command
from drsne.cli._table import table
from drsne.registry import Registry

_PACKAGE = "drsne.experiments.methods"
_DEFAULTS = {"title": "", "needs": (), "extra": "experiments"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--grids", action="store_true", help="also show the grid of each method, which imports them all"
    )


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    names = Registry[Any](_PACKAGE, "METHOD", parameter="method").names()
    rows = [[name, *_described(name)] for name in names]
    header = ["name", "title", "description", "state"]
    if options.grids:
        header.insert(2, "grid")
        for row in rows:
            row.insert(2, _grid(row[0]))
    print(table(header, rows))
    return 0


def _described(name: str) -> tuple[str, str, str]:
    """Return the title of a method, the first line of its docstring, and whether its packages are installed."""
    tree = ast.parse((Path(__file__).parents[1] / "experiments" / "methods" / f"{name}.py").read_text(encoding="utf-8"))
    fields = {**_DEFAULTS, **_literal_fields(tree)}
    description = (ast.get_docstring(tree) or "").split("\n")[0]
    missing = [package for package in fields["needs"] if find_spec(package) is None]
    state = f"needs {', '.join(missing)}: pip install 'drsne[{fields['extra']}]'" if missing else "ready"
    return str(fields["title"]), description, state


def _literal_fields(tree: ast.Module) -> dict[str, Any]:
    """Return the arguments of ``METHOD = Method(...)`` that are written as literals."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if [target.id for target in node.targets if isinstance(target, ast.Name)] != ["METHOD"]:
                continue
            for keyword in node.value.keywords:
                try:
                    found[str(keyword.arg)] = ast.literal_eval(keyword.value)
                except ValueError:
                    continue
    return found


def _grid(name: str) -> str:
    from importlib import import_module

    method = import_module(f"{_PACKAGE}.{name}").METHOD
    if not method.parameter:
        return ""
    return f"{_text(method.parameter)}: {', '.join(_text(value) for value in method.grid)}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_text(part) for part in value)
    return f"{value:g}" if isinstance(value, int | float) else str(value)


COMMAND = Command("list the methods that are compared", arguments, run)
