"""Show the docstrings of classes with a decorator as they are when the program runs.

griffe reads the source, where the docstrings of the estimators name the descriptions that they share.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe


class SharedDocstrings(griffe.Extension):
    """Read the docstrings of classes with the decorator ``shared`` from the imported classes."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring of a class."""
        if cls.docstring is not None and any(str(decorator.value) == "shared" for decorator in cls.decorators):
            cls.docstring.value = inspect.getdoc(griffe.dynamic_import(cls.path)) or ""
