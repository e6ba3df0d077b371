"""The explorer in a browser: hostile text, many points, small screens, colours of the system, and notebooks."""

from __future__ import annotations

import numpy as np
import pytest
from grids import GRID, HOSTILE, LABELS, grid_page, in_view, path, pixel, read_csv, rgb
from opening import browser, opened

from drsne import explorer

pytestmark = pytest.mark.slow


def test_many_classes_stay_usable(opened):
    n = 3000
    points = np.random.default_rng(0).normal(size=(n, 2))
    page = opened(explorer.page(points, labels=np.arange(n) % 700))
    assert page.tab.locator(".class").count() == 200
    assert "500" in page.text("#key .hint")
    assert page.call("colourOf", 3) != page.call("colourOf", 600)


def test_hostile_text_is_shown_and_does_nothing(opened):
    texts = [HOSTILE[i % len(HOSTILE)] for i in range(36)]
    maps = {text: GRID + i for i, text in enumerate(HOSTILE)}
    page = opened(explorer.page(maps, labels=texts, names=texts, columns={HOSTILE[1]: texts}, title=HOSTILE[0]))
    assert page.text("h1") == page.tab.title() == HOSTILE[0]
    assert set(page.tab.locator(".classes .word").all_text_contents()) == set(HOSTILE)
    for row in range(len(HOSTILE)):
        page.tab.mouse.move(*page.call("screen", row))
        page.wait("row => drsneExplorer.hovered() === row", row)
        assert page.text(".tip-name") == HOSTILE[row]
        page.call("setMap", row)
        assert page.text("#map-title") == HOSTILE[row]
    page.tab.fill("#search", HOSTILE[1])
    page.wait("() => document.getElementById('found').textContent.includes('match')")
    page.tab.click("#select-found")
    page.call("select", list(range(10)))
    assert page.tab.locator(".row-name").all_text_contents() == texts[:10]
    assert [row["name"] for row in read_csv(page)] == texts[:10]
    assert [row[HOSTILE[1]] for row in read_csv(page)] == texts[:10]
    assert page.tab.locator("img").count() == 0
    assert page.tab.evaluate("window.hacked") is None


def test_a_downloaded_table_has_no_formulas(opened):
    formulas = ["=1+1", "+a", "-b", "@c", "\u200a=1", "\uff1d1", "\t=d", "\re"]
    kinds = [*formulas, "plain", "a=b", "-1.5", " +2e-3", "-.5", "'=f"]
    texts = np.resize(kinds, 36).tolist()
    page = opened(explorer.page(GRID, labels=texts, names=texts, columns={"=kind": -np.arange(36.0)}))
    page.call("select", list(range(len(kinds))))
    rows = read_csv(page)
    expected = [*(f"'{kind}" for kind in formulas), *kinds[len(formulas) :]]
    assert [row["name"] for row in rows] == [row["label"] for row in rows] == expected
    assert [float(row["'=kind"]) for row in rows] == [-row for row in range(len(kinds))]


def test_many_points_load(opened):
    n = 50_000
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2))
    points[123] = [3.0, 3.0]
    far = np.hypot(*(points - points[123]).T) < 0.3
    far[123] = False
    points[far] = 0.0
    page = opened(explorer.page({"a": points, "b": points[:, ::-1]}, labels=rng.integers(0, 20, n)))
    assert page.tab.evaluate("drsneExplorer.positions().length") == n
    page.tab.mouse.move(*page.call("screen", 123))
    page.wait("() => drsneExplorer.hovered() === 123")
    page.call("setMap", 1)
    expected = in_view(points[:, ::-1])[123].tolist()
    assert page.tab.evaluate("drsneExplorer.positions()[123]") == pytest.approx(expected, abs=1e-6)
    page.call("select", list(range(0, n, 2)))
    assert page.text("#selection-text").startswith("25,000 rows selected")


def test_narrow_screens(opened):
    width = 320
    maps = path(*(np.roll(GRID, i, axis=0) for i in range(15)))
    long = "a very long label without an end " * 5
    page = opened(explorer.page(maps, labels=[long, "b"] * 18, names=[long] * 36, title=long), width=width, height=844)
    page.call("select", list(range(20)))
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert page.tab.evaluate("document.body.scrollWidth") <= width
    stage, dock, panels = (page.tab.locator(name).bounding_box() for name in ("#stage", "#dock", "aside"))
    assert stage["y"] + stage["height"] <= dock["y"]
    assert dock["y"] + dock["height"] <= panels["y"]
    box = page.map_box()
    screen = np.array([page.call("screen", row) for row in range(36)])
    assert (screen[:, 0] > box["x"]).all()
    assert (screen[:, 0] < box["x"] + box["width"]).all()
    page.tab.click("#colour-panel > summary")
    assert not page.tab.locator("#colour-by").is_visible()


def touching(page):
    """Return a function that sends an event of touched points."""
    session = page.tab.context.new_cdp_session(page.tab)

    def touch(kind, *points):
        touches = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    return touch


