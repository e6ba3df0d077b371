"""DRSNE and DenSNE describe the parameters and attributes that both have with the same words."""

from __future__ import annotations

import inspect
import re

import pytest

from drsne import DRSNE, DenSNE

# What differs between the two estimators, and so has two descriptions.
DIFFERENT = {
    "Parameters": {"perplexity", "density_weight", "max_iter", "n_iter_exaggeration", "schedule", "callbacks"},
    "Attributes": {"history_"},
}


def entries(docstring, section):
    """Return ``name -> (type, description)`` for a section of a numpydoc docstring."""
    lines = inspect.cleandoc(docstring).split("\n")
    first = next(i for i, line in enumerate(lines) if line == section and set(lines[i + 1]) == {"-"}) + 2
    found, name = {}, None
    for i in range(first, len(lines)):
        if i + 1 < len(lines) and re.fullmatch("-+", lines[i + 1]):
            break
        if lines[i] and not lines[i].startswith(" "):
            name, _, kind = lines[i].partition(" : ")
            found[name] = [kind, ""]
        elif name is not None:
            found[name][1] = f"{found[name][1]} {lines[i].strip()}".strip()
    return {name: tuple(entry) for name, entry in found.items()}


def differences(one, other, section):
    """Return the names in a section of both docstrings whose types or descriptions are not the same."""
    first, second = entries(one, section), entries(other, section)
    return {name for name in first.keys() & second.keys() if first[name] != second[name]}


@pytest.mark.parametrize("section", list(DIFFERENT))
def test_shared_descriptions_are_the_same(section):
    assert differences(DRSNE.__doc__, DenSNE.__doc__, section) == DIFFERENT[section]


@pytest.mark.parametrize("estimator", [DRSNE, DenSNE])
def test_every_parameter_is_described(estimator):
    described = entries(estimator.__doc__, "Parameters")
    assert list(described) == list(inspect.signature(estimator).parameters)
    assert all(kind and text.endswith(".") for kind, text in described.values())


def test_a_difference_is_found():
    changed = DenSNE.__doc__.replace("Number of threads", "Threads")
    assert differences(DRSNE.__doc__, changed, "Parameters") == DIFFERENT["Parameters"] | {"n_jobs"}
    changed = DenSNE.__doc__.replace("n_jobs : int,", "n_jobs : str,")
    assert "n_jobs" in differences(DRSNE.__doc__, changed, "Parameters")
