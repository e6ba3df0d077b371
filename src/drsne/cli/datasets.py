"""``drsne datasets``: the data sets, where they are, how large they are."""

from __future__ import annotations

import argparse

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be asked for."""
    parser.add_argument("--data-home", help="where files are kept (default: DRSNE_DATA_HOME, or the user's cache)")


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    from drsne import datasets
    from drsne.experiments.document import grid

    lines = []
    for state in datasets.states(data_home=options.data_home):
        size = "" if not state.size else f"{state.size / 2**20:.1f} MiB"
        lines.append([state.name, f"{state.n_samples} x {state.n_features}", state.state, size, state.description])
    print(grid(["name", "shape", "state", "size", "what it is"], lines))
    return 0


COMMAND = Command("list the data sets with their state and size", arguments, run)
