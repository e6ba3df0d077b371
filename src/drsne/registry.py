"""A registry of things that are one file each: engines, datasets, detectors, methods, studies, claims and commands."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from drsne import checks

T = TypeVar("T")


class Registry(Generic[T]):
    """The modules of a folder, each of which exposes one object under the same name.

    Names come from the names of the files, so listing them imports nothing. Files that begin with an underscore, and
    those in ``others``, are not listed.

    Parameters
    ----------
    package : str
        The package of the folder, such as "drsne.engines".
    attribute : str
        The name under which each module exposes its object, such as "ENGINE".
    parameter : str, default="name"
        What an error about an unknown name calls it.
    others : tuple of str, default=()
        Public modules of the folder that expose no such object.

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
        """Return the object of that name, and raise with a suggestion if there is none."""
        checks.choice(self._parameter, name, self.names())
        found: T = getattr(import_module(f"{self.package}.{name}"), self._attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()
