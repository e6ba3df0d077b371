"""The paper's experiments and the benchmarks: methods, studies, a runner that resumes, tables, figures, a report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drsne_paper.protocol import Choice, choose
    from drsne_paper.rows import Rows
    from drsne_paper.runner import run
    from drsne_paper.study import Study

_HOME = {"Choice": "protocol", "choose": "protocol", "Rows": "rows", "run": "runner", "Study": "study"}
__all__ = ["Choice", "Rows", "Study", "choose", "run"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
