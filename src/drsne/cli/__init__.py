"""The command ``drsne``: one command a file, ``cli/<name>.py``, which exposes ``COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command: what help says of it, its arguments, and what it does (returning the exit status)."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def names() -> list[str]:
    """Names of the commands in this folder."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; an error is one line on standard error."""
    parser = argparse.ArgumentParser(prog="drsne", description="Density-regularised maps of data.")
    parser.add_argument("--version", action="version", version=_version())
    parsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name in names():
        command: Any = import_module(f"drsne.cli.{name}").COMMAND
        below = parsers.add_parser(name, help=command.help, description=command.help)
        command.arguments(below)
        below.set_defaults(run=command.run)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("drsne: interrupted; what was finished is kept.", file=sys.stderr)
        return 130
    except (ValueError, TypeError, ImportError, OSError) as error:
        print(f"drsne: {error}", file=sys.stderr)
        return 1


def _version() -> str:
    import drsne

    return f"drsne {drsne.__version__}"
