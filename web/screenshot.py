"""Draw docs/images/explorer.png, the picture of a page on docs/explorer.md.

Run it as ``python web/screenshot.py``. It needs ``pip install -e '.[dev]'`` and Chromium, whose file is named by the
environment variable DRSNE_CHROMIUM if it is not on the path.
"""

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

import drsne
from drsne import explorer

TARGET = Path(__file__).parents[1] / "docs" / "images" / "explorer.png"
SIZE = {"width": 1200, "height": 750}
WEIGHTS = [0, 0.3, 1, 3, 9]
SHOWN = 2  # index of the map
POINTED_AT = 0  # row near the pointer, which shows the values of the nearest row


def main() -> None:
    """Fit the maps, open their page and write the picture."""
    X, digit = load_digits(return_X_y=True)
    path = drsne.density_path(X, WEIGHTS, random_state=0, n_jobs=-1)
    page = explorer.page(path, labels=digit, label_name="digit", title="Digits")
    chromium = os.environ.get("DRSNE_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        tab = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        tab.goto(page.save(Path(folder) / "page.html").as_uri())
        tab.evaluate("drsneExplorer.ready")
        tab.evaluate("map => drsneExplorer.setMap(map)", SHOWN)
        tab.mouse.move(*tab.evaluate("row => drsneExplorer.screen(row)", POINTED_AT))
        tab.wait_for_function("() => drsneExplorer.hovered() !== null")
        tab.screenshot(path=TARGET)
        browser.close()
    print(f"Wrote {TARGET} ({TARGET.stat().st_size / 1000:.0f} kB).")


if __name__ == "__main__":
    main()
