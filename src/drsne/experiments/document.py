"""Blocks of text, tables and figures, and how they are written as Markdown and HTML."""

from __future__ import annotations

import base64
import html as escaping
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DIFFERENCE = "diff."  # the header of a column that is coloured
REFERENCES = ("paper", "authors", "authors, by seed")  # headers of the column between a score and its difference
OTHER = "other setting"  # stands for a difference of scores that were not measured at the same setting
_STRONG = 0.1  # a difference of the full colour
_GROUPS = 3  # scores with a reference and a difference that fit on a common screen
_LONG = 40  # characters above which a cell is broken into lines


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
    """A table.

    In HTML, columns called ``DIFFERENCE`` are coloured, the largest mean of each ``best`` column is bold, and there is
    a caption. Markdown has the plain cells.
    """

    header: Sequence[str]
    body: Sequence[Sequence[str]]
    caption: str = ""  # the heading before the table if empty
    best: Sequence[str] = ()  # columns in which a larger value is better
    within: str = ""  # a column: rows with the same value in it are compared with each other; all rows if empty


@dataclass(frozen=True)
class Figure:
    """A picture, by its name in the study's folder."""

    file: str
    caption: str


Block = Heading | Text | Bullets | Table | Figure


def markdown(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown."""
    return "\n\n".join(_as_markdown(block) for block in blocks) + "\n"


def html(blocks: Sequence[Block], folder: Path, *, prefix: str = "", deeper: int = 0) -> str:
    """Return the blocks as HTML, with the pictures of ``folder`` inside. A missing picture is replaced by a sentence.

    Parameters
    ----------
    blocks : sequence of blocks
        The content.
    folder : Path
        The folder of the pictures.
    prefix : str, default=""
        The beginning of the anchors of headings, so that a page can have several documents.
    deeper : int, default=0
        The number of levels by which headings are lower on the page than in the document.

    Returns
    -------
    str
        HTML for the body of a page; its tables are in boxes of the class ``wide``.
    """
    names = iter(anchors(blocks, prefix=prefix))
    out, heading = [], ""
    for block in blocks:
        match block:
            case Heading(heading, level):
                level = min(6, level + deeper)
                out.append(f'<h{level} id="{next(names)}">{inline(heading)}</h{level}>')
            case Table():
                out.append(_table(block, heading))
            case _:
                out.append(_as_html(block, folder))
    return "\n".join(out) + "\n"


def anchors(blocks: Sequence[Block], *, prefix: str = "") -> list[str]:
    """Return the anchors of the headings, in their order; no two are the same."""
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
    """Return a Markdown table."""
    cells = [list(header), *(list(row) for row in body)]
    width = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["| " + " | ".join(text.ljust(w) for text, w in zip(row, width, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    return "\n".join(lines)


def anchor(text: str) -> str:
    """Return the anchor of a heading."""
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


def _as_html(block: Text | Bullets | Figure, folder: Path) -> str:
    match block:
        case Text(text):
            return f"<p>{inline(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"
        case Figure(file, caption):
            return _picture(folder / file, caption)


def scrolling(table: str, label: str) -> str:
    """Put a table into a box of its own, which scrolls sideways and can be moved with the arrow keys."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escaped(label)}">{table}</div>'


def _table(table: Table, heading: str) -> str:
    """Return a table as HTML, with a caption, row and column headers, and its best values in bold."""
    header, caption = list(table.header), table.caption or heading
    kinds = [_kind([row[column] for row in table.body]) for column in range(len(header))]
    scores = _scores(header)
    best = _best(table)
    head = "".join(_header(header, kinds, scores, column) for column in range(len(header)))
    rows = []
    for number, row in enumerate(table.body):
        cells = [f'<th scope="row"{_classes(kinds[0])}>{inline(row[0])}</th>']
        cells += [
            _cell(row, column, header[column], kinds[column], scores, bold=(number, column) in best)
            for column in range(1, len(header))
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    layout = _classes("stacks" if scores else "", "many" if len(scores) > _GROUPS else "")
    body = "\n".join(rows)
    return scrolling(
        f"<table{layout}><caption><span>{inline(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table>",
        caption,
    )


def _scores(header: Sequence[str]) -> list[int]:
    """Return the columns that are followed by a reference value and the difference from it."""
    places = range(1, len(header) - 2)
    return [place for place in places if header[place + 1] in REFERENCES and header[place + 2] == DIFFERENCE]


def _best(table: Table) -> set[tuple[int, int]]:
    """Return row and column of the largest printed mean in each ``best`` column, ties included."""
    header, out = list(table.header), set()
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(table.body):
        groups.setdefault(row[header.index(table.within)] if table.within else "", []).append(number)
    for column in (header.index(name) for name in table.best):
        for rows in groups.values():
            means = {number: float(found[0]) for number in rows if (found := _MEAN.match(table.body[number][column]))}
            if len(means) > 1:
                out |= {(number, column) for number, mean in means.items() if mean == max(means.values())}
    return out


_MEAN = re.compile(r"[+-]?\d*\.?\d+")


def _header(header: Sequence[str], kinds: Sequence[str], scores: Sequence[int], column: int) -> str:
    beside = [score for score in scores if column in (score + 1, score + 2)]
    label = f' aria-label="{escaped(f"{header[beside[0]]}, {header[column]}")}"' if beside else ""
    classes = _classes(kinds[column], "beside" if beside else "score" if column in scores else "")
    return f'<th scope="col"{classes}{label}>{inline(header[column])}</th>'


def _classes(*names: str) -> str:
    found = " ".join(name for name in names if name)
    return f' class="{found}"' if found else ""


def _kind(texts: Sequence[str]) -> str:
    """Return the class of a column: of numbers, of sentences, of lists, or none of these."""
    if all(re.fullmatch(rf"-?|{OTHER}|[+-]?[\d.]+(e[+-]?\d+)?( %)?( ± [\d.]+)?( \*)?", text) for text in texts):
        return "number"
    if any(len(text) > _LONG for text in texts):
        return "long"
    return "list" if any(", " in text for text in texts) else ""


def _cell(row: Sequence[str], column: int, name: str, kind: str, scores: Sequence[int], *, bold: bool) -> str:
    """Return a cell; that of a score also carries its reference and difference, which narrow layouts stack below it."""
    text = row[column]
    beside = "beside" if {column - 1, column - 2} & set(scores) else ""
    if name == DIFFERENCE and (shade := _shade(text)):
        colour, style = shade
        return f"<td{_classes('number', colour, beside)}{style}>{text}</td>"
    shown = re.sub(r" (± [\d.]+)", r' <span class="std">\1</span>', inline(text))
    shown = f"<strong>{shown}</strong>" if bold else shown
    if column not in scores:
        return f"<td{_classes(kind, beside)}>{shown}</td>"
    reference, difference = row[column + 1 : column + 3]
    if reference == "-":
        return f"<td{_classes(kind, 'score')}>{shown}</td>"
    colour, style = _shade(difference) or ("", "")
    short = reference.split(" ±")[0]
    carried = f' data-reference="{escaped(reference)}" data-mean="{escaped(short)}"'
    carried += f' data-difference="{escaped(difference)}"'
    return f"<td{_classes(kind, 'score', colour and f'is-{colour}')}{style}{carried}>{shown}</td>"


def _shade(text: str) -> tuple[str, str] | None:
    """Return the class and the style of a difference, or None for what is not a number."""
    number = re.fullmatch(r"([+-]\d*\.?\d+)( %)?", text)
    if not number:
        return None
    value = float(number[1]) / (100.0 if number[2] else 1.0)
    strength = min(1.0, abs(value) / _STRONG)
    return "above" if value > 0 else "below", f' style="--strength:{strength:.2f}"'


# `code`, **strong**, [words](address), where the address is a page, a place on this page, or a file.
_MARKS = re.compile(
    r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^]]+)\]\(((?:https?://|#|[\w.-]*/|[\w-]+\.(?:md|html)\b)[^\s()\"<>]*)\)"
)


def inline(text: str) -> str:
    """Return a text of one line as HTML."""
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
    """Return a text escaped for HTML, also in attributes; control characters are replaced."""
    return escaping.escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text))


_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml", ".webp": "image/webp"}


def _picture(file: Path, caption: str) -> str:
    shown = inline(caption)
    if not file.exists():
        return f'<p class="missing">There is no picture yet: {shown}</p>'
    data = base64.b64encode(file.read_bytes()).decode()
    source = f"data:{_TYPES[file.suffix]};base64,{data}"
    return f'<figure><img alt="{escaped(caption)}" src="{source}"><figcaption>{shown}</figcaption></figure>'
