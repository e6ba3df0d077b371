"""The HTML of a page, put together from the files in ``assets/`` and the drawing library in ``vendor/``.

The scripts are ES modules, so that editors and linters understand them. A page that is opened from a disk cannot import
modules, so they are joined into one script. A content security policy names the two scripts of the page by their hashes
and forbids every connection, so the browser itself makes sure that no other script runs and that no data leave.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache, lru_cache
from importlib.resources import files

# In this order, every script comes after those that it imports from.
SCRIPTS = (
    "payload",
    "elements",
    "numbers",
    "palettes",
    "dataset",
    "plot",
    "touch",
    "theme",
    "slider",
    "curve",
    "tooltip",
    "legend",
    "colour",
    "summary",
    "selection",
    "search",
    "keyboard",
    "main",
)
LIBRARY = "regl-scatterplot.min.js"
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_PLACE = re.compile(r"\{\{ (\w+) \}\}")


def document(title: str, payload: str) -> str:
    """Return the HTML of a page with this title and this data."""
    library, program = _read("vendor", LIBRARY), joined_scripts()
    content = {
        "title": html.escape(title.encode("utf-8", "replace").decode("utf-8")),
        "policy": _policy(library, program),
        "style": _read("assets", "explorer.css"),
        "payload": payload,
        "library": library,
        "program": program,
    }
    return _PLACE.sub(lambda place: content[place[1]], _read("assets", "explorer.html"))


@lru_cache(maxsize=1)
def joined_scripts() -> str:
    """Return the scripts of the page as one script."""
    return (
        '"use strict";\n(() => {\n'
        + "".join(_scope(_read("assets", "js", f"{name}.js")) for name in SCRIPTS)
        + "})();\n"
    )


def _scope(module: str) -> str:
    """Return a module as a scope of its own, whose exported names are visible to the modules after it."""
    names = ", ".join(_EXPORT.findall(module))
    body = _EXPORT.sub("", _IMPORT.sub("", module))
    return f"const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();\n"


def _policy(*scripts: str) -> str:
    hashes = " ".join(f"'sha256-{base64.b64encode(_digest(script)).decode('ascii')}'" for script in scripts)
    # The drawing library compiles its commands with Function, and it starts a worker from a blob for many points.
    return (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> bytes:
    return hashlib.sha256(script.encode("utf-8")).digest()


@cache
def _read(*parts: str) -> str:
    return files("drsne.explorer").joinpath(*parts).read_text(encoding="utf-8")
