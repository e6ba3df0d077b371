"""The command ``drsne``. Each of its commands is a file of this folder that exposes ``COMMAND``.

The files of the commands import other packages only when a command runs. ``drsne --help`` therefore imports no
third-party package. Other distributions add commands as entry points of the group ``drsne.commands``, each the name of
a :class:`Command`.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXIT_CODES = (
    "Exit codes: 0 success, 1 an error in the input, the data or the environment, 2 a wrong command line, 130 "
    "interrupted."
)


class UsageError(ValueError):
    """An error in the command line, such as an option with a wrong value."""


class Command(NamedTuple):
    """A command: its help text, a function that adds its arguments, a function that runs it, and examples."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: str = ""


OF_THE_PAPER = ("datasets", "methods", "report", "reproduce")  # commands of the distribution drsne-paper
_EXPECTED = (ValueError, TypeError, ImportError, OSError, FloatingPointError)  # errors with a message for the user
COMMANDS = ("demo", "doctor", "embed", "evaluate", "explore", "path", "transform", "warmup")


def load(name: str) -> Command:
    """Return the command of this package with this name."""
    found: Command = import_module(f"drsne.cli.{name}").COMMAND
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Errors are printed to standard error without a traceback."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    added = {} if words and words[0] in COMMANDS else _added()
    if words and words[0] in OF_THE_PAPER and words[0] not in added:
        note(
            f"the command {words[0]} belongs to the package drsne-paper, which is not installed. Install it from a "
            "checkout of drsne: pip install ./paper"
        )
        return 1
    options = _parser(words, added).parse_args(words)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            warnings.simplefilter("ignore" if getattr(options, "quiet", False) else "always", UserWarning)
            return int(options.run(options))
    except KeyboardInterrupt:
        note("interrupted. All finished results are kept.")
        return 130
    except BrokenPipeError:  # the program that reads our output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if options.debug:
            raise
        text = " ".join(str(error).split())
        if isinstance(error, MemoryError):
            text = (
                f"there is not enough memory ({text or 'no details'}). Use fewer rows, or a machine with more memory."
            )
        elif not isinstance(error, _EXPECTED):
            text = (
                f"unexpected {type(error).__name__}: {text}. This is a mistake in drsne. Please report it with the "
                "output of the same command with --debug, and of drsne doctor."
            )
        note(text)
        return 2 if isinstance(error, UsageError) else 1


def note(text: str, options: argparse.Namespace | None = None) -> None:
    """Print a sentence for the user to standard error, unless ``options`` are given and ask for quiet."""
    if options is None or not options.quiet:
        print(f"drsne: {text}", file=sys.stderr, flush=True)


@contextmanager
def checked_options(parameter: str = "", option: str = "") -> Iterator[None]:
    """Turn errors of checks into errors of the command line, which name the option instead of the parameter."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise UsageError(f"{option}{str(error).removeprefix(parameter)}") from error


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print our own warnings as notes. Those of other packages are not for the user of a command."""
    frame = sys._getframe()  # the file of a warning does not tell: ours point at the code that calls this package
    while frame.f_back is not None and frame.f_globals.get("__name__") in (__name__, "warnings", "_py_warnings"):
        frame = frame.f_back
    is_ours = str(frame.f_globals.get("__name__")).split(".")[0] in ("drsne", "drsne_paper")
    if is_ours and issubclass(category, UserWarning):
        note(" ".join(str(message).split()))


def _added() -> dict[str, EntryPoint]:
    """Return the commands that other distributions add. Looking them up takes time, so known commands do without."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group="drsne.commands") if entry.name not in COMMANDS}


def _parser(words: Sequence[str], added: Mapping[str, EntryPoint]) -> argparse.ArgumentParser:
    """Return the parser for the command line. It has only the arguments of commands that occur in ``words``."""
    import drsne

    parser = argparse.ArgumentParser(
        prog="drsne",
        description="Make, compare and explore maps that also show density.",
        epilog=f"Run drsne COMMAND --help for examples. {EXIT_CODES}",
    )
    parser.add_argument("--version", action="version", version=f"drsne {drsne.__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name in sorted([*COMMANDS, *added]):
        command: Command = added[name].load() if name in added else load(name)
        subparser = parsers.add_parser(
            name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=f"examples:\n{command.examples.rstrip()}\n\n{EXIT_CODES}" if command.examples else EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in words:  # adding the arguments of a command may import packages
            command.arguments(subparser)
        subparser.add_argument("--debug", action="store_true", help="show the traceback of an error")
        subparser.set_defaults(run=command.run)
    return parser
