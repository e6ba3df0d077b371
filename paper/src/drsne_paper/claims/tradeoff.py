"""Claims about the trade-off over lambda on several data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import median

from drsne_paper.claims import FAILS, HOLDS, IN_PART, Claim, Verdict, not_run, of_count
from drsne_paper.claims._numbers import Mean, above, ends, grouped, listed, mean, ranks
from drsne_paper.rows import Row
from drsne_paper.studies.tradeoff import DATASETS, NEIGHBORS

TW, CC = "trustworthiness", "concentration_correlation"
# The largest lambda that is called small: as printed, and as it is in the written objective (multiplied by n).
SMALL, SMALL_WEIGHT = 0.005, 5.0
ALIKE = 0.8  # smallest rank correlation between the curves of two data sets that are alike
MOST = 0.8  # smallest share of data sets for a general claim

Curve = Mapping[float, Mean]


def curves(rows: Sequence[Row], method: str, score: str) -> dict[str, Curve]:
    """Return the mean at each lambda, for each data set."""
    out: dict[str, Curve] = {}
    for dataset, title in DATASETS.items():
        at = grouped((row["value"], row) for row in rows if (row["dataset"], row["method"]) == (dataset, method))
        if len(at) > 2:
            out[title] = {value: mean(at[value], score) for value in sorted(at)}
    return out


def small_helps(rows: Sequence[Row], method: str, at_most: float) -> Verdict:
    """Judge whether a small lambda gives a larger trustworthiness than lambda = 0 on at least half of the data sets."""
    parts, met = [], []
    for dataset, trust in curves(rows, method, TW).items():
        small = [value for value in trust if 0 < value <= at_most]
        if 0.0 in trust and small:
            best = max(small, key=lambda value: trust[value].mean)
            parts.append(f"{dataset} {trust[0.0].mean:.3f} -> {trust[best].mean:.3f} at {best:g}")
            if above(trust[best], trust[0.0]):
                met.append(dataset)
    numbers = f"met on {len(met)} of {len(parts)} data sets: TW {'; '.join(parts)}"
    return of_count(len(met), len(parts), numbers, enough=0.5)


def trades(rows: Sequence[Row], method: str) -> Verdict:
    """Judge whether concentration correlation rises and trustworthiness falls with lambda, on most data sets."""
    trust, concentration = curves(rows, method, TW), curves(rows, method, CC)
    both = [dataset for dataset in trust if dataset in concentration]
    met = [
        dataset
        for dataset in both
        if above(list(concentration[dataset].values())[-1], next(iter(concentration[dataset].values())))
        and above(max(trust[dataset].values()), list(trust[dataset].values())[-1])
    ]
    parts = [f"{name}: TW {ends(trust[name])}, CC {ends(concentration[name])}" for name in both]
    numbers = f"met on {len(met)} of {len(both)} data sets; {listed(parts)}"
    return of_count(len(met), len(both), numbers, enough=MOST)


def alike(rows: Sequence[Row], method: str) -> Verdict:
    """Judge whether the curves of any two data sets rise and fall in the same way."""
    correlations: list[float] = []
    for score in (TW, CC):
        for one, other in combinations(curves(rows, method, score).values(), 2):
            shared = [value for value in one if value in other]
            if len(shared) > 2:
                correlations.append(
                    ranks([one[value].mean for value in shared], [other[value].mean for value in shared])
                )
    if not correlations:
        return not_run()
    total, enough = len(correlations), sum(value >= ALIKE for value in correlations)
    word = HOLDS if enough >= MOST * total else IN_PART if 2 * enough >= total else FAILS
    range_of = f"least {min(correlations):.2f}, median {median(correlations):.2f}"
    return Verdict(word, f"met by {enough} of {total} rank correlations; {range_of}")


_OURS = f"this package's method, k = {NEIGHBORS}"

CLAIMS = (
    Claim(
        text="On several data sets a small density term raises the trustworthiness.",
        where="Section 4.2, Figure 2",
        criterion=f"on at least half of the data sets, TW at the best lambda up to {SMALL:g} (for this package's "
        f"method, whose lambda is multiplied by n, up to {SMALL_WEIGHT:g}) is above TW at 0 by more than twice the "
        "standard error",
        judge=partial(small_helps, method="drsne_code", at_most=SMALL),
        also={_OURS: partial(small_helps, method="drsne_wide", at_most=SMALL_WEIGHT)},
    ),
    Claim(
        text="On most data sets a larger lambda trades trustworthiness for concentration correlation.",
        where="Section 4.2, Figure 2",
        criterion="on at least four of five data sets, CC at the largest lambda is above that at the smallest and TW "
        "there below its largest, both by more than twice the standard error",
        judge=partial(trades, method="drsne_code"),
        also={_OURS: partial(trades, method="drsne_wide")},
    ),
    Claim(
        text="The trade-off has broadly the same shape on all data sets.",
        where="Section 4.2, Figure 2",
        criterion="of the rank correlations of TW, and of CC, along lambda between any two data sets, at least "
        f"{MOST:.0%} are {ALIKE:g} or more; in part: half of them",
        judge=partial(alike, method="drsne_code"),
        also={_OURS: partial(alike, method="drsne_wide")},
    ),
)
