"""The oldest supported dependencies are stated in three places, which agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import drsne

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def release(version):
    """Return the numbers of a version without zeros at the end: 2.0 and 2.0.0 are the same."""
    numbers = [int(part) for part in version.split(".")]
    while numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


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
