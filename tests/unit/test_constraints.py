"""The table of parameters, and the estimators and commands that read it."""

from __future__ import annotations

import inspect

import pytest

from drsne import DRSNE, DenSNE, DRSNEDetector, cli, density_path, distributed
from drsne.estimators import constraints

ESTIMATORS = {"DRSNE": DRSNE, "DenSNE": DenSNE, "DRSNEDetector": DRSNEDetector}
WRONG = {"number": -1.0, "integer": -1, "text": "no such text", "array": "no such text"}
ROWS = [(row.name, kind) for kind in ESTIMATORS for row in constraints.rows(kind).values() if row.kind in WRONG]


@pytest.mark.parametrize("kind", list(ESTIMATORS))
def test_the_table_has_the_signature(kind):
    """The same names and defaults in the same order."""
    signature = inspect.signature(ESTIMATORS[kind]).parameters
    table = constraints.rows(kind)
    assert [(name, row.default) for name, row in table.items()] == [(p.name, p.default) for p in signature.values()]


@pytest.mark.parametrize("kind", list(ESTIMATORS))
def test_defaults_are_allowed(kind):
    constraints.check(kind, {name: row.default for name, row in constraints.rows(kind).items()})


@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_a_wrong_value_is_named_before_the_data_are_read(name, kind):
    wrong = WRONG[constraints.rows(kind)[name].kind]
    with pytest.raises(ValueError, match=rf"^{name} must be .*; got {wrong!r}\."):
        ESTIMATORS[kind](**{name: wrong}).fit("no data")


def test_a_path_reads_the_table():
    with pytest.raises(ValueError, match=r"^perplexity must be .* of at least 1; got 0"):
        density_path("no data", perplexity=0)


def test_a_distributed_fit_reads_the_table(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"^density_exponent must be .* above 0; got -1"):
        distributed.fit(tmp_path, tmp_path / "map", model=DRSNE(density_exponent=-1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--perplexity", "0.5"], "--perplexity must be a finite number of at least 1; got 0.5"),
        (["--neighbors", "0"], "--neighbors must be an integer of at least 1; got 0"),
        (["--pca", "0"], "Leave it out to use all columns"),
        (["--contrast", "high"], "--contrast must be one of 'auto' or a number above 0; got 'high'"),
        (["--weight", "-1"], "Pass 0 for plain t-SNE, or auto"),
        (["--jobs", "0"], "--jobs must be None or an integer other than 0; got 0"),
    ],
)
def test_commands_read_the_table_under_the_names_of_their_options(words, message, capsys):
    assert cli.main(["embed", "no_such_file.csv", "-o", "map.csv", *words]) == 2
    assert message in capsys.readouterr().err
