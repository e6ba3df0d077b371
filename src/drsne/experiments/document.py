"""What a study tells, as blocks that are written as Markdown or as HTML."""

from __future__ import annotations

import base64
import html as escaping
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DIFFERENCE = "diff."  # the header of a column that is coloured
_STRONG = 0.1  # a difference of the full colour


@dataclass(frozen=True)
class Heading:
    """A heading; the first level is the document's title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; `code`, **strong** words and [links](address) as in Markdown."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table; columns called ``DIFFERENCE`` are coloured where colours can be."""

    header: Sequence[str]
    body: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A picture, by its name in the study's folder."""

    file: str
    caption: str


Block = Heading | Text | Bullets | Table | Figure


def markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown."""
    return "\n\n".join(_as_markdown(block) for block in blocks) + "\n"


def html(blocks: Sequence[Block], folder: Path) -> str:
    """The blocks as HTML, with the pictures of ``folder`` inside; a picture that is not there is said to be missing."""
    return "\n".join(_as_html(block, folder) for block in blocks) + "\n"


def grid(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    cells = [list(header), *(list(row) for row in body)]
    width = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["| " + " | ".join(text.ljust(w) for text, w in zip(row, width, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    return "\n".join(lines)


def anchor(text: str) -> str:
    """The name of a heading in links."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _as_markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Table(header, body):
            return grid(header, body)
        case Figure(file, caption):
            return f"![{caption}]({file})"


def _as_html(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f'<h{level} id="{anchor(text)}">{_inline(text)}</h{level}>'
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Table(header, body):
            head = "".join(f"<th>{_inline(text)}</th>" for text in header)
            rows = "\n".join(
                "<tr>" + "".join(_cell(name, text) for name, text in zip(header, row, strict=True)) + "</tr>"
                for row in body
            )
            return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'
        case Figure(file, caption):
            return _picture(folder / file, caption)


def _cell(name: str, text: str) -> str:
    number = re.fullmatch(r"([+-]\d*\.?\d+)( %)?", text)
    if name == DIFFERENCE and number:
        value = float(number[1]) / (100.0 if number[2] else 1.0)
        strength = min(1.0, abs(value) / _STRONG)
        colour = "above" if value > 0 else "below"
        return f'<td class="{colour}" style="--strength:{strength:.2f}">{escaping.escape(text)}</td>'
    return f"<td>{_inline(text)}</td>"


def _inline(text: str) -> str:
    text = escaping.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def _picture(file: Path, caption: str) -> str:
    told = _inline(caption)
    if not file.exists():
        return f'<p class="missing">No picture yet: {told}</p>'
    data = base64.b64encode(file.read_bytes()).decode()
    alt = escaping.escape(caption, quote=True)
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"><figcaption>{told}</figcaption></figure>'
