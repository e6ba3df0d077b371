"""``drsne reproduce`` runs or resumes a study of the paper, and writes its tables and figures."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from drsne.experiments import studies

    parser.add_argument(
        "study", choices=[*studies.names(), "all"], help="the study to run, or all of them one after the other"
    )
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="run these data sets only (see drsne datasets)")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="run these methods only (see drsne methods)")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="run these seeds only")
    parser.add_argument(
        "--quick", action="store_true", help="make few runs on few points, which takes minutes and needs no data files"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="the number of processes (default: one for each core)"
    )
    parser.add_argument("--folder", type=Path, help="the folder of rows, tables and figures (default: paper/STUDY)")
    parser.add_argument("--retry", action="store_true", help="repeat the runs that failed")


def run(options: argparse.Namespace) -> int:
    """Run what is missing, and print the tables."""
    from drsne import checks
    from drsne.experiments import studies
    from drsne.experiments.study import Asked

    jobs = checks.integer("jobs", options.jobs, at_least=1)
    for seed in options.seeds or ():
        checks.integer("seeds", seed, at_least=0)
    all_studies = options.study == "all"
    if all_studies and (options.datasets or options.methods):
        raise ValueError("datasets and methods must not be given with all: each study has its own. Name one study.")
    suffix = "-quick" if options.quick else ""
    skipped: dict[str, Exception] = {}
    for name in studies.names() if all_studies else [options.study]:
        study = studies.load(name)
        seeds = options.seeds if study.seeded or not all_studies else None
        asked = Asked(options.quick, options.datasets, options.methods, seeds)
        folder = options.folder or Path("paper") / f"{name}{suffix}"
        if all_studies and options.folder:
            folder = options.folder / f"{name}{suffix}"
        try:
            parts, shown = study.parts(asked), study.shown(asked)
            print(study.reproduce(parts, folder, shown=shown, jobs=jobs, retry=options.retry))
            print(f"Wrote {folder}.")
        except (ImportError, FileNotFoundError, ConnectionError) as error:  # another study may not need it
            if not all_studies:
                raise
            skipped[name] = error
    for name, reason in skipped.items():
        print(f"{name} was skipped: {reason}", file=sys.stderr)
    return 1 if skipped else 0


COMMAND = Command("run or resume a study of the paper, and write its tables and figures", arguments, run)
