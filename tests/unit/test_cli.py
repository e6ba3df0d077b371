"""The command line: wrong commands, commands of other distributions, and the warm-up."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from drsne import cli


def test_no_command_and_an_unknown_one(capsys):
    for arguments in ([], ["nothing"]):
        with pytest.raises(SystemExit) as error:
            cli.main(arguments)
        assert error.value.code == 2


def test_warmup_compiles_what_small_maps_need(capsys):
    assert cli.main(["warmup", "--small"]) == 0
    out, err = capsys.readouterr()
    assert "[3/3] a path of weights" in err
    assert "The compiled functions are kept in" in out


def added(monkeypatch, *entries):
    """Make these the commands that other distributions add."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [one for one in entries if one.group == group])


def test_a_command_of_another_distribution(monkeypatch, capsys):
    entry = EntryPoint(name="again", value="drsne.cli.doctor:COMMAND", group="drsne.commands")
    added(monkeypatch, entry)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert " again " in capsys.readouterr().out
    assert cli.main(["again"]) == 0
    assert "works" in capsys.readouterr().out


def test_a_known_command_is_not_replaced_and_looks_up_nothing(monkeypatch, capsys):
    def fail(group):
        raise AssertionError(group)

    monkeypatch.setattr("importlib.metadata.entry_points", fail)
    assert cli.main(["doctor"]) == 0


@pytest.mark.parametrize("name", cli.OF_THE_PAPER)
def test_commands_of_the_paper_say_how_to_get_them(monkeypatch, capsys, name):
    added(monkeypatch)
    assert cli.main([name, "--help"]) == 1
    err = capsys.readouterr().err
    assert "pip install ./paper" in err
    assert err.count("\n") == 1
