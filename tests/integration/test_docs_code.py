"""The Python code on the pages for beginners runs. Blocks of other languages, such as console, are skipped."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the pages draw figures")
pytest.importorskip("pandas", reason="the pages write a table")
pytest.importorskip("anndata", reason="the pages show AnnData objects")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("start.md", "faq.md", "index.md")

pytestmark = pytest.mark.slow


def blocks(page):
    """Return the Python code of a page, with the number of the line before each block."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [
        (text[: found.start()].count("\n") + 1, found[1]) for found in re.finditer(r"```python\n(.*?)```", text, re.S)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    found = blocks(page)
    assert found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small examples lower the perplexity
        for line, code in found:
            exec(compile("\n" * line + code, str(DOCS / page), "exec"), names)
