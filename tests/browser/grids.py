"""Small pages for tests in a browser, and what can be read from them."""

from __future__ import annotations

import csv
import io

import numpy as np
from problems import path_of

from drsne import explorer
from drsne.estimators.path import DensityPath
from drsne.explorer import payload

SIDE = 6
GRID = np.array([(i % SIDE, i // SIDE) for i in range(SIDE * SIDE)], dtype=float)
LABELS = np.array(["left" if x < 3 else "right" for x, _ in GRID])
NAMES = [f"point {i}" for i in range(len(GRID))]
HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=\"window.hacked = 1; alert('hacked')\">",
    "\"quotes\" 'and' `ticks` & &amp; {{ title }}",
    "<!-- comment --> \u2028 line",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
)


def path(*embeddings):
    m = len(embeddings)
    scores = {"trustworthiness": np.linspace(0.99, 0.95, m), "concentration_correlation": np.linspace(0.3, 0.9, m)}
    return path_of(embeddings, np.arange(m), **scores)


def in_view(Y):
    """Return where the page puts the points of a map, between -1 and 1."""
    return payload.placed(Y) / 32767.5 - 1


def grid_page(**options):
    return explorer.page(GRID, labels=LABELS, names=NAMES, **options)


def read_csv(opened):
    with opened.tab.expect_download() as download:
        opened.tab.click("#download")
    with open(download.value.path(), encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(io.StringIO(stream.read())))


def pixel(opened, row):
    """Return the red, green, blue and alpha that are drawn where a row is."""
    return opened.tab.evaluate(
        """row => {
            const canvas = document.getElementById("map"), box = canvas.getBoundingClientRect();
            const [x, y] = drsneExplorer.screen(row), scale = canvas.width / box.width;
            const at = [Math.round((x - box.left) * scale), Math.round((y - box.top) * scale)];
            return [...canvas.getContext("2d").getImageData(...at, 1, 1).data];
        }""",
        row,
    )


def rgb(colour):
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
