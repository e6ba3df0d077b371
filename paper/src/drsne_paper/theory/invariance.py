"""Invariance of the relative concentration and its loss under scaling, translation and rotation of map and data.

**Effect of rounding.** Let u be the spacing of numbers near 1, M the largest coordinate and r the smallest radius.
Coordinates have errors of u M, so distances in d dimensions have errors of sqrt(d) u M. Sums, roots and logarithms add
(d + k + 8) u. The error of a mean is as large as that of its terms. The error of each logarithm of a relative
concentration is then at most ``2 u (d + k + 8 + sqrt(d) M / r)``, both before and after the transformation; a rotation
sums d products for each coordinate. If the error of a profile is b, the relative error of the loss L is at most
``2 b / sqrt(L) + b^2 / L``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from drsne import Objective, Smoothing, presets
from drsne_paper._private import DEFAULT_SMOOTHING, knn
from drsne_paper.methods import Workspace
from drsne_paper.theory import DOUBLE_ROUNDING, INVARIANCE, SINGLE_ROUNDING, Check, Finding
from drsne_paper.theory.problems import Array, K, Mapped, loss, mapped, objective, problem, radii, target_of

FACTORS = (1e-3, 1e-2, 0.1, 0.3, 3.0, 10.0, 1e2, 1e3)
SPANS = (1.0, 10.0, 1e2, 1e3)  # lengths of the translations, as multiples of the span of the points
TURNS = 4  # number of random rotations
SPACES = ("map", "data")
EPSILON = presets.PAPER_SMOOTHING


class Move(NamedTuple):
    """A transformation of points."""

    label: float
    points: Array
    products: int = 1  # number of products in the sum for a coordinate


def scaled(points: Array) -> Iterator[Move]:
    """Yield the points multiplied by each of several factors."""
    for factor in FACTORS:
        yield Move(factor, factor * points)


def translated(points: Array) -> Iterator[Move]:
    """Yield the points moved by multiples of their span, in a direction that is not an axis."""
    span = float(np.max(np.ptp(points, axis=0)))
    direction = np.asarray(np.random.RandomState(0).uniform(0.5, 1.0, points.shape[1]))
    for spans in SPANS:
        yield Move(spans, points + spans * span * direction / direction.max())


def rotated(points: Array) -> Iterator[Move]:
    """Yield the points after random rotations (or reflections)."""
    d = points.shape[1]
    for seed in range(TURNS):
        turn = np.linalg.qr(np.random.RandomState(seed).randn(d, d))[0]
        yield Move(float(seed), points @ turn, d)


def _rounding(points: Array, least: float, unit: float, products: int = 1) -> float:
    d = points.shape[1]
    far = float(np.abs(points).max()) / least
    return float(2.0 * unit * (d + K + 8 + products * np.sqrt(d) * far))


class _State(NamedTuple):
    """The profile and the loss of a map or of data in one position."""

    profile: Array
    loss: float
    radius: float  # the smallest radius
    neighbors: Any


def _state(given: Objective, points: Mapped, space: str, moved: Array) -> _State:
    """Return the profile of the moved space, and the loss. If the data were moved, neighbours are searched again."""
    if space == "map":
        of = problem(given, points)
        return _State(of.of_points(moved)["concentration"], loss(of, moved), float(radii(points, moved).min()), None)
    near = knn(moved, K)
    of = problem(given, points._replace(near=near))
    return _State(target_of(of), loss(of, points.Y), float(near.distances.mean(axis=1).min()), near.indices)


def _cases(
    given: Objective, workspace: Workspace, space: str, moves: Callable[[Array], Iterator[Move]]
) -> list[dict[str, Any]]:
    """Return, for every transformation, the changes and the largest changes that rounding explains."""
    points = mapped(workspace)
    original = points.Y if space == "map" else points.X
    unit = SINGLE_ROUNDING if given.precision == "single" and space == "map" else DOUBLE_ROUNDING
    before = _state(given, points, space, original)
    out = []
    for move in moves(original):
        after = _state(given, points, space, move.points)
        allowed = _rounding(original, before.radius, unit)
        allowed += _rounding(move.points, after.radius, unit, move.products)
        case = {
            "label": move.label,
            "profile": float(np.abs(after.profile - before.profile).max()),
            "loss": abs(after.loss / before.loss - 1.0),
            "rounding": allowed,
            "smallest_radius": before.radius,
            "loss_itself": before.loss,
        }
        if before.neighbors is not None:
            changed = np.sort(after.neighbors) != np.sort(before.neighbors)
            case["other_neighbors"] = int(changed.any(axis=1).sum())
        out.append(case)
    return out


def _of_loss(bound: float, value: float) -> float:
    return float(2.0 * bound / np.sqrt(value) + bound**2 / value)


def _finding(cases: list[dict[str, Any]], bounds: list[float]) -> Finding:
    """Return the largest change of a relative concentration.

    Every case must stay within its bounds, including the bound on the loss.
    """
    for case, bound in zip(cases, bounds, strict=True):
        case["bound"], case["loss_bound"] = bound, _of_loss(bound, case["loss_itself"])
    kept = all(case["profile"] <= case["bound"] and case["loss"] <= case["loss_bound"] for case in cases)
    worst = max(cases, key=lambda case: case["profile"])
    return Finding(number=worst["profile"], bound=worst["bound"], also=kept, numbers={"cases": cases})


def _invariant(space: str, moves: Callable[[Array], Iterator[Move]], precision: str) -> Callable[[Workspace], Finding]:
    def measure(workspace: Workspace) -> Finding:
        cases = _cases(objective(precision=precision), workspace, space, moves)
        return _finding(cases, [case["rounding"] for case in cases])

    return measure


def _absolute(space: str) -> Callable[[Workspace], Finding]:
    def measure(workspace: Workspace) -> Finding:
        # a r + epsilon = a (r + epsilon / a), which is as if epsilon had changed by epsilon (1 / a - 1)
        cases = _cases(objective(Smoothing(relative=0.0, length=EPSILON)), workspace, space, scaled)
        shares = [2.0 * EPSILON * abs(1.0 / case["label"] - 1.0) / case["smallest_radius"] for case in cases]
        return _finding(cases, [case["rounding"] + share for case, share in zip(cases, shares, strict=True)])

    return measure


def _under_the_root(workspace: Workspace) -> Finding:
    coded: Objective = presets.paper(len(workspace.X), 0.0, K, variant="code")["objective"]
    cases = _cases(objective(coded.embedding_smoothing), workspace, "map", scaled)
    worst = max(cases, key=lambda case: case["profile"])
    return Finding(number=worst["profile"], bound=worst["rounding"], at_least=True, numbers={"cases": cases})


_MOVES = {"scaled": (scaled, list(FACTORS)), "moved": (translated, list(SPANS)), "turned": (rotated, TURNS)}
_WHERE = {"scaled": "A.4; (15) to (17)", "moved": "A.4; docs 4", "turned": "not in the paper; docs 4"}
_REASONS = {
    "scaled": f"a common factor, {FACTORS[0]:g} to {FACTORS[-1]:g}, cancels in the mean",
    "moved": f"only differences count, up to {SPANS[-1]:g} spans away",
    "turned": "only distances count",
}
_EPSILON: dict[str, Any] = {"k": K, "values": list(FACTORS), "epsilon": EPSILON}
SCALED, MOVED = "map_scaled", "map_moved"  # names that claims and figures refer to
ABSOLUTE, ROOT = "map_scaled_absolute_epsilon", "map_scaled_root_epsilon"


def _checks() -> tuple[Check, ...]:
    out = []
    for space, precision in (("map", "double"), ("data", "double"), ("map", "single")):
        for verb, (moves, values) in _MOVES.items():
            single = precision == "single"
            out.append(
                Check(
                    name=f"{space}_{verb}{'_single' if single else ''}",
                    subject=INVARIANCE,
                    settings={"k": K, "values": values, "precision": precision, "relative": DEFAULT_SMOOTHING.relative},
                    measure=_invariant(space, moves, precision),
                    title=f"{space} {verb}{', single precision' if single else ''}",
                    claim=f"relative concentration and loss do not change: {_REASONS[verb]}",
                    where=_WHERE[verb] if space == "map" else "as for the map; docs 4",
                )
            )
    out += [
        Check(
            name=f"{space}_scaled_absolute_epsilon",
            subject=INVARIANCE,
            settings=_EPSILON,
            measure=_absolute(space),
            title=f"{space} scaled, absolute epsilon",
            claim="the paper's epsilon, a length of 1e-8, costs at most 2 epsilon abs(1/a - 1) / r at factor a",
            where="A.4, as epsilon goes to 0; (23)",
        )
        for space in SPACES
    ]
    out.append(
        Check(
            name=ROOT,
            subject=INVARIANCE,
            settings=_EPSILON,
            measure=_under_the_root,
            title="map scaled, epsilon under the root",
            claim="the authors' code adds 1e-8 to squared distances, a length of 1e-4: it is not invariant",
            where="their code; docs 6",
        )
    )
    return tuple(out)


CHECKS = _checks()
