"""Studies: one a file, ``studies/<name>.py``, which exposes ``STUDY``: what is run, and what is made of its rows."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def names() -> list[str]:
    """Names of the studies in this folder."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def load(name: str) -> Any:
    """The study in ``studies/<name>.py``."""
    return import_module(f"drsne.experiments.studies.{name}").STUDY
