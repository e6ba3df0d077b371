"""The paper's experiments: methods, studies, a runner that resumes, the constrained choice, tables and figures."""

from __future__ import annotations

from drsne.experiments.protocol import Choice, choose
from drsne.experiments.rows import Rows
from drsne.experiments.runner import run
from drsne.experiments.study import Study

__all__ = ["Choice", "Rows", "Study", "choose", "run"]
