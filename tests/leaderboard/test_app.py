"""Test the app in a real browser, with a folder and a dataset on the loopback Hub. `make test-leaderboard` installs gradio."""

from dataclasses import replace

import pytest

from cardiobench.results.score_result import ScoreResult
from tests.hub.conftest import client, hub  # noqa: F401
from tests.leaderboard.large import large
from tests.leaderboard.test_source import REPOSITORY, consistent, send
from tests.report import example_results
from tests.report.browser import chromium, violations, watched

pytest.importorskip("gradio", reason="gradio is not installed: make test-leaderboard")
pytestmark = pytest.mark.slow
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def opened(browser, sources, width=1280, **options):
    """Return the browser page, its log, and the app."""
    from cardiobench.leaderboard.app import launch

    app = launch(sources, block=False, **options)
    page, seen = watched(browser, app.local_url, viewport={"width": width, "height": 900})
    page.get_by_label("Model", exact=True).wait_for(timeout=60_000)
    return page, seen, app


def shown(page, name, *present, absent=()):
    """Wait until the table shows the expected words and no others."""
    words = "([name, yes, no]) => { const text = document.querySelector('#' + name)?.innerText || ''; "
    words += "return yes.every((one) => text.includes(one)) && !no.some((one) => text.includes(one)); }"
    page.wait_for_function(words, arg=[name, list(present), list(absent)], timeout=60_000)


def finish(page, seen, app):
    hosts = {url.split("/")[2] for url in seen.requests if url.startswith("http")}
    assert {host.partition(":")[0] for host in hosts} <= {"127.0.0.1", "localhost"}, "no request to another host"
    assert not [line for line in seen.console if line.startswith("error")]
    assert page.evaluate("window.hacked") is None
    page.close()
    app.close()


def test_board_of_a_folder_can_be_filtered(browser, tmp_path):
    example_results.folder_of_results(tmp_path)
    example_results.write_result(tmp_path, HOSTILE, "phantom_echo/ef", 0.5, seed=7)
    example_results.write_result(tmp_path, "org/broken").write_text("{")
    page, seen, app = opened(browser, [str(tmp_path)])
    page.get_by_role("combobox", name="Table").click()
    page.get_by_role("option", name="Generated recordings, Echo: measurements").click()
    shown(page, "overview", "org/one", "org/flat", "<script>")
    assert page.locator("#overview a").count() == 0, "cells are plain text"
    page.get_by_label("Model", exact=True).fill("org/tw")
    shown(page, "overview", "org/two", absent=["org/one", "org/flat"])
    page.get_by_label("Model", exact=True).fill("")
    page.get_by_role("button", name="More filters").click()
    page.get_by_label("above the floor only").click()
    shown(page, "overview", "org/one", absent=["org/flat"])
    page.get_by_role("tab", name="Tasks").click()
    shown(page, "scores", "org/one")
    example_results.write_result(tmp_path, "org/late", "phantom_ecg/cd", 0.7, seed=9)
    page.get_by_label("above the floor only").click()
    page.get_by_role("button", name="Reload").click()
    shown(page, "scores", "org/late")
    page.get_by_role("tab", name="Not ranked").click()
    shown(page, "problems", "unreadable")
    finish(page, seen, app)


def test_phone_shows_one_suite_at_a_time(browser, tmp_path):
    """Check that the page fits the screen, the first score is visible, and changing the suite changes every table."""
    for suite, model in (("echo_v1", "org/old"), ("echo_v2", "org/new")):
        path = example_results.write_result(tmp_path, model, "phantom_echo/ef", 0.5)
        one = ScoreResult.load(path)
        replace(one, stamp={**one.stamp, "suite": suite}).save(path)
    page, seen, app = opened(browser, [str(tmp_path)], width=390, suites=["echo_v1", "echo_v2"])
    shown(page, "overview", "org/old", absent=["org/new"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    score = page.locator("#overview td").nth(2).bounding_box()
    assert score["x"] + score["width"] <= 390
    page.get_by_role("combobox", name="Suite").click()
    page.get_by_role("option", name="echo_v2").click()
    shown(page, "overview", "org/new", absent=["org/old"])
    page.get_by_role("tab", name="Tasks").click()
    shown(page, "scores", "org/new", absent=["org/old"])
    finish(page, seen, app)


def test_board_of_a_hub_dataset_can_be_filtered(browser, hub, client):  # noqa: F811
    send(consistent(), consistent(protocol="knn", value=0.6))
    page, seen, app = opened(browser, [REPOSITORY])
    shown(page, "overview", "knn", "probe")
    page.get_by_role("combobox", name="Protocol").click()
    page.get_by_role("option", name="knn").click()
    shown(page, "overview", "knn", absent=["probe"])
    finish(page, seen, app)


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (768, "light"), (1280, "light")])
def test_link_opens_a_task_with_its_charts(browser, tmp_path, width, theme):
    from cardiobench.leaderboard.app import launch

    example_results.folder_of_results(tmp_path)
    app = launch([str(tmp_path)], block=False)
    address = f"{app.local_url}?tab=tasks&task=phantom_echo/ef&__theme={theme}"
    page, seen = watched(browser, address, viewport={"width": width, "height": 900})
    shown(page, "chart", "org/one", "org/flat", "floor")
    shown(page, "scores", "org/one")
    shown(page, "flops", "FLOPs")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    score = page.locator("#scores td").nth(2).bounding_box()
    assert score["x"] + score["width"] <= width, "place, model and score are visible"
    if width == 1280:
        cells = page.locator("#scores .virtual-row").first.locator(".body-cell")
        assert cells.nth(1).bounding_box()["width"] == 240
        last = cells.last.bounding_box()
        assert last["x"] + last["width"] <= width, "all columns are visible"
    assert violations(page) == []
    finish(page, seen, app)