def test_fingers_select_move_and_zoom_until_the_touch_is_cancelled(opened):
    page = opened(grid_page(), width=390, height=844, has_touch=True)
    x, y = page.call("screen", 14)
    page.tab.touchscreen.tap(x, y)
    page.wait("() => drsneExplorer.selected().length === 1")
    assert page.call("selected") == [14]
    touch = touching(page)
    touch("touchStart", (x, y + 20))
    for moved in range(10, 90, 10):
        touch("touchMove", (x + moved, y + 20))
        page.tab.wait_for_timeout(20)  # the view follows once in a frame
    page.wait("x => drsneExplorer.screen(14)[0] - x > 40", x)
    touch("touchEnd")
    width = page.call("screen", 5)[0] - page.call("screen", 0)[0]
    touch("touchStart", (x - 30, y), (x + 30, y))
    touch("touchMove", (x - 60, y), (x + 60, y))
    page.wait("width => drsneExplorer.screen(5)[0] - drsneExplorer.screen(0)[0] > 1.5 * width", width)
    touch("touchEnd")
    page.tab.wait_for_timeout(200)
    x, y = page.call("screen", 14)
    touch("touchStart", (x, y + 20))
    for moved in range(10, 60, 10):
        touch("touchMove", (x + moved, y + 20))
        page.tab.wait_for_timeout(20)
    page.wait("x => drsneExplorer.screen(14)[0] - x > 20", x)
    touch("touchCancel")
    page.tab.wait_for_timeout(200)
    before = page.call("screen", 14)
    page.tab.mouse.move(x + 40, y + 20)
    page.tab.mouse.move(x - 60, y + 60, steps=8)
    page.tab.wait_for_timeout(200)
    assert np.allclose(page.call("screen", 14), before, atol=0.5)


# Makes the next drawing of the library fail if window.failNext is true.
FAILING = """
let library;
Object.defineProperty(window, "drsneLibrary", {
  get: () => library,
  set: (given) => {
    const createScatterplot = (options) => {
      const scatter = given.createScatterplot(options);
      const draw = scatter.draw;
      scatter.draw = (...args) => {
        if (!window.failNext) return draw(...args);
        window.failNext = false;
        return Promise.reject(new Error("a drawing that fails"));
      };
      return scatter;
    };
    library = { createScatterplot };
  },
});
"""


def test_a_drawing_that_fails_does_not_stop_the_next_ones(opened):
    warnings = []
    page = opened(explorer.page({"a": GRID, "b": GRID[::-1] * [1.0, 0.5]}, labels=LABELS), script=FAILING)
    page.tab.on("console", lambda message: message.type == "warning" and warnings.append(message.text))
    page.tab.evaluate("window.failNext = true")
    page.tab.click(".toggle >> nth=0")  # hides a class, which the failed drawing should have done
    page.wait("() => !window.failNext")
    page.call("setMap", 1)
    assert any("not drawn" in text for text in warnings)
    assert np.allclose(page.positions(), in_view(GRID[::-1] * [1.0, 0.5]), atol=1e-6)
    left, right = 0, 5
    assert pixel(page, left)[3] == 0
    assert pixel(page, right)[3] > 150
    page.tab.mouse.move(*page.call("screen", right))
    page.wait("row => drsneExplorer.hovered() === row", right)


def contrast(first, second):
    """Return the contrast ratio of WCAG."""

    def luminance(colour):
        channels = np.array(rgb(colour)) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_controls_have_names_and_colours_follow_the_system(opened):
    page = opened(explorer.page(path(GRID, GRID), labels=LABELS), color_scheme="light")
    nameless = page.tab.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas, [role=button]")]
            .filter(e => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length || e.title))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    page.tab.keyboard.press("Tab")
    width = page.tab.evaluate("parseFloat(getComputedStyle(document.activeElement.parentElement).borderWidth)")
    assert width > 0
    assert page.tab.evaluate("document.activeElement.matches(':focus-visible')")
    variable = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    seen = []
    for scheme in ("light", "dark"):
        page.tab.emulate_media(color_scheme=scheme)
        page.wait("theme => document.documentElement.dataset.theme === theme", scheme)
        found = {
            name: page.tab.evaluate(variable, f"--{name}")
            for name in ("ink", "soft", "accent", "panel", "page", "stage")
        }
        for ink in ("ink", "soft", "accent"):
            for ground in ("panel", "page", "stage"):
                assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
        for row in (0, 5):
            assert contrast(page.call("colourOf", row), found["stage"]) >= 2
        seen.append(page.call("colourOf", 0))
    assert seen[0] != seen[1]
    page.tab.click("#theme")  # the user's choice stays, whatever the system does
    for scheme in ("dark", "light", "dark"):
        page.tab.emulate_media(color_scheme=scheme)
        assert page.tab.get_attribute("html", "data-theme") == "light"


def test_a_notebook_frame_works(browser):
    tab = browser.new_page()
    tab.set_default_timeout(120_000)
    tab.set_content(grid_page()._repr_html_())
    frame = tab.frames[1]
    frame.wait_for_function("() => window.drsneExplorer?.select !== undefined")  # the first map is drawn
    frame.evaluate("drsneExplorer.select([3, 4])")
    with tab.expect_download() as download:
        frame.click("#download")
    assert download.value.path().read_text(encoding="utf-8").count("\n") == 3  # the header and two rows
    tab.close()
