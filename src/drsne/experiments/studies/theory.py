"""The paper's theory as measurements: each has a claim, a number, a bound and a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drsne.experiments import figures
from drsne.experiments.document import Block, Figure, Heading, Table, Text
from drsne.experiments.methods import Method, Run, Workspace
from drsne.experiments.rows import Row, key
from drsne.experiments.runner import has_failed
from drsne.experiments.studies import PaperStudy
from drsne.experiments.study import EVERYTHING, Selection, Study
from drsne.experiments.tables import failures
from drsne.experiments.theory import (
    AMPLIFICATION,
    DENSITY,
    DIFFERENCES,
    INVARIANCE,
    RANKS,
    SCALE,
    Check,
    Sizes,
    amplification,
    density,
    drawing,
    gradients,
    invariance,
)
from drsne.experiments.theory.problems import load

CHECKS = (*invariance.CHECKS, *gradients.CHECKS, *amplification.CHECKS, *density.CHECKS)
FULL_SIZES = Sizes(digits=1797, generated=5000, small=40)
QUICK_SIZES = Sizes(digits=400, generated=1200, small=25)


class Result(NamedTuple):
    """A check and the results in its row."""

    check: Check
    details: dict[str, Any]

    @property
    def numbers(self) -> dict[str, Any]:
        """Return everything that was measured."""
        numbers: dict[str, Any] = self.details["numbers"]
        return numbers


class Theory(PaperStudy):
    """What ``drsne reproduce theory`` computes and writes."""

    name = "theory"
    description = "the paper's theory as checks: invariance, pointwise or correlation, concentration and density"
    sequential = True
    keeps_maps = False
    seeded = False

    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return a study for each data set of the checks."""
        chosen = {"datasets": selection.datasets, "methods": selection.methods, "seeds": selection.seeds}
        for name, given in chosen.items():
            if given is not None:
                raise ValueError(
                    f"{name} must not be given with theory, whose checks have their own data and no methods or seeds; "
                    f"got {', '.join(map(str, given))}. Leave {name} out; quick takes fewer points."
                )
        sizes = QUICK_SIZES if selection.quick else FULL_SIZES
        groups: dict[str, list[Check]] = {}
        for check in CHECKS:
            groups.setdefault(key(_data(check, sizes)), []).append(check)
        return tuple(_part(checks, sizes) for checks in groups.values())

    def failed(self, row: Row) -> bool:
        """Return whether a check raised an error or its claim does not hold."""
        return has_failed(row) or not row["details"]["holds"]

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the figures, from the rows."""
        found = results(parts, rows)
        scaled = {one.check.name: one.numbers["cases"] for one in found if one.check.name in _CURVES}
        closed = {
            amplification.DATA[one.check.dataset]: one.numbers["rows"]
            for one in found
            if one.check.name == amplification.CLOSED_FORM
        }
        panels = [
            ("Gaussian, d" if "d" in one.check.data else "Digits, local d", one.numbers)
            for one in found
            if one.check.name == density.KNN_DENSITY
        ]
        drawn = {}
        if len(scaled) == len(_CURVES):
            drawn["invariance"] = drawing.changes({label: scaled[name] for name, label in _CURVES.items()})
        if len(closed) == len(amplification.DATA):
            drawn["amplification"] = drawing.amplified(closed)
        if len(panels) == len(density.DIMENSIONS) + 1:
            drawn["density"] = drawing.densities(panels)
        for name, figure in drawn.items():
            figures.save(figure, folder / f"figure_{name}.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return the verdicts in one table, and then the numbers behind them."""
        sizes = _sizes_of(parts)
        out: list[Block] = [Heading("Theory as checks that can be run", 1), Text(_introduction(sizes))]
        found = results(parts, rows)
        if not found:
            return [*out, Text("No check has been computed yet: `drsne reproduce theory`."), *failures(rows)]
        held = sum(one.details["holds"] for one in found)
        out += [Text(f"{held} of {len(found)} claims hold."), _verdicts(found)]
        for heading, subject, section in _SECTIONS:
            if some := [one for one in found if one.check.subject == subject]:
                out += [Heading(heading), *section(some)]
        return out + failures(rows)


