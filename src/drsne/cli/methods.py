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

    lines = []
    for name in methods.names():
        try:
            method = methods.load(name)
        except ImportError as error:
            lines.append([name, "", "", str(error)])
            continue
        values = ", ".join(f"{value:g}" for value in method.grid if value is not None)
        lines.append([name, method.title, f"{method.parameter}: {values}" if method.parameter else "", "ready"])
    print(grid(["name", "title", "grid", "state"], lines))
    return 0


COMMAND = Command("list the methods that are compared, with their grids", arguments, run)
