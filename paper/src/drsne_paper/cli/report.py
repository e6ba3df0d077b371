"""The command ``drsne report``, which writes one page with all results and with verdicts on the paper's claims."""

from __future__ import annotations

import argparse
from pathlib import Path

from drsne.cli import Command, UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("paper/results"),
        help="the folder with the studies' folders (default: paper/results)",
    )
    parser.add_argument("--output", type=Path, help="the file to write (default: report.html in the folder)")
    parser.add_argument(
        "--max-mb", type=float, default=5.0, metavar="MB", help="largest size of the page in MB (default: 5)"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help="also update the table of claims in this Markdown document"
    )
    parser.add_argument("--quick", action="store_true", help="report the quick runs (in the folders STUDY-quick)")


def run(options: argparse.Namespace) -> int:
    """Write the page, and print its name and size."""
    from drsne_paper import report

    if options.docs:
        if options.quick:
            raise UsageError("--docs and --quick cannot be combined: documents show full results. Leave one out.")
        report.split_at_claims(options.docs)
    output = options.output or options.folder / ("report-quick.html" if options.quick else "report.html")
    size = report.write(options.folder, output, quick=options.quick, max_mb=options.max_mb)
    if options.docs:
        report.update_claims(options.docs, options.folder)
    print(f"Wrote {output} ({size / 1e6:.2f} MB).")
    return 0


COMMAND = Command(
    "write one page with all results and with verdicts on the paper's claims",
    arguments,
    run,
    "  drsne report --folder paper/results --output report.html",
)
