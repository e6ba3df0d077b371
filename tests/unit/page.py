"""A page of HTML, and the payload of a page of the explorer, read for tests."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser

import numpy as np

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


class Payload:
    """The bytes, the description and the arrays in the text of a page of the explorer."""

    def __init__(self, text):
        packed = re.search(r'<script type="text/plain" id="payload">([^<]*)</script>', text)[1]
        self.content = zlib.decompress(base64.b64decode(packed, validate=True))
        length = int.from_bytes(self.content[:4], "little")
        self.meta, body = json.loads(self.content[4 : 4 + length]), self.content[4 + length :]
        arrays = self.meta["arrays"]
        self.arrays = [np.frombuffer(body, f"<{a['type']}", count=a["length"], offset=a["at"]) for a in arrays]
        self.names = [column["name"] for column in self.meta["columns"]]

    def described(self, name):
        """Return the description of a column, and what is stored of it in every map."""
        (found,) = (column for column in self.meta["columns"] if column["name"] == name)
        return found, [self.arrays[number] for number in found["values"]]

    def column(self, name, at=0):
        """Return a column of numbers, or the words of a column of text. ``at`` is the number of the map."""
        found, stored = self.described(name)
        if found["words"] is not None:
            return [found["words"][code] for code in stored[at]]
        return found["low"] + found["step"] * stored[at] if "step" in found else stored[at]
