"""``drsne methods``: the methods that are compared, and whether the packages that they need are installed."""

from __future__ import annotations

import argparse

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, of which there are none."""


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    from drsne.experiments import methods
    from drsne.experiments.document import grid
    from drsne.experiments.tables import value

    lines = []
    for name in methods.names():
        method = methods.find(name)
        values = ", ".join(value(one) for one in method.grid)
        missing = methods.missing(method)
        state = f"pip install 'drsne[{method.extra}]' adds {', '.join(missing)}" if missing else "available"
        lines.append([name, method.title, f"{value(method.parameter)}: {values}" if method.parameter else "", state])
    print(grid(["name", "title", "grid", "state"], lines))
    return 0


COMMAND = Command("list the methods that are compared, with their grids", arguments, run)
