"""``drsne report``: one page of all results and of what they say of the paper's claims."""

from __future__ import annotations

import argparse
from pathlib import Path

from drsne.cli import Command


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be asked for."""
    parser.add_argument("--folder", type=Path, default=Path("paper"), help="where the studies' folders are (paper)")
    parser.add_argument("--output", type=Path, help="the page (default: report.html in the folder)")
    parser.add_argument("--max-mb", type=float, default=5.0, metavar="MB", help="how large the page may be (5)")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="renew the table of claims in this document as well")
    parser.add_argument("--quick", action="store_true", help="of the quick runs, in the folders STUDY-quick")


def run(options: argparse.Namespace) -> int:
    """Write the page; print where it is and how large."""
    from drsne.experiments import report

    if options.docs:
        if options.quick:
            raise ValueError("docs must not be given with quick: a document has the results of whole studies.")
        report.around_the_table(options.docs)
    output = options.output or options.folder / ("report-quick.html" if options.quick else "report.html")
    size = report.write(options.folder, output, quick=options.quick, max_mb=options.max_mb)
    if options.docs:
        report.renew(options.docs, options.folder)
    print(f"Wrote {output} ({size / 1e6:.2f} MB).")
    return 0


COMMAND = Command("write one page of all results and of what they say of the paper's claims", arguments, run)
