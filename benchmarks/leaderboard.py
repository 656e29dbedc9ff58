"""Measure a leaderboard of 100 models on 40 tasks: seconds to build, to the first paint, and to respond to a control.

    .venv-leaderboard/bin/python -m benchmarks.leaderboard [--models 100] [--tasks 40]

This needs gradio, playwright and a chromium on the path.
"""

import argparse
import time

from tests.leaderboard.large import large
from tests.report.browser import chromium

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
ROWS = "document.querySelectorAll('#overview td').length > 3"
TASK = "name => document.querySelector('#about textarea')?.value.includes(name)"


def main() -> None:
    """Measure all times and print them."""
    from cardiobench.leaderboard import style
    from cardiobench.leaderboard.app import build
    from cardiobench.leaderboard.state import settle
    from cardiobench.leaderboard.visitors import outputs

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=40)
    arguments = parser.parse_args()
    views = {"": large(arguments.models, arguments.tasks)}
    start = time.process_time()
    app = build(views)
    print(f"build: {time.process_time() - start:.2f} s of CPU time")
    state, _ = settle(views, {})
    for name in ("overview", "tasks", "models", "owners"):
        start = time.process_time()
        outputs(views[""], state, name)
        print(f"content of the tab {name}: {time.process_time() - start:.2f} s of CPU time")
    app.launch(prevent_thread_lock=True, quiet=True, share=False, **style.options())
    with chromium() as browser:
        for visit in ("first", "second"):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            sent = []
            page.on("response", lambda one, sent=sent: sent.append(int(one.headers.get("content-length", 0))))
            start = time.perf_counter()
            page.goto(app.local_url, wait_until="commit")
            page.wait_for_function(f"{PAINT} > 0")
            painted = page.evaluate(PAINT) / 1000
            page.wait_for_function(ROWS, timeout=120_000)
            seconds = time.perf_counter() - start
            print(f"{visit} visit: first paint {painted:.2f} s, rows {seconds:.2f} s, {sum(sent) / 1e6:.1f} MB sent")
            page.close()
    app.close()


if __name__ == "__main__":
    main()
