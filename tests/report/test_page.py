"""Test the page in a real browser: it opens from disk, sorts, filters and sends no requests."""

import pytest

from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from tests.report import example_results
from tests.report.browser import chromium, violations, watched

pytestmark = pytest.mark.slow
HOSTILE = (
    "<script>window.hacked=1</script>",
    "[x](javascript:alert(1))",
    'org/"><img src=x onerror=window.hacked=1>',
    "org/\u202emodel\u202c مرحبا",
    "org/" + "long" * 2500,
    "org/$\\alpha$ & {{ 7*7 }} %s",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Write a page of three models, hostile names, an analysis and a damaged file."""
    import pandas as pd

    from cardiobench.report.page.write import write_report

    folder, out = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("report")
    example_results.folder_of_results(folder)
    for name in HOSTILE:
        example_results.write_result(folder, name, "phantom_ecg/cd", 0.4, seed=9, warnings=(f"note of {name}",))
    curve = {
        "patients": 4,
        "score": 0.6,
        "low": 0.5,
        "high": 0.7,
        "floor": 0.33,
        "metric": "f1_macro",
        "unit": "",
        "better": "higher",
    }
    rows = [
        {**curve, "of_all": False, "counted": "patients"},
        {**curve, "patients": 60, "of_all": True, "counted": "patients"},
    ]
    tables = {"curve": pd.DataFrame(rows), "draws": pd.DataFrame([{"patients": 4, "score": 0.6}])}
    study = AnalysisResult(
        "few_shot",
        "phantom_ecg/cd",
        ("phantom_ecg/cd",),
        {"score": point_estimate(0.6, n=60)},
        tables,
        models=({"name": "org/one"},),
    )
    study.save(folder / "org__one/r1/few_shot/phantom_ecg__cd.json")
    AnalysisResult(
        "few_shot",
        "phantom_ecg/af",
        ("phantom_ecg/af",),
        {"x": point_estimate(0.1)},
        {"curve": pd.DataFrame([{"a": 1}])},
        models=({"name": HOSTILE[0]},),
    ).save(folder / "org__two/r1/few_shot/phantom_echo__ef.json")
    example_results.write_result(folder, "org/broken").write_text("{")
    _, files = write_report([folder], out, png=True, examples=["phantom_echo/ef", "phantom_ecg/cd"])
    return files


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser, report):
    page, seen = watched(browser, report[0].as_uri(), viewport={"width": 1280, "height": 900})
    yield page
    assert seen.console == [], "the console is empty"
    assert {url.partition(":")[0] for url in seen.requests} <= {"file", "data"}
    assert [url for url in seen.requests if url.startswith("file")] == [report[0].as_uri()], "the page is a single file"
    assert page.evaluate("window.hacked") is None
    page.close()


def models_in(page, table):
    return table.locator("tbody tr:visible th .name").all_inner_texts()


def test_page_opens_and_is_complete(page, tmp_path):
    assert page.title() == "CardioBench results"
    for part in ("minute", "overview", "tasks", "models", "problems"):
        assert page.locator(f"#{part} h2").count() == 1
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture = tmp_path / f"{scheme}.png"
        page.screenshot(path=picture)
        assert picture.stat().st_size > 20_000
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"


def test_tables_sort_by_keyboard_with_missing_scores_last(page):
    table = page.locator(".heat").filter(has_text="phantom_ecg/cd")
    head = table.locator("th.task").filter(has_text="phantom_ecg/cd")
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    best_first = models_in(page, table)
    assert best_first[0] == "org/one" and best_first[-1] == "org/flat"
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert models_in(page, table) != best_first and models_in(page, table)[0] == "org/flat"


def test_tables_filter_by_keyboard_and_show_counts(page):
    table = page.locator(".heat").filter(has_text="phantom_ecg/cd")
    page.locator("#f-model").focus()
    page.keyboard.type("ORG/TW")
    assert models_in(page, table) == ["org/two"]
    assert page.locator("#f-count").inner_text().startswith("3 of ")
    page.locator("#f-model").fill("")
    page.locator("#f-above").focus()
    page.keyboard.press("Space")
    assert "org/flat" not in models_in(page, table) and "org/one" in models_in(page, table)
    page.keyboard.press("Space")
    page.locator("#f-task").fill("/nothing")
    assert table.locator("th.task:visible").count() == 0


def test_cell_shows_interval_on_hover_and_focus(page):
    table = page.locator(".heat").filter(has_text="phantom_echo/ef")
    cell = table.locator("tr", has_text="org/one").locator("td.cell").first
    assert "[" in cell.inner_text() and "%" in cell.inner_text()
    cell.hover()
    told = page.locator("#detail").inner_text()
    assert (
        "95 % CI" in told
        and "org/one, probe, on phantom_echo/ef. mae" in told
        and "Floor 7.27." in told
        and "n = 60" in told
    )
    table.locator("td.cell").first.focus()
    page.keyboard.press("ArrowDown")
    assert "org/one" in page.locator("#detail").inner_text() and "95 % CI" in page.locator("#detail").inner_text()


def test_enter_key_opens_the_task(page):
    cell = page.locator(".heat").filter(has_text="phantom_echo/ef").locator("td.cell").first
    cell.focus()
    page.keyboard.press("Enter")
    part = page.locator("details.part[open]")
    assert part.locator("summary h3").first.inner_text() == "phantom_echo/ef"
    assert part.locator("figure svg").count() == 4
    captions = part.locator("figcaption").all_inner_texts()
    assert all("n = " in caption and "SVG" in caption and "PNG" in caption and "CSV" in caption for caption in captions)
    assert "Bland-Altman" in captions[1]


def test_colour_is_never_the_only_sign(page):
    """Check that every cell of the heat table has a symbol, and its number a direction."""
    for text in page.locator(".heat td.cell").all_inner_texts():
        assert any(sign in text for sign in "▲◇≈▼?·") and ("%" in text)
    collapsed = page.locator(".heat tr", has_text="org/flat").first.locator("td.cell").first.inner_text()
    assert "∅" in collapsed
    assert "S" in page.locator(".heat tr", has_text="org/two").first.locator("td.cell .signs").first.inner_text()


def test_axe_finds_nothing_serious(page):
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    page.emulate_media(color_scheme="light")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert violations(page) == []


def test_hostile_names_and_notes_are_text(page, report):
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    shown = page.locator("body").inner_text()
    for name in HOSTILE:
        assert " ".join(name.split())[:40] in shown, name
    assert page.locator("main img[src=x]").count() == 0 and page.locator("script").count() == 1
    assert page.locator("a[href^=javascript]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "long names do not widen the page"
    )
    twin = report[1].read_text()
    assert "<script>" not in twin and "](javascript:" not in twin.replace("\\](", "") and "<img" not in twin


def test_page_fits_a_phone(browser, report):
    page, _ = watched(browser, report[0].as_uri(), viewport={"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_damaged_analyses_are_named(page):
    text = page.content()
    assert "few shot" in text and "its figure cannot be drawn" in text
    assert (
        "org__broken" in page.locator("#problems").inner_text()
        or "unreadable" in page.locator("#problems").inner_text()
    )


def test_print_opens_all_details(page):
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".filters").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    assert len(page.pdf()) > 50_000


def test_worst_items_have_their_recordings(browser, report):
    echo = next(file for file in report if file.parent.name == "examples" and "echo-ef-org-two" in file.name)
    page, seen = watched(browser, echo.as_uri())
    # The synthetic ids are unknown to the phantom, so the page says so for each item, the worst first.
    assert page.locator("section").count() == 12
    errors = [float(text.split()[0]) for text in page.locator("section b").all_inner_texts()]
    assert errors == sorted(errors, reverse=True)
    assert "its recording is not on this machine" in page.locator("section").first.inner_text()
    assert seen.console == [] and (echo.parent / ".gitignore").read_text() == "*\n"
    page.close()


def made_up(models, tasks):
    """Return results of this many models and tasks as entries."""
    from dataclasses import replace
    from pathlib import Path

    from cardiobench.data import catalog
    from cardiobench.results.collect import ResultEntry, assemble

    like = [example_results.scored_example(task, 0.9, 1)[1] for task in ("phantom_echo/ef", "phantom_ecg/cd")]
    names = [*catalog.list_tasks(), *(f"made_up_{number}/ef" for number in range(tasks))][:tasks]
    return assemble(
        [
            ResultEntry(
                Path(f"{model}/{task}.json"),
                replace(like[number % 2], task=task, model={"name": f"organisation/model-{model}"}),
            )
            for model in range(models)
            for number, task in enumerate(names)
        ]
    )


def test_twenty_models_on_twenty_tasks_fit_a_megabyte(browser, tmp_path):
    """Check that the first figures are in the page, and the others are read from files."""
    from cardiobench.report.page.render import write_html
    from cardiobench.report.plots.draw import ReportFigures
    from cardiobench.report.plots.figure import SavedFigure

    collection, drawing = (
        made_up(20, 20),
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="300">{}</svg>',
    )
    file = tmp_path / "a figure.svg"
    file.write_text(drawing.format('<rect width="9" height="9"/>'))
    saved = SavedFigure("scores", "Scores.", drawing.format("<!--" + 40_000 * "x" + "-->"), (file,))
    figures = ReportFigures({("task", task): (saved,) for task in {one.result.task for one in collection.entries}})
    page = write_html(collection, tmp_path, figures=figures)
    assert page.stat().st_size < 1_000_000
    tab, seen = watched(browser, page.as_uri())
    tab.evaluate("document.querySelectorAll('#tasks details').forEach((one) => { one.open = true; })")
    assert tab.locator(".drawing svg").count() > 0
    image = tab.locator(".drawing img").last
    image.scroll_into_view_if_needed()
    assert image.evaluate("one => one.decode().then(() => one.naturalWidth)") == 300
    assert seen.console == [] and {url.partition(":")[0] for url in seen.requests} <= {"file", "data"}
    tab.close()


def test_720_results_render_fast_in_a_small_page(browser, tmp_path):
    """Test 12 models on 60 tasks without figures; benchmarks/report.py includes them."""
    import time

    from cardiobench.report.page.render import write_html
    from cardiobench.report.plots.draw import ReportFigures

    collection = made_up(12, 60)
    start = time.process_time()
    page = write_html(collection, tmp_path, figures=ReportFigures())
    assert time.process_time() - start < 20
    assert page.stat().st_size < 1_700_000
    first, taken = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime", []
    while not taken or (min(taken) >= 2000 and len(taken) < 8):  # A busy machine makes a run longer, never shorter.
        tab, seen = watched(browser, page.as_uri())
        tab.wait_for_function(f"{first} > 0")
        taken.append(tab.evaluate(first))
        assert tab.locator(".heat td.cell").count() == 720 and seen.console == []
        tab.close()
    assert min(taken) < 2000, taken


def test_every_cell_has_an_address_that_leads_back_to_it(page, browser, report):
    cells = page.locator(".heat td.cell")
    addresses = cells.evaluate_all("all => all.map((one) => one.id)")
    assert len(set(addresses)) == cells.count() and all(one.startswith("cell-") for one in addresses)
    cell = page.locator(".heat tr", has_text="org/two").first.locator("td.cell").first
    cell.hover()
    link = cell.locator(".permalink")
    assert link.is_visible()
    link.click()
    assert page.locator("details.part[open]").count() == 0, "the link does not open the task"
    there, _ = watched(browser, page.url)
    assert "#cell-org-two" in there.url and there.evaluate("document.activeElement.id") == there.url.partition("#")[2]
    assert "org/two" in there.locator("#detail").inner_text()
    there.keyboard.press("Tab")
    assert there.evaluate("document.activeElement.className") == "permalink"
    there.close()
    for kind in ("task", "model"):
        part = page.locator(f"details[id^={kind}-]").first
        part.locator("summary").first.hover()
        part.locator("xpath=..").locator("> .permalink").click()
        page.locator(f"#{part.get_attribute('id')}[open]:target").wait_for()


def test_legend_follows_the_tables(page):
    first, legend = page.locator(".heat").last, page.locator("#overview .legend")
    assert first.bounding_box()["y"] < legend.bounding_box()["y"]
    assert legend.locator("dt").all_inner_texts() == [
        "▲ above the floor",
        "≈ no information shown",
        "∅ collapsed",
        "S seen in pretraining",
        "~ generated data",
    ]
