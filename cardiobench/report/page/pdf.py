"""Print the page as PDF with headless Chromium through playwright, for `cardiobench report --pdf`."""

import os
import shutil
from pathlib import Path

from cardiobench.core.errors import MissingData, MissingExtra, UnwritableOutput
from cardiobench.core.io import write_atomic

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 600_000  # Timeout in milliseconds, sufficient for a page with thousands of results.
SHOW_ALL = """() => {
  dispatchEvent(new Event("beforeprint"));
  const images = Array.from(document.images, (one) => { one.loading = "eager"; return one.decode().catch(() => {}); });
  return Promise.all(images);
}"""
"""Open all sections, as manual printing does, and wait for figures in separate files."""


def find_browser() -> str:
    """Return the path of Chromium on this system, otherwise of the one that playwright installed.

    Raises:
        MissingExtra: Playwright is not installed.
        MissingData: No browser is available.
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
    """Print a page with all sections open to a PDF next to it, and return the path of the PDF.

    Args:
        page: Path of the HTML file.
        browser: Browser executable from `find_browser`.

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
            f"{browser} cannot print {page}: {str(error).splitlines()[0]}. Open it in a browser and print it there."
        ) from error
    return path
