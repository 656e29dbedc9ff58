"""Run the pages of metric Spaces with the packages in their requirements.txt."""

import os
import runpy
import socket
import subprocess
import sys
import time
import urllib.request

import pandas
import pytest

from cardiobench.hub import publish_metrics
from cardiobench.metrics.load import list_metrics
from tests.contracts.metric_cases import CASES
from tests.ports import free_port
from tests.report.browser import chromium, watched

gradio = pytest.importorskip("gradio", reason="gradio is not installed: make test-leaderboard")
gradio_client = pytest.importorskip("gradio_client")
pytestmark = pytest.mark.slow


def write_space(name, folder):
    """Write the files of a pushed metric into the folder of its Space."""
    folder.mkdir()
    for file, content in publish_metrics.publication(name, "cardiobench").plan_changes(None).items():
        (folder / file).write_bytes(content)
    return folder / "app.py"


def wait_for(port, process):
    for _ in range(600):
        assert process.poll() is None, "the app exited"
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the app does not listen after two minutes")


@pytest.mark.parametrize("name", list_metrics())
def test_every_page_is_built(name, tmp_path):
    page = runpy.run_path(str(write_space(name, tmp_path / "app")))
    assert isinstance(page["page"], gradio.Interface)
    assert set(page["features"]) <= set(CASES[name])
    rows = pandas.DataFrame(page["rows"], columns=list(page["features"]))
    assert len(rows) > 0 and page["compute"](rows, page["options"]), "the example on the page is scored"
    assert page["page"].article.lstrip().startswith("# Metric card"), "the card without its settings"


def test_page_opens_and_scores(tmp_path):
    app, port = write_space("mae", tmp_path / "app"), free_port()
    env = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([sys.executable, app.name], cwd=app.parent, env=env, stdout=log, stderr=log)
    try:
        wait_for(port, process)
        url = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200 and "mae" in answer.read().decode()
        with chromium() as browser:
            page, seen = watched(browser, url, viewport={"width": 390, "height": 844})
            page.get_by_role("button", name="Submit").wait_for(timeout=60_000)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert not [line for line in seen.console if line.startswith("error")]
            page.screenshot(path=tmp_path / "space.png")
        client = gradio_client.Client(url, verbose=False)
        rows = {"headers": ["predictions", "references"], "data": [["1", "3.5"], ["2", "2"]]}
        assert client.predict(rows, "{}", api_name="/compute") == {"mae": 1.25}
        with pytest.raises(gradio_client.exceptions.AppError, match="empty cell"):
            client.predict({**rows, "data": [["1", ""]]}, "", api_name="/compute")
    finally:
        process.terminate()
        process.wait(30)
