"""The explorer in a browser: what the mouse and the keyboard do."""

from __future__ import annotations

import numpy as np
import pytest
from grids import GRID, LABELS, NAMES, grid_page, in_view, path, pixel, read_csv, rgb
from opening import browser, opened

from drsne import explorer
from drsne.explorer import columns

pytestmark = pytest.mark.slow


def test_points_are_drawn_where_and_how_they_should_be(opened):
    page = opened(grid_page(title="A grid"))
    assert page.tab.title() == page.text("h1") == "A grid"
    assert np.allclose(page.positions(), in_view(GRID), atol=1e-6)
    assert not page.tab.locator("#dock").is_visible()  # one map needs no slider
    for row in (0, 17, 35):
        colour = page.call("colourOf", row)
        found = pixel(page, row)
        assert found[3] > 150
        assert np.allclose(found[:3], rgb(colour), atol=12)
    assert page.call("colourOf", 0) != page.call("colourOf", 5)


def test_hover_shows_the_row_under_the_pointer(opened):
    page = opened(grid_page(columns={"age": np.arange(36) + 0.5, "city": ["Rome", "Oslo"] * 18}))
    for row in (0, 14, 35, 8):
        page.tab.mouse.move(*page.call("screen", row))
        page.wait("row => drsneExplorer.hovered() === row", row)
        shown = page.text("#tooltip")
        assert shown.startswith(f"point {row}label")
        assert LABELS[row] in shown
        assert ("Rome", "Oslo")[row % 2] in shown
        assert f"age{row + 0.5:.{2 if row > 9 else 3}f}" in shown
    x, y = page.call("screen", 0)
    page.tab.mouse.move(x + 30, y - 30)  # between the points
    page.wait("() => drsneExplorer.hovered() === null")
    assert not page.tab.locator("#tooltip").is_visible()


def test_a_lasso_exports_the_rows_inside_it(opened):
    values = np.linspace(-1, 1, 36).astype(np.float32)
    ids, double = 123_456_784 + 8 * np.arange(36), np.arange(36) / 10 + 1e300
    double[::2] = 0.1 + np.arange(18) / 3
    page = opened(grid_page(columns={"value": values, "id": ids, "odd": ids + 1, "double": double}))
    inside = [7, 8, 13, 14]
    step = np.abs(np.array(page.call("screen", 1)) - page.call("screen", 0)).max()
    corners = [
        np.array(page.call("screen", row)) + np.array(side) * step / 2
        for row, side in ((7, (-1, 1)), (8, (1, 1)), (14, (1, -1)), (13, (-1, -1)))
    ]
    page.lasso(corners)
    page.wait("() => drsneExplorer.selected().length > 0")
    assert page.call("selected") == inside
    assert page.text("#selection-text").startswith("4 rows selected")
    rows = read_csv(page)
    assert [int(row["row"]) for row in rows] == inside
    assert [row["name"] for row in rows] == [NAMES[i] for i in inside]
    assert [row["label"] for row in rows] == LABELS[inside].tolist()
    assert [np.float32(row["value"]) for row in rows] == values[inside].tolist()
    assert [int(row["id"]) for row in rows] == ids[inside].tolist()  # also as numbers of single precision
    assert [int(row["odd"]) for row in rows] == (ids[inside] + 1).tolist()
    assert [float(row["double"]) for row in rows] == double[inside].tolist()
    summary = page.text("#summary")
    assert f"{values[inside].mean():.3f}".replace("-", "\u2212") in summary
    assert "422.2 %" in summary  # 4 rows, of the 18 on the left


def test_ways_to_select(opened):
    page = opened(grid_page(), permissions=["clipboard-read", "clipboard-write"])
    page.lasso(
        [np.array(page.call("screen", row)) for row in (0, 5, 35, 30)]
    )  # is not a click, though it ends at a point
    page.wait("() => drsneExplorer.selected().length > 1")
    assert set(page.call("selected")) >= {7, 8, 14, 21, 28}
    page.tab.click("#deselect")
    assert page.call("selected") == []
    assert page.tab.locator("#selection-empty").is_visible()
    page.tab.click("#lasso-mode")
    assert page.tab.get_attribute("#lasso-mode", "aria-pressed") == "true"
    corners = [np.array(page.call("screen", row)) - 15 for row in (30, 34, 4)]
    page.tab.mouse.move(*corners[0])
    page.tab.mouse.down()
    for corner in corners[1:]:
        page.tab.mouse.move(*corner, steps=10)
    page.tab.evaluate("window.dispatchEvent(new Event('blur'))")  # ends the lasso
    page.wait("() => drsneExplorer.selected().length > 3")
    page.tab.mouse.up()
    page.tab.click("#pan-mode")
    page.tab.mouse.move(*page.call("screen", 20))
    page.wait("() => drsneExplorer.hovered() === 20")
    page.tab.mouse.down()
    page.tab.mouse.up()
    page.wait("() => drsneExplorer.selected().length === 1")
    assert page.call("selected") == [20]
    page.call("select", [5, 2, 30])
    page.tab.click("#copy")
    page.wait("() => document.getElementById('status').textContent.includes('3 row')")
    assert page.tab.evaluate("navigator.clipboard.readText()") == "2, 5, 30"


