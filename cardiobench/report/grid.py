"""Format tables as in papers, in Markdown and LaTeX, with the best value bold and the second underlined."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from cardiobench.results.formatting import markdown_text

NONE = "–"
Block = tuple[tuple[str, tuple["GridCell", ...]], ...]
"""Rows between two rules; each row has a label and one cell per further column."""


@dataclass(frozen=True)
class GridCell:
    """Cell of a table.

    Attributes:
        text: Rounded text; further lines are printed below it in LaTeX.
        value: Value to compare; NaN to exclude the cell.
        place: Rank: 1 for the best, 2 for the second, 0 otherwise.
    """

    text: str = NONE
    value: float = math.nan
    place: int = 0


@dataclass(frozen=True)
class Grid:
    """Table with a title and a note.

    Attributes:
        name: File stem.
        title: One-line title.
        head: Column titles, including the label column; may have several lines, as cells may.
        blocks: Blocks of rows, separated by rules.
        note: Explanatory note.
    """

    name: str
    title: str
    head: tuple[str, ...]
    blocks: tuple[Block, ...]
    note: str = ""

    def frame(self) -> pd.DataFrame:
        """Return the cell texts as a table."""
        return pd.DataFrame(
            [(label, *(cell.text for cell in cells)) for block in self.blocks for label, cells in block],
            columns=["row", *self.head[1:]],
        )

    def markdown(self) -> str:
        """Return Markdown with title and note, with names escaped."""
        head = [markdown_text(cell) for cell in self.head]
        rows = [
            [
                markdown_text(label),
                *(_marked(markdown_text(cell.text), cell.place, "**{}**", "<u>{}</u>") for cell in cells),
            ]
            for block in self.blocks
            for label, cells in block
        ]
        rule = ["---", *["---:"] * (len(head) - 1)]
        lines = ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)]
        return "\n".join([f"## {markdown_text(self.title)}", "", *lines, "", markdown_text(self.note), ""])

    def latex(self) -> str:
        """Return a LaTeX `table` with booktabs rules, with names escaped; further lines of a cell are smaller."""
        lines = ["% needs \\usepackage{booktabs}", "\\begin{table}", "\\centering\\small"]
        lines += [f"\\caption{{{latex_text(self.title)}}}", f"\\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}"]
        lines += ["\\toprule", " & ".join(_stacked(cell) for cell in self.head) + " \\\\"]
        for block in self.blocks:
            lines.append("\\midrule")
            for label, cells in block:
                texts = [_stacked(cell.text, cell.place) for cell in cells]
                # LaTeX would read a row that starts with [ or * as an argument of the preceding line break.
                start = "{}" if label[:1] in ("[", "*") else ""
                lines.append(" & ".join([start + latex_text(label), *texts]) + " \\\\")
        lines += [
            "\\bottomrule",
            "\\end{tabular}",
            f"\\\\[2pt]{{\\footnotesize {latex_text(self.note)}}}",
            "\\end{table}",
            "",
        ]
        return "\n".join(lines)


def mark_best(cells: Sequence[GridCell], higher_is_better: bool) -> list[GridCell]:
    """Mark the best and second-best cells; values that are equal as printed share a rank."""
    values = sorted({cell.value for cell in cells if not math.isnan(cell.value)}, reverse=higher_is_better)
    place = dict(zip(values, (1, 2), strict=False))
    return [GridCell(cell.text, cell.value, place.get(cell.value, 0)) for cell in cells]


def _stacked(text: str, place: int = 0) -> str:
    """Return LaTeX of a cell: the first line marked by its rank, further lines below it and smaller."""
    first, *more = text.split("\n")
    marked = _marked(latex_text(first), place, "\\textbf{{{}}}", "\\underline{{{}}}")
    if not more:
        return marked
    lines = " \\\\ ".join([marked, *(f"\\scriptsize {latex_text(line)}" for line in more)])
    return f"\\begin{{tabular}}[t]{{@{{}}r@{{}}}}{lines}\\end{{tabular}}"


def _marked(text: str, place: int, best: str, second: str) -> str:
    return {1: best, 2: second}.get(place, "{}").format(text)


_LATEX = {
    "\\": "\\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "–": "--",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "≤": "$\\leq$",
    "≥": "$\\geq$",
    "±": "$\\pm$",
    "−": "$-$",
    "×": "$\\times$",
    "→": "$\\rightarrow$",
    "µ": "$\\mu$",
    "μ": "$\\mu$",
    "…": "\\ldots{}",
    "`": "\\textasciigrave{}",
    "\0": "{}",
    "∅": "$\\emptyset$",
}


def latex_text(text: str) -> str:
    """Escape text for LaTeX and join its lines; letters beyond Latin are left for XeLaTeX or LuaLaTeX."""
    plain = "".join(sign if sign.isprintable() else " " for sign in " ".join(str(text).split()))
    apart = re.sub("-(?=-)", "-\0", plain)  # Two hyphens in a row would become a dash.
    return "".join(_LATEX.get(sign, sign) for sign in apart)
