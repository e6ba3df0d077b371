"""The command line: wrong words, help, commands of other distributions, and commands that need no file."""

from __future__ import annotations

from importlib import metadata

import pytest
from covering import in_one_test

pytest.importorskip("pandas", reason="the commands read files with pandas")

from flowers import failed, flowers, runner, succeeded

from drsne import cli

GROUP = {"group": "drsne.commands"}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flowers().to_csv("flowers.csv", index=False)
    return runner(capsys)


WRONG = {
    "no_output": (["embed", "flowers.csv"], "Nothing would be written"),
    "path_without_output": (["path", "flowers.csv"], "Nothing would be written"),
    "weight_of_text": (["embed", "flowers.csv", "-o", "o.csv", "--weight", "much"], "--weight must be one of"),
    "negative_weight": (["embed", "flowers.csv", "-o", "o.csv", "--weight=-1"], "--weight must be a finite number"),
    "weight_nan": (["embed", "flowers.csv", "-o", "o.csv", "--weight", "nan"], "--weight must be"),
    "weights_of_text": (["path", "flowers.csv", "-o", "o.csv", "--weights", "a,b"], "--weights must be numbers"),
    "descending_weights": (["path", "flowers.csv", "-o", "o.csv", "--weights", "3,1"], "ascending"),
    "negative_weights": (["path", "flowers.csv", "-o", "o.csv", "--weights=-1,1"], "at least 0"),
    "perplexity": (["embed", "flowers.csv", "-o", "o.csv", "--perplexity", "0"], "--perplexity must be"),
    "neighbors": (["path", "flowers.csv", "-o", "o.csv", "--neighbors", "0"], "--neighbors must be"),
    "pca": (["embed", "flowers.csv", "-o", "o.csv", "--pca", "0"], "--pca must be"),
    "iterations": (["embed", "flowers.csv", "-o", "o.csv", "--iterations", "0"], "--iterations must be"),
    "seed": (["embed", "flowers.csv", "-o", "o.csv", "--seed=-1"], "--seed must be"),
    "jobs": (["embed", "flowers.csv", "-o", "o.csv", "--jobs", "0"], "--jobs must be"),
    "metric": (["embed", "flowers.csv", "-o", "o.csv", "--metric", "euclidian"], "--metric must be one of"),
    "metric_of_scores": (["evaluate", "flowers.csv", "m.csv", "--metric", "l3"], "--metric must be one of"),
    "samples": (["evaluate", "flowers.csv", "m.csv", "--samples", "1"], "--samples must be"),
    "twice_from_a_pipe": (["evaluate", "-", "-"], "standard input"),
    "several_from_a_pipe": (["explore", "-", "-"], "standard input"),
    "model_from_a_pipe": (["transform", "-", "flowers.csv", "-o", "o.csv"], "MODEL must be the name of a file"),
    "model_to_a_pipe": (["embed", "flowers.csv", "--model", "-"], "--model must be the name of a file"),
    "page_to_a_pipe": (["embed", "flowers.csv", "--explore", "-"], "--explore must be the name of a file"),
    "reliability": (["embed", "flowers.csv", "-o", "o.csv", "--reliability"], "--reliability needs --explore"),
    "spreadsheet": (["embed", "flowers.csv", "-o", "o.npy", "--spreadsheet-safe"], "--spreadsheet-safe needs a CSV"),
    "no_spreadsheet": (["path", "flowers.csv", "--plot", "o.png", "--spreadsheet-safe"], "needs a CSV"),
    "dropped_label": (
        ["embed", "flowers.csv", "-o", "o.csv", "--label", "species", "--drop", "species"], "--label and --drop",
    ),
}  # fmt: skip


@in_one_test("case", WRONG)
def test_a_wrong_command_line_has_its_own_exit_code(tmp_path, run, case):
    words, part = WRONG[case]
    failed(run(*words), part, code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["flowers.csv"]


def test_words_that_the_parser_refuses(run):
    for words in ([], ["nothing"], ["embed", "flowers.csv", "--wieght", "1"]):
        code, out, err = run(*words)
        assert (code, out) == (2, ""), err


def test_help(run):
    for command in cli.COMMANDS:
        text = " ".join(succeeded(run(command, "--help"))[0].split())
        assert "examples: drsne" in text
        assert "1 an error in the input, the data or the environment" in text
        if command in ("embed", "path"):
            assert "PNG, PDF, SVG or JPG" in text
        if command == "embed":
            assert "a number, or auto to choose one in about six times the time (default: 1)" in text


def test_debug_shows_the_traceback(run):
    with pytest.raises(ValueError, match=r"nothing\.csv does not exist"):
        run("embed", "nothing.csv", "-o", "out.csv", "--debug")


def added(monkeypatch, commands):
    """Let a function return the commands that other distributions add."""
    usual = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda **given: commands() if given == GROUP else usual(**given))


@pytest.mark.slow
def test_a_command_of_another_distribution(run, monkeypatch):
    added(monkeypatch, lambda: [metadata.EntryPoint(name="again", value="drsne.cli.doctor:COMMAND", **GROUP)])
    assert " again " in succeeded(run("--help"))[0]
    assert "works" in succeeded(run("again"))[0]


@pytest.mark.slow
def test_a_known_command_is_not_replaced_and_looks_up_nothing(run, monkeypatch):
    added(monkeypatch, lambda: pytest.fail("looked up"))
    out, _ = succeeded(run("doctor"))
    for part in ("drsne", "Python", "numba", "cores", "GB free", "works"):
        assert part in out


def test_commands_of_the_paper_say_how_to_get_them(run, monkeypatch):
    added(monkeypatch, list)
    for name in cli.OF_THE_PAPER:
        failed(run(name, "--help"), "pip install ./paper")


@pytest.mark.slow
def test_warmup_compiles_what_small_maps_need(run):
    out, err = succeeded(run("warmup", "--small"))
    assert "[3/3] a path of weights" in err
    assert "The compiled functions are kept in" in out


@pytest.mark.slow
def test_demo(run, tmp_path):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    succeeded(run("demo", "--folder", "demo"))
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {"digits.csv", "digits.png", "digits.html"}
    failed(run("demo", "--folder", "demo"), "exists already")