STUDY = Theory()

_CURVES = {
    invariance.SCALED: "relative to the median radius (default)",
    invariance.ABSOLUTE: "1e-8 as a length (the paper)",
    invariance.ROOT: "1e-8 under the root (the authors' code)",
}
_SUBJECTS = {
    INVARIANCE: "invariance",
    SCALE: "scale component",
    DIFFERENCES: "finite differences",
    AMPLIFICATION: "amplification",
    DENSITY: "concentration and density",
    RANKS: "ranks of density",
}


def _introduction(sizes: Sizes) -> str:
    return (
        "Made by `drsne reproduce theory`, which calls the package's own code. The data are "
        f"{sizes.digits} points of Digits, standardised, with their two leading principal components as the map, and "
        f"{sizes.generated} points of generated data. Neighbourhoods have 30 points. Finite differences are computed "
        f"on {sizes.small} points of Digits with 7 neighbours. A.1 to A.5 are the subsections of the paper's appendix "
        'A, and 4.1 is a section of its text. Numbers in parentheses are equations, and "docs" are sections, of '
        "docs/theory.md. If a claim is exact, its bound is what rounding can explain; otherwise the bound is stated "
        "with the claim."
    )


def _data(check: Check, sizes: Sizes) -> dict[str, Any]:
    """Return what identifies the data of a check."""
    return {"dataset": check.dataset, "n_samples": getattr(sizes, check.size), **check.data}


def _part(checks: Sequence[Check], sizes: Sizes) -> Study:
    """Return the study of checks that share their data."""
    data = _data(checks[0], sizes)
    return Study(
        name="theory",
        datasets=(data.pop("dataset"),),
        methods=tuple(check.name for check in checks),
        seeds=(0,),
        scores=(),
        data=load,
        data_params=data,
        variants={check.name: _method(check) for check in checks},
    )


def _method(check: Check) -> Method:
    """Return a check as a method that makes no map."""

    def measured(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
        for value in values:
            start = time.perf_counter()
            finding = check.measure(workspace)
            yield Run(value, None, {"check": time.perf_counter() - start}, finding.details())

    return Method(title=check.title, maps=measured, settings=check.settings, seeded=False)


def _sizes_of(parts: Sequence[Study]) -> Sizes:
    """Return the numbers of points of the parts."""
    used = {part.data_params["n_samples"] for part in parts}
    return QUICK_SIZES if QUICK_SIZES.digits in used else FULL_SIZES


def results(parts: Sequence[Study], rows: Sequence[Row]) -> list[Result]:
    """Return the checks that have been computed, in their order, with the results in their rows."""
    by_key = {row["key"]: row for row in rows if not has_failed(row)}
    sizes = _sizes_of(parts)
    out = []
    for check in CHECKS:
        part = _part([check], sizes)
        row = by_key.get(key(part.identity(part.datasets[0], check.name, None, 0)))
        if row is not None:
            out.append(Result(check, row["details"]))
    return out


def _short(value: float) -> str:
    return f"{value:.2g}"


def _verdicts(found: Sequence[Result]) -> Table:
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


_RANKED = {
    "one": "exponents 1 and 1",
    "ambient": "exponents D and d",
    "intrinsic": "exponents intrinsic dimension and d",
    "distances": "distances",
    "metric": "the metric of this package",
}


def _ranks(found: Sequence[Result]) -> list[Block]:
    header = ["exponents, or what was ranked", "rank correlation"]
    body = [[title, f"{found[0].numbers[name]:.15f}"] for name, title in _RANKED.items()]
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


_SECTIONS: tuple[tuple[str, str, Callable[[Sequence[Result]], list[Block]]], ...] = (
    ("Invariance", INVARIANCE, _invariance),
    ("The scale component of the gradient", SCALE, _scale),
    ("The gradient and finite differences", DIFFERENCES, _differences),
    ("Pointwise loss and correlation", AMPLIFICATION, _amplification),
    ("Concentration and density", DENSITY, _density),
    ("Ranks of density", RANKS, _ranks),
)
