"""The gradient of the concentration term: its scale component, and numerical differentiation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from drsne import Smoothing
from drsne_paper._private import DEFAULT_SMOOTHING, loss_and_slope, profile
from drsne_paper.methods import Workspace
from drsne_paper.theory import DIFFERENCES, DOUBLE_ROUNDING, SCALE, Check, Finding
from drsne_paper.theory.problems import NONE, Array, K, gradient, loss, mapped, objective, problem, radii, target_of

SMALL_K = 7
STEP = 1e-4
EXACT_TO = 1e-7  # relative error that central differences of fourth order should reach at this step


def _scale(smoothing: Smoothing, mean: str) -> Callable[[Workspace], Finding]:
    def measure(workspace: Workspace) -> Finding:
        points = mapped(workspace)
        of = problem(objective(smoothing, mean=mean), points)
        Y = points.Y - points.Y.mean(axis=0)
        G = gradient(of, Y)
        low = profile(radii(points, Y), 1.0, smoothing)
        _, slope = loss_and_slope(target_of(of), low, 1.0, smoothing, attached=mean == "attached")
        sizes = float(np.linalg.norm(G) * np.linalg.norm(Y))
        component = float((G * Y).sum())
        # Each slope contributes to the sums over the point's k neighbours and over the points that list it as a
        # neighbour, multiplied by a map coordinate.
        absolute = float(np.abs(slope).sum())
        rounding = DOUBLE_ROUNDING * (2 * K + 8) * 2.0 * absolute * float(np.linalg.norm(Y, axis=1).max())
        numbers = {"component": component, "cosine": component / sizes, "rounding": rounding / sizes}
        if mean == "detached":
            expected = 2.0 * float((target_of(of) - low.log).mean())  # docs/theory.md, below eq. 22
            numbers["expected"] = expected
            return Finding(
                number=abs(component - expected) / abs(expected),
                bound=rounding / abs(expected),
                also=abs(component) > rounding,
                numbers=numbers,
            )
        epsilon = float((low.radius - radii(points, Y)).max())
        numbers["epsilon"] = epsilon
        return Finding(number=abs(component) / sizes, bound=(rounding + epsilon * absolute) / sizes, numbers=numbers)

    return measure


def _numerical(function: Callable[[Array], float], Y: Array) -> Array:
    """Return the derivatives as central differences of fourth order."""
    G = np.zeros_like(Y)
    for at in np.ndindex(*Y.shape):
        for steps, weight in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
            moved = Y.copy()
            moved[at] += steps * STEP
            G[at] += weight * function(moved) / (12.0 * STEP)
    return G


def _differences(smoothing: str, mean: str, bound: float, *, at_least: bool = False) -> Callable[[Workspace], Finding]:
    """Measure the largest difference from the numerical derivative, relative to the largest component."""

    def measure(workspace: Workspace) -> Finding:
        points = mapped(workspace, SMALL_K)
        used = DEFAULT_SMOOTHING if smoothing == "relative" else NONE
        if smoothing == "length":
            median = float(np.median(radii(points, points.Y)))
            used = Smoothing(relative=0.0, length=DEFAULT_SMOOTHING.relative * median)
        of = problem(objective(used, mean=mean), points)
        G = gradient(of, points.Y)
        numerical = _numerical(lambda Y: loss(of, Y), points.Y)
        away = np.abs(G - numerical)
        largest = float(np.abs(numerical).max())
        numbers = {"norms": float(np.linalg.norm(G - numerical) / np.linalg.norm(numerical)), "largest": largest}
        return Finding(number=float(away.max()) / largest, bound=bound, at_least=at_least, numbers=numbers)

    return measure


_small_check = partial(Check, subject=DIFFERENCES, size="small")
_SMALL = {"k": SMALL_K, "step": STEP}
CHECKS = (
    Check(
        name="scale_attached",
        subject=SCALE,
        settings={"k": K},
        measure=_scale(NONE, "attached"),
        title="mean attached, no epsilon",
        claim="the gradient has no component along the map itself: it never expands or shrinks the map",
        where="A.4 implies it; (22)",
    ),
    Check(
        name="scale_attached_smoothed",
        subject=SCALE,
        settings={"k": K, "relative": DEFAULT_SMOOTHING.relative},
        measure=_scale(DEFAULT_SMOOTHING, "attached"),
        title="mean attached, default epsilon",
        claim="an epsilon that the gradient treats as fixed leaves at most epsilon times the sum of abs(dL/dr) of it",
        where="(22), (23)",
    ),
    Check(
        name="scale_detached",
        subject=SCALE,
        settings={"k": K},
        measure=_scale(NONE, "detached"),
        title="mean detached",
        claim="in the authors' code this component is 2 mean(e) and not 0 (number: relative difference from it)",
        where="contradicts A.4; below (22)",
    ),
    _small_check(
        name="gradient_exact",
        settings=_SMALL | {"exact_to": EXACT_TO},
        measure=_differences("none", "attached", EXACT_TO),
        title="no epsilon",
        claim="the gradient is the derivative of the loss",
        where="(19), (21)",
    ),
    _small_check(
        name="gradient_length",
        settings=_SMALL | {"exact_to": EXACT_TO},
        measure=_differences("length", "attached", EXACT_TO),
        title="epsilon a fixed length",
        claim="the same if epsilon is a length",
        where="(19), (21)",
    ),
    _small_check(
        name="gradient_smoothed",
        settings=_SMALL | {"relative": DEFAULT_SMOOTHING.relative},
        measure=_differences("relative", "attached", 10.0 * DEFAULT_SMOOTHING.relative),
        title="default epsilon",
        claim="an epsilon relative to the median radius, treated as fixed, changes the gradient by its own order",
        where="(23)",
    ),
    _small_check(
        name="gradient_detached",
        settings=_SMALL | {"exact_to": EXACT_TO},
        measure=_differences("none", "detached", EXACT_TO, at_least=True),
        title="mean detached",
        claim="the authors' code does not descend the gradient of the loss",
        where="(20)",
    ),
)
