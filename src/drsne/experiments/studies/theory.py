"""The paper's theory as runnable checks: each a claim, a number, a bound and a verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drsne import datasets
from drsne.experiments import figures
from drsne.experiments.checks import (
    Check,
    Finding,
    Size,
    amplification,
    density,
    drawing,
    gradients,
    invariance,
)
from drsne.experiments.document import Block, Figure, Heading, Table, Text
from drsne.experiments.rows import Row, Rows, key, make_folder, provenance
from drsne.experiments.studies import PaperStudy
from drsne.experiments.study import USUAL, Asked, Study
from drsne.progress import ProgressBar

CHECKS = (*invariance.CHECKS, *gradients.CHECKS, *amplification.CHECKS, *density.CHECKS)
FULL, QUICK_SIZE = Size(digits=1797, generated=5000, small=40), Size(digits=400, generated=1200, small=25)
# What stands for fewer points: a part without runs.
QUICK = Study(name="theory, quick", datasets=(), methods=(), seeds=(), scores=(), data=datasets.load)


class Theory(PaperStudy):
    """What ``drsne reproduce theory`` computes and writes."""

    name = "theory"
    description = "the paper's theory as checks: invariance, pointwise or correlation, concentration and density"
    alone = True
    seeded = False

    def parts(self, asked: Asked = USUAL) -> tuple[Study, ...]:
        """No runs; a part without any says that few points are enough."""
        for name, given in (("datasets", asked.datasets), ("methods", asked.methods), ("seeds", asked.seeds)):
            if given is not None:
                raise ValueError(
                    f"{name} must not be given with theory, whose checks have their own data and no methods or seeds; "
                    f"got {', '.join(map(str, given))}. Leave {name} out; quick takes fewer points."
                )
        return (QUICK,) if asked.quick else ()

    def reproduce(
        self,
        parts: Sequence[Study],
        folder: Path,
        *,
        shown: Sequence[Study] | None = None,
        jobs: int = 1,
        retry: bool = False,
        verbose: int = 1,
    ) -> str:
        """Make the checks that have no row yet, and to ``retry`` those that did not hold; write table and figures."""
        make_folder(folder)
        kept, size = Rows(folder / "rows.jsonl"), _size(parts)
        there = {row["key"]: row["passed"] for row in kept.read()}
        todo = [check for check in CHECKS if not there.get(_key(check, size), False)]
        if not retry:
            todo = [check for check in todo if _key(check, size) not in there]
        with ProgressBar(len(todo), self.name, visible=bool(verbose and todo)) as bar:
            for done, check in enumerate(todo, start=1):
                kept.append([_made(check, size)])
                bar(done, {})
        return self.publish(parts, _of(size, kept.read()), folder)

    def kept(self, folder: Path, *, quick: bool = False) -> tuple[tuple[Study, ...], list[Row]]:
        """The checks as they are now, of all points or of few."""
        parts = self.parts(Asked(quick=quick))
        return parts, _of(_size(parts), Rows(folder / "rows.jsonl").read())

    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """The figures, from the rows alone."""
        numbers = {row["check"]: row["numbers"] for row in rows}
        drawn = {}
        if all(name in numbers for name in _CURVES.values()):
            drawn["invariance"] = drawing.changes({label: numbers[name]["cases"] for label, name in _CURVES.items()})
        if all(name in numbers for name in _AMPLIFIED):
            drawn["amplification"] = drawing.amplified(
                {title: numbers[name]["rows"] for name, title in _AMPLIFIED.items()}
            )
        if all(name in numbers for name in _PANELS):
            drawn["density"] = drawing.densities([(title, numbers[name]) for name, title in _PANELS.items()])
        for name, figure in drawn.items():
            figures.save(figure, folder / f"figure_{name}.png")

    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """The verdicts in one table, then what stands behind them."""
        size = _size(parts)
        out: list[Block] = [Heading("Theory as runnable checks", 1), Text(_INTRODUCTION.format(**size._asdict()))]
        if not rows:
            return [*out, Text("No check has been made yet: `drsne reproduce theory`.")]
        held = sum(row["passed"] for row in rows)
        out += [Text(f"{held} of {len(rows)} claims hold."), _verdicts(rows)]
        for heading, group, tell in _SECTIONS:
            if some := [row for row in rows if row["group"] in group]:
                out += [Heading(heading), *tell(some)]
        return out


STUDY = Theory()

_CURVES = {
    "relative to the median radius (default)": "map scaled",
    "1e-8 as a length (the paper)": "map scaled, absolute epsilon",
    "1e-8 under the root (the authors' code)": "map scaled, epsilon under the root",
}
_AMPLIFIED = {f"closed form, {title}": title for title in amplification.DATA.values()}
_PANELS = {f"kNN density, Gaussian in {d}-d": "Gaussian, d" for d in density.DIMENSIONS} | {
    "kNN density, Digits": "Digits, local d"
}
_INTRODUCTION = (
    "Made by `drsne reproduce theory` with the package's own code. Digits: {digits} points, standardised, its map the "
    "two leading principal components; generated data: {generated} points; 30 neighbours; finite differences on "
    "{small} points of Digits with 7. A.1 to A.5 are the subsections of the paper's appendix A, 4.1 is one of "
    'its text; numbers in parentheses are the equations and "docs" the sections of docs/theory.md. A bound is what '
    "rounding explains where a claim is exact, and else stated with it."
)


def _size(parts: Sequence[Study]) -> Size:
    return QUICK_SIZE if parts else FULL


def _identity(check: Check, size: Size) -> dict[str, Any]:
    """All that a row is a result of: a check that says or measures something else is another one."""
    return {
        "group": check.group,
        "check": check.name,
        "claim": check.claim,
        "where": check.where,
        "settings": check.settings,
        "size": size._asdict(),
    }


def _key(check: Check, size: Size) -> str:
    return key(_identity(check, size))


def _made(check: Check, size: Size) -> Row:
    start = time.perf_counter()
    found: Finding = check.measure(size)
    seconds = {"check": round(time.perf_counter() - start, 3)}
    row = {"key": _key(check, size), "study": "theory", **_identity(check, size), "numbers": found.numbers}
    row |= {"number": found.number, "bound": found.bound, "least": found.least, "passed": found.passed}
    return row | {"seconds": seconds, **provenance()}


def _of(size: Size, rows: list[Row]) -> list[Row]:
    """The rows of the checks at a size, the last of each, in their order."""
    last = {row["key"]: row for row in rows}
    return [last[name] for name in (_key(check, size) for check in CHECKS) if name in last]


def _short(value: float) -> str:
    return f"{value:.2g}"


def _verdicts(rows: list[Row]) -> Table:
    header = ["subject", "check", "claim", "where", "number", "bound", "verdict"]
    body = [
        [
            row["group"],
            row["check"],
            row["claim"],
            row["where"],
            _short(row["number"]),
            f"{'at least' if row['least'] else 'at most'} {_short(row['bound'])}",
            "holds" if row["passed"] else "**does not hold**",
        ]
        for row in rows
    ]
    return Table(header, body)


def _tell_invariance(rows: list[Row]) -> list[Block]:
    body = []
    for row in rows:
        cases = row["numbers"]["cases"]
        worst = max(cases, key=lambda case: case["profile"])
        loss = max(case["loss"] for case in cases)
        line = [row["check"], *(_short(value) for value in (worst["profile"], worst["rounding"], loss))]
        body.append([*line, str(max(case["other_neighbors"] for case in cases)) if "other_neighbors" in worst else ""])
    return [
        Text(
            "A.4: the loss does not change when the map is scaled or moved, in the limit of no epsilon. The number "
            "above is the largest change of a relative concentration; the verdict also covers that of the loss. With "
            "the default epsilon, relative to the median radius, both hold to rounding, for map and data. With the "
            "paper's length of 1e-8 they hold as far as radii are far above it: the change grows as 1 / factor. Under "
            "the root, as in the authors' map, 1e-8 is a length of 1e-4, and the constants in their mean and logarithm "
            "depart the other way. Single precision, the default arithmetic of pairs, loses digits in a map far from "
            "the origin; fits keep the map centred. Neighbours of moved data are searched anew."
        ),
        Table(
            ["check", "change of c", "rounding", "change of the loss (relative)", "points with other neighbours"], body
        ),
        Figure("figure_invariance.png", "Change of relative concentrations when the map of Digits is scaled"),
    ]


def _tell_scale(rows: list[Row]) -> list[Block]:
    header = ["check", "gradient . (Y - mean)", "cosine", "rounding (of the cosine)", "2 mean(e)"]
    body = [
        [
            row["check"],
            *(_short(row["numbers"][name]) for name in ("component", "cosine", "rounding")),
            f"{row['numbers']['expected']:.4g}" if "expected" in row["numbers"] else "",
        ]
        for row in rows
    ]
    return [
        Text(
            "Of a loss that does not change with scale, the gradient has no component along the map. The paper's text "
            "normalises by the mean and says nothing of holding it fixed; the authors' code does, and its gradient "
            "then pushes the map to swell or shrink wherever the mean of e, the difference of the profiles, is not 0 "
            "(descent goes against the gradient: a positive component shrinks the map)."
        ),
        Table(header, body),
    ]


def _tell_amplification(rows: list[Row]) -> list[Block]:
    out: list[Block] = [
        Text(
            "A.5: correlation of log radii cannot tell whether their differences are amplified or flattened, the "
            "pointwise loss can. Radii of the data, log r replaced by beta log r. The spread (1 - beta)^2 Var(log r) "
            "is exact; the normalising mean adds mean(e)^2, which also grows away from 1, and which can be most of the "
            "loss where radii differ widely. den-SNE's correlation, with the shift of its program in the variance (its "
            "radii taken as squares of ours), is not indifferent: it grows with beta and so rewards amplification."
        )
    ]
    header = ["beta", "loss", "(1 - beta)^2 Var", "mean(e)^2", "loss, default epsilon"]
    header += ["1 - Pearson", "1 - rank correlation", "den-SNE's"]
    for row in rows:
        if "rows" not in row["numbers"]:
            continue
        body = [
            [
                f"{line['beta']:g}",
                *(f"{line[name]:.4g}" for name in ("loss", "spread", "offset", "smoothed_loss")),
                *(_short(1.0 - line[name]) for name in ("pearson", "spearman")),
                f"{line['densne']:.3f}",
            ]
            for line in row["numbers"]["rows"]
        ]
        title = row["check"].removeprefix("closed form, ")
        out += [Heading(f"{title}, Var(log r) = {row['numbers']['variance']:.4g}", 3), Table(header, body)]
    return [*out, Figure("figure_amplification.png", "Loss and correlations of amplified radii")]


def _tell_density(rows: list[Row]) -> list[Block]:
    header = ["check", "d", "Spearman", "Pearson", "slope of density on c", "over d"]
    header += ["1 / slope of c on density, over d", f"the same, 1/{density.FEWER} of the points"]
    body = [
        [row["check"], f"{found['d']:.3g}", f"{found['spearman']:.3f}", f"{found['pearson']:.3f}"]
        + [f"{found[name]:.3f}" for name in ("slope", "slope_over_d", "inverse_over_d")]
        + [f"{found['with_fewer']:.3f}" if "with_fewer" in found else ""]
        for row in rows
        for found in [row["numbers"]]
    ]
    return [
        Text(
            "A.1: c goes as an inverse length, a density as a length to the power -d. Logarithms of both are on a line "
            "of slope d where the density is even within a neighbourhood. The kNN estimate k / (n V_d r_k^d) comes "
            "near in every dimension; what is missing is chance, which the mean of k distances and the k-th share only "
            "in part. The true density shows more. In one and two dimensions chance in c (30 neighbours) lowers ranks "
            "and slope; the slope of c on density does not see it. In five and ten dimensions neighbourhoods reach "
            "over much of the Gaussian: those of the tail take in the denser inside and those of the centre its "
            "surroundings, c varies too little, and the slope exceeds d, less so with more points. A slope within "
            f"{density.SAME:g} of d, relative, counts as d."
        ),
        Table(header, body),
        Figure("figure_density.png", "Log density against log relative concentration; lines have slope d"),
    ]


def _tell_ranks(rows: list[Row]) -> list[Block]:
    header = ["exponents, or what was ranked", "rank correlation"]
    body = [[name, f"{value:.15f}"] for name, value in rows[0]["numbers"].items()]
    return [
        Text(
            "The paper's rho_S ranks r_k^-D in the data and r_k^-d in the map. Powers keep order, so the metric of the "
            "package ranks distances. Digits and its principal components:"
        ),
        Table(header, body),
    ]


def _tell_differences(rows: list[Row]) -> list[Block]:
    header = ["check", "largest difference over largest component", "norm of the difference, relative"]
    body = [[row["check"], _short(row["number"]), _short(row["numbers"]["norms"])] for row in rows]
    return [
        Text(
            "The whole gradient of the concentration term against central differences of fourth order (step "
            f"{gradients.STEP:g}). The default epsilon follows the median radius and is held fixed in the gradient, "
            "which costs a correction of its own order (the bound: ten times the default 1e-3). A mean that is held "
            "fixed costs far more."
        ),
        Table(header, body),
    ]


_SECTIONS: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("Invariance", (invariance.GROUP,), _tell_invariance),
    ("The scale component of the gradient", (gradients.SCALE,), _tell_scale),
    ("The gradient and finite differences", (gradients.DIFFERENCES,), _tell_differences),
    ("Pointwise loss and correlation", (amplification.GROUP,), _tell_amplification),
    ("Concentration and density", (density.GROUP,), _tell_density),
    ("Ranks of density", (density.RANKS,), _tell_ranks),
)
