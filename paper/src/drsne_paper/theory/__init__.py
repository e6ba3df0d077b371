"""The paper's theory as measurements. Each has a claim, a number that the package computes, and its bound.

``drsne reproduce theory`` computes them. There is one file for each subject, which exposes ``CHECKS``. A check calls
the code of the package and contains no copy of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drsne_paper.methods import Workspace

DOUBLE_ROUNDING, SINGLE_ROUNDING = 2.0**-52, 2.0**-23  # spacing of floating-point numbers near 1
INVARIANCE, SCALE, DIFFERENCES = "invariance", "scale", "differences"  # subjects
AMPLIFICATION, DENSITY, RANKS = "amplification", "density", "ranks"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of a check."""

    number: float
    bound: float
    at_least: bool = False  # whether the number must be at least the bound; otherwise it must be at most the bound
    also: bool = True  # whether everything else that the claim requires is true
    numbers: dict[str, Any] = field(default_factory=dict)  # everything that tables and figures show

    @property
    def holds(self) -> bool:
        """Return whether the claim holds; a claim about a nan value never holds."""
        within = self.number >= self.bound if self.at_least else self.number <= self.bound
        return bool(within and self.also)

    def details(self) -> dict[str, Any]:
        """Return the fields of a row."""
        return {
            "number": self.number,
            "bound": self.bound,
            "at_least": self.at_least,
            "holds": self.holds,
            "numbers": self.numbers,
        }


@dataclass(frozen=True, kw_only=True)
class Check:
    """A claim, and how it is measured. The first fields identify a row; the texts can change without losing the row."""

    name: str
    subject: str
    dataset: str = "digits"
    data: Mapping[str, Any] = field(default_factory=dict)  # parameters of the data besides the number of points
    size: str = "digits"  # the field of :class:`Sizes` with the number of points
    settings: Mapping[str, Any]  # everything else that the number depends on
    measure: Callable[[Workspace], Finding]
    title: str
    claim: str  # the claim in our words
    where: str  # the place of the claim in the paper and in docs/theory.md


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers of points that checks use."""

    digits: int
    generated: int
    small: int  # for checks that move every coordinate in turn
