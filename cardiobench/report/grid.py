"""A table as papers print it: blocks of rows, the best of a column bold, the second underlined, in Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from cardiobench.results.formatting import markdown_text

NONE = "–"
Block = tuple[tuple[str, tuple["GridCell", ...]], ...]
"""Rows between two rules: a label and one cell per further column."""


@dataclass(frozen=True)
class GridCell:
    """A cell.

    Attributes:
        text: Printed text, rounded.
        value: Compared value; NaN for a cell that takes no part.
        place: 1 the best, 2 the second; 0 the others.
    """

    text: str = NONE
    value: float = math.nan
    place: int = 0


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        name: Name of the files.
        title: One line above it.
        head: Column titles, the first one of the labels.
        blocks: Blocks of rows.
        note: Reading instructions.
    """

    name: str
    title: str
    head: tuple[str, ...]
    blocks: tuple[Block, ...]
    note: str = ""

    def frame(self) -> pd.DataFrame:
        """Return the texts of the cells as a table."""
        return pd.DataFrame(
            [(label, *(cell.text for cell in cells)) for block in self.blocks for label, cells in block],
            columns=["row", *self.head[1:]],
        )

    def markdown(self) -> str:
        """Return the table with its title and note; names stay text."""
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
        """Return a `table` with booktabs rules; names stay text."""
        lines = ["% needs \\usepackage{booktabs}", "\\begin{table}", "\\centering"]
        lines += [f"\\caption{{{latex_text(self.title)}}}", f"\\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}"]
        lines += ["\\toprule", " & ".join(latex_text(cell) for cell in self.head) + " \\\\"]
        for block in self.blocks:
            lines.append("\\midrule")
            for label, cells in block:
                texts = [
                    _marked(latex_text(cell.text), cell.place, "\\textbf{{{}}}", "\\underline{{{}}}") for cell in cells
                ]
                # A row that begins with [ or * would be read as an argument of the line break before it.
                start = "{}" if label[:1] in ("[", "*") else ""
                lines.append(" & ".join([start + latex_text(label), *texts]) + " \\\\")
        lines += [
            "\\bottomrule",
            "\\end{tabular}",
            f"\\\\{{\\footnotesize {latex_text(self.note)}}}",
            "\\end{table}",
            "",
        ]
        return "\n".join(lines)


def mark_best(cells: Sequence[GridCell], higher_is_better: bool) -> list[GridCell]:
    """Return the cells with the best and the second best marked; equal values, as printed, share a place."""
    values = sorted({cell.value for cell in cells if not math.isnan(cell.value)}, reverse=higher_is_better)
    place = dict(zip(values, (1, 2), strict=False))
    return [GridCell(cell.text, cell.value, place.get(cell.value, 0)) for cell in cells]


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
    "∅": "$\\emptyset$",
}


def latex_text(text: str) -> str:
    """Return text that stays text in LaTeX, on one line."""
    plain = "".join(sign if sign.isprintable() else " " for sign in " ".join(str(text).split()))
    return "".join(_LATEX.get(sign, sign) for sign in plain)
