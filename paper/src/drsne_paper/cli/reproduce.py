"""The command ``drsne reproduce``, which runs or resumes a study of the paper and writes its tables and figures."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from drsne.cli import Command, UsageError, checked_options


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from drsne_paper import studies

    parser.add_argument(
        "study", choices=[*studies.names(), "all"], help="the study to run, or all studies one after the other"
    )
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="run only these data sets (see drsne datasets)")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="run only these methods (see drsne methods)")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="run only these seeds")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="make a few runs on few points, which takes some minutes and needs no files",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="number of processes (default: one for each core)"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask cluster of this scheduler, tcp://...")
    parser.add_argument(
        "--dask-workers", type=int, metavar="N", help="start a Dask cluster of N processes on this machine, and use it"
    )
    parser.add_argument("--folder", type=Path, help="the folder for the results (default: paper/results/STUDY)")
    parser.add_argument("--retry", action="store_true", help="repeat runs that failed")


def run(options: argparse.Namespace) -> int:
    """Make the missing runs, and print the tables."""
    from drsne_paper import checks

    with checked_options():
        jobs = checks.integer("--jobs", options.jobs, at_least=1)
        for seed in options.seeds or ():
            checks.integer("--seeds", seed, at_least=0)
        if options.dask_workers is not None:
            checks.integer("--dask-workers", options.dask_workers, at_least=1)
    if options.scheduler is not None and options.dask_workers:
        raise UsageError("--scheduler and --dask-workers cannot be used together. Pass one of them.")
    if options.study == "all" and (options.datasets or options.methods):
        raise UsageError(
            "--datasets and --methods cannot be used with all, because they differ between studies. Name one study."
        )
    with _client(options) as client:
        skipped = _reproduce(options, jobs, client)
    for name, reason in skipped.items():
        print(f"Skipped {name}: {reason}", file=sys.stderr)
    return 1 if skipped else 0


def _client(options: argparse.Namespace) -> Any:
    """Return a context with the client of the Dask cluster that the options name, or with None."""
    if options.scheduler is None and options.dask_workers is None:
        return nullcontext()
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("A cluster needs distributed: pip install './paper[dask]'.") from error
    if options.scheduler is None:
        return Client(n_workers=options.dask_workers, threads_per_worker=1, dashboard_address=None)
    try:
        return Client(options.scheduler)
    except (OSError, ValueError, AssertionError) as error:
        raise ConnectionError(
            f"No scheduler answers at {options.scheduler!r} ({error}). Start one with dask scheduler, or leave out "
            "--scheduler."
        ) from error


def _reproduce(options: argparse.Namespace, jobs: int, client: Any) -> dict[str, Exception]:
    """Run the studies, and return the errors of those that were skipped."""
    from drsne_paper import studies
    from drsne_paper.study import Selection

    every, suffix = options.study == "all", "-quick" if options.quick else ""
    skipped: dict[str, Exception] = {}
    for name in studies.names() if every else [options.study]:
        known = studies.load(name)
        seeds = options.seeds if known.seeded or not every else None
        selection = Selection(options.quick, options.datasets, options.methods, seeds)
        folder = options.folder or Path("paper/results") / f"{name}{suffix}"
        if every and options.folder:
            folder = options.folder / f"{name}{suffix}"
        try:
            parts, displayed = known.parts(selection), known.displayed(selection)
            text = known.reproduce(parts, folder, displayed=displayed, jobs=jobs, client=client, retry=options.retry)
            print(text)
            print(f"Wrote {folder}.")
        except (ImportError, FileNotFoundError, ConnectionError) as error:  # other studies may not need what is missing
            if not every:
                raise
            skipped[name] = error
    return skipped


COMMAND = Command(
    "run or resume a study of the paper, and write its tables and figures",
    arguments,
    run,
    "  drsne reproduce main --quick\n  drsne reproduce main --datasets digits --methods tsne drsne_both --seeds 0 1",
)
