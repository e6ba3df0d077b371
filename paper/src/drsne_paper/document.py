"""Blocks of text, tables and figures, which are written as Markdown here and as HTML in ``pages``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table in Markdown, with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (header, *rows)
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


class Column(str):
    """The header of a column that belongs to the score before it: a reference value, or the difference from it."""

    role: str

    def __new__(cls, text: str, role: str) -> Column:
        """Create the text with its role."""
        column = super().__new__(cls, text)
        column.role = role
        return column


class Cell(str):
    """The text of a cell, with the number that it shows."""

    number: float

    def __new__(cls, text: str, number: float) -> Cell:
        """Create the text with its number."""
        cell = super().__new__(cls, text)
        cell.number = number
        return cell

    def marked(self, mark: str) -> Cell:
        """Return the cell with a mark after its text."""
        return Cell(f"{self} {mark}", self.number)


REFERENCE, DIFFERENCE_ROLE = "reference", "difference"
PAPER, AUTHORS = Column("paper", REFERENCE), Column("authors", REFERENCE)
AUTHORS_BY_SEED = Column("authors, by seed", REFERENCE)
DIFFERENCE = Column("diff.", DIFFERENCE_ROLE)
NOTHING = "-"  # a cell without a number
OTHER = "other setting"  # shown instead of a difference if the two scores were not measured at the same setting


@dataclass(frozen=True)
class Heading:
    """A heading; a heading of the first level is the document's title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph, which can contain `code`, **strong** words and [links](address) as in Markdown."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table.

    In HTML, differences are coloured, the largest number of each ``best`` column is bold, and there is a caption.
    In Markdown, the cells are plain.
    """

    header: Sequence[str]
    body: Sequence[Sequence[str]]
    caption: str = ""  # the caption; if empty, the heading before the table is used
    best: Sequence[str] = ()  # columns in which a larger value is better
    within: str = ""  # the column by whose values rows are grouped for ``best``; all rows form one group if empty


@dataclass(frozen=True)
class Figure:
    """A picture, given by its file name in the study's folder."""

    file: str
    caption: str


Block = Heading | Text | Bullets | Table | Figure


def markdown(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown."""
    return "\n\n".join(_as_markdown(block) for block in blocks) + "\n"


def anchors(blocks: Sequence[Block], *, prefix: str = "") -> list[str]:
    """Return the anchors of the headings, in the order of the headings; no two anchors are the same."""
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
            return table(header, body)
        case Figure(file, caption):
            return f"![{caption}]({file})"
