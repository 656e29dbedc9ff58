"""The page: one HTML file that asks for nothing else, and its pictures as files beside it."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote, unquote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cardiobench.core.errors import MissingExtra, UnwritableOutput
from cardiobench.report.page import naming as words
from cardiobench.report.page.content import ReportFigures, content, grouped
from cardiobench.report.plots import BESIDE
from cardiobench.report.plots.draw import Job, draw_all
from cardiobench.report.plots.style import SavedFigure, shorten
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Collection
from cardiobench.results.versions import data_version_key, describe_version

PAGE, PICTURES = "report.html", "pictures"
LARGEST = 4_900_000  # bytes of the page; pictures that would make it larger are files that it links to


def write_html(
    collection: Collection,
    out: Path,
    *,
    drawings: ReportFigures | None = None,
    examples: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> Path:
    """Write the page of a collection; returns its path.

    Args:
        collection: what it is about.
        out: folder.
        drawings: pictures as `drawn` made them; drawn anew when None.
        examples: task -> (title, link) of the pages with the worst items.

    Raises:
        UnwritableOutput: the folder cannot be written to.
    """
    drawings = drawings or drawn(collection, out)
    parts = content(collection, drawings, examples or {})
    room = Room()
    page = room.fill(environment(out, room).get_template("page.html").render(**parts))
    path = out / PAGE
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnwritableOutput(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def drawn(collection: Collection, out: Path, *, png: bool = False, processes: int | None = None) -> ReportFigures:
    """Every picture of a collection, saved below `out/pictures`; without matplotlib a note that says how to get them."""
    by_task, by_model = grouped(collection.entries)
    folder = out / PICTURES
    jobs = [
        Job(name, words.anchor(kind, name), folder, kind, tuple(own), png=png)
        for kind, groups in (("task", by_task), ("model", by_model))
        for name, own in groups.items()
    ]
    records = [
        Job(path.name, words.anchor(record.protocol, f"{path}"), folder, "record", record=record, png=png)
        for path, record in collection.analyses
    ]
    beside = [
        Job(name, words.anchor(f"{own[0].protocol}-beside", name), folder, "beside", beside=own, png=png)
        for name, own in side_by_side([record for _, record in collection.analyses]).items()
    ]
    try:
        made = draw_all([*jobs, *records, *beside], processes)
    except MissingExtra as error:
        return ReportFigures(note=str(error))
    except OSError as error:
        raise UnwritableOutput(f"{folder} cannot be written: {error.strerror or error}") from error
    studies = made[len(jobs) : len(jobs) + len(records)]
    return ReportFigures(
        {(job.kind, job.about): done.drawn for job, done in zip(jobs, made, strict=False)},
        dict(enumerate(done.drawn for done in studies)),
        [(job.beside, done.drawn) for job, done in zip(beside, made[len(made) - len(beside) :], strict=True)],
        [problem for done in made for problem in done.problems],
    )


def side_by_side(records: Sequence[AnalysisResult]) -> dict[str, tuple[AnalysisResult, ...]]:
    """Records of one study, subject and edition of the data, of several models, by the words for them."""
    found: dict[str, list[AnalysisResult]] = {}
    for record in records:
        if record.protocol in BESIDE and len(record.models) == 1:
            data = ", ".join(
                f"{facts['name']} {describe_version(data_version_key(facts))}" for facts in record.datasets
            )
            found.setdefault(f"{record.protocol} of {record.subject}, {data}", []).append(record)
    return {name: tuple(own) for name, own in found.items() if len(own) > 1}


def environment(out: Path, room: "Room | None" = None) -> Environment:
    """Templates that escape everything; their pictures are put in by `room`, their links are those of a page in `out`."""
    made = Environment(
        loader=PackageLoader("cardiobench.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["skill_text"] = words.skill_text
    made.filters["shorten"] = lambda text: shorten(text, words.LONG)
    made.globals.update(
        anchor=words.anchor, tooltip=words.tooltip, figure=(room or Room()).figure, link=partial(link, out), asset=asset
    )
    return made


def asset(name: str) -> Markup:
    """A file of ours that stands in the page as it is."""
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


class Room:
    """Puts pictures into a page until it is as large as it may be; each is SVG of ours, whose text matplotlib has escaped."""

    def __init__(self):
        self.pictures: dict[str, SavedFigure] = {}

    def figure(self, picture: SavedFigure) -> Markup:
        """A word that no name can hold, in the picture's place until the rest of the page is known."""
        word = f"picture-{token_hex(12)}"
        self.pictures[word] = picture
        return Markup(word)

    def fill(self, page: str) -> str:
        """The page with its pictures, the first ones first."""
        shown: dict[str, str] = {}
        left = LARGEST - len(page.encode("utf-8", "replace"))
        for word, picture in self.pictures.items():
            size = len(picture.svg.encode())
            fits = size <= left
            left -= size if fits else 0
            shown[word] = picture.svg if fits else ELSEWHERE
        return re.sub(r"picture-[0-9a-f]{24}", lambda found: shown.get(found[0], found[0]), page)


ELSEWHERE = '<p class="quiet">To keep this page small the picture is a file beside it.</p>'


def link(out: Path, path: Path) -> str:
    """Address of a file beside the page."""
    return quote(path.relative_to(out).as_posix())


def link_of(href: str) -> str:
    """Path of a file from the address that the page has for it."""
    return unquote(href)
