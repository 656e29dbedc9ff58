"""Write the complete report from folders of results: page, Markdown and figures."""

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
    markdown: bool = True,
    examples: Sequence[str] | None = None,
    data_dir: Path | None = None,
    leads: Sequence[str] = (),
    suite: str = "",
    console: Console | None = None,
) -> tuple[Collection, list[Path]]:
    """Write the page, its Markdown version and the figures.

    Args:
        folders: Folders of results.
        out: Output folder.
        png: Whether to save figures as PNG as well.
        markdown: Whether to write the Markdown version, which each run writes itself.
        examples: Tasks whose worst examples are shown with recordings; empty for all with local data, None for none.
            Examples stay on this machine.
        data_dir: Folder with raw data of these recordings.
        leads: ECG leads to draw; empty for II, V1 and V5, `all` for all leads.
        suite: Suite whose results are ranked.
        console: Console for progress; None to disable it.

    Returns:
        Loaded collection, and paths of the page, the Markdown page and other files.

    Raises:
        BadConfig: A lead is unknown.
        MissingData: There are no results.
        UnwritableOutput: Writing the report fails.
    """
    collection = collect(folders, suite)
    if examples is not None:
        from cardiobench.report.page.examples import SHOWN_LEADS, check_leads, write_examples

        leads = check_leads(leads or SHOWN_LEADS)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableOutput(
            f"{out} cannot be created: {error.strerror or error}. Choose another with --out."
        ) from None
    figures = draw_report(collection, out, png=png, console=console)
    pages: dict[str, list[tuple[str, str]]] = {}
    if examples is not None:
        pages, problems = write_examples(collection, out, examples, data_dir, leads)
        figures.problems += problems
    page = write_html(collection, out, figures=figures, examples=pages)
    written = write_markdown(collection, out, figures=figures) if markdown else []
    example_pages = [out / unquote(address) for links in pages.values() for _, address in links]
    return collection, [page, *written, *example_pages, *figures.files]
