"""Data sets by name: ``load`` returns the raw data, and ``recipes`` preprocesses them as in the paper.

There is one data set in each file. ``datasets/<name>.py`` exposes ``DATASET``, which is a ``Generated``, a ``Bundled``
or a ``Stored`` of ``datasets/_data.py``. Listing the names imports neither these files nor any third-party package.
Files are stored in the data home. The sha256 of their decoded arrays is checked each time they are loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from drsne_paper.datasets._cache import CorruptFileError
from drsne_paper.datasets._registry import State, load, names, states

if TYPE_CHECKING:
    from drsne_paper.datasets import recipes
    from drsne_paper.datasets._data import Data
    from drsne_paper.datasets._download import UnreachableError

_HOME = {"Data": "drsne_paper.datasets._data", "UnreachableError": "drsne_paper.datasets._download"}

__all__ = ["CorruptFileError", "Data", "State", "UnreachableError", "load", "names", "recipes", "states"]


def __getattr__(name: str) -> Any:
    if name == "recipes":
        value: Any = import_module("drsne_paper.datasets.recipes")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'drsne_paper.datasets' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
