"""``drsne report`` writes one page with all results and what they say about the paper's claims."""

from __future__ import annotations

import argparse
from pathlib import Path

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--folder", type=Path, default=Path("paper"), help="the folder with the folders of the studies (default: paper)"
    )
    parser.add_argument("--output", type=Path, help="the file to write (default: report.html in the folder)")
    parser.add_argument(
        "--max-mb", type=float, default=5.0, metavar="MB", help="the largest size of the page in megabytes (default: 5)"
    )
    parser.add_argument("--docs", type=Path, metavar="FILE", help="also update the table of claims in this document")
    parser.add_argument("--quick", action="store_true", help="report the quick runs, from the folders STUDY-quick")


def run(options: argparse.Namespace) -> int:
    """Write the page, and print its path and its size."""
    from drsne.experiments import report

    if options.docs:
        if options.quick:
            raise ValueError("docs must not be given with quick: a document shows the results of complete studies.")
        report.around_the_table(options.docs)
    output = options.output or options.folder / ("report-quick.html" if options.quick else "report.html")
    size = report.write(options.folder, output, quick=options.quick, max_mb=options.max_mb)
    if options.docs:
        report.renew(options.docs, options.folder)
    print(f"Wrote {output} ({size / 1e6:.2f} MB).")
    return 0


COMMAND = Command("write one page with all results and what they say about the paper's claims", arguments, run)
