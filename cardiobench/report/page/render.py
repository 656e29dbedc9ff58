"""Render the page as a single HTML file without external resources."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cardiobench.core.io import write_text
from cardiobench.report.page import naming
from cardiobench.report.page.content import page_content
from cardiobench.report.plots.draw import ReportFigures, draw_report
from cardiobench.report.plots.figure import SavedFigure
from cardiobench.report.plots.style import shorten
from cardiobench.results.collect import Collection

PAGE = "report.html"
MAX_BYTES = 990_000  # Size limit of the page in bytes; further figures are linked as files.
PLACE = "<figure-place>"  # Texts from results are escaped and cannot contain it.


def write_html(
    collection: Collection,
    out: Path,
    *,
    figures: ReportFigures | None = None,
    examples: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> Path:
    """Write the page of a collection and return its path.

    Args:
        collection: Results, analyses and problems.
        out: Output folder.
        figures: Figures from `draw_report`; None to draw them.
        examples: Mapping from task to (title, link) of pages with the worst examples.

    Raises:
        UnwritableOutput: Writing to the folder fails.
    """
    parts = page_content(collection, figures or draw_report(collection, out), examples or {})
    template = page_environment(out).get_template("page.html")
    shown: list[SavedFigure] = []
    texts = template.render(**parts, figure=partial(reserve_place, shown)).split(PLACE)
    links = [from_file(out, figure) for figure in shown]
    inline = inline_up_to(MAX_BYTES - len("".join([*texts, *links]).encode("utf-8", "replace")), out)
    page = "".join(chain.from_iterable(zip(texts, [*map(inline, shown), ""], strict=True)))
    return write_text(page, out / PAGE, errors="replace")


def reserve_place(shown: list[SavedFigure], figure: SavedFigure) -> Markup:
    """Append a figure to the shown ones, and return the mark that it replaces once the size of all texts is known."""
    shown.append(figure)
    return Markup(PLACE)


def from_file(out: Path, figure: SavedFigure) -> Markup:
    """Return an image element that loads the figure's file when it becomes visible."""
    return Markup('<img loading="lazy" alt="" src="{}">').format(link(out, figure.files[0]))


def inline_up_to(size: int, out: Path) -> Callable[[SavedFigure], Markup]:
    """Return a function that embeds figures in order until the size limit is reached, and links the rest."""

    def inline(figure: SavedFigure) -> Markup:
        nonlocal size
        length = len(figure.svg.encode())
        if length > size:
            return from_file(out, figure)
        size -= length
        return Markup(figure.svg)  # The SVG is generated here, and matplotlib has escaped its texts.

    return inline


def page_environment(out: Path) -> Environment:
    """Return auto-escaping templates with links relative to `out`."""
    environment = Environment(
        loader=PackageLoader("cardiobench.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["digits"] = "{:.6g}".format  # Columns are sorted by six significant digits.
    environment.filters["skill_text"] = naming.skill_text
    environment.filters["shorten"] = partial(shorten, longest=naming.LONG)
    environment.globals.update(
        anchor=naming.anchor, tooltip=naming.tooltip, link=partial(link, out), asset=asset, script_digest=script_digest
    )
    return environment


def asset(name: str) -> Markup:
    """Return one of our stylesheets or scripts for inline use."""
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


def script_digest(name: str) -> Markup:
    """Return one of our scripts as a source of a content security policy, which then refuses every other script."""
    digest = sha256(asset(name).encode("utf-8")).digest()
    return Markup("'sha256-{}'").format(b64encode(digest).decode("ascii"))


def link(out: Path, path: Path) -> str:
    """Return the relative address of a file."""
    return quote(path.relative_to(out).as_posix())
