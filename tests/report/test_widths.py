"""Test the page at phone, tablet and laptop width, light and dark: no overflow, no serious finding of axe."""

import pytest

from cardiobench.report.page.write import write_report
from tests.report import example_results
from tests.report.browser import chromium, violations, watched

# One worker runs all these tests, so that each page is opened once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("widths")]
TASKS = ("phantom_ecg/cd", "phantom_ecg/af", "phantom_echo/ef", "phantom_echo/view")
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const outside = (one) => {
    const box = one.getBoundingClientRect();
    return box.width > 0 && (box.right > width + 1 || box.left < -1) && !one.classList.contains("skip");
  };
  const named = (one) => `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 40)}`;
  const boxes = Array.from(document.querySelectorAll("body *")).filter((one) => !one.closest("svg > *"));
  const frames = Array.from(document.querySelectorAll(".scroll, .drawing, pre"));
  return boxes.filter(outside).map(named).concat(
    frames.filter((one) => one.scrollWidth > one.clientWidth + 1).map(named));
}"""
"""Script for elements beyond the viewport, and frames with wider content."""
UNREADABLE_TEXTS = """() => Array.from(document.querySelectorAll(".drawing svg text")).filter((one) => {
  const [to, box, all] = [one.getScreenCTM(), one.getBoundingClientRect(), one.closest("svg").getBoundingClientRect()];
  const small = parseFloat(getComputedStyle(one).fontSize) * Math.hypot(to.a, to.b) < 9;
  return small || box.left < all.left || box.right > all.right || box.top < all.top - 1 || box.bottom > all.bottom + 1;
}).map((one) => one.textContent)"""
"""Script for texts of figures that are smaller than 9 pixels of the screen or cut by the frame."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Write a page of five models on four tasks with groups, analyses of two models, and an invalid file."""
    folder, out = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("report")
    for number, quality in enumerate((0.95, 0.8, 0.6, 0.3, None)):
        for task in TASKS:
            name = f"organisation/model-with-a-long-name-{number}"
            example_results.write_result(folder, name, task, quality, seed=number, seen=number == 1)
    example_results.write_result(folder, "org/broken").write_text("{")
    for name in ("org/one", "org/two"):
        path = folder / name.replace("/", "__") / "r1" / "frame_similarity" / "phantom_echo.json"
        example_results.similarity_record(name, 0.9).save(path)
    return write_report([folder], out)[1][0].as_uri()


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


SCREENS = [(width, scheme) for width in (390, 768, 1280) for scheme in ("light", "dark")]


@pytest.fixture(params=SCREENS, ids=str, scope="module")
def page(request, browser, address):
    """Open the page with all parts expanded; no test changes it."""
    width, scheme = request.param
    page, seen = watched(browser, address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_timeout(300)  # The page observes the sizes of its tables.
    yield page
    assert seen.console == []
    page.close()


def test_nothing_is_wider_than_the_viewport(page):
    assert page.evaluate(TOO_WIDE) == []


def test_texts_of_figures_are_large_enough_to_read_and_whole(page):
    assert page.locator(".drawing svg text").count() > 100
    assert page.evaluate(UNREADABLE_TEXTS) == []


def test_axe_finds_nothing_serious(page):
    assert violations(page) == []


def test_tables_become_cards_on_a_phone_and_come_back(browser, address):
    page, _ = watched(browser, address, viewport={"width": 390, "height": 844})
    first = page.locator("#minute table")
    assert "cards" in first.get_attribute("class")
    cell = first.locator("tbody tr").first.locator("td").first
    assert cell.get_attribute("data-label") == "best model"
    assert "best model" in cell.evaluate("one => getComputedStyle(one, '::before').content")
    first.locator("button.sort").filter(has_text="score").click()
    assert first.locator("th[aria-sort=descending]").count() == 1, "cards can be sorted"
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("#minute table:not(.cards)").wait_for()
    assert first.evaluate("one => one.offsetWidth <= one.parentElement.clientWidth"), "six columns fit"
    page.close()
