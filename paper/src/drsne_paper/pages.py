"""Documents as HTML, made from the templates in ``templates/``."""

from __future__ import annotations

import base64
import html as escaping
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from drsne_paper.document import (
    DIFFERENCE_ROLE,
    NOTHING,
    OTHER,
    REFERENCE,
    Block,
    Bullets,
    Cell,
    Figure,
    Heading,
    Table,
    Text,
    anchors,
)

_STRONG = 0.1  # smallest difference that is shown in the full colour
_GROUPS = 3  # number of scores, each with a reference and a difference, that fit on a typical screen
_LONG = 40  # number of characters above which a cell is broken into lines
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml", ".webp": "image/webp"}


def render(template: str, **content: Any) -> str:
    """Return the text of a template of this package after filling it in."""
    text: str = _environment().get_template(template).render(**content)
    return text


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("drsne_paper"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "text": lambda text: Markup(escaped(text)),
        "inline": lambda text: Markup(inline(text)),
        "deviation": lambda text: Markup(re.sub(r" (± [\d.]+)", r' <span class="std">\1</span>', str(text))),
    }
    return environment


def html(blocks: Sequence[Block], folder: Path, *, prefix: str = "", deeper: int = 0) -> str:
    """Return the blocks as HTML, with the pictures from ``folder`` embedded; a sentence replaces a missing picture.

    Parameters
    ----------
    blocks : sequence of blocks
        The content.
    folder : Path
        The folder of the pictures.
    prefix : str, default=""
        The text that every anchor of a heading starts with, so that a page can contain several documents.
    deeper : int, default=0
        The number that is added to the level of each heading of the document.

    Returns
    -------
    str
        HTML for the body of a page; its tables are in boxes of the class ``wide``.
    """
    names = iter(anchors(blocks, prefix=prefix))
    content: list[dict[str, Any]] = []
    heading = ""
    for block in blocks:
        match block:
            case Heading(heading, level):
                content.append(
                    {"kind": "heading", "level": min(6, level + deeper), "anchor": next(names), "text": heading}
                )
            case Text(text):
                content.append({"kind": "text", "text": text})
            case Bullets(items):
                content.append({"kind": "bullets", "entries": list(items)})
            case Table():
                content.append({"kind": "table", **_table(block, heading)})
            case Figure(file, caption):
                content.append({"kind": "figure", "caption": caption, "source": _source(folder / file)})
    return render("blocks.html", blocks=content)


def _source(file: Path) -> str:
    """Return a data address that contains the picture, or an empty string if the file does not exist."""
    if not file.exists():
        return ""
    return f"data:{_TYPES[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}"


def _table(table: Table, heading: str) -> dict[str, Any]:
    """Return the values that the template needs to show a table."""
    header = list(table.header)
    kinds = [_kind([row[column] for row in table.body]) for column in range(len(header))]
    scores, best = _scores(header), _best(table)
    many = len(scores) > _GROUPS
    return {
        **_element(classes=["stacks" if scores else "", "many" if many else ""]),
        "caption": table.caption or heading,
        "columns": [_column(header, kinds, scores, place) for place in range(len(header))],
        "rows": [
            [
                _element(row[0], [kinds[0]]),
                *(
                    _cell(row, column, header[column], kinds[column], scores, bold=(number, column) in best)
                    for column in range(1, len(header))
                ),
            ]
            for number, row in enumerate(table.body)
        ],
    }


def _element(text: str = "", classes: Sequence[str] = (), **attributes: Any) -> dict[str, Any]:
    """Return the text and the attributes of an element of a table; the template leaves out empty attributes."""
    empty = dict.fromkeys(("label", "strength", "reference", "mean", "difference"), "")
    return {"text": text, "classes": " ".join(filter(None, classes)), "bold": False, **empty, **attributes}


def _scores(header: Sequence[str]) -> list[int]:
    """Return the columns that are followed by a reference value and the difference from it."""
    roles = [getattr(name, "role", "") for name in header]
    places = range(1, len(header) - 2)
    return [place for place in places if roles[place + 1 : place + 3] == [REFERENCE, DIFFERENCE_ROLE]]


def _best(table: Table) -> set[tuple[int, int]]:
    """Return the row and column of the largest number in each ``best`` column, including ties."""
    header, out = list(table.header), set()
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(table.body):
        groups.setdefault(row[header.index(table.within)] if table.within else "", []).append(number)
    for column in (header.index(name) for name in table.best):
        for rows in groups.values():
            cells = {number: table.body[number][column] for number in rows}
            values = {number: cell.number for number, cell in cells.items() if isinstance(cell, Cell)}
            if len(values) > 1:
                out |= {(number, column) for number, value in values.items() if value == max(values.values())}
    return out


def _column(header: Sequence[str], kinds: Sequence[str], scores: Sequence[int], place: int) -> dict[str, Any]:
    of = [score for score in scores if place in (score + 1, score + 2)]
    label = f"{header[of[0]]}, {header[place]}" if of else ""
    role = "beside" if of else "score" if place in scores else ""
    return _element(header[place], [kinds[place], role], label=label)


def _kind(texts: Sequence[str]) -> str:
    """Return the class of a column, which determines its alignment: for numbers, sentences, lists, or other texts."""
    if all(re.fullmatch(rf"-?|{OTHER}|[+-]?[\d.]+(e[+-]?\d+)?( %)?( ± [\d.]+)?( \*)?", text) for text in texts):
        return "number"
    if any(len(text) > _LONG for text in texts):
        return "long"
    return "list" if any(", " in text for text in texts) else ""


def _cell(
    row: Sequence[str], column: int, name: str, kind: str, scores: Sequence[int], *, bold: bool
) -> dict[str, Any]:
    """Return a cell. A score's cell also has its reference and difference, which narrow layouts show below it."""
    text = row[column]
    beside = "beside" if {column - 1, column - 2} & set(scores) else ""
    if getattr(name, "role", "") == DIFFERENCE_ROLE and isinstance(text, Cell):
        return _element(text, ["number", _direction(text), beside], strength=_strength(text))
    if column not in scores:
        return _element(text, [kind, beside], bold=bold)
    reference, difference = row[column + 1 : column + 3]
    if reference == NOTHING:
        return _element(text, [kind, "score"], bold=bold)
    shade = {}
    classes = [kind, "score"]
    if isinstance(difference, Cell):
        classes.append(f"is-{_direction(difference)}")
        shade = {"strength": _strength(difference)}
    carried = {"reference": reference, "mean": reference.split(" ±")[0], "difference": difference}
    return _element(text, classes, bold=bold, **carried, **shade)


def _direction(difference: Cell) -> str:
    return "above" if difference.number > 0 else "below"


def _strength(difference: Cell) -> str:
    return f"{min(1.0, abs(difference.number) / _STRONG):.2f}"


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
    """Return the text escaped for HTML and HTML attributes, with control characters replaced."""
    return escaping.escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text))
