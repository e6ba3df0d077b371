"""``drsne methods``: the methods that are compared, and whether they can be run here."""

from __future__ import annotations

import argparse

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    from drsne.experiments import methods
    from drsne.experiments.document import grid
    from drsne.experiments.tables import value

    lines = []
    for name in methods.names():
        try:
            method = methods.load(name)
        except ImportError as error:
            lines.append([name, "", "", str(error)])
            continue
        values = ", ".join(value(one) for one in method.grid)
        lines.append([name, method.title, f"{value(method.parameter)}: {values}" if method.parameter else "", "ready"])
    print(grid(["name", "title", "grid", "state"], lines))
    return 0


COMMAND = Command("list the methods that are compared, with their grids", arguments, run)
