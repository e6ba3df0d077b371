"""The claims of the paper: for each study, ``claims/<study>.py`` exposes ``CLAIMS``, each with its judge.

A judge is a function of the study's rows, so no verdict is ever written down. Rows of failed runs do not reach it. If
the rows are not sufficient, its verdict is ``not_run()``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from drsne.experiments.rows import Row
from drsne.registry import Registry

# The words of verdicts, which are shown as they are.
HOLDS, IN_PART, FAILS, NOT_RUN = "holds", "holds in part", "does not hold", "not run yet"
NOT_TESTED = "not tested"
WORDS = (HOLDS, IN_PART, FAILS, NOT_TESTED, NOT_RUN)


class Verdict(NamedTuple):
    """One of the ``WORDS``, and the numbers that support it."""

    word: str
    numbers: str = ""


Judge = Callable[[Sequence[Row]], Verdict]  # the argument are the rows of the study


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper in our words, and how it is judged."""

    text: str
    where: str  # in the paper
    criterion: str  # what "holds" means, in terms that can be checked
    judge: Judge
    subject: str = ""  # what the first verdict is about, if it is not the paper's method as its code has it
    also: Mapping[str, Judge] = field(default_factory=dict)  # verdicts about other methods


REGISTRY: Registry[tuple[Claim, ...]] = Registry("drsne.experiments.claims", "CLAIMS", parameter="study")


def names() -> list[str]:
    """Return the names of the studies that test a claim."""
    return REGISTRY.names()


def load(study: str) -> tuple[Claim, ...]:
    """Return the claims that a study tests; none if there is no file for it."""
    return REGISTRY.load(study) if study in REGISTRY else ()


def not_run() -> Verdict:
    """Return the verdict if there are no rows."""
    return Verdict(NOT_RUN)


def not_tested(numbers: str) -> Verdict:
    """Return the verdict on a claim that no run of ours can judge, with what is known about it."""
    return Verdict(NOT_TESTED, numbers)


def of_count(met: int, total: int, numbers: str, *, enough: float = 1.0) -> Verdict:
    """Return the verdict if ``met`` of ``total`` cases are as claimed; it holds if their share is ``enough``."""
    if not total:
        return not_run()
    word = HOLDS if met >= enough * total else IN_PART if met else FAILS
    return Verdict(word, numbers)