def test_the_slider_morphs_and_settles_at_a_map(opened):
    maps = [GRID, GRID * [1.0, 0.5], GRID[::-1]]
    page = opened(explorer.page(path(*maps), labels=LABELS))
    box = page.tab.locator("#slider").bounding_box()
    y, left, width = box["y"] + box["height"] / 2, box["x"] + 10, box["width"] - 20
    page.tab.mouse.move(left, y)
    page.tab.mouse.down()
    page.tab.mouse.move(left + 0.2 * width, y, steps=5)
    first, second = (in_view(each) for each in maps[:2])
    page.wait("start => Math.abs(drsneExplorer.positions()[0][1] - start) > 0.05", first[0, 1])
    share = (page.positions() - first)[0, 1] / (second - first)[0, 1]
    assert 0.1 < share < 0.9
    assert np.allclose(page.positions(), first + share * (second - first), atol=1e-4)
    page.tab.mouse.move(left + 0.9 * width, y, steps=5)
    page.tab.mouse.up()
    page.wait("end => Math.abs(drsneExplorer.positions()[0][1] - end) < 1e-5", in_view(maps[2])[0, 1])
    assert np.allclose(page.positions(), in_view(maps[2]), atol=1e-6)
    assert page.call("map") == 2
    assert page.text("#map-title") == "λ = 2"
    assert "0.950" in page.text("#map-scores")
    assert page.tab.get_attribute("#slider", "aria-valuetext") == "λ = 2"


def test_the_points_end_where_the_map_is_after_many_quick_steps(opened):
    maps = {f"map {i}": np.roll(GRID, i, axis=0) for i in range(8)}
    page = opened(explorer.page(maps))
    page.tab.evaluate("() => { for (const i of [3, 7, 1, 6, 2, 5]) drsneExplorer.setMap(i); }")
    page.call("setMap", 5)
    assert np.allclose(page.positions(), in_view(maps["map 5"]), atol=1e-6)
    for row in (0, 20):
        assert pixel(page, row)[3] > 150
    assert page.text("#map-title") == "map 5"


def test_the_curve_chooses_a_map(opened):
    page = opened(explorer.page(path(GRID, GRID * 2.0, GRID[::-1])))
    dots = page.tab.locator("#curve .dot")
    assert dots.count() == 3
    dots.nth(2).click()
    page.wait("() => drsneExplorer.map() === 2")
    assert [dot.get_attribute("aria-pressed") for dot in dots.all()] == ["false", "false", "true"]
    dots.nth(1).focus()
    page.tab.keyboard.press("Enter")
    page.wait("() => drsneExplorer.map() === 1")
    assert not opened(explorer.page({"a": GRID, "b": GRID})).tab.locator("#trade-off").is_visible()


def test_colours_follow_the_column_and_the_map(opened):
    squeezed = GRID * np.where(LABELS == "left", 0.2, 1.0)[:, None]
    page = opened(explorer.page(path(GRID, squeezed), labels=LABELS, input_concentration=np.zeros(36)))
    page.call("colourBy", columns.MAP)
    assert "Log relative concentration" in page.text("#about")
    before = [page.call("colourOf", row) for row in (7, 10)]
    page.call("setMap", 1)
    after = [page.call("colourOf", row) for row in (7, 10)]
    assert before != after
    page.tab.select_option("#colour-by", label=columns.RESIDUAL)
    assert page.tab.input_value("#ramp") == "diverging"
    low, middle, high = (page.text(f".ends span:nth-child({i})") for i in (1, 2, 3))
    assert (low.lstrip("\u2212"), middle) == (high, "0")


