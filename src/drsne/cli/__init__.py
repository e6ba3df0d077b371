"""The command ``drsne``. There is one command in each file: ``cli/<name>.py`` exposes ``COMMAND``.

The files of the commands import other packages only when a command runs. ``drsne --help`` therefore imports no
third-party package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from drsne.registry import Registry


class Command(NamedTuple):
    """A command: its help text, a function that adds its arguments, and a function that runs it."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


REGISTRY: Registry[Command] = Registry("drsne.cli", "COMMAND", parameter="command")
names = REGISTRY.names


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Errors are printed to standard error without a traceback."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(words).parse_args(words)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("drsne: interrupted. All finished results are kept.", file=sys.stderr)
        return 130
    except (ValueError, TypeError, ImportError, OSError) as error:
        print(f"drsne: {error}", file=sys.stderr)
        return 1


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for the command line. It has only the arguments of commands that occur in ``words``."""
    parser = argparse.ArgumentParser(prog="drsne", description="Make and compare maps that also show density.")
    parser.add_argument("--version", action="version", version=_version())
    parsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name in REGISTRY:
        command = REGISTRY.load(name)
        subparser = parsers.add_parser(name, help=command.help, description=command.help)
        if name in words:  # adding the arguments of a command may import packages
            command.arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def _version() -> str:
    import drsne

    return f"drsne {drsne.__version__}"
