"""Claims of the run time, by the exponents of n that the study fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

from drsne.experiments.claims import FAILS, HOLDS, Claim, Verdict, not_run
from drsne.experiments.claims._numbers import grouped
from drsne.experiments.rows import Row
from drsne.experiments.studies.runtime import FIT_FROM, fitted

QUADRATIC = (1.8, 2.2)
NEARLY_LINEAR = (0.0, 1.3)


def times(rows: Sequence[Row], method: str) -> dict[int, float]:
    """Median seconds by number of points."""
    wanted = [row for row in rows if row["method"] == method]
    at = grouped((int(row["dataset"].split(",")[1].split()[0]), row) for row in wanted)
    return {n: median(row["seconds"]["total"] for row in at[n]) for n in sorted(at)}


def grows(rows: Sequence[Row], method: str, within: tuple[float, float]) -> Verdict:
    """Whether the exponent of n lies within bounds."""
    found = {n: seconds for n, seconds in times(rows, method).items() if n >= FIT_FROM}
    if len(found) < 3:
        return not_run()
    exponent = fitted(found)
    if exponent is None:
        return not_run()
    first, last = min(found), max(found)
    numbers = (
        f"the time grows as n to the power {exponent:.2f}: {found[first]:.1f} s for {first} points, {found[last]:.1f} "
        f"s for {last}"
    )
    return Verdict(HOLDS if within[0] <= exponent <= within[1] else FAILS, numbers)


CLAIMS = (
    Claim(
        text="Over all pairs the run time grows with the square of the number of points.",
        where="Section 4.3, Appendix F, Figure 8",
        criterion=f"the exponent of n of the exact engine on one thread, from medians of {FIT_FROM} points and more, "
        f"is between {QUADRATIC[0]:g} and {QUADRATIC[1]:g}",
        judge=partial(grows, method="exact_one", within=QUADRATIC),
    ),
    Claim(
        text="t-SNE's faster sums fit this method too; the paper has none of them.",
        where="Appendix F",
        criterion=f"the same exponent of the fft engine is at most {NEARLY_LINEAR[1]:g}",
        judge=partial(grows, method="fft_one", within=NEARLY_LINEAR),
    ),
)
