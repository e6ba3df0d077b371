"""``drsne reproduce``: run or resume a study of the paper, write its tables and figures."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be asked for."""
    from drsne.experiments import studies

    parser.add_argument("study", choices=[*studies.names(), "all"], help="which study; all: one after the other")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these (see drsne datasets)")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these (see drsne methods)")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="only these")
    parser.add_argument("--quick", action="store_true", help="few runs on few points each: no file, some minutes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: every core)")
    parser.add_argument("--folder", type=Path, help="where rows, tables and figures are kept (default: paper/STUDY)")
    parser.add_argument("--retry", action="store_true", help="make runs again whose row is an error")


def run(options: argparse.Namespace) -> int:
    """Run what is missing; print the tables."""
    from drsne import checks
    from drsne.experiments import studies
    from drsne.experiments.study import Asked

    jobs = checks.integer("jobs", options.jobs, at_least=1)
    for seed in options.seeds or ():
        checks.integer("seeds", seed, at_least=0)
    every = options.study == "all"
    if every and (options.datasets or options.methods):
        raise ValueError("datasets and methods must not be given with all: every study has its own. Name a study.")
    suffix = "-quick" if options.quick else ""
    stopped: dict[str, Exception] = {}
    for name in studies.names() if every else [options.study]:
        known = studies.load(name)
        seeds = options.seeds if known.seeded or not every else None
        asked = Asked(options.quick, options.datasets, options.methods, seeds)
        folder = options.folder or Path("paper") / f"{name}{suffix}"
        if every and options.folder:
            folder = options.folder / f"{name}{suffix}"
        try:
            parts, shown = known.parts(asked), known.shown(asked)
            print(known.reproduce(parts, folder, shown=shown, jobs=jobs, retry=options.retry))
            print(f"Wrote {folder}.")
        except (ImportError, FileNotFoundError, ConnectionError) as error:  # what another study may not need
            if not every:
                raise
            stopped[name] = error
    for name, reason in stopped.items():
        print(f"{name} was left out: {reason}", file=sys.stderr)
    return 1 if stopped else 0


COMMAND = Command("run or resume a study of the paper, and write its tables and figures", arguments, run)
