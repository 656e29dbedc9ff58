"""Check the built manual in a browser at desktop and phone width: no errors, no requests, sections and search."""

import re

import pytest

from tests.report.browser import chromium, violations, watched

pytestmark = pytest.mark.slow
PAGES = (
    "index",
    "first_hour",
    "my_model",
    "contributing",
    "share",
    "api",
    "commands",
    "metrics/index",
    "metrics/mae",
    "datasets/ptb_xl",
    "protocols/probe",
)


@pytest.fixture(scope="module")
def manual(root):
    """Return the folder of the built manual."""
    folder = root / "docs" / "_build"
    if not (folder / "index.html").is_file():
        pytest.skip("the manual is not built: make docs")
    return folder


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_open_and_fit(manual, width):
    with chromium() as browser:
        for name in PAGES:
            file = next(
                path for path in (manual / f"{name}.html", manual / "generated" / f"{name}.html") if path.is_file()
            )
            page, seen = watched(browser, file.as_uri(), viewport={"width": width, "height": 900})
            assert page.locator("h1").count() == 1, name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert not [line for line in seen.console if line.startswith("error")], name
            assert not [url for url in seen.requests if url.startswith("http")], "no request to another host"
            page.close()


def test_search_and_links_of_first_page_work(manual):
    with chromium() as browser:
        page, _ = watched(browser, (manual / "index.html").as_uri())
        links = page.eval_on_selector_all("article a[href]", "all => all.map((one) => one.href)")
        local = {link.partition("#")[0].removeprefix("file://") for link in links if link.startswith("file:")}
        assert len(local) > 10 and all((manual / link).is_file() for link in local)
        assert [line for line in violations(page) if "color-contrast" not in line] == []


def test_every_page_lists_all_sections(manual):
    pages = [page for page in manual.rglob("*.html") if "<h1>" in page.read_text("utf-8")]
    assert len(pages) > 60
    for page in pages:
        sections = page.read_text("utf-8").partition('aria-label="Sections"')[2].partition("</nav>")[0]
        captions = re.findall(r'class="caption-text">([^<]+)', sections)
        assert captions == ["Start", "How-to", "Reference", "Explanation", "For contributors"], page.name


def test_code_can_be_copied_and_words_of_users_are_found(manual):
    with chromium() as browser:
        page, _ = watched(browser, (manual / "index.html").as_uri())
        page.locator("button.copybtn").first.wait_for(state="attached")
        assert page.locator("button.copybtn").count() == page.locator("article div.highlight pre").count() == 3
        for words in ("decimal+comma", "Excel"):
            page.goto(f"{(manual / 'search.html').as_uri()}?q={words}")
            page.locator("p.search-summary").wait_for()
            page.wait_for_function("document.querySelectorAll('#search-results li > a').length > 1")
            assert "Your own recordings" in page.locator("#search-results li > a").all_inner_texts(), words
