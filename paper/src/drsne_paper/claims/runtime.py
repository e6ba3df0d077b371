"""Claims about the run time, judged by the exponents of n that the study fits.

The rows are runs of this package's engines. The paper's own program was not timed, so no row judges its run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

from drsne_paper import published
from drsne_paper.claims import FAILS, HOLDS, Claim, Verdict, not_run, not_tested
from drsne_paper.claims._numbers import grouped
from drsne_paper.rows import Row
from drsne_paper.studies.runtime import FIT_FROM, fitted

NEARLY_LINEAR = 1.3


def times(rows: Sequence[Row], method: str) -> dict[int, float]:
    """Return the median seconds for each number of points that is used to fit exponents."""
    wanted = [row for row in rows if row["method"] == method]
    at = grouped((row["data"]["n_samples"], row) for row in wanted)
    return {n: median(row["seconds"]["total"] for row in at[n]) for n in sorted(at) if n >= FIT_FROM}


def square(rows: Sequence[Row], method: str) -> Verdict:
    """Return what is known about the run time with all pairs, without a verdict on the paper's program."""
    found = times(rows, method)
    exponent, theirs = fitted(found), fitted(published.timing())
    if exponent is None or len(found) < 3:
        return not_run()
    return not_tested(
        f"the paper's own program was not timed; its published times grow as n to the power {theirs:.2f}; this "
        f"package's exact engine, which is another program, was timed at the paper's settings: "
        f"{_growth(found, exponent)}"
    )


def at_most(rows: Sequence[Row], method: str, bound: float) -> Verdict:
    """Judge whether the exponent of n is at most ``bound``."""
    found = times(rows, method)
    exponent = fitted(found)
    if exponent is None or len(found) < 3:
        return not_run()
    return Verdict(HOLDS if exponent <= bound else FAILS, _growth(found, exponent))


def _growth(found: dict[int, float], exponent: float) -> str:
    first, last = min(found), max(found)
    return (
        f"the time grows as n to the power {exponent:.2f}: {found[first]:.1f} s for {first} points, {found[last]:.1f} "
        f"s for {last}"
    )


CLAIMS = (
    Claim(
        text="Over all pairs the run time grows with the square of the number of points.",
        where="Section 4.3, Appendix F, Figure 8",
        criterion="none; the claim is about the paper's program, and the runs of this study are of this package's "
        f"engines (exponents of n on one thread, from medians of {FIT_FROM} points and more)",
        judge=partial(square, method="exact_one"),
    ),
    Claim(
        text="The faster sums of t-SNE also work for this method; the paper does not use them.",
        where="Appendix F",
        criterion=f"the exponent of n of this package's fft engine on one thread, from medians of {FIT_FROM} points "
        f"and more, is at most {NEARLY_LINEAR:g}",
        judge=partial(at_most, method="fft_one", bound=NEARLY_LINEAR),
        subject="this package's fft engine",
    ),
)