def test_classes_can_be_hidden_and_searching_highlights_rows(opened):
    page = opened(grid_page(columns={"value": np.arange(36), "city": ["Rome", "Oslo", "Lima"] * 12}))
    left = np.flatnonzero(LABELS == "left").tolist()
    right = np.flatnonzero(LABELS == "right").tolist()
    page.call("select", [0, 5])
    page.tab.click(".toggle >> nth=0")
    page.wait("n => drsneExplorer.visible().length === n", len(right))
    assert page.call("visible") == right
    assert page.call("selected") == [5]
    assert page.text("#filter-text") == "18 of 36 rows shown"
    page.call("colourBy", "value")  # hidden rows stay hidden
    assert pixel(page, 0)[3] == 0
    assert pixel(page, 5)[3] > 150
    page.tab.mouse.move(*page.call("screen", 5))
    page.wait("() => drsneExplorer.hovered() === 5")
    page.tab.mouse.move(*page.call("screen", 0))
    page.wait("() => drsneExplorer.hovered() === null")
    page.tab.click("#filter-reset")
    page.call("colourBy", "label")
    assert len(page.call("visible")) == 36
    page.tab.hover(".class >> nth=0")
    page.tab.click(".only >> nth=0")
    assert page.call("visible") == left
    page.tab.click("#hide-all")
    assert page.call("visible") == []
    page.tab.click("#show-all")
    assert len(page.call("visible")) == 36
    page.tab.mouse.move(0, 0)  # away from the classes, which are highlighted under the pointer
    page.call("select", [])
    page.tab.fill("#search", "oSLo")
    page.wait("() => document.getElementById('found').textContent === '12 matches'")
    page.call("colourBy", "label")  # resolves when the highlight is drawn
    assert pixel(page, 1)[3] > 240
    assert pixel(page, 0)[3] < 60
    page.tab.click("#select-found")
    assert page.call("selected") == list(range(1, 36, 3))
    page.tab.fill("#search", "point 35")
    page.wait("() => document.getElementById('found').textContent === '1 match'")
    page.tab.fill("#search", "nowhere")
    page.wait("() => document.getElementById('found').textContent === '0 matches'")
    assert not page.tab.locator("#select-found").is_visible()


def test_keys(opened):
    page = opened(explorer.page(path(GRID, GRID[::-1], GRID), labels=LABELS, names=NAMES))
    press = page.tab.keyboard.press
    for key, expected in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("Home", 0),
        ("End", 2),
    ):
        press(key)
        assert page.call("map") == expected, key
    page.tab.focus("#slider")
    press("ArrowLeft")
    assert page.call("map") == 1
    press("/")
    assert page.tab.evaluate("document.activeElement.id") == "search"
    page.tab.keyboard.type("point 1d")  # letters are text here
    assert page.tab.input_value("#search") == "point 1d"
    assert page.tab.get_attribute("html", "data-theme") == "light"
    page.call("select", [1, 2])
    press("Escape")
    assert page.tab.input_value("#search") == ""
    assert page.call("selected") == []
    press("d")
    assert page.tab.get_attribute("html", "data-theme") == "dark"
    press("l")
    assert page.tab.get_attribute("#lasso-mode", "aria-pressed") == "true"
    press("?")
    assert page.tab.locator("#help").is_visible()
    press("ArrowLeft")
    assert page.call("map") == 1  # the help has the keyboard
    press("Escape")
    assert not page.tab.locator("#help").is_visible()


def test_zoom_and_reset(opened):
    page = opened(grid_page())
    whole = np.array([page.call("screen", row) for row in (0, 35)])
    page.tab.click("#zoom-in")
    page.wait("x => Math.abs(drsneExplorer.screen(0)[0] - x) > 30", whole[0, 0])
    page.tab.mouse.move(*(np.array(page.call("screen", 14)) + 1))
    page.wait("() => drsneExplorer.hovered() === 14")
    page.tab.keyboard.press("r")
    page.wait("x => Math.abs(drsneExplorer.screen(0)[0] - x) < 0.5", whole[0, 0])
    box = page.map_box()
    page.tab.mouse.move(box["x"] + box["width"] / 2 + 30, box["y"] + box["height"] / 2 + 30)
    page.tab.mouse.down()
    page.tab.mouse.move(box["x"] + box["width"] / 2 + 130, box["y"] + box["height"] / 2 + 30, steps=8)
    page.wait("x => drsneExplorer.screen(0)[0] - x > 60", whole[0, 0])
    page.tab.mouse.up()
    assert page.call("selected") == []
    page.tab.click("#reset")
    page.wait("x => Math.abs(drsneExplorer.screen(0)[0] - x) < 0.5", whole[0, 0])
    assert np.allclose([page.call("screen", row) for row in (0, 35)], whole, atol=0.5)
