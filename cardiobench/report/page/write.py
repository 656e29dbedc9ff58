"""The whole report from folders of results: the page, the same in Markdown, and the figures."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from cardiobench.core.console import Console
from cardiobench.core.errors import UnwritableOutput
from cardiobench.report.markdown import write_markdown
from cardiobench.report.page.render import write_html
from cardiobench.report.plots.draw import draw_report
from cardiobench.results.collect import Collection, collect


def write_report(
    folders: Sequence[Path],
    out: Path,
    *,
    png: bool = False,
    examples: Sequence[str] | None = None,
    data_dir: Path | None = None,
    leads: Sequence[str] = (),
    suite: str = "",
    console: Console | None = None,
) -> tuple[Collection, list[Path]]:
    """Write the page, its Markdown twin and the figures.

    Args:
        folders: Folders of results.
        out: Folder of the report.
        png: Figures as PNG too.
        examples: Tasks whose worst test items are shown with their recordings; all that have data here when empty, none
            when None. They stay on this machine.
        data_dir: Raw data of those recordings.
        leads: Leads of their ECGs; II, V1 and V5 when empty, and every one for `all`.
        suite: Rank the results of that suite only.
        console: Console for the progress; None for silence.

    Returns:
        What the folders hold, and the files: page, Markdown page, and the rest.

    Raises:
        BadConfig: A lead is unknown.
        MissingData: No results there.
        UnwritableOutput: The report cannot be written.
    """
    collection = collect(folders, suite)
    if examples is not None:
        from cardiobench.report.page.examples import SHOWN_LEADS, check_leads, write_examples

        leads = check_leads(leads or SHOWN_LEADS)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableOutput(f"{out} cannot be made: {error.strerror or error}. Choose another with --out.") from None
    figures = draw_report(collection, out, png=png, console=console)
    pages: dict[str, list[tuple[str, str]]] = {}
    if examples is not None:
        pages, problems = write_examples(collection, out, examples, data_dir, leads)
        figures.problems += problems
    page = write_html(collection, out, figures=figures, examples=pages)
    markdown = write_markdown(collection, out, figures=figures)
    example_pages = [out / unquote(address) for links in pages.values() for _, address in links]
    return collection, [page, *markdown, *example_pages, *figures.files]
