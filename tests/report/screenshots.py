"""Take the README's two screenshots of the page that `make demo` writes.

python -m tests.report.screenshots results/report.html docs
"""

import sys
from pathlib import Path

from tests.report.browser import chromium, watched

TASK = "ptb_xl_sample/cd"


def take(page: Path, out: Path) -> list[Path]:
    """Take screenshots of the overview and of one task; return the files."""
    files = [out / "report-overview.png", out / "report-task.png"]
    out.mkdir(parents=True, exist_ok=True)
    with chromium() as running:
        tab, _ = watched(
            running, page.resolve().as_uri(), viewport={"width": 1120, "height": 1060}, color_scheme="light"
        )
        tab.evaluate(
            "document.documentElement.style.scrollBehavior = 'auto'; document.querySelector('#overview').scrollIntoView()"
        )
        tab.locator(".heat").first.locator("td.cell").nth(4).hover()
        tab.screenshot(path=files[0])
        tab.set_viewport_size({"width": 1280, "height": 1060})
        tab.locator("details.part", has_text=TASK).first.locator("summary").first.click()
        part = tab.locator("details.part[open]").first
        part.screenshot(path=files[1])
    return files


if __name__ == "__main__":
    for file in take(Path(sys.argv[1]), Path(sys.argv[2])):
        sys.stdout.write(f"wrote {file} ({file.stat().st_size // 1000} kB)\n")