def test_every_filter_and_download_works(browser, tmp_path):
    import pandas as pd

    write = example_results.write_result
    write(tmp_path, "org/ecg", "phantom_ecg/cd", 0.9)
    write(tmp_path, "org/echo", "phantom_echo/ef", 0.9)
    write(tmp_path, "org/seen", "phantom_echo/ef", 0.8, seen=True)
    write(tmp_path, "org/flat", "phantom_echo/ef", None, protocol="knn")
    write(tmp_path, "cardiobench/constant", "phantom_echo/ef", 0.7)
    page, seen, app = opened(browser, [str(tmp_path)])

    def choose(label, option):
        page.get_by_role("combobox", name=label, exact=True).click()
        page.get_by_role("option", name=option, exact=True).click()

    choose("Table", "Generated recordings, Echo: measurements")
    everybody = ("org/echo", "org/seen", "org/flat", "cardiobench/constant")
    shown(page, "overview", *everybody)
    page.get_by_role("button", name="More filters").click()
    filters = (
        ("Protocol", "knn", {"org/flat"}),
        ("Modality", "ecg", set()),
        ("Licence of the weights", "Apache-2.0", {"cardiobench/constant"}),
        ("Parameters", "above 100 M", set()),
    )
    for label, option, left in filters:
        choose(label, option)
        shown(page, "overview", *left, absent=set(everybody) - left)
        choose(label, "all")
        shown(page, "overview", *everybody)
    for label, absent in (("without data seen in pretraining", "org/seen"), ("above the floor only", "org/flat")):
        page.get_by_label(label).click()
        shown(page, "overview", *(set(everybody) - {absent}), absent=[absent])
        page.get_by_label(label).click()
        shown(page, "overview", *everybody)
    for kind, read in (("CSV", pd.read_csv), ("Parquet", pd.read_parquet)):
        with page.expect_download() as download:
            page.get_by_text(f"Download {kind}").click()
        assert set(read(download.value.path())["model"]) == {*everybody, "org/ecg"}
    finish(page, seen, app)


def test_model_page_fits_a_phone(browser, tmp_path):
    from cardiobench.leaderboard.app import launch

    example_results.folder_of_results(tmp_path)
    app = launch([str(tmp_path)], block=False)
    address = f"{app.local_url}?tab=models&model=org/one"
    page, seen = watched(browser, address, viewport={"width": 390, "height": 900})
    shown(page, "model-tasks", "phantom_echo/ef")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    score = page.locator("#model-tasks td").nth(2).bounding_box()
    assert score["x"] + score["width"] <= 390, "place, task and score are visible"
    finish(page, seen, app)


def test_first_screen_has_ten_models_and_the_heat_map_is_a_switch(browser):
    """Check a laptop's screen with long names and 15 tasks."""
    from cardiobench.leaderboard import serving
    from cardiobench.leaderboard.app import build

    view = large(12, 15)
    entries = [
        replace(one, result=replace(one.result, model={**one.result.model, "name": f"{HOSTILE}/{name} (run by lab)"}))
        for one in view.entries
        for name in [one.result.model["name"].replace("model", "a-model-with-a-name-as-long-as-many-are-large-patch16")]
    ]
    app = build({"": replace(view, entries=tuple(entries))})
    app.launch(prevent_thread_lock=True, quiet=True, share=False, **serving.options())
    page, seen = watched(browser, app.local_url, viewport={"width": 1280, "height": 900})
    shown(page, "overview", "mean f1_macro", "parameters", "FLOPs", "date", "tasks", "<script>")
    assert "12 models · 15 tasks · 12 submissions" in page.locator("#counts").inner_text()
    rows = [row.bounding_box() for row in page.locator("#overview .virtual-row").all()]
    frame = page.locator("#overview").bounding_box()
    bottom = min(900, frame["y"] + frame["height"])
    assert sum(row["y"] + row["height"] <= bottom for row in rows) >= 10
    filters = [page.get_by_label(name, exact=True).first.bounding_box() for name in ("Board", "Table", "Model")]
    assert max(one["y"] for one in filters) - min(one["y"] for one in filters) < 40, "one line of filters"
    page.get_by_role("checkbox", name="Heat map").click()
    shown(page, "heat", "Share of the way", "<script>")
    assert page.locator("#heat tbody tr").count() == 12 and "heat=true" in page.url
    assert page.locator("#heat tbody tr").last.bounding_box()["y"] < 900
    assert page.locator("#heat tbody th").first.evaluate("e => e.scrollWidth <= e.clientWidth"), "names are whole"
    assert violations(page) == []
    page.get_by_role("checkbox", name="Heat map").click()
    shown(page, "overview", "mean f1_macro")
    finish(page, seen, app)
