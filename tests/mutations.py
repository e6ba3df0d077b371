"""Change the package in one place at a time, and record whether the tests notice it.

``tests/mutations.toml`` lists the mutations: a name, the symbol that is changed (``module:function``, or ``module`` for
its constants), a text that occurs once in the source of this symbol, the text that replaces it, and the tests that
should fail. Each mutation is applied to a copy of ``src`` in a temporary folder. The results are the rows of
``tests/mutations.jsonl``. Rows whose mutation, changed file and tests are those of the last run are kept.

    python tests/mutations.py [NAME ...] [--again] [--control]
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES, ROWS = ROOT / "src", ROOT / "tests" / "mutations.jsonl"
COPY = Path(tempfile.gettempdir()) / "drsne-mutations"  # the same in every run, so that compiled kernels can be kept
LIMIT = 900  # seconds after which tests count as failed


def symbol_lines(module: str, symbol: str) -> tuple[Path, str, int, int]:
    """Return the file of a symbol, its text, and where the source of the symbol begins and ends in it."""
    path = SOURCES / "drsne" / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    node: Any = ast.parse(text)
    for name in filter(None, symbol.split(".")):
        node = next(each for each in node.body if getattr(each, "name", None) == name)
    lines = text.splitlines(keepends=True)
    first, last = (node.lineno - 1, node.end_lineno) if symbol else (0, len(lines))
    return path, text, len("".join(lines[:first])), len("".join(lines[:last]))


def mutated(mutation: dict[str, Any]) -> tuple[Path, str]:
    """Return the file that a mutation changes, relative to the sources, and its new text."""
    module, _, symbol = mutation["in"].partition(":")
    try:
        path, text, start, end = symbol_lines(module, symbol)
    except (OSError, StopIteration):
        raise LookupError(f"{mutation['name']}: there is no {mutation['in']}") from None
    if (count := text[start:end].count(mutation["old"])) != 1:
        raise LookupError(f"{mutation['name']}: {mutation['old']!r} occurs {count} times in {mutation['in']}")
    changed = text[start:end].replace(mutation["old"], mutation["new"])
    return path.relative_to(SOURCES), text[:start] + changed + text[end:]


def digest(mutation: dict[str, Any], text: str) -> str:
    """Return a digest of a mutation, of the changed file and of its tests."""
    files = sorted({each.partition("::")[0] for each in mutation["tests"]})
    parts = [json.dumps(mutation, sort_keys=True), text, *((ROOT / each).read_text(encoding="utf-8") for each in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def copied(change: tuple[Path, str] | None) -> None:
    """Copy the sources, with their times, and apply a change to the copy."""
    shutil.rmtree(COPY / "src", ignore_errors=True)
    shutil.copytree(SOURCES, COPY / "src", ignore=shutil.ignore_patterns("__pycache__"))
    if change is not None:
        (COPY / "src" / change[0]).write_text(change[1], encoding="utf-8")


def failed_test(tests: list[str]) -> str | None:
    """Return the first test that fails with the copy of the sources, or None if all pass."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(COPY / "src"),
        "NUMBA_CACHE_DIR": str(COPY / "numba"),
        "SCIPY_ARRAY_API": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            output = process.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "timeout"
    if process.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    if process.returncode != 1 or found is None:
        raise SystemExit(output)
    return found[1]


def main() -> int:
    """Run the mutations, and return 1 if any was not caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations to run (default: all)")
    parser.add_argument("--again", action="store_true", help="also run mutations whose row is up to date")
    parser.add_argument("--control", action="store_true", help="run all tests of the table without a mutation")
    options = parser.parse_args()
    table = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text(encoding="utf-8"))["mutation"]
    changes = {mutation["name"]: mutated(mutation) for mutation in table}  # an outdated table is an error at once
    if unknown := set(options.names) - set(changes):
        parser.error(f"unknown mutations: {', '.join(sorted(unknown))}")
    if options.control:
        copied(None)
        print(by := failed_test(sorted({each for mutation in table for each in mutation["tests"]})))
        return int(by is not None)
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    for mutation in table:
        name, change = mutation["name"], changes[mutation["name"]]
        sources = digest(mutation, change[1])
        current = rows.get(name, {}).get("sources") == sources and not options.again
        if current or (options.names and name not in options.names):
            continue
        start = time.perf_counter()
        copied(change)
        by = failed_test(mutation["tests"])
        seconds = round(time.perf_counter() - start, 1)
        rows[name] = {"name": name, "caught": by is not None, "by": by, "seconds": seconds, "sources": sources}
        print(json.dumps(rows[name]), flush=True)
        known = [rows[each] for each in changes if each in rows]
        ROWS.write_text("".join(json.dumps(row) + "\n" for row in known), encoding="utf-8")
    return int(not all(rows[name]["caught"] for name in changes if name in rows))


if __name__ == "__main__":
    sys.exit(main())
