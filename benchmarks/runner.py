"""What the benchmark programs share: rows with key, commit and machine that let a study resume, tables, and reports."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import drsne
from drsne import metrics
from drsne_paper import document
from drsne_paper.rows import Row, Rows, key, machine_name, provenance

RESULTS = Path(__file__).parent / "results"
# The scores of most studies and their numbers of neighbours, in the order of :func:`five_scores`.
FIVE = {
    "trustworthiness": 10,
    "continuity": 10,
    "concentration_correlation": 29,
    "density_rank_correlation": 30,
    "local_density_rank_correlation": 5,
}


def five_scores(X: np.ndarray, Y: np.ndarray, **options: Any) -> list[float]:
    """Return the scores of a map that most studies compare."""
    by_name = {name: getattr(metrics, name.removeprefix("local_")) for name in FIVE}
    return [float(score(X, Y, FIVE[name], **options)) for name, score in by_name.items()]


def machine() -> str:
    """Return processor, cores, system and versions, that of this package included, in one line."""
    return f"{host()}; drsne {drsne.__version__} at {commit()}"


def host() -> str:
    """Return processor, cores, system and the versions of the packages that we build on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "numba"))
    return f"{machine_name()}, {platform.system()}; Python {platform.python_version()}, {packages}"


def commit() -> str:
    """Return the commit of the sources, with "+" if files were changed since, or their digest without a repository."""
    return provenance()["commit"] or f"sources {sources()}"


def sources() -> str:
    """Return a digest of the files of the package, which identifies the code also where there is no repository."""
    folder, digest = Path(drsne.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; floats must be formatted already."""
    return document.table(header, [[str(cell) for cell in row] for row in rows])


class Results:
    """The rows of a benchmark that is not a grid of methods: ``results/<name>.jsonl``, one row for each measurement.

    A row is identified by some of its fields; the last row with the same values of these counts.
    """

    def __init__(self, name: str, *fields: str) -> None:
        self._name, self._fields = name, fields
        self.rows = Rows(RESULTS / f"{name}.jsonl")

    def key(self, fields: dict[str, Any]) -> str:
        """Return the key of a row."""
        return key({"study": self._name, **{name: fields[name] for name in self._fields}})

    def read(self) -> list[Row]:
        """Return the rows, one for each key."""
        return list({row["key"]: row for row in self.rows.read()}.values())

    def keys(self) -> set[str]:
        """Return the keys of the rows."""
        return {row["key"] for row in self.rows.read()}

    def drop_replaced(self) -> None:
        """Remove the rows that later rows with the same key have replaced. The others keep their order."""
        last: dict[str, Row] = {}
        for row in self.rows.read():
            last.pop(row["key"], None)
            last[row["key"]] = row
        if not last:
            return
        text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in last.values())
        new = self.rows.path.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.rows.path)

    def append(self, row: Row) -> Row:
        """Add a row with its key, commit and machine, and return it."""
        row = {"key": self.key(row), "study": self._name, "commit": commit(), "machine": host(), **row}
        self.rows.append([row])
        return row


def made_of(rows: Sequence[Row]) -> str:
    """Return a list of the machines that made some rows, with the commits of each and their numbers of rows.

    The oldest rows did not name these. Their commit is the first one that has them ("at or before").
    """
    machines: dict[str, Counter[str]] = {}
    for row in rows:
        machines.setdefault(row["machine"], Counter())[row["commit"]] += 1
    return "\n".join(
        f"- {machine}: {', '.join(f'{name} ({count:,})' for name, count in commits.items())}"
        for machine, commits in machines.items()
    )


def rules(doc: str | None, end: str) -> str:
    """Return the rules in the docstring of a program, which follow its title, its calls and one line, up to ``end``."""
    return (doc or "").split("\n\n", 3)[3].split(f"\n\n{end}")[0]


def write(name: str, title: str, command: str, *parts: str, rows: Sequence[Row] = ()) -> None:
    """Print a report and write it to ``results/<name>.md``.

    The report names the machines and commits of its rows. Without rows, the program measured on this machine.
    """
    made = (
        f"from rows of these machines and commits of drsne (with the numbers of rows):\n\n{made_of(rows)}"
        if rows
        else f"on: {machine()}."
    )
    text = f"# {title}\n\nMade by `{command}` {made}\n\n" + "\n\n".join(parts) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    print(text)
