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
_LONG = 40  # characters of a cell that is broken into lines


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


def html(blocks: Sequence[Block], folder: Path, *, prefix: str = "", deeper: int = 0) -> str:
    """The blocks as HTML, with the pictures of ``folder`` inside; a picture that is not there is said to be missing.

    Parameters
    ----------
    blocks : sequence of blocks
        What is told.
    folder : Path
        Where the pictures are.
    prefix : str, default=""
        What the names of headings begin with, so that several documents can stand on a page.
    deeper : int, default=0
        By how many levels headings are lower on the page than in the document.

    Returns
    -------
    str
        For the body of a page; its tables are in boxes of the class ``wide``.
    """
    names = iter(anchors(blocks, prefix=prefix))
    out = []
    for block in blocks:
        if isinstance(block, Heading):
            level = min(6, block.level + deeper)
            out.append(f'<h{level} id="{next(names)}">{inline(block.text)}</h{level}>')
        else:
            out.append(_as_html(block, folder))
    return "\n".join(out) + "\n"


def anchors(blocks: Sequence[Block], *, prefix: str = "") -> list[str]:
    """The names of the headings, in their order; no two are the same."""
    out: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            name = plain = prefix + anchor(block.text)
            number = 1
            while name in out:
                number += 1
                name = f"{plain}-{number}"
            out.append(name)
    return out


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


def _as_html(block: Text | Bullets | Table | Figure, folder: Path) -> str:
    match block:
        case Text(text):
            return f"<p>{inline(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"
        case Table(header, body):
            kinds = [_kind([row[column] for row in body]) for column in range(len(header))]
            head = "".join(f"<th{kind}>{inline(text)}</th>" for kind, text in zip(kinds, header, strict=True))
            rows = "\n".join(
                "<tr>" + "".join(_cell(*cell) for cell in zip(header, kinds, row, strict=True)) + "</tr>"
                for row in body
            )
            return scrolling(f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>")
        case Figure(file, caption):
            return _picture(folder / file, caption)


def scrolling(table: str) -> str:
    """A table in a box of its own, which the arrow keys move too."""
    return f'<div class="wide" tabindex="0">{table}</div>'


def _kind(texts: Sequence[str]) -> str:
    """The class of a column: of numbers, of sentences, or neither."""
    if all(re.fullmatch(r"-?|[+-]?[\d.]+(e[+-]?\d+)?( %)?( ± [\d.]+)?( \*)?", text) for text in texts):
        return ' class="number"'
    return ' class="long"' if any(len(text) > _LONG for text in texts) else ""


def _cell(name: str, kind: str, text: str) -> str:
    number = re.fullmatch(r"([+-]\d*\.?\d+)( %)?", text)
    if name == DIFFERENCE and number:
        value = float(number[1]) / (100.0 if number[2] else 1.0)
        strength = min(1.0, abs(value) / _STRONG)
        colour = "above" if value > 0 else "below"
        return f'<td class="number {colour}" style="--strength:{strength:.2f}">{text}</td>'
    return f"<td{kind}>{inline(text)}</td>"


# `code`, **strong**, [words](address): a page, a place on this one, or a file; nothing else in brackets is a link.
_MARKS = re.compile(
    r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^]]+)\]\(((?:https?://|#|[\w.-]*/|[\w-]+\.(?:md|html)\b)[^\s()\"<>]*)\)"
)


def inline(text: str) -> str:
    """A text of one line as HTML."""
    out, end = [], 0
    for found in _MARKS.finditer(text):
        out.append(escaped(text[end : found.start()]))
        code, strong, words, address = found.groups()
        if code is not None:
            out.append(f"<code>{escaped(code)}</code>")
        elif strong is not None:
            out.append(f"<strong>{escaped(strong)}</strong>")
        else:
            out.append(f'<a href="{escaped(address)}">{escaped(words)}</a>')
        end = found.end()
    return "".join(out) + escaped(text[end:])


def escaped(text: str) -> str:
    """A text whose characters mean themselves in HTML, in attributes too; control characters are replaced."""
    return escaping.escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text))


_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml", ".webp": "image/webp"}


def _picture(file: Path, caption: str) -> str:
    told = inline(caption)
    if not file.exists():
        return f'<p class="missing">No picture yet: {told}</p>'
    data = base64.b64encode(file.read_bytes()).decode()
    source = f"data:{_TYPES[file.suffix]};base64,{data}"
    return f'<figure><img alt="{escaped(caption)}" src="{source}"><figcaption>{told}</figcaption></figure>'
