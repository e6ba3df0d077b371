"""Sections of the theory study: the verdicts, and the numbers that support them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from drsne_paper.document import Block, Figure, Heading, Table, Text
from drsne_paper.theory import (
    AMPLIFICATION,
    DENSITY,
    DIFFERENCES,
    INVARIANCE,
    RANKS,
    SCALE,
    Check,
    amplification,
    density,
    gradients,
)

_SUBJECTS = {
    INVARIANCE: "invariance",
    SCALE: "scale component",
    DIFFERENCES: "finite differences",
    AMPLIFICATION: "amplification",
    DENSITY: "concentration and density",
    RANKS: "ranks of density",
}


class Result(NamedTuple):
    """A check and the results in its row."""

    check: Check
    details: dict[str, Any]

    @property
    def numbers(self) -> dict[str, Any]:
        """Return all numbers that were measured."""
        numbers: dict[str, Any] = self.details["numbers"]
        return numbers


def _short(value: float) -> str:
    return f"{value:.2g}"


def verdicts(found: Sequence[Result]) -> Table:
    header = ["subject", "check", "claim", "where", "number", "bound", "verdict"]
    body = [
        [
            _SUBJECTS[check.subject],
            check.title,
            check.claim,
            check.where,
            _short(details["number"]),
            f"{'at least' if details['at_least'] else 'at most'} {_short(details['bound'])}",
            "holds" if details["holds"] else "**does not hold**",
        ]
        for check, details in found
    ]
    return Table(header, body, "Claims of the theory, the number measured for each, its bound and the verdict")


def _invariance(found: Sequence[Result]) -> list[Block]:
    body = []
    for one in found:
        cases = one.numbers["cases"]
        worst = max(cases, key=lambda case: case["profile"])
        loss = max(case["loss"] for case in cases)
        line = [one.check.title, *(_short(value) for value in (worst["profile"], worst["rounding"], loss))]
        body.append([*line, str(max(case["other_neighbors"] for case in cases)) if "other_neighbors" in worst else ""])
    return [
        Text(
            "A.4: the loss does not change when the map is scaled or moved, in the limit of no epsilon. The number in "
            "the table above is the largest change of a relative concentration; the verdict also covers the change of "
            "the loss. With the default epsilon, which is relative to the median radius, both hold up to rounding, for "
            "map and data. With the paper's length of 1e-8 they hold as long as radii are much larger: the change "
            "grows as 1 / factor. Under the root, as in the authors' map, 1e-8 is a length of 1e-4, and the constants "
            "in their mean and logarithm cause the opposite departure. Single precision, the default arithmetic of "
            "pairs, loses digits in a map far from the origin; fits keep the map centred. The neighbours of moved data "
            "are searched again."
        ),
        Table(
            ["check", "change of c", "rounding", "change of the loss (relative)", "points with other neighbours"],
            body,
            "Largest changes of relative concentrations and of the loss",
        ),
        Figure("figure_invariance.png", "Change of relative concentrations when the map of Digits is scaled"),
    ]


def _scale(found: Sequence[Result]) -> list[Block]:
    header = ["check", "gradient . (Y - mean)", "cosine", "rounding (of the cosine)", "2 mean(e)"]
    body = [
        [
            one.check.title,
            *(_short(one.numbers[name]) for name in ("component", "cosine", "rounding")),
            f"{one.numbers['expected']:.4g}" if "expected" in one.numbers else "",
        ]
        for one in found
    ]
    return [
        Text(
            "If a loss does not change with scale, its gradient has no component along the map. The paper's text "
            "normalises by the mean and does not mention holding it fixed. The authors' code holds it fixed, and its "
            "gradient then expands or shrinks the map whenever the mean of e, the difference of the profiles, is not 0 "
            "(descent goes against the gradient: a positive component shrinks the map)."
        ),
        Table(header, body, "The component of the gradient along the map"),
    ]


def _amplification(found: Sequence[Result]) -> list[Block]:
    out: list[Block] = [
        Text(
            "A.5: the correlation of log radii cannot tell whether their differences are amplified or flattened, and "
            "the pointwise loss can. Here log r of the data is replaced by beta log r. The spread "
            "(1 - beta)^2 Var(log r) is exact; the normalising mean adds mean(e)^2, which also grows away from 1, and "
            "which can be most of the loss if radii differ widely. den-SNE's correlation, with the shift of its "
            "program in the variance (its radii are squares of ours), is not constant: it grows with beta, and so it "
            "rewards amplification."
        )
    ]
    header = ["beta", "loss", "(1 - beta)^2 Var", "mean(e)^2", "loss, default epsilon"]
    header += ["1 - Pearson", "1 - rank correlation", "den-SNE's"]
    for check, details in found:
        if check.name != amplification.CLOSED_FORM:
            continue
        body = [
            [
                f"{line['beta']:g}",
                *(f"{line[name]:.4g}" for name in ("loss", "spread", "offset", "smoothed_loss")),
                *(_short(1.0 - line[name]) for name in ("pearson", "spearman")),
                f"{line['densne']:.3f}",
            ]
            for line in details["numbers"]["rows"]
        ]
        title = amplification.DATA[check.dataset]
        caption = f"{title}: loss and correlations of amplified radii"
        heading = f"{title}, Var(log r) = {details['numbers']['variance']:.4g}"
        out += [Heading(heading, 3), Table(header, body, caption)]
    return [*out, Figure("figure_amplification.png", "Loss and correlations of amplified radii")]


def _density(found: Sequence[Result]) -> list[Block]:
    header = ["check", "d", "Spearman", "Pearson", "slope of density on c", "over d"]
    header += ["1 / slope of c on density, over d", f"the same, 1/{density.FEWER} of the points"]
    body = [
        [one.check.title, f"{one.numbers['d']:.3g}"]
        + [f"{one.numbers[name]:.3f}" for name in ("spearman", "pearson", "slope", "slope_over_d", "inverse_over_d")]
        + [f"{one.numbers['with_fewer']:.3f}" if "with_fewer" in one.numbers else ""]
        for one in found
    ]
    return [
        Text(
            "A.1: c scales as an inverse length, and a density as a length to the power -d. Their logarithms lie on a "
            "line of slope d if the density is constant within a neighbourhood. The kNN estimate k / (n V_d r_k^d) "
            "comes close in every dimension. The remaining difference is chance, which the mean of k distances and the "
            "k-th distance share only in part. The true density shows more. In one and two dimensions, chance in c (30 "
            "neighbours) lowers the rank correlation and the slope; it does not affect the slope of c on density. In "
            "five and ten dimensions neighbourhoods extend over much of the Gaussian: those in the tail include the "
            "denser inside, and those in the centre include its surroundings. So c varies too little, and the slope "
            f"exceeds d, by less if there are more points. A slope within {density.SAME:g} of d, relative, counts as "
            "d."
        ),
        Table(header, body, "Correlations and slopes of log density and log relative concentration"),
        Figure("figure_density.png", "Log density against log relative concentration; lines have slope d"),
    ]


RANKED = {
    "one": "exponents 1 and 1",
    "ambient": "exponents D and d",
    "intrinsic": "exponents intrinsic dimension and d",
    "distances": "distances",
    "metric": "the metric of this package",
}


def _ranks(found: Sequence[Result]) -> list[Block]:
    header = ["exponents, or what was ranked", "rank correlation"]
    body = [[title, f"{found[0].numbers[name]:.15f}"] for name, title in RANKED.items()]
    return [
        Text(
            "The paper's rho_S ranks r_k^-D in the data and r_k^-d in the map. Powers do not change the order, so the "
            "metric of this package ranks distances. The table is of Digits and its principal components."
        ),
        Table(header, body, "Rank correlations of density for several exponents"),
    ]


def _differences(found: Sequence[Result]) -> list[Block]:
    header = ["check", "largest difference over largest component", "norm of the difference, relative"]
    body = [[one.check.title, _short(one.details["number"]), _short(one.numbers["norms"])] for one in found]
    return [
        Text(
            "The whole gradient of the concentration term is compared with central differences of fourth order (step "
            f"{gradients.STEP:g}). The default epsilon follows the median radius, and the gradient treats it as fixed. "
            "The error of this is of the order of epsilon (the bound is ten times the default, 1e-3). The error of a "
            "mean that is held fixed is much larger."
        ),
        Table(header, body, "Differences between the gradient and central differences"),
    ]


SECTIONS: tuple[tuple[str, str, Callable[[Sequence[Result]], list[Block]]], ...] = (
    ("Invariance", INVARIANCE, _invariance),
    ("The scale component of the gradient", SCALE, _scale),
    ("The gradient and finite differences", DIFFERENCES, _differences),
    ("Pointwise loss and correlation", AMPLIFICATION, _amplification),
    ("Concentration and density", DENSITY, _density),
    ("Ranks of density", RANKS, _ranks),
)
