"""The files of the source distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="the source distribution is built with hatchling")

ROOT = Path(__file__).parents[2]


def test_the_source_distribution_has_the_package_but_no_tests():
    """Tests open files of other folders, which would have to be shipped with them."""
    from hatchling.builders.sdist import SdistBuilder

    shipped = {Path(file.distribution_path) for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    assert {Path("README.md"), Path("LICENSE"), Path("src/drsne/__init__.py"), Path("src/drsne/py.typed")} <= shipped
    assert not [path for path in shipped if path.name.startswith(("test_", "conftest"))]
