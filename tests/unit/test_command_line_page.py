"""The page on the command line mentions every command for files, and every long option of these commands."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from drsne import cli

COMMANDS = ("embed", "transform", "evaluate", "path", "explore", "demo", "doctor")
PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def options_of(command):
    """Return the long options of a command, with --debug, which every command has."""
    parser = argparse.ArgumentParser(add_help=False)
    cli.load(command).arguments(parser)
    return {word for action in parser._actions for word in action.option_strings if word.startswith("--")} | {"--debug"}


def mentioned(text):
    return set(re.findall(r"--[a-z][a-z-]*", text))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_on_the_page(command):
    text = PAGE.read_text(encoding="utf-8")
    assert f"drsne {command}" in text
    assert not options_of(command) - mentioned(text)


def test_the_page_has_no_option_that_does_not_exist():
    known = {option for command in COMMANDS for option in options_of(command)}
    assert mentioned(PAGE.read_text(encoding="utf-8")) <= known | {"--help", "--version"}
