"""Claims of the theory, by the checks that test them.

Of the rows: ``check``, its ``number`` and ``bound``, and whether it ``passed``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from drsne.experiments.claims import FAILS, HOLDS, Claim, Verdict, not_run, of_count
from drsne.experiments.claims._numbers import listed
from drsne.experiments.rows import Row


def passed(rows: Sequence[Row], checks: str) -> Verdict:
    """Whether the checks whose names match the pattern found what is claimed."""
    some = [row for row in rows if re.fullmatch(checks, row.get("check", ""))]
    missed = [f"{row['check']} ({row['number']:.2g}, bound {row['bound']:.2g})" for row in some if not row["passed"]]
    numbers = f"met by {len(some) - len(missed)} of {len(some)} checks"
    if len(some) == 1:
        numbers += f" ({some[0]['number']:.1e}, bound {some[0]['bound']:.1e})"
    return of_count(len(some) - len(missed), len(some), numbers + (f"; not by {listed(missed)}" if missed else ""))


def refuted(rows: Sequence[Row], check: str, told: str) -> Verdict:
    """The verdict of a check that passes where the claim does not hold."""
    some = [row for row in rows if row.get("check") == check]
    if not some:
        return not_run()
    return Verdict(FAILS if some[0]["passed"] else HOLDS, f"{told} {some[0]['number']:.2g}")


CLAIMS = (
    Claim(
        text="The concentration term does not change when the map is made larger or smaller.",
        where="Section 3.1, Appendix A.4",
        criterion="relative concentrations and the loss change by no more than rounding at factors from 0.001 to 1000, "
        "with epsilon relative to the radii; the paper's claim is for the limit of no epsilon",
        judge=partial(passed, checks="map scaled"),
        also={
            "the authors' code": partial(
                refuted,
                check="map scaled, epsilon under the root",
                told="its epsilon stands under the root: relative concentrations change by up to",
            )
        },
    ),
    Claim(
        text="The concentration term does not change when the map is moved.",
        where="Appendix A.4",
        criterion="relative concentrations and the loss change by no more than rounding up to 1000 spans away",
        judge=partial(passed, checks="map moved"),
    ),
    Claim(
        text="The pointwise loss tells amplified from flattened differences of concentration, a correlation does not.",
        where="Appendix A.5",
        criterion="with log radii times beta, the loss is 0 at beta = 1 alone and the correlations are 1 at every beta",
        judge=partial(passed, checks="(zero at 1 alone|correlations), .*"),
    ),
    Claim(
        text="Relative concentration is an inverse length, not a density: the two differ by the dimension as exponent.",
        where="Appendix A.1 and A.3",
        criterion="the slopes of log density on log concentration are what the theory says, on Gaussians and Digits",
        judge=partial(passed, checks="(kNN|true) density, .*"),
    ),
)
