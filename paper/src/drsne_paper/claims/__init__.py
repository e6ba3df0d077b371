"""The claims of the paper. For each study, ``claims/<study>.py`` exposes ``CLAIMS``. Each claim has a judge.

A judge is a function that computes a verdict from the study's rows, so no verdict is ever written down. It does not
receive rows of failed runs. If the rows are not sufficient, its verdict is ``not_run()``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from drsne_paper.registry import Registry
from drsne_paper.rows import Row

# The words for verdicts, which are shown unchanged.
HOLDS, IN_PART, FAILS, NOT_RUN = "holds", "holds in part", "does not hold", "not run yet"
NOT_TESTED = "not tested"
WORDS = (HOLDS, IN_PART, FAILS, NOT_TESTED, NOT_RUN)


class Verdict(NamedTuple):
    """One of the ``WORDS``, and the numbers that support it."""

    word: str
    numbers: str = ""


Judge = Callable[[Sequence[Row]], Verdict]  # its argument is the rows of the study


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper in our words, and how it is judged."""

    text: str
    where: str  # the place of the claim in the paper
    criterion: str  # what "holds" means, in terms that can be checked
    judge: Judge
    subject: str = ""  # the subject of the first verdict, if it is not the paper's method as in its code
    also: Mapping[str, Judge] = field(default_factory=dict)  # verdicts about other methods


NAMES = ("main", "ablations", "tradeoff", "anomaly", "runtime", "theory")
REGISTRY: Registry[tuple[Claim, ...]] = Registry("drsne_paper.claims", "CLAIMS", "study", NAMES)


def names() -> list[str]:
    """Return the names of the studies that test a claim."""
    return REGISTRY.names()


def load(study: str) -> tuple[Claim, ...]:
    """Return the claims that a study tests, of which there may be none."""
    return REGISTRY.load(study) if study in NAMES else ()


def not_run() -> Verdict:
    """Return the verdict for a claim without rows."""
    return Verdict(NOT_RUN)


def not_tested(numbers: str) -> Verdict:
    """Return the verdict on a claim that none of our runs can judge, with the facts that are known about it."""
    return Verdict(NOT_TESTED, numbers)


def of_count(met: int, total: int, numbers: str, *, enough: float = 1.0) -> Verdict:
    """Return the verdict when ``met`` of ``total`` cases are as claimed.

    The claim holds if their share is at least ``enough``.
    """
    if not total:
        return not_run()
    word = HOLDS if met >= enough * total else IN_PART if met else FAILS
    return Verdict(word, numbers)
