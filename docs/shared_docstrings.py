"""Show the docstrings of objects with a decorator as they are when the program runs.

griffe reads the source, where the docstrings of the estimators and scores name the descriptions that they share.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe


class SharedDocstrings(griffe.Extension):
    """Read the docstrings of classes and functions with the decorator ``shared`` from the imported objects."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring of a class."""
        _replace(cls)

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace the docstring of a function."""
        _replace(func)


def _replace(named: griffe.Class | griffe.Function) -> None:
    if named.docstring is not None and any(str(decorator.value) == "shared" for decorator in named.decorators):
        named.docstring.value = inspect.getdoc(griffe.dynamic_import(named.path)) or ""
