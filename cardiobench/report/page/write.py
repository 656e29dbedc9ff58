"""`cardiobench report`: the page, its Markdown twin and the pictures, from folders of results."""

from collections.abc import Sequence
from pathlib import Path

from cardiobench.core.errors import UnwritableOutput
from cardiobench.report.markdown import write_markdown
from cardiobench.report.page.render import drawn, link_of, write_html
from cardiobench.results.collect import Collection, collect


def write_report(
    folders: Sequence[Path],
    out: Path,
    *,
    png: bool = False,
    examples: Sequence[str] | None = None,
    data_dir: Path | None = None,
) -> tuple[Collection, list[Path]]:
    """Write everything that a reader gets; returns what was found and the files, the page first.

    Args:
        folders: of results.
        out: folder of the report.
        png: pictures as PNG too.
        examples: tasks whose worst test items are shown with their recordings; all that have data here when empty, none
            when None. They stay on this machine.
        data_dir: raw data of those recordings.

    Raises:
        MissingData: no results there.
        UnwritableOutput: the report cannot be written.
    """
    collection = collect(folders)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableOutput(f"{out} cannot be made: {error.strerror or error}. Choose another with --out.") from None
    drawings = drawn(collection, out, png=png)
    pages: dict[str, list[tuple[str, str]]] = {}
    if examples is not None:
        from cardiobench.report.page.examples import write_examples

        pages, more = write_examples(collection, out, examples, data_dir)
        drawings.problems += more
    page = write_html(collection, out, drawings=drawings, examples=pages)
    pictures = {
        name: [picture.files[1 if png else 0] for picture in made]
        for (kind, name), made in drawings.of.items()
        if kind == "task"
    }
    problems = [*collection.problems, *drawings.problems]
    twin = write_markdown(collection.files, out, pictures=pictures, problems=problems)
    links = [out / link_of(link) for made in pages.values() for _, link in made]
    files = [path for made in (*drawings.of.values(), *drawings.records.values()) for d in made for path in d.files]
    return collection, [page, *twin, *links, *files]
