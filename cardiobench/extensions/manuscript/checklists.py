"""Fill reporting checklists from results; what results do not answer is left to the authors."""

import csv
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from cardiobench.extensions.manuscript.facts import PLACES
from cardiobench.extensions.manuscript.tex import tex
from cardiobench.results.formatting import markdown_table

AUTHORS = "authors"
METHODS = "methods.tex"
STARD = "stard_ai_2025"
CHECKLISTS = {
    "tripod_ai_2024": "TRIPOD+AI (Collins et al., BMJ 385:e078378, 2024)",
    "claim_2024": "CLAIM 2024 update (Tejani et al., Radiology: Artificial Intelligence 6:e240300, 2024)",
    STARD: "STARD-AI (Sounderajah et al., Nature Medicine, 2025)",
}
"""File -> publication."""
NOTE = (
    "The items are summarised in our own words; the wording of the publication counts. Items that results answer are filled "
    "in with the value and its place; authors check them and answer the others."
)
OWN_NUMBERS = (
    " The items of STARD-AI are numbered here in the order of its sections; check the numbers against the publication."
)


class Item(NamedTuple):
    """Item of a checklist.

    Attributes:
        item: Number, such as 12a.
        section: Section of the manuscript.
        topic: What is reported, in our own words.
        answer: Topic of `facts` that answers it; empty if the authors do.
    """

    item: str
    section: str
    topic: str
    answer: str


def read_checklist(name: str) -> list[Item]:
    """Return the items of a checklist, in order."""
    text = files(__package__).joinpath("checklists", f"{name}.csv").read_text(encoding="utf-8")
    return [Item(**row) for row in csv.DictReader(text.splitlines())]


def rows(items: Sequence[Item], known: Mapping[str, str]) -> list[tuple[str, str, str, str, str]]:
    """Return number, section, topic, answer and place of each item."""
    found = []
    for one in items:
        value = known.get(one.answer, "")
        place = PLACES.get(one.answer, METHODS) if value else ""
        found.append((one.item, one.section, one.topic, value or AUTHORS, place))
    return found


def to_markdown(name: str, known: Mapping[str, str]) -> str:
    """Return a checklist as Markdown."""
    table = markdown_table(("item", "section", "reported", "answer", "place"), rows(read_checklist(name), known))
    return f"# {CHECKLISTS[name]}\n\n{note(name)}\n\n{table}"


def to_latex(name: str, known: Mapping[str, str]) -> str:
    """Return a checklist as a `longtable` of LaTeX."""
    lines = [
        f"\\subsection*{{{tex(CHECKLISTS[name])}}}",
        tex(note(name)),
        "",
        "{\\footnotesize\\begin{longtable}{@{}lp{.26\\linewidth}p{.44\\linewidth}p{.14\\linewidth}@{}}",
        "\\toprule item & reported & answer & place \\\\ \\midrule\\endhead",
    ]
    lines += [
        " & ".join([tex(item), tex(topic), tex(answer), tex(place.replace("`", ""))]) + " \\\\"
        for item, _, topic, answer, place in rows(read_checklist(name), known)
    ]
    return "\n".join([*lines, "\\bottomrule\\end{longtable}}", ""])


def note(name: str) -> str:
    """Return the note above a checklist."""
    return NOTE + (OWN_NUMBERS if name == STARD else "")
