"""A registry of objects that have one file each, such as engines, datasets, detectors, methods and commands."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from drsne import checks

T = TypeVar("T")


class Registry(Generic[T]):
    """A collection of objects, one from each module of a folder.

    Every module exposes its object under the same name. The objects are named after their files, so listing them
    imports nothing. Files whose names begin with an underscore or are in ``others`` are not listed.

    Parameters
    ----------
    package : str
        Package name of the folder, such as "drsne.engines".
    attribute : str
        Name under which each module exposes its object, such as "ENGINE".
    parameter : str, default="name"
        Name of the parameter in errors about unknown names.
    others : tuple of str, default=()
        Public modules of the folder that do not expose such an object.

    Examples
    --------
    >>> from drsne.registry import Registry
    >>> engines = Registry("drsne.engines", "ENGINE", parameter="engine")
    >>> "tree" in engines
    True
    """

    def __init__(self, package: str, attribute: str, *, parameter: str = "name", others: tuple[str, ...] = ()) -> None:
        self.package, self._attribute, self._parameter, self._others = package, attribute, parameter, others

    def names(self) -> list[str]:
        """Return the names in alphabetical order."""
        folder = Path(__file__).parent.joinpath(*self.package.split(".")[1:])
        files = (path.stem for path in folder.glob("*.py"))
        return sorted({name for name in files if not name.startswith("_") and name not in self._others})

    def load(self, name: Any) -> T:
        """Return the object called ``name``, or raise an error with a suggestion if there is no such object."""
        checks.choice(self._parameter, name, self.names())
        loaded: T = getattr(import_module(f"{self.package}.{name}"), self._attribute)
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()
