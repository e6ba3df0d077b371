"""A page of HTML, read for tests."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Tags in order, tables by the heading before them, and whether what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.tables, self.heading, self.words = [], [], {}, "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.heading = ""
        if tag == "table":
            self.rows = self.tables.setdefault(self.heading, [])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.heading += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
