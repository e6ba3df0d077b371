"""What the benchmark programs share: a description of the machine, Markdown tables, result files."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """Return processor, cores, system and versions, that of this package included, in one line."""
    return f"{host()}; drsne {version('drsne')} at {_commit()}"


def host() -> str:
    """Return processor, cores, system and the versions of the packages that we build on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "numba"))
    system = f"{os.cpu_count()} cores, {platform.system()}"
    return f"{_processor()}, {system}; Python {platform.python_version()}, {packages}"


def _processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    try:
        lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout.splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("Model name")]
    except (OSError, subprocess.CalledProcessError):
        names = []
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _commit() -> str:
    try:
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return done.stdout.strip()


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; floats come formatted."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    width = [max(len(row[c]) for row in cells) for c in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, width, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    return "\n".join(lines)


def write(name: str, title: str, command: str, *parts: str) -> None:
    """Print a report and write it to ``results/<name>.md``."""
    text = f"# {title}\n\nMade by `{command}` on: {machine()}.\n\n" + "\n\n".join(parts) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    print(text)
