"""Which data files the tests have."""

from __future__ import annotations

import pytest

from drsne_paper.datasets._cache import data_home
from drsne_paper.datasets._registry import find


def need(name):
    """Skips, with the reason, where a dataset's file is not here."""
    state, _ = find(name).state(data_home())
    if state != "in the data home":
        pytest.skip(f"{name} is not in the data home {data_home()} ({state}); set DRSNE_DATA_HOME")
