"""The gradient of the concentration term: its scale component, and numerical differentiation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drsne.experiments.checks import DOUBLE_ROUNDING, Check, Finding, Size
from drsne.experiments.checks.problems import (
    NONE,
    Array,
    K,
    gradient,
    loss,
    mapped_digits,
    objective,
    problem,
    radii,
)
from drsne.objectives.concentration import DEFAULT_SMOOTHING, Smoothing, loss_and_slope, profile

SCALE, DIFFERENCES = "scale component", "finite differences"
SMALL_K = 7
STEP = 1e-4
EXACT_TO = 1e-7  # relative: what central differences of fourth order should reach at this step


def _scale(smoothing: Smoothing, mean: str) -> Callable[[Size], Finding]:
    def measure(size: Size) -> Finding:
        mapped = mapped_digits(size.digits)
        of = problem(objective(smoothing, mean=mean), mapped)
        Y = mapped.Y - mapped.Y.mean(axis=0)
        G = gradient(of, Y)
        low = profile(radii(mapped, Y), 1.0, smoothing)
        _, slope = loss_and_slope(of.target, low, 1.0, smoothing, attached=mean == "attached")
        sizes = float(np.linalg.norm(G) * np.linalg.norm(Y))
        component = float((G * Y).sum())
        # Each slope enters the sum over k neighbours and over those that list the point, times a place in the map.
        absolute = float(np.abs(slope).sum())
        rounding = DOUBLE_ROUNDING * (2 * K + 8) * 2.0 * absolute * float(np.linalg.norm(Y, axis=1).max())
        numbers = {"component": component, "cosine": component / sizes, "rounding": rounding / sizes}
        if mean == "detached":
            expected = 2.0 * float((of.target - low.log).mean())  # docs/theory.md, below eq. 22
            numbers["expected"] = expected
            found = abs(component - expected) / abs(expected)
            return Finding(
                number=found, bound=rounding / abs(expected), also=abs(component) > rounding, numbers=numbers
            )
        epsilon = float((low.radius - radii(mapped, Y)).max())
        numbers["epsilon"] = epsilon
        return Finding(number=abs(component) / sizes, bound=(rounding + epsilon * absolute) / sizes, numbers=numbers)

    return measure


def _numerical(function: Callable[[Array], float], Y: Array) -> Array:
    """Central differences of fourth order."""
    G = np.zeros_like(Y)
    for at in np.ndindex(*Y.shape):
        for steps, weight in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
            moved = Y.copy()
            moved[at] += steps * STEP
            G[at] += weight * function(moved) / (12.0 * STEP)
    return G


def _differences(smoothing: str, mean: str, bound: float, *, least: bool = False) -> Callable[[Size], Finding]:
    """The largest difference from numerical differentiation, relative to the largest component."""

    def measure(size: Size) -> Finding:
        mapped = mapped_digits(size.small, SMALL_K)
        used = DEFAULT_SMOOTHING if smoothing == "relative" else NONE
        if smoothing == "length":
            median = float(np.median(radii(mapped, mapped.Y)))
            used = Smoothing(relative=0.0, length=DEFAULT_SMOOTHING.relative * median)
        of = problem(objective(used, mean=mean), mapped)
        G = gradient(of, mapped.Y)
        numerical = _numerical(lambda Y: loss(of, Y), mapped.Y)
        away = np.abs(G - numerical)
        largest = float(np.abs(numerical).max())
        numbers = {"norms": float(np.linalg.norm(G - numerical) / np.linalg.norm(numerical)), "largest": largest}
        return Finding(number=float(away.max()) / largest, bound=bound, least=least, numbers=numbers)

    return measure


_SMALL = {"k": SMALL_K, "step": STEP}
CHECKS = (
    Check(
        group=SCALE,
        name="mean attached, no epsilon",
        claim="the gradient has no component along the map itself: it never swells or shrinks the map",
        where="A.4 implies it; (22)",
        settings={"k": K},
        measure=_scale(NONE, "attached"),
    ),
    Check(
        group=SCALE,
        name="mean attached, default epsilon",
        claim="held fixed in the gradient, epsilon leaves at most epsilon times the sum of abs(dL/dr) of it",
        where="(22), (23)",
        settings={"k": K, "relative": DEFAULT_SMOOTHING.relative},
        measure=_scale(DEFAULT_SMOOTHING, "attached"),
    ),
    Check(
        group=SCALE,
        name="mean detached",
        claim="as in the authors' code, that component is 2 mean(e) and not 0 (number: relative difference from it)",
        where="against A.4; below (22)",
        settings={"k": K},
        measure=_scale(NONE, "detached"),
    ),
    Check(
        group=DIFFERENCES,
        name="no epsilon",
        claim="the gradient is the derivative of the loss",
        where="(19), (21)",
        settings=_SMALL | {"exact_to": EXACT_TO},
        measure=_differences("none", "attached", EXACT_TO),
    ),
    Check(
        group=DIFFERENCES,
        name="epsilon a fixed length",
        claim="the same with epsilon as a length",
        where="(19), (21)",
        settings=_SMALL | {"exact_to": EXACT_TO},
        measure=_differences("length", "attached", EXACT_TO),
    ),
    Check(
        group=DIFFERENCES,
        name="default epsilon",
        claim="relative to the median radius and held fixed, epsilon changes the gradient by its own order",
        where="(23)",
        settings=_SMALL | {"relative": DEFAULT_SMOOTHING.relative},
        measure=_differences("relative", "attached", 10.0 * DEFAULT_SMOOTHING.relative),
    ),
    Check(
        group=DIFFERENCES,
        name="mean detached",
        claim="what the authors' code descends is not the gradient of the loss",
        where="(20)",
        settings=_SMALL | {"exact_to": EXACT_TO},
        measure=_differences("none", "detached", EXACT_TO, least=True),
    ),
)
