"""The command ``drsne datasets``, which lists the data sets with their state and size."""

from __future__ import annotations

import argparse

from drsne.cli import Command
from drsne_paper.document import table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--data-home", help="folder of the data files (default: DRSNE_DATA_HOME or the user's cache directory)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the list of data sets."""
    from drsne_paper import datasets

    rows = []
    for state in datasets.states(data_home=options.data_home):
        size = "" if not state.size else f"{state.size / 2**20:.1f} MiB"
        rows.append([state.name, f"{state.n_samples} x {state.n_features}", state.state, size, state.description])
    print(table(["name", "shape", "state", "size", "description"], rows))
    return 0


COMMAND = Command("list the data sets with their state and size", arguments, run, "  drsne datasets")
