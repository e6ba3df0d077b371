"""The paper's theory as measurements: each has a claim, a number, a bound and a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from drsne_paper import figures
from drsne_paper.document import Block, Heading, Text
from drsne_paper.methods import Method, Run, Workspace
from drsne_paper.rows import Row, key
from drsne_paper.runner import has_failed
from drsne_paper.studies import PaperStudy
from drsne_paper.studies._theory_sections import SECTIONS, Result, verdicts
from drsne_paper.study import EVERYTHING, Selection, Study
from drsne_paper.tables import failures
from drsne_paper.theory import Check, Sizes, amplification, density, drawing, gradients, invariance
from drsne_paper.theory.problems import load

CHECKS = (*invariance.CHECKS, *gradients.CHECKS, *amplification.CHECKS, *density.CHECKS)
FULL_SIZES = Sizes(digits=1797, generated=5000, small=40)
QUICK_SIZES = Sizes(digits=400, generated=1200, small=25)


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
                    f"got {', '.join(map(str, given))}. Leave {name} out. To use fewer points, pass quick."
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
        """Return the verdicts in one table, and then the numbers that support them."""
        sizes = _sizes_of(parts)
        out: list[Block] = [Heading("Theory as checks that can be run", 1), Text(_introduction(sizes))]
        found = results(parts, rows)
        if not found:
            return [*out, Text("No check has been computed yet: `drsne reproduce theory`."), *failures(rows)]
        held = sum(one.details["holds"] for one in found)
        out += [Text(f"{held} of {len(found)} claims hold."), verdicts(found)]
        for heading, subject, section in SECTIONS:
            if some := [one for one in found if one.check.subject == subject]:
                out += [Heading(heading), *section(some)]
        return out + failures(rows)


STUDY = Theory()

_CURVES = {
    invariance.SCALED: "relative to the median radius (default)",
    invariance.ABSOLUTE: "1e-8 as a length (the paper)",
    invariance.ROOT: "1e-8 under the root (the authors' code)",
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
    """Return the study of those checks that use the same data."""
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
    """Return the numbers of points that the parts use."""
    used = {part.data_params["n_samples"] for part in parts}
    return QUICK_SIZES if QUICK_SIZES.digits in used else FULL_SIZES


def results(parts: Sequence[Study], rows: Sequence[Row]) -> list[Result]:
    """Return the computed checks in their defined order, each with the result from its row."""
    by_key = {row["key"]: row for row in rows if not has_failed(row)}
    sizes = _sizes_of(parts)
    out = []
    for check in CHECKS:
        part = _part([check], sizes)
        row = by_key.get(key(part.identity(part.datasets[0], check.name, None, 0)))
        if row is not None:
            out.append(Result(check, row["details"]))
    return out
