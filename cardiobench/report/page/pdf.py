"""The page as PDF, printed by a headless Chromium through playwright: `cardiobench report --pdf`."""

import os
import shutil
from pathlib import Path

from cardiobench.core.errors import MissingData, MissingExtra, UnwritableOutput
from cardiobench.core.io import write_atomic

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 600_000  # Milliseconds for a page with thousands of results.
SHOW_ALL = """() => {
  dispatchEvent(new Event("beforeprint"));
  const images = Array.from(document.images, (one) => { one.loading = "eager"; return one.decode().catch(() => {}); });
  return Promise.all(images);
}"""
"""Opens every part, as printing by hand does, and waits for the figures that are files."""


def find_browser() -> str:
    """Return the path of a Chromium: the one of this system, else the one that playwright installed.

    Raises:
        MissingExtra: Playwright is not installed.
        MissingData: There is no browser.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise MissingExtra("printing the report as PDF", "pdf", "playwright") from None
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    with sync_playwright() as play:
        found = play.chromium.executable_path
    if not Path(found).is_file():
        raise MissingData(
            f"printing the report as PDF needs a Chromium: none of {', '.join(BROWSERS)} is on the path. "
            "Install one with: playwright install chromium"
        )
    return found


def write_pdf(page: Path, browser: str) -> Path:
    """Print a page to a PDF beside it, with every part open; returns its path.

    Args:
        page: HTML file.
        browser: Program returned by `find_browser`.

    Raises:
        UnwritableOutput: The browser cannot be started or does not print.
    """
    from playwright.sync_api import Error, sync_playwright

    root = hasattr(os, "geteuid") and os.geteuid() == 0
    try:
        with sync_playwright() as play:
            running = play.chromium.launch(
                executable_path=browser, args=["--no-sandbox"] if root else [], timeout=PATIENCE
            )
            tab = running.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
            tab.set_default_timeout(PATIENCE)
            tab.goto(page.resolve().as_uri())
            tab.evaluate(SHOW_ALL)
            path = write_atomic(
                page.with_suffix(".pdf"),
                lambda file: tab.pdf(path=file, prefer_css_page_size=True, print_background=True),
            )
            running.close()
    except Error as error:
        raise UnwritableOutput(
            f"{page} is not printed by {browser}: {str(error).splitlines()[0]}. Open it in a browser and print it there."
        ) from error
    return path
