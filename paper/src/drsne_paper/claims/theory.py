"""Claims of the theory, judged by the checks that test them. The method of a row is the name of its check."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from drsne_paper.claims import FAILS, HOLDS, Claim, Verdict, not_run, of_count
from drsne_paper.claims._numbers import listed
from drsne_paper.rows import Row
from drsne_paper.theory import amplification, density, invariance


def held(rows: Sequence[Row], checks: Sequence[str]) -> Verdict:
    """Judge whether the checks with these names hold."""
    some = [row for row in rows if row["method"] in checks]
    missed = [
        f"{row['method']} on {row['dataset']} ({details['number']:.2g}, bound {details['bound']:.2g})"
        for row in some
        for details in [row["details"]]
        if not details["holds"]
    ]
    numbers = f"met by {len(some) - len(missed)} of {len(some)} checks"
    if len(some) == 1:
        numbers += f" ({some[0]['details']['number']:.1e}, bound {some[0]['details']['bound']:.1e})"
    return of_count(len(some) - len(missed), len(some), numbers + (f"; not by {listed(missed)}" if missed else ""))


def refuted(rows: Sequence[Row], check: str, numbers: str) -> Verdict:
    """Return the verdict of a check that holds exactly when the claim does not."""
    some = [row["details"] for row in rows if row["method"] == check]
    if not some:
        return not_run()
    return Verdict(FAILS if some[0]["holds"] else HOLDS, numbers.format(some[0]["number"]))


CLAIMS = (
    Claim(
        text="The concentration term does not change when the map is made larger or smaller.",
        where="Section 3.1, Appendix A.4",
        criterion="relative concentrations and the loss change by no more than rounding at factors from 0.001 to 1000, "
        "with epsilon relative to the radii; the paper's claim is for the limit of no epsilon",
        judge=partial(held, checks=[invariance.SCALED]),
        also={
            "the authors' code": partial(
                refuted,
                check=invariance.ROOT,
                numbers="its epsilon is under the root: relative concentrations change by up to {:.2g}",
            )
        },
    ),
    Claim(
        text="The concentration term does not change when the map is moved.",
        where="Appendix A.4",
        criterion="relative concentrations and the loss change by no more than rounding up to 1000 spans away",
        judge=partial(held, checks=[invariance.MOVED]),
    ),
    Claim(
        text="The pointwise loss distinguishes amplified from flattened differences of concentration; a correlation "
        "does not.",
        where="Appendix A.5",
        criterion="with log radii times beta, the loss is 0 only at beta = 1 and the correlations are 1 at every beta",
        judge=partial(held, checks=[amplification.ZERO, amplification.CORRELATIONS]),
    ),
    Claim(
        text="Relative concentration is an inverse length, not a density: the two differ by the dimension as exponent.",
        where="Appendix A.1 and A.3",
        criterion="the slopes of log density on log concentration are those of the theory, on Gaussians and Digits",
        judge=partial(held, checks=[density.KNN_DENSITY, density.TRUE_DENSITY]),
    ),
)
