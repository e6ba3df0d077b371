"""Checks of the paper's theory: each a claim, a number that the package computes, and the bound that it must keep.

One file a subject, which exposes ``CHECKS``. What is measured is the package's own code; a check never repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DOUBLE_ROUNDING, SINGLE_ROUNDING = 2.0**-52, 2.0**-23  # spacing of numbers near 1


class Size(NamedTuple):
    """How many points a check takes."""

    digits: int
    generated: int
    small: int  # where every coordinate is moved in turn


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found."""

    number: float
    bound: float
    least: bool = False  # whether the number must be at least the bound; else at most
    also: bool = True  # what else the claim asks for
    numbers: dict[str, Any] = field(default_factory=dict)  # all there is to show

    @property
    def passed(self) -> bool:
        """Whether the claim holds; a number that is not one never does."""
        within = self.number >= self.bound if self.least else self.number <= self.bound
        return bool(within and self.also)


@dataclass(frozen=True, kw_only=True)
class Check:
    """A claim, and how it is measured."""

    group: str
    name: str
    claim: str  # in our words
    where: str  # in the paper, and in docs/theory.md
    settings: dict[str, Any]  # all that the number depends on, beside the size
    measure: Callable[[Size], Finding]
