"""Objects that have one module each, such as data sets, methods and studies, listed without importing them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Generic, TypeVar

from drsne_paper import checks

T = TypeVar("T")


class Registry(Generic[T]):
    """The modules of a package, each with an object under the same name ``attribute``."""

    def __init__(self, package: str, attribute: str, parameter: str, names: tuple[str, ...]) -> None:
        self._package, self._attribute, self._parameter, self._names = package, attribute, parameter, names

    def names(self) -> list[str]:
        """Return the names, in the order in which they are listed."""
        return list(self._names)

    def load(self, name: Any) -> T:
        """Return the object called ``name``, or raise an error with a suggestion if there is no such object."""
        checks.choice(self._parameter, name, self._names)
        loaded: T = getattr(import_module(f"{self._package}.{name}"), self._attribute)
        return loaded
