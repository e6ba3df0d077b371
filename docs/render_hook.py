"""Render what Markdown leaves raw when the site is built: formulas, and the markup of docstrings.

Formulas become MathML, so that pages need no script and download nothing. Docstrings use the markup of Sphinx, which
mkdocstrings does not interpret. Here, its roles become code, with a link if the page describes the object.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
_TAG = re.compile(r"\\tag\{(.*?)\}")
_ROLE = re.compile(r":(?:py:)?(?:attr|class|data|exc|func|meth|mod|obj):<code>~?([^<]*)</code>")
_LITERAL = re.compile(r"::</p>(?=\s*<(?:div|pre))")


def on_page_content(page_html: str, **_: object) -> str:
    """Replace the formulas that arithmatex marked, the roles, and the double colons before blocks of code."""
    page_html = _LITERAL.sub(":</p>", page_html)
    page_html = _ROLE.sub(lambda match: _code(match[1], page_html), page_html)
    return _FORMULA.sub(_render, page_html)


def _code(name: str, page_html: str) -> str:
    code = f"<code>{name}</code>"
    return f'<a href="#{name}">{code}</a>' if f'id="{name}"' in page_html else code


def _render(match: re.Match[str]) -> str:
    text = html.unescape(match.group(2)).strip()
    block = text.startswith("\\[")
    source = text[2:-2].strip()
    number = _TAG.search(source)
    formula = convert(_TAG.sub("", source), display="block" if block else "inline")
    if not block:
        return formula
    label = f'<span class="number">({number.group(1)})</span>' if number else ""
    anchor = f' id="eq-{number.group(1)}"' if number else ""
    return f'<div{anchor} class="formula"><div>{formula}</div>{label}</div>'
