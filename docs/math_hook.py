"""Turns the formulas of a page into MathML when the site is built: no script, nothing to download."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
_TAG = re.compile(r"\\tag\{(.*?)\}")


def on_page_content(page_html: str, **_: object) -> str:
    """Replace every formula that arithmatex marked."""
    return _FORMULA.sub(_render, page_html)


def _render(match: re.Match[str]) -> str:
    text = html.unescape(match.group(2)).strip()
    block = text.startswith("\\[")
    source = text[2:-2].strip()
    number = _TAG.search(source)
    formula = convert(_TAG.sub("", source), display="block" if block else "inline")
    if not block:
        return formula
    label = f'<span style="float: right">({number.group(1)})</span>' if number else ""
    anchor = f' id="eq-{number.group(1)}"' if number else ""
    return f"<div{anchor}>{label}{formula}</div>"
