"""Datasets by name: ``load`` gives one as it is, ``recipes`` what the paper feeds to its methods.

One file a dataset: ``datasets/<name>.py`` exposes ``DATASET``, a ``Generated``, ``Bundled`` or ``Filed`` of
``datasets/_data.py``. The registry reads file names only, so that listing imports none. Files are kept in a data home,
and the sha256 of their decoded arrays is checked at every load.
"""

from drsne.datasets import recipes
from drsne.datasets._cache import CorruptFileError
from drsne.datasets._data import Data
from drsne.datasets._download import UnreachableError
from drsne.datasets._registry import State, load, names, states

__all__ = ["CorruptFileError", "Data", "State", "UnreachableError", "load", "names", "recipes", "states"]
