"""The table of parameters, the estimators and functions that read it, and the descriptions of the parameters."""

from __future__ import annotations

import inspect
import re

import pytest
from covering import in_one_test

from drsne import DRSNE, DenSNE, DRSNEDetector, density_path, distributed
from drsne.estimators import constraints

ESTIMATORS = {"DRSNE": DRSNE, "DenSNE": DenSNE, "DRSNEDetector": DRSNEDetector}
WRONG = {"number": -1.0, "integer": -1, "text": "no such text", "array": "no such text"}
ROWS = [(row.name, kind) for kind in ESTIMATORS for row in constraints.rows(kind).values() if row.kind in WRONG]


@in_one_test("kind", ESTIMATORS)
def test_the_table_and_the_descriptions_have_the_names_of_the_signature(kind):
    """Defaults are also those of the signature, and they are allowed."""
    signature = inspect.signature(ESTIMATORS[kind]).parameters
    table = constraints.rows(kind)
    assert [(name, row.default) for name, row in table.items()] == [(p.name, p.default) for p in signature.values()]
    constraints.check(kind, {name: row.default for name, row in table.items()})
    section = re.search(r"Parameters\n-+\n(.*?)\n\nAttributes\n", inspect.cleandoc(ESTIMATORS[kind].__doc__), re.DOTALL)
    entries = re.split(r"\n(?=\S)", section[1])
    assert [entry.partition(" : ")[0] for entry in entries] == list(table)
    assert all(entry.endswith(".") for entry in entries)


@in_one_test(("name", "kind"), ROWS)
def test_a_wrong_value_is_named_before_the_data_are_read(name, kind):
    wrong = WRONG[constraints.rows(kind)[name].kind]
    with pytest.raises(ValueError, match=rf"^{name} must be .*; got {wrong!r}\."):
        ESTIMATORS[kind](**{name: wrong}).fit("no data")


def test_other_functions_read_the_table(tmp_path):
    with pytest.raises(ValueError, match=r"^perplexity must be .* of at least 1; got 0"):
        density_path("no data", perplexity=0)
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"^density_exponent must be .* above 0; got -1"):
        distributed.fit(tmp_path, tmp_path / "map", model=DRSNE(density_exponent=-1))
