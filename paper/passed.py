"""Record which sources the paper's tests have passed with, so that `make paper` can skip them.

Run as ``python paper/passed.py check``, which fails if the tests have to run, or ``write``. The record is a hash of the
files of this folder (without results) and of what drsne offers: public names, parameters and
defaults.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RECORD = FOLDER / "passed.json"
PUBLIC = ("drsne", "drsne.affinities", "drsne.anomaly", "drsne.metrics", "drsne.pl", "drsne.presets")
USED = ("drsne.cli", "drsne_paper._private")  # what the commands and the studies need besides


def signatures() -> Iterator[str]:
    """Yield the names of drsne, with their parameters and defaults, and those of their methods."""
    for module in (*PUBLIC, *USED):
        loaded = import_module(module)
        for name in sorted(getattr(loaded, "__all__", [name for name in vars(loaded) if not name.startswith("_")])):
            value = getattr(loaded, name)
            yield f"{module}.{name}{_parameters(value)}"
            if inspect.isclass(value):
                methods = inspect.getmembers(value, callable)
                yield from (f"{name}.{key}{_parameters(method)}" for key, method in methods if _parameters(method))


def _parameters(value: Any) -> str:
    """Return the parameters of a function or class of drsne, or an empty string for anything else."""
    if not callable(value) or str(getattr(value, "__module__", "")).split(".")[0] != "drsne":
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # built in
        return ""
    return str([(one.name, one.kind.name, repr(one.default)) for one in parameters])


def digest() -> str:
    """Return the hash of this folder's sources and of the public signatures of drsne."""
    found = hashlib.sha256("\n".join(signatures()).encode())
    files = [path for part in ("src", "tests") for path in (FOLDER / part).rglob("*") if path.is_file()]
    for path in sorted([*files, FOLDER / "pyproject.toml"]):
        if path.suffix != ".pyc":
            found.update(f"{path.relative_to(FOLDER).as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()


def main(what: str) -> int:
    """Compare the record with the present hash, or write it."""
    if what == "write":
        RECORD.write_text(json.dumps({"sha256": digest()}) + "\n", encoding="utf-8")
        return 0
    known = json.loads(RECORD.read_text(encoding="utf-8"))["sha256"] if RECORD.exists() else None
    if known != digest():
        return 1
    print("The paper's tests have passed with these sources and with this interface of drsne.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
