"""Optional packages that read and write files."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def package(name: str, what: str, extra: str) -> Any:
    """Return a package, or raise an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{what} need {name}: pip install 'drsne[{extra}]'.") from error
