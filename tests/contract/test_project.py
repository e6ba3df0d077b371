"""Files of the project that state the same thing agree, and the source distribution has what it should."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import mutations
import pytest
from conftest import SLOW, is_slow

import drsne

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def release(version):
    """Return the numbers of a version without zeros at the end: 2.0 and 2.0.0 are the same."""
    return tuple(int(part) for part in re.sub(r"(\.0)+$", "", version).split("."))


def bounds(requirements):
    """Return names and lower bounds, such as {"numpy": (2,)}."""
    found = (re.match(r"([\w-]+)\s*>=\s*([\d.]+)", requirement) for requirement in requirements)
    return {match[1]: release(match[2]) for match in found if match}


def listed(pattern, *path):
    """Return names and versions of the lines of a file that match."""
    text = ROOT.joinpath(*path).read_text(encoding="utf-8")
    return {name: release(version) for name, version in re.findall(pattern, text, re.MULTILINE)}


def test_the_constraints_are_the_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    stated = bounds([*PROJECT["dependencies"], *extras["plot"], *extras["frame"]])
    assert len(stated) >= 6
    pinned = listed(r"^([\w-]+)==([\d.]+)$", ".ci", "minimum.txt")
    assert {name: pinned.get(name) for name in stated} == stated


def test_the_conda_recipe_has_the_dependencies_and_the_version():
    assert f'version: "{drsne.__version__}"' in (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    required = listed(r"^    - ([\w-]+) >=([\d.]+)$", "conda", "recipe.yaml")
    stated = bounds(PROJECT["dependencies"])
    assert {name: required.get(name) for name in stated} == stated


def test_the_source_distribution_has_the_package_but_no_tests():
    """Tests open files of other folders, which would have to be shipped with them."""
    pytest.importorskip("hatchling", reason="the source distribution is built with hatchling")
    from hatchling.builders.sdist import SdistBuilder

    shipped = {Path(file.distribution_path) for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    assert {Path("README.md"), Path("LICENSE"), Path("src/drsne/__init__.py"), Path("src/drsne/py.typed")} <= shipped
    assert not [path for path in shipped if path.name.startswith(("test_", "conftest"))]


def test_slow_tests_exist_and_are_recognised():
    for path, _, name in (entry.partition("::") for entry in SLOW):
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name
    assert is_slow("tests/integration/test_import.py::test_public_names_are_there")
    assert is_slow("tests/unit/test_path.py::test_parts_are_data[main-True]")
    assert is_slow("tests/contract/test_engines.py::test_partition_and_forces[start-2-fft]")
    assert not is_slow("tests/contract/test_engines.py::test_partition_and_forces_and_more")
    assert not is_slow("tests/unit/test_metrics.py::test_samples_estimate_the_whole[stress]")


def test_the_mutations_name_texts_and_tests_that_exist():
    table = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text(encoding="utf-8"))["mutation"]
    for mutation in table:
        mutations.mutated(mutation)  # raises an error if a text is not there
        for path, _, name in (entry.partition("::") for entry in mutation["tests"]):
            assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (mutation["name"], name)
            assert (ROOT / path).exists(), (mutation["name"], path)
