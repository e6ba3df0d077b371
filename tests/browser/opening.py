"""Pages of the explorer in a real browser."""

from __future__ import annotations

import itertools
import os
import shutil

import numpy as np
import pytest

CHROMIUM = os.environ.get("DRSNE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 120_000  # milliseconds; machines can be busy


@pytest.fixture(scope="module")
def browser():
    if os.environ.get("DRSNE_NEEDS_CHROMIUM"):
        from playwright import sync_api

        assert CHROMIUM is not None, "DRSNE_NEEDS_CHROMIUM is set, but there is no Chromium"
    else:
        sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'drsne[dev]'")
        if CHROMIUM is None:
            pytest.skip("needs Chromium; set DRSNE_CHROMIUM to its path")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


class Opened:
    """A page of the explorer in a browser, and what went wrong on it."""

    def __init__(self, tab):
        self.tab, self.problems = tab, []
        tab.set_default_timeout(PATIENCE)
        tab.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("dialog", lambda dialog: (self.problems.append("dialog"), dialog.dismiss()))
        tab.on("request", self._note_request)
        tab.add_init_script(
            "addEventListener('securitypolicyviolation', event => console.error('violation', event.blockedURI))"
        )

    def _note_request(self, request):
        if not request.url.startswith(("file:", "blob:", "data:", "about:")):
            self.problems.append(request.url)

    def call(self, method, *arguments):
        """Call a method of window.drsneExplorer, and wait for its promise, but not forever."""
        return self.tab.evaluate(
            """([method, args, patience]) => Promise.race([
                method === "ready" ? drsneExplorer.ready : drsneExplorer[method](...args),
                new Promise((_, reject) => setTimeout(() => reject(new Error(`${method} takes too long`)), patience)),
            ])""",
            [method, list(arguments), PATIENCE],
        )

    def wait(self, condition, argument=None):
        """Wait until an expression of JavaScript is true."""
        self.tab.wait_for_function(condition, arg=argument)

    def text(self, selector):
        return self.tab.locator(selector).text_content()

    def positions(self):
        return np.array(self.call("positions"))

    def map_box(self):
        return self.tab.locator("#map").bounding_box()

    def lasso(self, corners):
        """Draw a closed lasso with the mouse and the shift key."""
        self.tab.keyboard.down("Shift")
        self.tab.mouse.move(*corners[0])
        self.tab.mouse.down()
        for (x0, y0), (x1, y1) in itertools.pairwise([*corners, corners[0]]):
            for share in np.linspace(0.25, 1.0, 4):
                self.tab.mouse.move(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)
                self.tab.wait_for_timeout(12)  # the page takes at most one position every 4 milliseconds
        self.tab.mouse.up()
        self.tab.keyboard.up("Shift")


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page from a file, without a network, and check at the end that nothing went wrong on it."""
    contexts, pages = [], []

    def open_(page, *, width=1280, height=800, script=None, **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, reduced_motion="no-preference", **options
        )
        contexts.append(context)
        page_ = Opened(context.new_page())
        pages.append(page_)
        if script is not None:
            page_.tab.add_init_script(script)
        target = page.save(tmp_path / f"page {len(pages)}.html")
        page_.tab.goto(target.as_uri())
        page_.call("ready")
        return page_

    yield open_
    for context in contexts:
        context.close()
    assert [problem for page in pages for problem in page.problems] == []
