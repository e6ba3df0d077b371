"""What the paper claims: for each study, ``claims/<study>.py`` exposes ``CLAIMS``, each with its judge.

A judge is a function of the study's rows, so that no verdict is written down anywhere. Of a row it may use
``dataset``, ``method``, ``value``, ``seed``, ``metrics``, ``params``, ``scores`` and ``seconds``; rows of failed runs
do not reach it. Where the rows do not say, its verdict is ``not_run()``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from drsne.experiments.rows import Row

HOLDS, IN_PART, FAILS, NOT_RUN = "holds", "holds in part", "does not hold", "not run yet"
NOT_TESTED = "not tested"
WORDS = (HOLDS, IN_PART, FAILS, NOT_TESTED, NOT_RUN)


class Verdict(NamedTuple):
    """One of the ``WORDS``, and the numbers that support it."""

    word: str
    numbers: str = ""


Judge = Callable[[Sequence[Row]], Verdict]  # of the rows of the study


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper in our words, and how it is judged."""

    text: str
    where: str  # in the paper
    criterion: str  # what "holds" means, said so that it can be checked
    judge: Judge
    whom: str = ""  # what the first verdict is about, if it is not the paper's method as its code has it
    also: Mapping[str, Judge] = field(default_factory=dict)  # of whom else it is asked


def names() -> list[str]:
    """Names of the studies that test a claim."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def load(study: str) -> tuple[Claim, ...]:
    """The claims that a study tests; none where there is no file for it."""
    if study not in names():
        return ()
    found: tuple[Claim, ...] = import_module(f"drsne.experiments.claims.{study}").CLAIMS
    return found


def not_run() -> Verdict:
    """What is said before there are rows."""
    return Verdict(NOT_RUN)


def not_tested(numbers: str) -> Verdict:
    """Return the verdict on a claim that no run of ours can judge, with what is known about it."""
    return Verdict(NOT_TESTED, numbers)


def of_count(met: int, asked: int, numbers: str, *, enough: float = 1.0) -> Verdict:
    """The verdict where ``met`` of the ``asked`` cases are as claimed, and a share of ``enough`` has to be."""
    if not asked:
        return not_run()
    word = HOLDS if met >= enough * asked else IN_PART if met else FAILS
    return Verdict(word, numbers)
