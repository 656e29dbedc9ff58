"""Real browser for tests of pages; these tests are skipped if it is missing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from cardiobench.report.page.pdf import BROWSERS

PATIENCE = 120_000  # Milliseconds for start and actions of the browser on a busy machine.


@dataclass
class Seen:
    """Events of a page while it was open."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator:
    """Return the system's browser in headless mode."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)} is on the path")
    with sync_api.sync_playwright() as play:
        arguments = ["--no-sandbox", "--disable-gpu"]
        running = play.chromium.launch(executable_path=program, args=arguments, timeout=PATIENCE)
        yield running
        running.close()


def watched(running, url: str, **options):
    """Open a page at an address, and record its console messages and requests."""
    page, seen = running.new_page(**options), Seen()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda message: seen.console.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.console.append(f"error: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(url)
    return page, seen


def violations(page) -> list[str]:
    """Return the serious and critical findings of axe-core on a page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    found = axe.run(page, context={"exclude": [["svg"]]}).response["violations"]  # The frame describes the drawings.
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in ("serious", "critical")
    ]
